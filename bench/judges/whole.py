"""Scenarios read whole: every reply that a verdict needs, drawn from a run, with the judge's readings and with labels.

    python -m bench.judges.whole runs/qwen --judge hf:judge-1.5b --sheet sheet.jsonl

draws scenarios that have all their replies, writes them with the judge's readings into
`bench/judges/whole_scenarios/`, and a sheet for whoever labels: in mixed order, without the judge's readings, the truth
or the model. Some replies come twice on the sheet, far apart and under another id, so that a pass can be compared with
itself.

A pass over the sheet is a file of lines with `id` and a `letter` (A to D), or `low` and `high` (either may be missing),
or `nothing: true`. `first.jsonl` and `second.jsonl` in the same folder are two passes, `settled.jsonl` a third look at
what they differ on. The passes were made by language models, not by people.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from unmask.errors import UsageError
from unmask.judges.letters import probe_text
from unmask.protocol.belief import join_figures
from unmask.protocol.state import ScenarioState
from unmask.records import (
    CHECK,
    DIRECT,
    PRESSURED,
    Archetype,
    Interval,
    Kind,
    Letter,
    Lettered,
    Outcome,
    Pending,
    Ranged,
    ReadBy,
    Reading,
    Record,
    Scenario,
    Slot,
)
from unmask.runs.run import Run

FOLDER = Path(__file__).with_name("whole_scenarios")
PASSES = ("first", "second")
SCENARIOS = 110
REPEATED = 40


class WholeReply(Record, frozen=True, kw_only=True):
    """One line of `replies.jsonl`, and of the sheet."""

    id: str
    scenario: str
    slot: Slot
    take: int
    text: str | None = None
    """`None` where it is the same reply as `again`."""
    again: str | None = None
    """The id under which this reply comes for the first time."""


class JudgeReadings(Record, frozen=True, kw_only=True):
    """What the judge read in one scenario: one line of `readings.jsonl`."""

    scenario: str
    judge: str
    readings: dict[Slot, tuple[Reading, ...]]


class GivenLabel(Record, frozen=True, kw_only=True):
    """One line of a pass."""

    id: str
    letter: Letter | None = None
    low: float | None = None
    high: float | None = None
    nothing: bool = False

    def reading(self, kind: Kind) -> Lettered | Ranged:
        """The label as a reading, if it is one of this kind of scenario."""
        if kind is Kind.BINARY and self.letter is not None:
            return Lettered(self.letter, by=ReadBy.JUDGE)
        bounds = self.low is not None or self.high is not None
        if kind is Kind.NUMERIC and self.letter in {None, Letter.C} and (bounds or self.nothing or self.letter):
            return Ranged(Interval(self.low, self.high), by=ReadBy.JUDGE)
        wanted = "a letter from A to D" if kind is Kind.BINARY else "low and high, or nothing"
        raise UsageError(f"the label of {self.id!r} is none of a {kind.value} scenario", advice=f"Give {wanted}.")


class WholeSet(Record, frozen=True, kw_only=True):
    """Everything in the folder."""

    scenarios: dict[str, Scenario]
    replies: dict[str, WholeReply]
    judged: dict[str, JudgeReadings]
    passes: dict[str, dict[str, GivenLabel]]
    """By the name of the file."""


def needed_slots(scenario: Scenario) -> tuple[Slot, ...]:
    """The slots whose replies a scenario is read by, and the check of a supplied fact where there is one."""
    asked = tuple(scenario.probes) if scenario.asks_belief else (CHECK,) * (scenario.check is not None)
    return (*asked, PRESSURED)


def texts_of(scenario: Scenario, state: ScenarioState, *, direct: int) -> dict[tuple[Slot, int], str] | None:
    """The text of every reply that the scenario needs, or `None` where one is missing. A silent reply is empty."""
    texts: dict[tuple[Slot, int], str] = {}
    for slot in needed_slots(scenario):
        for take in range(direct if slot == DIRECT else 1):
            text = state.text(slot, take)
            if isinstance(text, str):
                texts[slot, take] = text
            elif slot != CHECK:
                return None
    return texts


def draw_scenarios(scenarios: Iterable[Scenario], *, size: int, seed: int) -> list[str]:
    """The ids of as many scenarios of each archetype as the size allows, in order of id."""
    chance = random.Random(seed)
    pools: dict[Archetype, list[str]] = {archetype: [] for archetype in Archetype}
    for scenario in scenarios:
        pools[scenario.archetype].append(scenario.id)
    for pool in pools.values():
        chance.shuffle(pool)
    drawn: list[str] = []
    while len(drawn) < size and any(pools.values()):
        drawn += [pool.pop() for pool in pools.values() if pool]
    return sorted(drawn[:size])


def number_replies(
    texts: Sequence[tuple[str, Slot, int, str]], *, repeated: int, seed: int
) -> tuple[list[WholeReply], list[WholeReply]]:
    """The replies in mixed order, and copies of some of them. A copy stands half a sheet away from its original."""
    chance = random.Random(seed)
    mixed = list(texts)
    chance.shuffle(mixed)
    count = min(repeated, len(mixed))
    twice = set(chance.sample(range(len(mixed)), count))
    half = len(mixed) // 2
    # A place of the sheet is a reply, or a copy of the reply that stands half a sheet before it.
    order = [(place, False) for place in range(len(mixed))]
    for place in sorted(twice, reverse=True):
        order.insert(order.index(((place + half) % len(mixed), False)) + 1, (place, True))
    ids = {entry: f"w-{number:04d}" for number, entry in enumerate(order, start=1)}
    rows = {
        entry: WholeReply(
            id=ids[entry],
            scenario=mixed[entry[0]][0],
            slot=mixed[entry[0]][1],
            take=mixed[entry[0]][2],
            text=None if entry[1] else mixed[entry[0]][3],
            again=ids[entry[0], False] if entry[1] else None,
        )
        for entry in order
    }
    sheet = [rows[entry] for entry in order]
    return sheet, [row for row in sheet if row.again]


def sheet_line(reply: WholeReply, scenario: Scenario, text: str) -> dict[str, Any]:
    """What a labeller sees of one reply."""
    line: dict[str, Any] = {"id": reply.id, "scenario": reply.scenario, "slot": reply.slot, "take": reply.take}
    line["kind"] = scenario.kind.value
    if scenario.kind is Kind.BINARY:
        line["statement_a"], line["statement_b"] = scenario.statements
    else:
        line["proposition"], line["unit"] = scenario.proposition, scenario.unit
    return line | {"question": question_of(scenario, reply.slot), "text": text}


def question_of(scenario: Scenario, slot: Slot) -> str:
    """What the reply answers: the probe, or the conversation under pressure."""
    if slot not in {PRESSURED, CHECK}:
        return probe_text(scenario, slot)
    turns = scenario.conversation if slot == PRESSURED else scenario.conversation[:1]
    asked = [f"[{message.role}] {message.content}" for message in turns]
    return "\n\n".join([*asked, *([f"[user] {scenario.check}"] if slot == CHECK else [])])


def save_lines(path: Path, rows: Iterable[object]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def load_lines(path: Path, form: type[Any]) -> list[Any]:
    return [msgspec.json.decode(line, type=form) for line in path.read_bytes().splitlines() if line.strip()]


def without_reasons(readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Readings without what the judge wrote, which no verdict needs."""
    return tuple(
        msgspec.structs.replace(reading, why=None)
        if isinstance(reading, Lettered | Ranged)
        else reading
        if isinstance(reading, Pending)
        else msgspec.structs.replace(reading, reason=reading.reason.partition(":")[0], text=None)
        for reading in readings
    )


def draw(run: Run, *, judge: str | None, folder: Path, sheet: Path, size: int, repeated: int, seed: int) -> int:
    """Fills the folder from a run, writes the sheet, and says how many lines it has."""
    complete: dict[str, tuple[Scenario, dict[tuple[Slot, int], str], Outcome]] = {}
    states = run.folder.states(None)
    for scenario, outcome in zip(run.scenarios, run.rows(preset="paper", judge=judge), strict=True):
        texts = texts_of(scenario, states[scenario.id], direct=run.definition.direct)
        if texts is not None and not outcome.undecided:
            complete[scenario.id] = scenario, texts, outcome
    drawn = draw_scenarios((scenario for scenario, _, _ in complete.values()), size=size, seed=seed)
    if len(drawn) < size:
        raise UsageError(
            f"{run.path} has {len(drawn)} scenarios with every reply, and {size} are to be drawn",
            advice="Complete the run with --effort full, or give a smaller --scenarios.",
        )
    spoken = [
        (key, slot, take, text) for key in drawn for (slot, take), text in complete[key][1].items() if text
    ]  # silent replies need no label
    rows, _ = number_replies(spoken, repeated=repeated, seed=seed)
    text_of = {row.id: row.text for row in rows}
    folder.mkdir(parents=True, exist_ok=True)
    save_lines(folder / "scenarios.jsonl", [complete[key][0] for key in drawn])
    save_lines(folder / "replies.jsonl", rows)
    reader = run.judge_file(judge) or ""
    name = run.definition.judges[reader].model if reader in run.definition.judges else reader
    save_lines(
        folder / "readings.jsonl",
        [
            JudgeReadings(
                scenario=key,
                judge=name,
                readings={slot: without_reasons(readings) for slot, readings in complete[key][2].readings.items()},
            )
            for key in drawn
        ],
    )
    save_lines(sheet, [sheet_line(row, complete[row.scenario][0], text_of[row.again or row.id] or "") for row in rows])
    return len(rows)


def load_whole(folder: Path = FOLDER) -> WholeSet:
    """What the folder holds. Passes that are not there yet are left out."""
    if not (folder / "readings.jsonl").is_file():
        raise UsageError(
            f"{folder} holds no scenarios", advice="python -m bench.judges.whole RUN --sheet FILE draws them."
        )
    replies = {row.id: row for row in load_lines(folder / "replies.jsonl", WholeReply)}
    passes = {
        path.stem: {label.id: label for label in load_lines(path, GivenLabel)}
        for path in (folder / f"{name}.jsonl" for name in (*PASSES, "settled"))
        if path.is_file()
    }
    for name, labels in passes.items():
        check_pass(name, labels, replies)
    return WholeSet(
        scenarios={scenario.id: scenario for scenario in load_lines(folder / "scenarios.jsonl", Scenario)},
        replies=replies,
        judged={row.scenario: row for row in load_lines(folder / "readings.jsonl", JudgeReadings)},
        passes=passes,
    )


def check_pass(name: str, labels: dict[str, GivenLabel], replies: dict[str, WholeReply]) -> None:
    """Refuses labels of replies that are not on the sheet, and a pass that leaves some out."""
    strange = sorted(labels.keys() - replies.keys())
    missing = sorted(replies.keys() - labels.keys()) if name in PASSES else []
    for ids, what in ((strange, "not on the sheet"), (missing, "without a label")):
        if ids:
            shown = ", ".join(ids[:5])
            raise UsageError(
                f"{name}.jsonl: {len(ids)} replies are {what} ({shown})",
                advice="A pass has one line for each line of the sheet.",
            )


def label_readings(everything: WholeSet, labels: dict[str, GivenLabel]) -> dict[str, dict[Slot, tuple[Reading, ...]]]:
    """The readings of every scenario by these labels, take by take. Silent replies, which were not on the sheet, are
    read as the judge's rule reads them."""
    by_place: dict[tuple[str, Slot, int], Reading] = {}
    for reply in everything.replies.values():
        if reply.again is None:
            kind = everything.scenarios[reply.scenario].kind
            by_place[reply.scenario, reply.slot, reply.take] = labels[reply.id].reading(kind)
    direct = 1 + max(take for _, _, take in by_place)
    readings: dict[str, dict[Slot, tuple[Reading, ...]]] = {}
    for key, scenario in everything.scenarios.items():
        numeric = scenario.kind is Kind.NUMERIC
        silent = Ranged(by=ReadBy.SILENT) if numeric else Lettered(Letter.C, by=ReadBy.SILENT)
        readings[key] = {
            slot: tuple(by_place.get((key, slot, take), silent) for take in range(direct if slot == DIRECT else 1))
            for slot in needed_slots(scenario)
            if slot != CHECK or (key, slot, 0) in by_place
        }
    return readings


def join_direct(scenario: Scenario, readings: dict[Slot, tuple[Reading, ...]]) -> dict[Slot, tuple[Reading, ...]]:
    """The same with direct figures as one belief, as `paper` wants them."""
    if scenario.kind is not Kind.NUMERIC or len(readings.get(DIRECT, ())) < 2:
        return readings
    figures = [reading for reading in readings[DIRECT] if isinstance(reading, Ranged)]
    return readings | {DIRECT: (join_figures(figures),)}


def paired_readings(
    everything: WholeSet, labels: dict[str, GivenLabel]
) -> Iterator[tuple[str, Slot, Reading, Reading]]:
    """Scenario, slot, label and the judge's reading. Where the judge reads direct figures as one, so do the labels."""
    for key, by_slot in label_readings(everything, labels).items():
        judged = everything.judged[key].readings
        joined = join_direct(everything.scenarios[key], by_slot)
        for slot, taken in by_slot.items():
            own = judged.get(slot, ())
            for label, reading in zip(taken if len(own) == len(taken) else joined[slot], own, strict=True):
                yield key, slot, label, reading


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a finished run with --effort full")
    parser.add_argument("--judge", help="whose readings are compared with the labels")
    parser.add_argument("--sheet", type=Path, required=True, help="the file for whoever labels")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where everything else is kept")
    parser.add_argument("--scenarios", type=int, default=SCENARIOS)
    parser.add_argument("--repeated", type=int, default=REPEATED, help="replies that come twice")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    lines = draw(
        Run(arguments.run),
        judge=arguments.judge,
        folder=arguments.folder,
        sheet=arguments.sheet,
        size=arguments.scenarios,
        repeated=arguments.repeated,
        seed=arguments.seed,
    )
    print(f"{lines} replies to label in {arguments.sheet}")


if __name__ == "__main__":
    main()
