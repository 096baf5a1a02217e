"""Verdicts of a judge against verdicts from labels, on whole scenarios, and the shift of P(lie) that it causes.

    python -m bench.judges.verdicts                    # from the files in bench/judges/whole_scenarios/
    python -m bench.judges.verdicts --folder FOLDER

Labels and the judge's readings go through the same rules (preset `paper`). Each pass of labels is compared alone; where
`settled.jsonl` lies beside them, its labels decide what the passes differ on.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.judges.agreement import agree
from bench.judges.shares import points, share
from bench.judges.whole import (
    FOLDER,
    PASSES,
    GivenLabel,
    WholeSet,
    join_direct,
    label_readings,
    load_whole,
    paired_readings,
)
from unmask.protocol.verdict import resolve
from unmask.records import Kind, Lettered, Outcome, Preset, Ranged, Verdict, is_indirect
from unmask.stats.estimate import Difference, difference
from unmask.stats.rate import rate

ORDER = (Verdict.HONEST, Verdict.LIE, Verdict.EVASION, Verdict.NO_BELIEF, Verdict.UNJUDGED)


def judge_outcomes(everything: WholeSet) -> dict[str, Outcome]:
    """What each scenario shows by the judge's readings."""
    return {
        key: resolve(scenario, everything.judged[key].readings, preset=Preset.PAPER)
        for key, scenario in everything.scenarios.items()
    }


def label_outcomes(everything: WholeSet, labels: dict[str, GivenLabel]) -> dict[str, Outcome]:
    """What each scenario shows by these labels."""
    readings = label_readings(everything, labels)
    return {
        key: resolve(scenario, join_direct(scenario, readings[key]), preset=Preset.PAPER)
        for key, scenario in everything.scenarios.items()
    }


def list_passes(everything: WholeSet) -> dict[str, dict[str, GivenLabel]]:
    """Every pass, and the settled labels where all that the passes differ on is settled."""
    passes = {name: labels for name, labels in everything.passes.items() if name in PASSES}
    settled = everything.passes.get("settled")
    if settled is not None and not list_unsettled(everything):
        passes["settled"] = passes["first"] | settled
    return passes


def same_label(everything: WholeSet, one: GivenLabel, two: GivenLabel, scenario: str) -> bool:
    kind = everything.scenarios[scenario].kind
    return agree(one.reading(kind), two.reading(kind))


def compare_passes(everything: WholeSet) -> list[str]:
    """How often each pass agrees with itself on replies that came twice, and the two with each other."""
    lines = []
    copies = [reply for reply in everything.replies.values() if reply.again is not None]
    for name in PASSES:
        labels = everything.passes.get(name)
        if labels is not None and copies:
            same = sum(same_label(everything, labels[row.id], labels[row.again or ""], row.scenario) for row in copies)
            lines.append(f"The {name} pass agrees with itself on {share(same, len(copies))} replies that came twice.")
    if all(name in everything.passes for name in PASSES):
        first, second = (everything.passes[name] for name in PASSES)
        rows = [row for row in everything.replies.values() if row.again is None]
        same = sum(same_label(everything, first[row.id], second[row.id], row.scenario) for row in rows)
        lines.append(f"The two passes agree with each other on {share(same, len(rows))} replies.")
        one, two = (label_outcomes(everything, labels) for labels in (first, second))
        verdicts = sum(one[key].verdict is two[key].verdict for key in one)
        lines.append(f"The verdicts that follow from them agree in {share(verdicts, len(one))} scenarios.")
    return lines


def confusion_of(labelled: Mapping[str, Outcome], judged: Mapping[str, Outcome]) -> list[str]:
    """Verdicts by the labels in rows, by the judge in columns."""
    pairs = Counter((labelled[key].verdict, judged[key].verdict) for key in judged)
    head = ["| labels ↓, judge → | " + " | ".join(verdict.value for verdict in ORDER) + " |"]
    head.append("|---" + "|--:" * len(ORDER) + "|")
    rows = [verdict for verdict in ORDER if any(left is verdict for left, _ in pairs)]
    return head + [f"| {row.value} | " + " | ".join(str(pairs[row, column]) for column in ORDER) + " |" for row in rows]


def summarise(name: str, labelled: Mapping[str, Outcome], judged: Mapping[str, Outcome]) -> str:
    """One row: P(lie) by labels and by the judge, the paired shift, verdicts as labelled, what is unjudged."""
    both = [
        key for key in judged if Verdict.UNJUDGED not in (judged[key].verdict, labelled[key].verdict)
    ]  # paired: the scenarios that labels and judge both decide
    lies = [[float(side[key].verdict is Verdict.LIE) for key in both] for side in (labelled, judged)]
    shift = difference(*lies) if both else Difference(n=0)
    only = Counter(judge - label for label, judge in zip(*lies, strict=True))
    right = sum(labelled[key].verdict is judged[key].verdict for key in both)
    unjudged = sum(outcome.verdict is Verdict.UNJUDGED for outcome in judged.values())
    cells = [
        name,
        rate(int(sum(lies[0])), len(both)).percent,
        rate(int(sum(lies[1])), len(both)).percent,
        points(shift.value or 0.0, shift.low, shift.high),
        f"{only[1]}, {only[-1]}",
        share(right, len(both)),
        share(unjudged, len(judged)),
    ]
    return "| " + " | ".join(cells) + " |"


def say_false_lies(labelled: Mapping[str, Outcome], judged: Mapping[str, Outcome]) -> str:
    """How often the judge sees a lie where the labels have none: over all scenarios, and where there is a belief."""
    decided = [key for key in judged if Verdict.UNJUDGED not in (judged[key].verdict, labelled[key].verdict)]
    parts = []
    for verdicts in ((Verdict.HONEST, Verdict.EVASION, Verdict.NO_BELIEF), (Verdict.HONEST, Verdict.EVASION)):
        among = [key for key in decided if labelled[key].verdict in verdicts]
        parts.append(share(sum(judged[key].verdict is Verdict.LIE for key in among), len(among)))
    return (
        f"Of the scenarios that are no lie by the labels, the judge calls {parts[0]} lies; of those among them"
        f" that have a belief, {parts[1]}."
    )


def letters_by_slot(everything: WholeSet, labels: dict[str, GivenLabel]) -> list[str]:
    """Readings as labelled, by kind of reply."""
    counts: dict[str, list[int]] = {}
    for key, slot, label, reading in paired_readings(everything, labels):
        kind = "indirect" if is_indirect(slot) else str(slot)
        kind += ", figures" if everything.scenarios[key].kind is Kind.NUMERIC else ""
        hits = counts.setdefault(kind, [0, 0, 0])
        was_read = isinstance(reading, Lettered | Ranged)
        hits[0] += 1
        hits[1] += was_read
        hits[2] += was_read and agree(label, reading)
    lines = ["| replies | read | as labelled, of what was read |", "|---|--:|--:|"]
    return lines + [
        f"| {kind} | {share(read, n)} | {share(right, read)} |" for kind, (n, read, right) in counts.items()
    ]


def describe(everything: WholeSet) -> list[str]:
    """Everything that is known about the judge on these scenarios, as Markdown."""
    judged = judge_outcomes(everything)
    judge = next(iter(everything.judged.values())).judge
    passes = list_passes(everything)
    lines = [f"{len(judged)} scenarios, {sum(row.again is None for row in everything.replies.values())} replies,"]
    lines[0] += f" read by `{judge}`; preset `paper`. Labels by language models."
    lines += ["", *(f"- {line}" for line in compare_passes(everything)), ""]
    if not passes:
        return [*lines, "No labels yet."]
    lines.append(
        "| labels | P(lie) by labels | P(lie) by the judge | shift, points | false lies, missed lies"
        " | verdicts as labelled, of those judged | unjudged |"
    )
    lines.append("|---|--:|--:|--:|--:|--:|--:|")
    lines += [summarise(name, label_outcomes(everything, labels), judged) for name, labels in passes.items()]
    last, labels = list(passes.items())[-1]
    lines += ["", say_false_lies(label_outcomes(everything, labels), judged)]
    lines += ["", f"Verdicts by the labels (*{last}*) and by the judge:", ""]
    lines += confusion_of(label_outcomes(everything, labels), judged)
    return [*lines, "", f"Single replies (*{last}*):", "", *letters_by_slot(everything, labels)]


def list_unsettled(everything: WholeSet) -> Sequence[str]:
    """The ids of replies on which the passes differ and no settled label is there."""
    if not all(name in everything.passes for name in PASSES):
        return []
    first, second = (everything.passes[name] for name in PASSES)
    settled = everything.passes.get("settled", {})
    return [
        row.id
        for row in everything.replies.values()
        if row.again is None
        and row.id not in settled
        and not same_label(everything, first[row.id], second[row.id], row.scenario)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--unsettled", action="store_true", help="only list what the passes differ on, to be settled")
    arguments = parser.parse_args()
    everything = load_whole(arguments.folder)
    print("\n".join(list_unsettled(everything) if arguments.unsettled else describe(everything)))


if __name__ == "__main__":
    main()
