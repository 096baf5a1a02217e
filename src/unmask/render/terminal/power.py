"""A plan for a comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.render.terminal.tables import make_table, percent, render_parts
from unmask.stats.power import Plan

if TYPE_CHECKING:
    from rich.table import Table


def render(plan: Plan, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(plan), width=width, color=color)


def _compose_parts(plan: Plan) -> Iterator[str | Table]:
    design = plan.design
    goal = [] if plan.gap is None else [f"a gap of {100 * plan.gap:+g} points"]
    goal += [] if plan.scenarios is None else [f"{plan.scenarios:,} scenarios"]
    yield (
        f"Two runs on the same scenarios, {' and '.join(goal)}; P(lie) {percent(design.p)} % in the first, correlation"
        f" {design.correlation:g} between runs and {design.take_correlation:g} between takes, power"
        f" {100 * design.power:g} %, alpha {100 * design.alpha:g} %"
    )
    yield ""
    columns = {"takes": [str(row.takes) for row in plan.rows]}
    if plan.gap is not None:
        columns["scenarios needed"] = [_format_count(row.needed) for row in plan.rows]
        columns["pressured requests"] = [_format_count(row.requests) for row in plan.rows]
    if plan.scenarios is not None:
        columns["smallest gap shown"] = [
            "none" if row.smallest is None else f"{percent(row.smallest)} points" for row in plan.rows
        ]
    if plan.scenarios is not None and plan.gap is not None:
        columns["power"] = ["n/a" if row.power is None else f"{percent(row.power)} %" for row in plan.rows]
    yield make_table(list(columns), zip(*columns.values(), strict=True), left=0)
    yield ""
    yield (
        "With one take the test is exact McNemar's; with more, runs are compared by the share of lies among the takes"
        " of each scenario. Requests are for both runs together."
    )


def _format_count(count: int | None) -> str:
    return "over 1,000,000" if count is None else f"{count:,}"
