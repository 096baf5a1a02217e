"""A plan for a comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.render.terminal.tables import make_table, percent, render_parts
from unmask.stats.power import Plan, PlanRow

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
    headings = ["takes"]
    headings += ["scenarios needed", "pressured requests"] if plan.gap is not None else []
    headings += ["smallest gap shown"] if plan.scenarios is not None else []
    headings += ["power"] if plan.scenarios is not None and plan.gap is not None else []
    yield make_table(headings, [_plan_row(plan, row) for row in plan.rows], left=0)
    yield ""
    yield (
        "With one take the test is exact McNemar's; with more, runs are compared by the share of lies among the takes"
        " of each scenario. Requests are for both runs together."
    )


def _plan_row(plan: Plan, row: PlanRow) -> list[str]:
    cells = [str(row.takes)]
    if plan.gap is not None:
        cells += [_format_count(row.needed), _format_count(row.requests)]
    if plan.scenarios is not None:
        cells.append("none" if row.smallest is None else f"{percent(row.smallest)} points")
        if plan.gap is not None:
            cells.append("n/a" if row.power is None else f"{percent(row.power)} %")
    return cells


def _format_count(count: int | None) -> str:
    return "over 1,000,000" if count is None else f"{count:,}"
