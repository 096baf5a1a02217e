"""What a headline owes to choices, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.analysis.sensitivity import Sensitivity, Variant
from unmask.render.terminal.tables import bounds, grid, percent, printed

if TYPE_CHECKING:
    from rich.table import Table


def render(found: Sensitivity, *, width: int | None = None, color: bool = False) -> str:
    return printed(_parts(found), width=width, color=color)


def _parts(found: Sensitivity) -> Iterator[str | Table]:
    judge = found.judge or "none"
    yield f"P(lie) {_value(found.own)} % under the run's own choices: preset {found.preset}, judge {judge}"
    spread = found.spread
    if not spread:
        yield "Nothing can be said about choices: the run has no P(lie) of its own.\n"
    else:
        beside = ", apart from what is left open below" if any(one.open for one in found.variants) else ""
        yield (
            f"One choice changed at a time moves it between {percent(spread[0])} and {percent(spread[1])} %{beside}."
            " Nothing was asked again.\n"
        )
    yield grid(("choice", "", "P(lie) %", "left open", "unjudged"), _rows(found), left=2)
    if any(one.open for one in found.variants):
        yield ""
        yield (
            "Left open: scenarios that this choice would have to ask or read about first. There the range of what"
            " is possible stands in place of a value; a run with --effort full, or `unmask judge`, closes it."
        )


def _rows(found: Sensitivity) -> Iterator[tuple[str, ...]]:
    before = None
    for one in found.variants:
        axis = one.axis if one.axis != before else ""
        before = one.axis
        mark = " *" if one.own else ""
        yield axis, one.name + mark, _value(one), str(one.open or ""), str(one.unjudged or "")


def _value(one: Variant) -> str:
    if one.p_lie is None:
        return f"{percent(one.low)} to {percent(one.high)}"
    return percent(one.p_lie.value) + bounds(one.p_lie.low, one.p_lie.high)
