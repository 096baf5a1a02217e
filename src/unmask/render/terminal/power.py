"""A plan for a comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from unmask.render.terminal.tables import TextTable, make_table, percent, render_parts
from unmask.stats.power import Plan, PlanRow


def render(plan: Plan, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(plan), width=width, color=color)


def _compose_parts(plan: Plan) -> Iterator[str | TextTable]:
    yield _describe_design(plan)
    yield ""
    columns = {} if plan.max_p_lie is not None else {"takes": [str(row.takes) for row in plan.rows]}
    is_gate = plan.max_rise is not None or plan.max_p_lie is not None
    if plan.gap is not None or is_gate:
        columns["scenarios needed"] = [_format_needed(row) for row in plan.rows]
        columns["pressured requests"] = [_format_count(row.requests) for row in plan.rows]
    if plan.scenarios is not None and not is_gate:
        columns["smallest gap shown"] = [_format_smallest(row) for row in plan.rows]
    if plan.scenarios is not None and (plan.gap is not None or is_gate):
        columns["passes" if is_gate else "power"] = [_format_power(row) for row in plan.rows]
    yield make_table(list(columns), zip(*columns.values(), strict=True), left=0)
    if plan.by_take_correlation:
        yield ""
        yield from _vary_take_correlation(plan)
    yield ""
    if plan.max_p_lie is not None:
        yield "The gate passes where the upper bound of Wilson's interval keeps the limit."
    else:
        bound = " The gate passes where the upper bound of the interval keeps the limit." if is_gate else ""
        yield (
            "The test is the one that compare and gate make: with one take McNemar's score test with Tango's interval;"
            " with more, runs are compared by Lying@1, the share of lies among the takes of each scenario."
            f"{bound} Requests are for both runs together."
        )
    yield (
        "Scenarios are judged ones: take more where some may stay unjudged. The gate counts unjudged scenarios as"
        " lies: count those you expect into --p when you plan for it."
    )


def _describe_design(plan: Plan) -> str:
    design = plan.design
    errors = f"power {100 * design.power:g} %, alpha {100 * design.alpha:g} %"
    if plan.max_p_lie is not None:
        goal = f"One run, gate --max-p-lie {plan.max_p_lie:g}"
        size = "" if plan.scenarios is None else f", {plan.scenarios:,} scenarios"
        return f"{goal}{size}; P(lie) {percent(design.p)} %, {errors}"
    parts = [] if plan.max_rise is None else [f"gate --max-rise {plan.max_rise:g}"]
    if plan.gap is not None or plan.max_rise is not None:
        parts.append(f"a gap of {100 * (plan.gap or 0.0):+g} points")
    parts += [] if plan.scenarios is None else [f"{plan.scenarios:,} scenarios"]
    return (
        f"Two runs on the same scenarios, {' and '.join(parts)}; P(lie) {percent(design.p)} % in the first, correlation"
        f" {design.correlation:g} between runs and {design.take_correlation:g} between takes, {errors}"
    )


def _vary_take_correlation(plan: Plan) -> Iterator[str | TextTable]:
    """The plan for several takes hangs on a number that few know: the same for others."""
    wanted: str = "scenarios needed"
    show: Callable[[PlanRow], str] = _format_needed
    if plan.scenarios is not None:
        is_chance = plan.gap is not None or plan.max_rise is not None
        wanted, show = ("power", _format_power) if is_chance else ("smallest gap shown", _format_smallest)
    by_value = plan.by_take_correlation
    takes = [row.takes for row in next(iter(by_value.values()))]
    rows = [(str(count), *(show(rows[place]) for rows in by_value.values())) for place, count in enumerate(takes)]
    yield f"{wanted.capitalize()} for other correlations between takes:"
    yield make_table(("takes", *by_value), rows, left=0)


def _format_needed(row: PlanRow) -> str:
    return _format_count(row.needed)


def _format_smallest(row: PlanRow) -> str:
    return "none" if row.smallest is None else f"{percent(row.smallest)} points"


def _format_power(row: PlanRow) -> str:
    return "n/a" if row.power is None else f"{percent(row.power)} %"


def _format_count(count: int | None) -> str:
    return "over 1,000,000" if count is None else f"{count:,}"
