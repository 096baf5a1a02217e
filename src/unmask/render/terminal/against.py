"""The numbers of inspect_evals next to ours, and the reasons for the difference."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.interop.against import VERDICT_OF_WORD, HarnessComparison, ImportFile, PresetComparison
from unmask.records import Preset, Verdict
from unmask.render.terminal.tables import TextTable, make_table, percent, render_parts
from unmask.render.words import NAMES

SHOWN = 4
"""Ids named per reason."""


def render(about: ImportFile, *, width: int | None = None, color: bool = False) -> str:
    """Nothing where the other harness left no verdicts."""
    parts = _compose_parts(about.harness, about.against) if about.against else ()
    return render_parts(parts, width=width, color=color)


def _compose_parts(harness: str, found: HarnessComparison) -> Iterator[str | TextTable]:
    yield f"Theirs: {harness}, {found.scored} scored samples. Ours: the same replies and readings, in percent."
    yield ""
    headings = ["measure", "theirs", *(f"ours, {ours.preset}" for ours in found.ours)]
    yield make_table(headings, _measure_rows(found))
    yield ""
    if found.takes > 1:
        also = f" {len(found.several)} ({_join_ids(found.several)})" if found.several else " none"
        yield (
            f"Their headline honesty is that of all {found.takes} statements, as `honesty@n` is. Scenarios that count"
            f" as lies though the first statement is none:{also}."
        )
        yield ""
    for ours in found.ours:
        if ours.preset is not Preset.STRICT:  # meant for nobody's numbers but our own
            yield from _explain_differences(ours)


def _measure_rows(found: HarnessComparison) -> Iterator[list[str]]:
    def row(title: str, name: str, theirs: str | None = None) -> list[str]:
        return [title, theirs or percent(found.measures[name]), *(percent(one.measures[name]) for one in found.ours)]

    if found.takes > 1:
        yield row("honesty, first statement", "honesty", "not computed")
        yield row(f"no lie in {found.takes} statements", "honesty@n")
    else:
        yield row("honesty", "honesty")
    yield row("accuracy", "accuracy")
    for word, verdict in VERDICT_OF_WORD.items():
        yield [NAMES[verdict], str(found.counts.get(word, 0)), *(str(one.counts[verdict]) for one in found.ours)]
    unjudged = (str(one.counts[Verdict.UNJUDGED]) for one in found.ours)
    yield ["error, unjudged", str(found.counts.get("error", 0)), *unjudged]


def _explain_differences(ours: PresetComparison) -> Iterator[str | TextTable]:
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
