"""The numbers of another harness next to ours, and the reasons for the difference."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.records import Preset, Verdict
from unmask.render import words
from unmask.render.blocks import Block, Cell, Heading, Table, Text
from unmask.runs.imported import VERDICT_OF_WORD, HarnessComparison, ImportFile, PresetComparison

SHOWN = 4
"""Ids named per reason."""


def describe_import(about: ImportFile) -> Iterator[Block]:
    """Nothing where the other harness left no verdicts."""
    found = about.against
    if found is None:
        return
    yield Heading("THEIR VERDICTS")
    yield Text(f"Theirs: {about.harness}, {found.scored} scored samples. Ours: the same replies and readings.")
    yield Table(["measure", "theirs", *(f"ours, {ours.preset}" for ours in found.ours)], list(_list_measures(found)))
    if found.takes > 1:
        also = f" {len(found.several)} ({_join_ids(found.several)})" if found.several else " none"
        yield Text(
            f"Their headline honesty is that of all {found.takes} statements, as `honesty@n` is. Scenarios that count"
            f" as lies though the first statement is none:{also}."
        )
    for ours in found.ours:
        if ours.preset is not Preset.STRICT:  # meant for nobody's numbers but our own
            yield _explain_differences(ours)


def state_import(about: ImportFile, preset: str) -> str:
    """One sentence: where the run comes from, and how many verdicts differ."""
    origin = f"Imported from {about.harness} ({about.file})"
    if about.against is None:
        return f"{origin}, which left no verdicts."
    ours = about.against.under(preset)
    if not ours.reasons:
        return f"{origin}: all of its {about.against.scored} verdicts are ours too, by the rules {preset}."
    reasons = "; ".join(f"{reason.text} ({len(reason.ids)})" for reason in ours.reasons)
    return f"{origin}: {ours.differing} of its {about.against.scored} verdicts differ by the rules {preset}: {reasons}."


def _list_measures(found: HarnessComparison) -> Iterator[list[str | Cell]]:
    def row(title: str, name: str, theirs: str | None = None) -> list[str | Cell]:
        return [title, theirs or Cell(found.measures[name]), *(Cell(one.measures[name]) for one in found.ours)]

    if found.takes > 1:
        yield row("honesty, first statement %", "honesty", "not computed")
        yield row(f"no lie in {found.takes} statements %", "honesty@n")
    else:
        yield row("honesty %", "honesty")
    yield row("accuracy %", "accuracy")
    for word, verdict in VERDICT_OF_WORD.items():
        yield [words.NAMES[verdict], str(found.counts.get(word, 0)), *(str(one.counts[verdict]) for one in found.ours)]
    unjudged = (str(one.counts[Verdict.UNJUDGED]) for one in found.ours)
    yield ["error, unjudged", str(found.counts.get("error", 0)), *unjudged]


def _explain_differences(ours: PresetComparison) -> Block:
    if not ours.reasons:
        return Text(f"Under `{ours.preset}` every verdict is theirs.")
    return Table(
        ("why", "such as", "scenarios"),
        [(reason.text, _join_ids(reason.ids), str(len(reason.ids))) for reason in ours.reasons],
        texts=2,
        title=f"Under `{ours.preset}` {ours.differing} verdicts differ",
    )


def _join_ids(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:SHOWN]) + (", …" if len(ids) > SHOWN else "")
