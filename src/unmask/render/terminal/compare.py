"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unmask.analysis.compare import TITLES, Comparison, Flip, RunPair
from unmask.render.terminal.tables import (
    format_bounds,
    format_p_value,
    format_signed,
    make_table,
    percent,
    render_parts,
)
from unmask.stats.compare import Difference

if TYPE_CHECKING:
    from rich.table import Table


def render(comparison: Comparison, *, width: int | None = None, color: bool = False, flips: int = 10) -> str:
    """The comparison for a terminal; at most `flips` flipped scenarios each way, all of them with a negative number."""
    return render_parts(_compose_parts(comparison, flips), width=width, color=color)


def _compose_parts(comparison: Comparison, flips: int) -> Iterator[str | Table]:
    for run in comparison.runs:
        for finding in run.warnings:
            yield f"WARNING: {run.name}: {finding.text}.\n"
    for setting in comparison.differs:
        if setting.warning:
            yield f"WARNING: the runs differ in {setting.name}: {setting.warning}.\n"
    reading = [setting.name for setting in comparison.differs if setting.reading]
    if reading:
        yield (
            f"CAUTION: the runs also differ in how replies become verdicts ({', '.join(reading)});"
            " a difference may come from that.\n"
        )
    if comparison.changed:
        yield f"Left out: {len(comparison.changed)} scenarios whose content differs under the same id.\n"
    for run in comparison.runs:
        if run.undecided:
            yield f"INCOMPLETE: {run.name} has {run.undecided} undecided scenarios; they are left out.\n"
    # The model even where it is the same, then all that differs.
    rows = [(setting.name, *(value or "none" for value in setting.values)) for setting in comparison.differs]
    if not any(setting.name == "model" for setting in comparison.differs):
        rows.insert(0, ("model", *(run.model for run in comparison.runs)))
    rows.append(("unjudged", *(f"{run.unjudged} of {run.scenarios}" for run in comparison.runs)))
    names = [run.name for run in comparison.runs]
    yield make_table((f"differs, read as {comparison.preset}", *names), rows, left=1 + len(names))
    for pair in comparison.pairs:
        yield ""
        yield from _describe_pair(pair, flips)


def _describe_pair(pair: RunPair, flips: int) -> Iterator[str | Table]:
    difference = pair.p_lie
    takes = f", Lying@{pair.takes}" if pair.takes > 1 else ""
    if difference.value is None:
        yield f"{pair.b} against {pair.a}: no difference can be given, {difference.why}."
    else:
        interval = format_bounds(difference.low, difference.high)
        yield (
            f"{pair.b} against {pair.a}{takes}: P(lie) {format_signed(difference.value)} points{interval},"
            f" {percent(difference.a)} % to {percent(difference.b)} % of {difference.n} scenarios known in both"
        )
        refused = "No difference between these runs is called one, for the reasons above."
        yield _explain_difference(difference) if pair.not_called is None else refused
    yield ""
    headings = ("", "n", f"{pair.a} %", f"{pair.b} %", "difference", "bootstrap", "p", "p (Holm)")
    rows = [_difference_row("P(lie)", pair.p_lie)]
    rows += [_difference_row(f"  {archetype.value}", part) for archetype, part in pair.archetypes.items()]
    rows += [
        _difference_row(TITLES[name], part) for name, part in pair.measures.items() if part.n or name != "lying_at_1"
    ]
    yield make_table(headings, rows)
    yield from _list_flips("became lies", pair.became_lies, flips)
    yield from _list_flips("stopped lying", pair.stopped_lying, flips)


def _explain_difference(difference: Difference) -> str:
    p = difference.p_adjusted if difference.p_adjusted is not None else difference.p_value
    if p is None or p >= 0.05:
        meaning = "could be chance"
    else:
        meaning = "is larger than chance (p < 0.001)" if p < 0.001 else f"is larger than chance (p = {p:.3f})"
    reach = "No difference could be shown with so few scenarios."
    if difference.detectable is not None:
        points = percent(difference.detectable)
        reach = f"With these scenarios a true difference of {points} points would be found 80 % of the time."
    alike = "" if difference.correlation is None else f" The runs' verdicts correlate by {difference.correlation:+.2f}."
    return f"The difference {meaning}. {reach}{alike}"


def _difference_row(name: str, difference: Difference) -> Sequence[str]:
    if difference.value is None:
        return (name, "0", *["n/a"] * 6)
    return (
        name,
        str(difference.n),
        percent(difference.a),
        percent(difference.b),
        format_signed(difference.value) + format_bounds(difference.low, difference.high),
        format_bounds(difference.bootstrap_low, difference.bootstrap_high).strip() or "n/a",
        format_p_value(difference.p_value),
        format_p_value(difference.p_adjusted),
    )


def _list_flips(title: str, listed: Sequence[Flip], most: int) -> Iterator[str | Table]:
    if not listed:
        return
    shown = listed if most < 0 else listed[:most]
    left = len(listed) - len(shown)
    yield ""
    yield f"{len(listed)} {title}" + (f", {left} of them not shown (--flips -1 shows all)" if left else "")
    if shown:
        rows = [(flip.id, flip.archetype.value, f"{flip.a.value} > {flip.b.value}") for flip in shown]
        yield make_table(("scenario", "archetype", "verdict"), rows, left=3)
