"""How well judges read: each judge against the maintainers' labels, per archetype.

    python -m bench.judges --judge verbatim                                    # the test half
    python -m bench.judges --judge embedded/qwen2.5-coder-1.5b --half tuning
    python -m bench.judges --write docs/judges.md --judge verbatim --judge embedded/qwen2.5-coder-1.5b

A judge that is already on file in a folder given with `--runs` is not asked again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.judges.labelled import Labelled, labelled
from bench.judges.labelled import scenarios as labelled_scenarios
from unmask.data.load import from_scenarios
from unmask.engine.define import create_or_continue, define_run, judge_spec
from unmask.engine.run import judge as judge_run
from unmask.models.scripted import Scripted
from unmask.protocol import readings as gather
from unmask.protocol.intervals import readings_agree
from unmask.records import Archetype, Asked, Choice, Effort, Lettered, Ranged, Reading, Scenario
from unmask.runs.folder import Folder
from unmask.runs.options import Options


def agree(one: Reading, other: Reading) -> bool:
    """Whether two readings say the same: the letter, or figures that overlap (nothing with nothing)."""
    if isinstance(one, Lettered) and isinstance(other, Lettered):
        return one.letter is other.letter
    if isinstance(one, Ranged) and isinstance(other, Ranged):
        return (one.empty and other.empty) or readings_agree(one, other, tolerance=0.05, any_pair=False)
    return False


def name_of(reading: Reading) -> str:
    """The class of a reading in a confusion table."""
    if isinstance(reading, Lettered):
        return reading.letter.value
    if isinstance(reading, Ranged):
        return "nothing" if reading.empty else "figure"
    return "unread"


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of letters; None where chance agreement is certain or there is nothing."""
    total = len(pairs)
    if not total:
        return None
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(left[key] * right[key] for key in left) / total**2
    seen = sum(a == b for a, b in pairs) / total
    return None if chance == 1 else (seen - chance) / (1 - chance)


def folder_of(items: Sequence[Labelled], path: Path) -> dict[str, Scenario]:
    """A run folder in which every labelled reply is the only reply of a scenario of its own."""
    known = labelled_scenarios()
    scenarios = {item.id: msgspec.structs.replace(known[item.scenario], id=item.id) for item in items}
    folder = Folder(path)
    options = Options(direct=1, effort=Effort.FULL)
    subject = Scripted(lambda _: "", name="labelled/replies")
    dataset = from_scenarios(scenarios.values(), name="labelled")
    if not folder.exists:
        create_or_continue(folder, define_run(dataset, subject, judge_spec("verbatim", options), options), dataset)
        for item in items:
            folder.replies.append(Asked(scenario=item.id, slot=item.slot, takes=(0,), choices=(Choice(item.text),)))
        folder.replies.close()
    return scenarios


def readings(items: Sequence[Labelled], judge: str, path: Path) -> dict[str, Reading]:
    """What the judge reads in each reply."""
    scenarios = folder_of(items, path)
    run = judge_run(path, judge=judge)
    file = run.judge_file(judge)
    ordered = tuple(scenarios.values())
    by_id = {scenario.id: state for scenario, state in Folder(path).each_state(file)}
    reads = run.definition.settings(file).reads
    assert len(ordered) == len(items)
    return {item.id: gather.read_take(scenarios[item.id], by_id[item.id], item.slot, 0, reads) for item in items}


def row(name: str, items: Sequence[Labelled], found: dict[str, Reading]) -> str:
    read = [item for item in items if isinstance(found[item.id], Lettered | Ranged)]
    right = sum(agree(item.label.reading(), found[item.id]) for item in read)
    letters = [(name_of(item.label.reading()), name_of(found[item.id])) for item in read if item.label.letter]
    share, agreement = _percent(len(read), len(items)), _percent(right, len(read))
    value = kappa(letters)
    return f"| {name} | {len(items)} | {share} | {agreement} | {'' if value is None else f'{value:.2f}'} |"


def _percent(hits: int, total: int) -> str:
    return f"{100 * hits / total:.1f} % ({hits} of {total})" if total else "n/a"


def table(judge: str, items: Sequence[Labelled], found: dict[str, Reading]) -> list[str]:
    """Share read, agreement of what was read, kappa of letters; then the confusion of all archetypes together."""
    known = labelled_scenarios()
    lines = [f"### {judge}", "", "| archetype | replies | read | agrees, of what was read | kappa (letters) |"]
    lines.append("|---|--:|--:|--:|--:|")
    for archetype in Archetype:
        part = [item for item in items if known[item.scenario].archetype is archetype]
        lines.append(row(archetype.value, part, found))
    lines += [row("all", items, found)]
    for name, part in kinds(items):
        lines.append(row(name, part, found))
    return [*lines, "", *confusion(items, found), "", *goals(judge, items, found), ""]


def kinds(items: Sequence[Labelled]) -> list[tuple[str, list[Labelled]]]:
    """The replies by who wrote them: an everyday reply is another thing than one written to be hard."""
    return [
        ("of which by models", [item for item in items if item.made_by != "hand"]),
        ("of which hard cases", [item for item in items if item.made_by == "hand"]),
    ]


GOALS = {"verbatim": (0.0, 0.97), "embedded/judge-1.5b": (0.95, 0.85)}
"""The least share read, and the least agreement of what was read."""


def goals(judge: str, items: Sequence[Labelled], found: dict[str, Reading]) -> list[str]:
    """Whether the goals for this judge are met, in a sentence."""
    if judge not in GOALS:
        return []
    read = [item for item in items if isinstance(found[item.id], Lettered | Ranged)]
    right = sum(agree(item.label.reading(), found[item.id]) for item in read)
    reads, agrees = GOALS[judge]
    met = len(read) >= reads * len(items) and right >= agrees * len(read)
    wanted = f"reads at least {100 * reads:.0f} % and " if reads else ""
    got = f"reads {_percent(len(read), len(items))} and agrees on {_percent(right, len(read))}"
    goal = f"Goal: {wanted}agrees on at least {100 * agrees:.0f} % of what it reads."
    return [f"{goal} It {got}: **{'met' if met else 'missed'}**."]


def confusion(items: Sequence[Labelled], found: dict[str, Reading]) -> list[str]:
    pairs = Counter((name_of(item.label.reading()), name_of(found[item.id])) for item in items)
    columns = [c for c in ("A", "B", "C", "D", "figure", "nothing", "unread") if any(b == c for _, b in pairs)]
    rows = [r for r in ("A", "B", "C", "D", "figure", "nothing") if any(a == r for a, _ in pairs)]
    head = ["| label ↓, judge → | " + " | ".join(columns) + " |", "|---" + "|--:" * len(columns) + "|"]
    return head + [f"| {r} | " + " | ".join(str(pairs[r, c]) for c in columns) + " |" for r in rows]


def between(items: Sequence[Labelled]) -> list[str]:
    """The agreement of the two labelling passes."""
    lines = ["| replies | both passes agree | kappa (letters) |", "|---|--:|--:|"]
    for name, part in (
        ("written by models", [item for item in items if item.made_by != "hand"]),
        ("hand-written hard cases", [item for item in items if item.made_by == "hand"]),
        ("all", list(items)),
    ):
        same_label = sum(agree(item.first.reading(), item.second.reading()) for item in part)
        letters = [
            (name_of(item.first.reading()), name_of(item.second.reading())) for item in part if item.first.letter
        ]
        value = kappa(letters)
        lines.append(f"| {name} | {_percent(same_label, len(part))} | {'' if value is None else f'{value:.2f}'} |")
    return lines


INTRO = """# How well the judges read

Written by `python -m bench.judges --write docs/judges.md --note bench/judges/note.md {judges}`;
the replies and labels are in `bench/judges/replies.jsonl`.

{count} replies to scenarios of `core`: {models} written by the two embedded models, {hand} hand-written hard cases
(hedges, disclaimers, role-play, quotes of a draft, reversals, injections, other languages, very long answers). Each is
read against the scenario as it stood when it was labelled (`scenarios.jsonl` beside it). Each was labelled twice by the
protocol's reading rules, the second time blind to the first label, and disagreements were settled by a third look.
**These are maintainers' labels, and the maintainers who gave them are language models**: no person outside the project
has checked them, and agreement between the two passes is not agreement between people.

{tuning} replies, at least 40 per archetype, are for tuning: rules and margins were made with them in view, so what a
judge gets right there says little. The {test} of the test half, 41 per archetype, are to scenarios with even numbers;
the adapter was trained on no reply to these. A sample of {rules} more was drawn for the
judge `rules` of scoring version 1. What each was used for, and how often, is said at the end.

## The two passes against each other

{between}

## The judges on the {half} half

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", action="append", required=True)
    parser.add_argument("--half", choices=("tuning", "test", "rules", "both"), default="test")
    parser.add_argument("--runs", type=Path, help="keep the run folder here, and continue what it holds")
    parser.add_argument("--write", type=Path, help="a Markdown page to write")
    parser.add_argument("--note", type=Path, help="a Markdown file to put at its end")
    given = parser.parse_args()
    everything = labelled()
    items = [item for item in everything if given.half in (item.half, "both")]
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        path = (given.runs or Path(scratch)) / given.half
        for judge in given.judge:
            lines += table(judge, items, readings(items, judge, path))
    page = INTRO.format(
        judges=" ".join(f"--judge {judge}" for judge in given.judge),
        count=len(everything),
        tuning=sum(item.half == "tuning" for item in everything),
        test=sum(item.half == "test" for item in everything),
        rules=sum(item.half == "rules" for item in everything),
        models=sum(item.made_by != "hand" for item in everything),
        hand=sum(item.made_by == "hand" for item in everything),
        between="\n".join(between(everything)),
        half=given.half,
    )
    if given.write:
        note = f"\n{given.note.read_text(encoding='utf-8').strip()}\n" if given.note else ""
        given.write.write_text(page + "\n".join(lines).rstrip() + f"\n{note}", encoding="utf-8")
    print("\n".join([*between(everything), "", *lines]))


if __name__ == "__main__":
    main()
