"""What a run will cost: both ends in a sentence, then calls, tokens and money of each model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.engine.plan import Bound, Range, RunPlan
from unmask.models.room import ROOM, ROOM_FOR_REASONING
from unmask.models.settings import spell_setting
from unmask.render import words
from unmask.render.blocks import Block, Cell, Table, Text

PILOT = 20
"""Scenarios after which the upper end is at most three times the lower one."""
ROLES = {"subject": "model", "judge": "judge", "numeric_judge": "numeric judge"}
HEADINGS = ("", "at least", "likely", "at most", "flex, likely", "flex, most")


def describe_plan(plan: RunPlan) -> Iterator[Block]:
    """Three columns of numbers: the least, the likely and the most. Where a provider has the tier flex, two more say
    what that would cost."""
    yield Text(state_cost(plan), "strong")
    numeric = f", numbers judged by {plan.numeric_judge}" if plan.numeric_judge else ""
    scenarios = words.plural(plan.scenarios, "scenario")
    yield Text(f"{scenarios} of {plan.data}, model {plan.model}, judged by {plan.judge}{numeric}.")
    if plan.left_out:
        yield Text(plan.left_out)
    yield _make_table(plan)
    yield Text(_explain_range(plan))
    if plan.annotating_saves:
        yield Text(
            "The data does not always say which side yes means. Annotating it saves each run up to"
            f" {words.plural(plan.annotating_saves, 'question')} to the judge: `unmask data annotate --help` says how."
        )
    yield from map(Text, _list_cheaper_ways(plan))
    yield Text(_explain_time(plan))
    if plan.may_reason:
        yield Text(
            f"Reasoning is not in this estimate: a model that reasons gets {ROOM_FOR_REASONING:,} tokens a reply, not"
            f" {ROOM:,}. {PILOT} scenarios first, with --limit, show what it takes."
        )


def state_cost(plan: RunPlan) -> str:
    """The likely cost and both ends, or whose price is known and whose is not."""
    if plan.most.cost_usd is not None:
        return f"The run likely costs {_range(plan)}."
    roles = _roles_of(plan)
    known = [f"the {ROLES[role]} {_range(plan, role)}" for role in roles if _cost(plan.most, role) is not None]
    unknown = [role for role in roles if _cost(plan.most, role) is None]
    flags = " and ".join(spell_setting(role, "price", "IN/OUT") for role in unknown)
    who = words.listed([f"the {ROLES[role]}" for role in unknown])
    text = f"no price is known for {who}: add {flags}, or 0/0 for a model of your own."
    return f"Cost: likely {', '.join(known)}; {text}" if known else text[0].upper() + text[1:]


def _cost(bound: Bound, role: str | None = None) -> float | None:
    cost: float | None = (bound if role is None else getattr(bound, role)).cost_usd
    return cost


def _range(plan: RunPlan | Range, role: str | None = None) -> str:
    low, likely, high = (words.money(_cost(bound, role)) for bound in (plan.least, plan.likely, plan.most))
    return low if low == high else f"{likely}, from {low} to {high}"


def _roles_of(plan: RunPlan) -> list[str]:
    return [role for role in ROLES if getattr(plan.most, role)]


def _make_table(plan: RunPlan) -> Table:
    bounds = (plan.least, plan.likely, plan.most)
    priced = bounds if plan.flex is None else (*bounds, plan.flex.likely, plan.flex.most)
    rows: list[Sequence[str | Cell]] = []
    for role in _roles_of(plan):
        parts = [getattr(bound, role) for bound in bounds]
        for name, field in (("calls", "calls"), ("input tokens", "input"), ("output tokens", "output")):
            rows.append((f"{ROLES[role]} {name}", *(words.count(getattr(part, field)) for part in parts)))
        rows.append((f"{ROLES[role]} cost", *(words.money(_cost(bound, role)) for bound in priced)))
    rows.append(("cost", *(words.money(bound.cost_usd) for bound in priced)))
    rows.append(("time", *("unknown" if one.seconds is None else words.duration(one.seconds) for one in bounds)))
    width = 1 + len(priced)
    return Table(HEADINGS[:width], [(*row, *[""] * (width - len(row))) for row in rows])


def _explain_range(plan: RunPlan) -> str:
    if plan.pilot is not None:
        return f"This is what is left, by what {plan.pilot} scenarios of this run took."
    explained = (
        "Likely: replies of the usual length, and a stable belief in four of five scenarios. At least: short replies,"
        " and no belief (so most follow-ups are skipped). At most: replies three times as long, nothing skipped, and"
        " 25 % retries."
    )
    if plan.scenarios <= 2 * PILOT:
        return explained
    return f"{explained} A run of {PILOT} scenarios (--limit {PILOT}) narrows it: plan again for the same folder."


def _list_cheaper_ways(plan: RunPlan) -> Iterator[str]:
    if plan.flex is not None:
        flags = " ".join(spell_setting(role, "tier", "flex") for role in _roles_of(plan))
        yield f"Flex: {flags}, for models that have it; it is slower."
    for which, batches in plan.batch.items():
        assert batches.hours
        assert batches.rounds
        (low, high), rounds = batches.hours, words.plural(batches.rounds, "round")
        price = "" if _cost(batches.likely) is None else f", likely {_range(batches)}"
        yield f"Batches: --batch {which}, up to {rounds}, likely {low:.1f} to {high:.0f} h{price}."


def _explain_time(plan: RunPlan) -> str:
    at_once = f"Time: {plan.connections} requests at once"
    if plan.most.seconds is None:
        return "Time: a run of a few scenarios (--limit 6) shows how fast a model on this machine is."
    if plan.pace_measured:
        return f"{at_once}, answered as fast as this run was so far."
    return f"{at_once}, each answered at {plan.tokens_per_second:.0f} tokens a second (an assumption)."
