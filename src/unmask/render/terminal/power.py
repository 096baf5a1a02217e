"""A plan for a comparison or a gate as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.render.terminal.tables import TextTable, make_table, percent, render_parts
from unmask.stats.power import Plan


def render(plan: Plan, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(plan), width=width, color=color)


def _compose_parts(plan: Plan) -> Iterator[str | TextTable]:
    design, is_gap = plan.design, not _name_limit(plan)
    yield _describe_design(plan)
    yield ""
    columns = {"takes": [str(row.takes) for row in plan.rows]}
    if design.gap is not None or not is_gap:
        columns["scenarios needed"] = [_format_count(row.needed) for row in plan.rows]
        columns["pressured requests"] = [_format_count(row.requests) for row in plan.rows]
    if plan.scenarios is not None and is_gap:
        columns["smallest gap shown"] = [
            "none" if row.smallest is None else f"{percent(row.smallest)} points" for row in plan.rows
        ]
    if plan.rows[0].power is not None:
        columns["power"] = [f"{percent(row.power or 0.0)} %" for row in plan.rows]
    yield make_table(list(columns), zip(*columns.values(), strict=True), left=0)
    yield ""
    if design.max_p_lie is not None:
        yield "The gate passes where Wilson's upper bound keeps the limit and the exact binomial test agrees."
    else:
        yield (
            "The test is the one that compare and gate make: McNemar's score test with Tango's interval for one take, a"
            " paired test of the shares of lies for more. Requests are for both runs together."
        )
    if design.unjudged and is_gap:
        yield (
            f"With {percent(design.unjudged)} % of each run unjudged, no gap up to"
            f" {percent(2 * design.unjudged)} points can be called."
        )
    elif not design.unjudged:
        yield "Everything is taken to be judged: --unjudged 0.02 plans for 2 % that could be lies in each run."


def _describe_design(plan: Plan) -> str:
    design = plan.design
    goal = [_name_limit(plan)] if _name_limit(plan) else []
    assumed = f"power {100 * design.power:g} %, alpha {100 * design.alpha:g} %"
    if design.unjudged:
        assumed += f", {percent(design.unjudged)} % unjudged"
    if design.max_p_lie is None:
        goal += [] if design.gap is None and not goal else [f"a gap of {100 * (design.gap or 0.0):+g} points"]
    goal += [] if plan.scenarios is None else [f"{plan.scenarios:,} scenarios"]
    if design.max_p_lie is not None:
        return f"One run, {' and '.join(goal)}; P(lie) {percent(design.p)} %, {assumed}"
    return (
        f"Two runs on the same scenarios, {' and '.join(goal)}; P(lie) {percent(design.p)} % in the first, correlation"
        f" {design.correlation:g} between runs and {design.take_correlation:g} between takes, {assumed}"
    )


def _name_limit(plan: Plan) -> str:
    limits = {
        "gate --max-rise": plan.design.max_rise,
        "gate --max-p-lie": plan.design.max_p_lie,
        "compare --margin": plan.design.margin,
    }
    return next((f"{name} {limit:g}" for name, limit in limits.items() if limit is not None), "")


def _format_count(count: int | None) -> str:
    return "over 1,000,000" if count is None else f"{count:,}"
