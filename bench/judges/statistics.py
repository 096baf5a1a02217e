"""How figures of real statistics are read: each reply against its label, and the verdicts of the complete scenarios.

    python -m bench.judges.statistics --half tuning
    python -m bench.judges.statistics --half fresh --judge embedded/judge-1.5b --runs /tmp/figures

The replies and labels are in `statistics/replies.jsonl`, the scenarios in `statistics/scenarios.jsonl`. A reply is *as
labelled* where both say the same bounds within 5 %, and the same ones are open; a half-open interval is never the same
as a figure.
Labels were given by language models. The takes of a scenario are read as those of a run with three direct takes and two
under pressure, and the verdicts compared with those that the labels give by the same rules.

With `--no-question` no judge is loaded, as if one confirmed every figure: an upper limit of wrong ones.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from unmask.data.load import from_scenarios
from unmask.engine.define import create_or_continue, define_run, judge_spec
from unmask.engine.run import judge as judge_run
from unmask.judges.base import FigureDoubt, Style
from unmask.judges.stated import read_figure
from unmask.models.scripted import Scripted
from unmask.protocol.plan import PlannerSettings
from unmask.protocol.readings import readings_of
from unmask.protocol.verdict import resolve
from unmask.records import (
    DIRECT,
    PRESSURED,
    Asked,
    Choice,
    Effort,
    Interval,
    Outcome,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Record,
    Scenario,
    Slot,
)
from unmask.runs.folder import Folder
from unmask.runs.options import Options
from unmask.stats.rate import wilson_interval

HERE = Path(__file__).parent / "statistics"
REPLIES = HERE / "replies.jsonl"
SCENARIOS = HERE / "scenarios.jsonl"
WITHIN = 0.05
"""Two bounds are the same where they differ by this share of the larger."""


class FigureLabel(Record, frozen=True):
    """Bounds in the unit of the proposition; `nothing` where no figure is given for it."""

    low: float | None = None
    high: float | None = None
    nothing: bool = False

    def reading(self) -> Ranged:
        return Ranged(Interval() if self.nothing else Interval(self.low, self.high), by=ReadBy.JUDGE)


class FigureReply(msgspec.Struct, frozen=True, kw_only=True):
    """One reply with the settled label. Other fields of the line are passed over."""

    id: str
    scenario: str
    slot: Slot
    take: int
    text: str
    made_by: str
    half: str
    label: FigureLabel

    @property
    def case(self) -> str:
        """The scenario as one writer answered it."""
        return f"{self.scenario}.{self.made_by}"


def load_replies(path: Path, half: str) -> list[FigureReply]:
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    settled = [line if "label" in line else {**line, "label": line["first"]} for line in lines if "first" in line]
    replies = [msgspec.convert(line, FigureReply) for line in settled]
    return [reply for reply in replies if half in (reply.half, "all")]


def load_scenarios(path: Path, replies: Sequence[FigureReply]) -> list[Scenario]:
    """One scenario for every writer that answered it."""
    every = [msgspec.json.decode(line, type=Scenario) for line in path.read_bytes().splitlines()]
    by_id = {scenario.id: scenario for scenario in every}
    cases = dict.fromkeys((reply.scenario, reply.case) for reply in replies)
    return [msgspec.structs.replace(by_id[scenario], id=case) for scenario, case in cases]


def make_folder(scenarios: Sequence[Scenario], replies: Sequence[FigureReply], path: Path) -> Options:
    """A run folder with these replies, and nothing read yet."""
    count = Counter((reply.case, reply.slot) for reply in replies)
    options = Options(
        direct=max(number for (_, slot), number in count.items() if slot == DIRECT),
        takes=max(number for (_, slot), number in count.items() if slot == PRESSURED),
        effort=Effort.FULL,
    )
    folder = Folder(path)
    if not folder.exists:
        dataset = from_scenarios(scenarios, name="statistics")
        subject = Scripted(lambda _: "", name="labelled/replies")
        create_or_continue(folder, define_run(dataset, subject, judge_spec("verbatim", options), options), dataset)
        for reply in replies:
            choices = (Choice(reply.text),)
            folder.replies.append(Asked(scenario=reply.case, slot=reply.slot, takes=(reply.take,), choices=choices))
        folder.replies.close()
    return options


Places = dict[tuple[str, Slot, int], Reading]


def read_all(scenarios: Sequence[Scenario], replies: Sequence[FigureReply], judge: str | None, path: Path) -> Places:
    """What the judge reads in every reply; without one, what the grammar reads alone."""
    if judge is None:
        by_id = {scenario.id: scenario for scenario in scenarios}
        read = {
            (reply.case, reply.slot, reply.take): read_figure(by_id[reply.case], reply.slot, reply.text)
            for reply in replies
        }
        return {
            key: Ranged(reading.value, by=ReadBy.RULE) if isinstance(reading, FigureDoubt) else reading
            for key, reading in read.items()
        }
    make_folder(scenarios, replies, path)
    run = judge_run(path, judge=judge)
    file = run.judge_file(judge)
    reads = run.definition.settings(file).reads
    places: Places = {}
    for scenario, state in Folder(path).each_state(file):
        for slot, readings in readings_of(scenario, state, reads).items():
            places |= {(scenario.id, slot, take): reading for take, reading in enumerate(readings)}
    return places


def same_bounds(label: Ranged, reading: Ranged) -> bool:
    pairs = zip(_bounds(label), _bounds(reading), strict=True)
    return all(a is b if a is None or b is None else abs(a - b) <= WITHIN * max(abs(a), abs(b)) for a, b in pairs)


def _bounds(reading: Ranged) -> tuple[float | None, float | None]:
    return reading.absolute.lower, reading.absolute.upper


def class_of(label: Ranged, reading: Reading) -> str:
    if not isinstance(reading, Ranged):
        return "unread"
    return "as labelled" if same_bounds(label, reading) else "wrong"


def outcomes(scenarios: Iterable[Scenario], places: Places, preset: Preset) -> dict[str, Outcome]:
    """The verdict of every scenario, from readings of single takes."""
    rules = PlannerSettings(style=Style.PICKS, preset=preset).rules
    result = {}
    for scenario in scenarios:
        slots: dict[Slot, tuple[Reading, ...]] = {}
        for slot in (DIRECT, PRESSURED):
            takes = sorted(take for (name, of, take) in places if (name, of) == (scenario.id, slot))
            slots[slot] = tuple(places[scenario.id, slot, take] for take in takes)
        result[scenario.id] = resolve(scenario, slots, preset=rules)
    return result


def describe(counts: Counter[str]) -> dict[str, Any]:
    """The counts, and the shares with their 95 % intervals: of what was read, and of all replies."""
    total, read = counts.total(), counts["as labelled"] + counts["wrong"]
    described: dict[str, Any] = {"replies": total, "read": read, **{name: counts[name] for name in CLASSES}}
    for name, size in (("of_read", read), ("of_all", total)):
        for what in ("as labelled", "wrong"):
            described[f"{what.replace(' ', '_')}_{name}"] = _share(counts[what], size)
    return described


CLASSES = ("as labelled", "wrong", "unread")


def _share(count: int, total: int) -> str:
    if not total:
        return "n/a"
    low, high = wilson_interval(count, total)
    return f"{100 * count / total:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tuning", "test", "fresh", "second_fresh", "all"), default="fresh")
    parser.add_argument("--judge", action="append", help="a judge that chooses; embedded/judge-1.5b if none is named")
    parser.add_argument("--no-question", action="store_true", help="the grammar alone, without a model")
    parser.add_argument("--replies", type=Path, default=REPLIES)
    parser.add_argument("--scenarios", type=Path, default=SCENARIOS)
    parser.add_argument("--runs", type=Path, help="keep the run folder here, and continue what it holds")
    parser.add_argument("--each", action="store_true", help="also print every reply that is not as labelled")
    arguments = parser.parse_args()
    replies = load_replies(arguments.replies, arguments.half)
    scenarios = load_scenarios(arguments.scenarios, replies)
    labels = {(reply.case, reply.slot, reply.take): reply.label.reading() for reply in replies}
    judges = [None] if arguments.no_question else arguments.judge or ["embedded/judge-1.5b"]
    for judge in judges:
        with tempfile.TemporaryDirectory() as scratch:
            places = read_all(scenarios, replies, judge, (arguments.runs or Path(scratch)) / arguments.half)
        print(f"# {judge or 'the grammar alone'}, {arguments.half}")
        print_readings(replies, labels, places, each=arguments.each)
        print_verdicts(scenarios, labels, places)


def print_readings(replies: Sequence[FigureReply], labels: dict[Any, Ranged], places: Places, *, each: bool) -> None:
    counts: dict[str, Counter[str]] = {"all": Counter()}
    for reply in replies:
        key = reply.case, reply.slot, reply.take
        name = class_of(labels[key], places[key])
        judged = getattr(places[key], "by", None) == ReadBy.JUDGE
        kind = "nothing" if labels[key].empty else "half-open" if None in _bounds(labels[key]) else "figure"
        groups = ["all", reply.made_by, reply.slot, f"labelled {kind}", *(["decided by the judge"] if judged else [])]
        for group in groups:
            counts.setdefault(group, Counter())[name] += 1
        if each and name != "as labelled":
            print(f"{reply.id}: {name}; label {_bounds(labels[key])}, read {places[key]}")
    for group, of_group in counts.items():
        print(f"{group}: {describe(of_group)}")


def print_verdicts(scenarios: Sequence[Scenario], labels: dict[Any, Ranged], places: Places) -> None:
    for preset in Preset:
        by_label, by_judge = outcomes(scenarios, dict(labels), preset), outcomes(scenarios, places, preset)
        pairs = Counter((by_label[name].verdict.value, by_judge[name].verdict.value) for name in by_label)
        judged = sum(count for (_, read), count in pairs.items() if read != "unjudged")
        same = sum(count for (labelled, read), count in pairs.items() if labelled == read != "unjudged")
        beliefs = Counter((_belief_name(by_label[name]), _belief_name(by_judge[name])) for name in by_label)
        print(
            f"preset {preset.value}: verdicts {judged} of {len(by_label)} judged, of these alike {_share(same, judged)}"
        )
        print(
            "  verdict by labels -> by the judge: "
            + ", ".join(f"{a} -> {b} {n}" for (a, b), n in sorted(pairs.items()))
        )
        print(
            "  belief by labels -> by the judge: "
            + ", ".join(f"{a} -> {b} {n}" for (a, b), n in sorted(beliefs.items()))
        )


def _belief_name(outcome: Outcome) -> str:
    return {"Ranged": "belief", "NoBelief": "none", "Undecided": "open"}.get(type(outcome.belief).__name__, "none")


if __name__ == "__main__":
    main()
