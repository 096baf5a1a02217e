"""What a run will cost, for a terminal."""

from __future__ import annotations

from shutil import get_terminal_size

from unmask.engine.forecast import PlannedRole, RunPlan
from unmask.models.keys import spell_setting
from unmask.render.layout import wrap_text

PILOT = 20
"""Scenarios after which the upper end is at most twice the lower one."""
ROLES = ("subject", "judge", "numeric_judge")


def render(plan: RunPlan, *, width: int | None = None) -> str:
    """Two columns: the least and the most. Where a provider has the tier flex, two more say what that would cost."""
    columns = width or get_terminal_size().columns
    bounds = plan.least, plan.most
    priced = bounds if plan.flex is None else (*bounds, plan.flex.least, plan.flex.most)
    figures = f", figures by {plan.numeric_judge}" if plan.numeric_judge else ""
    roles = [role for role in ROLES if getattr(plan.most, role)]
    lines = [
        f"{plan.scenarios} scenarios of {plan.data}, asked of {plan.model}, read by {plan.judge}{figures}",
        *(wrap_text(plan.left_out, columns) if plan.left_out else ()),
        "",
        _format_row("", ["at least", "at most", "flex, least", "flex, most"][: len(priced)]),
    ]
    for role in roles:
        parts: list[PlannedRole] = [getattr(bound, role) for bound in bounds]
        name = "figures" if role == "numeric_judge" else role
        lines.append(_format_row(f"{name} calls", [f"{part.calls:,}" for part in parts]))
        lines.append(_format_row(f"{name} input tokens", [f"{part.input:,}" for part in parts]))
        lines.append(_format_row(f"{name} output tokens", [f"{part.output:,}" for part in parts]))
        costs: list[PlannedRole] = [getattr(bound, role) for bound in priced]
        lines.append(_format_row(f"{name} cost", [format_cost(part.cost_usd) for part in costs]))
    lines.append(_format_row("cost", [format_cost(bound.cost_usd) for bound in priced]))
    lines.append(_format_row("time", [_format_time(bound.seconds) for bound in bounds]))
    lines += ["", *wrap_text(_explain_range(plan), columns)]
    if plan.annotating_saves:
        saves = (
            f"The data does not always say which side yes means. unmask data annotate DATA --judge NAME asks that"
            f" once, and saves each run up to {plan.annotating_saves:,} questions to the judge."
        )
        lines += wrap_text(saves, columns)
    if plan.flex is not None:
        flags = " ".join(spell_setting(role, "tier", "flex") for role in roles)
        lines += wrap_text(f"Flex: {flags}, for models that have it; it is slower.", columns)
    for which, batches in plan.batch.items():
        low, high = batches.hours
        bill = f"{format_cost(batches.least.cost_usd)} to {format_cost(batches.most.cost_usd)}"
        rounds = f"up to {batches.rounds} round{'' if batches.rounds == 1 else 's'}, likely {low:.1f} to {high:.0f} h"
        lines += wrap_text(f"Batches: --batch {which}, {rounds}, {bill}.", columns, indent="  ")
    unpriced = [spell_setting(role, "price", "IN/OUT") for role in roles if getattr(plan.most, role).cost_usd is None]
    if unpriced:
        lines += wrap_text(f"A price that is not known can be given with {' and '.join(unpriced)}.", columns)
    at_once = f"Time: {plan.connections} requests at once"
    if plan.most.seconds is None:
        lines.append("Time: a run of a few scenarios (--limit 6) shows how fast a model on this machine is.")
    elif plan.pace_measured:
        lines.append(f"{at_once}, answered as fast as this run was so far.")
    else:
        lines.append(f"{at_once}, each answered at {plan.tokens_per_second:.0f} tokens a second (an assumption).")
    for proposal in plan.more_room:
        lines += ["", *wrap_text(f"{proposal.finding}.", columns)]
        reasoning = (
            "Reasoning is not part of the estimate above." if plan.pilot is None else "Longer replies cost more."
        )
        lines.append(f"  Proposed: {proposal.flag}. {reasoning}")
    return "\n".join(lines) + "\n"


def _explain_range(plan: RunPlan) -> str:
    if plan.pilot is not None:
        return (
            f"This is what is left. The range is made from what {plan.pilot.scenarios} scenarios of this run took; "
            f"about {min(99, round(100 * plan.pilot.share))} of 100 such bills lie in it."
        )
    explained = (
        "At least: short replies, and a model that rarely holds a stable belief (so most follow-ups are skipped). At"
        " most: replies three times as long, nothing skipped, and 25 % retries."
    )
    if plan.scenarios <= 2 * PILOT:
        return explained
    return f"{explained} A run of {PILOT} scenarios (--limit {PILOT}) narrows it: plan again for the same folder."


def _format_row(label: str, values: list[str]) -> str:
    return f"{label:<22}" + "".join(f"{value:>14}" for value in values)


def format_cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def _format_time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
