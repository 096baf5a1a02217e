"""A plan for a comparison or a gate: how many scenarios it takes, or what those at hand can show."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.render import words
from unmask.render.blocks import Block, Cell, Table, Text
from unmask.stats.power import Design, Plan, PlanRow


def describe_power(plan: Plan) -> Iterator[Block]:
    """The first number of takes in a sentence, all of them in a table, and what is assumed."""
    yield Text(state_power(plan), "strong")
    yield Text(_describe_assumptions(plan.design))
    columns = _list_columns(plan)
    yield Table(list(columns), list(zip(*columns.values(), strict=True)), texts=0)
    yield from map(Text, _explain_test(plan.design))


def state_power(plan: Plan) -> str:
    """What the plan comes to with as many takes as its first row has."""
    row, goal = plan.rows[0], _name_goal(plan.design)
    takes = words.plural(row.takes, "take")
    parts = []
    if _has_goal(plan.design):
        parts.append(f"{goal} needs {_count(row.needed)} scenarios with {takes}.")
    if plan.scenarios is not None:
        parts.append(f"With {plan.scenarios:,} scenarios and {takes} {_state_reach(row)}.")
    return " ".join(parts)


def _state_reach(row: PlanRow) -> str:
    if row.power is not None:
        return f"the chance of success is {words.percent(row.power)}"
    return "no gap can be shown" if row.smallest is None else f"the smallest gap shown is {_gap(row.smallest)}"


def _list_columns(plan: Plan) -> dict[str, list[str | Cell]]:
    columns: dict[str, list[str | Cell]] = {"takes": [str(row.takes) for row in plan.rows]}
    if _has_goal(plan.design):
        columns["scenarios needed"] = [_count(row.needed) for row in plan.rows]
        requests = "pressured requests" if plan.design.excess is None else "requests of both arms"
        columns[requests] = [_count(row.requests) for row in plan.rows]
    if plan.scenarios is not None and not _name_limit(plan.design):
        columns[f"smallest {_sought(plan.design)} shown"] = [
            "none" if row.smallest is None else _gap(row.smallest) for row in plan.rows
        ]
    if plan.rows[0].power is not None:
        columns["power"] = [words.percent(row.power) for row in plan.rows]
    return columns


def _describe_assumptions(design: Design) -> str:
    assumed = f"power {100 * design.power:g} %, alpha {100 * design.alpha:g} %"
    if design.unjudged:
        assumed += f", {words.percent(design.unjudged)} unjudged"
    if design.max_p_lie is not None:
        return f"One run; P(lie) {words.percent(design.p)}, {assumed}."
    if design.excess is not None:
        return (
            f"One run with a control arm; floor {words.percent(design.p)}, correlation {design.correlation:g} between"
            f" arms and {design.take_correlation:g} between takes, {assumed}."
        )
    return (
        f"Two runs on the same scenarios; P(lie) {words.percent(design.p)} in the first, correlation"
        f" {design.correlation:g} between runs and {design.take_correlation:g} between takes, {assumed}."
    )


def _explain_test(design: Design) -> Iterator[str]:
    if design.max_p_lie is not None:
        yield "The gate passes where Wilson's upper bound keeps the limit and the exact binomial test agrees."
    elif design.excess is not None:
        yield "The test is that of the excess in score. Requests are for both arms together."
    else:
        yield (
            "The test is the one that compare and gate make: McNemar's score test with Tango's interval for one take, a"
            " paired test of the shares of lies for more. Requests are for both runs together."
        )
    if design.unjudged and not _name_limit(design):
        unjudged, twice = words.percent(design.unjudged), words.number(2 * design.unjudged)
        yield f"With {unjudged} of each run unjudged, no gap up to {twice} points can be called."
    elif not design.unjudged:
        yield "Everything is taken to be judged: --unjudged 0.02 plans for 2 % that could be lies in each run."


def _has_goal(design: Design) -> bool:
    return design.gap is not None or design.excess is not None or bool(_name_limit(design))


def _name_goal(design: Design) -> str:
    return _name_limit(design) or f"A{'n' * (design.excess is not None)} {_sought(design)} of {_gap(_size(design))}"


def _sought(design: Design) -> str:
    return "gap" if design.excess is None else "excess"


def _size(design: Design) -> float:
    return design.excess or design.gap or 0.0


def _name_limit(design: Design) -> str:
    limits = {
        "unmask gate --max-rise": design.max_rise,
        "unmask gate --max-p-lie": design.max_p_lie,
        "unmask compare --margin": design.margin,
    }
    return next((f"{name} {limit:g}" for name, limit in limits.items() if limit is not None), "")


def _gap(share: float) -> str:
    return f"{words.number(share)} points"


def _count(count: int | None) -> str:
    return "over 1,000,000" if count is None else words.count(count)
