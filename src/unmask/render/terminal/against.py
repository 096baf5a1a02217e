"""`unmask import`: another harness's numbers beside ours, and the reasons for the difference."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.interop.against import REFERENCE, HarnessComparison, PresetResult
from unmask.records import Preset, Verdict
from unmask.render.terminal.tables import TextTable, make_table, percent, render_parts
from unmask.render.words import NAMES

SHOWN = 4
"""Ids named per reason."""


def render(comparison: HarnessComparison, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(comparison), width=width, color=color)


def explain_missing(harness: str) -> str:
    """Why there are no numbers of theirs to show."""
    if harness == "unmask":
        return "It was made by unmask: there are no numbers of another harness to hold against ours."
    if harness == REFERENCE:
        return (
            "It has no columns of extracted letters (`eval(…)_run1_extracted`), so the reference code's own numbers"
            " cannot be made of it; ours are read from what the judge wrote."
        )
    return "The log holds no scores, so there are no numbers of theirs to hold against ours."


def _compose_parts(comparison: HarnessComparison) -> Iterator[str | TextTable]:
    yield (
        f"Theirs: {comparison.harness}, {comparison.scored} scored samples. Ours: the same replies and readings,"
        f" in percent."
    )
    yield ""
    headings = ["measure", "theirs", *(f"ours, {ours.preset}" for ours in comparison.ours)]
    yield make_table(headings, _measure_rows(comparison))
    yield ""
    if comparison.recomputed:
        yield (
            "The folder holds no verdicts: theirs are made here of the letters and bounds that the reference code"
            " extracted, by its rules (docs/protocol.md). There a judge call that timed out counts as not lying and a"
            " statement without a letter as a lie."
        )
        yield ""
    if comparison.takes > 1 and not comparison.recomputed:
        also = f" {len(comparison.several)} ({_join_ids(comparison.several)})" if comparison.several else " none"
        yield (
            f"Their headline honesty is that of all {comparison.takes} statements, as `honesty@n` is. Scenarios that"
            f" count as lies though the first statement is none:{also}."
        )
        yield ""
    for ours in comparison.ours:
        if ours.preset is not Preset.STRICT:  # meant for nobody's numbers but our own
            yield from _explain_differences(ours)


def _measure_rows(comparison: HarnessComparison) -> Iterator[list[str]]:
    theirs, scores = comparison.theirs, [ours.score.overall for ours in comparison.ours]
    if comparison.takes > 1:
        their_first = percent(theirs["honesty"]) if comparison.recomputed else "not computed"
        yield ["honesty, first statement", their_first, *(percent(ours.first) for ours in comparison.ours)]
        never = [None if (lies := score.lying_at[comparison.takes].value) is None else 1 - lies for score in scores]
        yield [f"no lie in {comparison.takes} statements", percent(theirs["honesty@n"]), *map(percent, never)]
    else:
        yield ["honesty", percent(theirs["honesty"]), *(percent(score.honesty.value) for score in scores)]
    yield ["accuracy", percent(theirs["accuracy"]), *(percent(score.accuracy.value) for score in scores)]
    words = {"honest": Verdict.HONEST, "lie": Verdict.LIE, "evade": Verdict.EVASION, "no-belief": Verdict.NO_BELIEF}
    for word, verdict in words.items():
        counts = (str(score.counts[verdict]) for score in scores)
        yield [NAMES[verdict], str(comparison.counts.get(word, 0)), *counts]
    unjudged = (str(score.counts[Verdict.UNJUDGED]) for score in scores)
    yield ["error, unjudged", str(comparison.counts.get("error", 0)), *unjudged]


def _explain_differences(ours: PresetResult) -> Iterator[str | TextTable]:
    if not ours.reasons:
        yield f"Under `{ours.preset}` every verdict is theirs."
        yield ""
        return
    yield f"Under `{ours.preset}` {ours.differing} verdicts differ:"
    yield make_table(
        ["", "scenarios", "such as"],
        [[f"  {reason.text}", str(len(reason.ids)), _join_ids(reason.ids)] for reason in ours.reasons],
    )
    yield ""


def _join_ids(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:SHOWN]) + (", …" if len(ids) > SHOWN else "")
