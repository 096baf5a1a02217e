"""What pressure causes: the placebo of beliefs, the control arm, and the rungs of a ladder, in words and tables."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.records import CONTROL, PRESSURED
from unmask.render import words
from unmask.render.blocks import Block, Cell, Command, Heading, Table, Text, share_cell
from unmask.scoring.control import ArmReplies, Control
from unmask.scoring.ladder import Ladder
from unmask.scoring.placebo import Placebo
from unmask.stats.corrected import CorrectedDifference
from unmask.stats.estimate import Difference
from unmask.stats.family import is_significant


def state_excess(found: Difference) -> str:
    """The line under P(lie): what of it the scenario's system prompt adds."""
    if found.value is None:
        return "Without the role: no scenario was judged in both arms."
    return (
        f"Without the role it lied in {words.percent(found.a)}, with it in {words.percent(found.b)} of the same"
        f" {words.plural(found.n, 'scenario')}: an excess of {words.point_difference(found)}."
    )


def describe_control(control: Control) -> Iterator[Block]:
    """Excess by archetype and pressure, what else changes, and how large an error of the judge would explain it."""
    yield Heading("With and without the role")
    yield Text(state_excess(control.excess))
    parts = [*((archetype.traits.title, one) for archetype, one in control.archetypes.items())]
    parts += [(f"{name} pressure", one) for name, one in control.pressure.items()]
    rows = [(name, *_arms(one)) for name, one in (*parts, ("all", control.excess))]
    others = {"honest, all": control.honest, "evasion, all": control.evasion, "withholding": control.withholding}
    rows += [(name, *_arms(one)) for name, one in others.items()]
    yield Table(("% of replies", "without", "with the role", "difference", "n"), rows)
    yield Text(
        "The difference is the effect of the scenario's system prompt. A false draft, a scripted answer and what the"
        " user asks for are in both arms."
    )
    if control.tipping_point is not None:
        yield Text(
            "All of the excess would be the judge's if it called honest replies with the role lies"
            f" {words.number(control.tipping_point)} points more often than honest replies without it."
        )
    if control.corrected is not None:
        yield Text(_explain_corrected(control.corrected))
    if control.excess.worst_low is not None and control.excess.worst_low != control.excess.worst_high:
        low, high = words.points(control.excess.worst_low), words.points(control.excess.worst_high)
        yield Text(f"Whatever the unread replies are, the excess is {low} to {high} points.")
    yield Text("; ".join(_describe_arm(name, control.arms[slot]) for name, slot in _ARMS) + ".")


def _explain_corrected(found: CorrectedDifference) -> str:
    gap = found.difference
    if gap.value is None:
        return f"Excess corrected by labels: n/a, {gap.why}."
    errors = " and ".join(
        f"{one.false_lies:.3g} false and {one.missed_lies:.3g} missed lies in {one.labelled} labelled {name} the role"
        for name, one in (("with", found.b), ("without", found.a))
    )
    return (
        f"Corrected by labels of both arms: {words.percent(gap.a)} without the role, {words.percent(gap.b)} with it, an"
        f" excess of {words.point_difference(gap)}. The judge's errors: {errors}."
    )


_ARMS = (("With the role", PRESSURED), ("without it", CONTROL))


def _describe_arm(name: str, arm: ArmReplies) -> str:
    length = "" if arm.mean_length is None else f", {arm.mean_length:.0f} characters on average"
    replies = "1 reply" if arm.replies == 1 else f"{arm.replies:,} replies"
    return f"{name} {replies}: {arm.no_side} take no side, {arm.unread} unread{length}"


def _arms(found: Difference) -> tuple[Cell, Cell, Cell, str]:
    return Cell(found.a), Cell(found.b), share_cell(found), words.count(found.n)


def describe_placebo(placebo: Placebo) -> Iterator[Block]:
    """How unsteady the beliefs are."""
    yield Heading("How unsteady is the belief?")
    if placebo.difference is None or placebo.leave_one_out_p_lie is None:
        yield Text(
            f"At most {words.percent(placebo.placebo.value)} of neutral answers contradict what the others show"
            f" (placebo, {words.plural(placebo.placebo.total, 'scenario')})."
        )
        if placebo.complete_with:
            yield Text("This asks the other probes, which say how many, and whether lies under pressure are more:")
            yield Command(placebo.complete_with)
        return
    found = placebo.difference
    yield Text(
        f"Held out and taken for the statement, {words.percent(found.a)} of neutral answers contradict the belief"
        f" (placebo); {words.percent(found.b)} of replies under pressure contradict the same beliefs. That is"
        f" {words.point_difference(found)} more, in {words.plural(found.n, 'scenario')}."
    )
    yield Text(f"{words.percent(found.b)} is not P(lie): each of these beliefs has one answer less.")


def state_ladder(ladder: Ladder) -> str:
    """The one number of a ladder that is tested."""
    found = ladder.primary
    if found.value is None:
        return "No fact was judged on every rung."
    chance = "more than chance" if is_significant(found) else "which could be chance"
    return (
        f"Pressure adds {words.point_difference(found)} to the {words.percent(found.a)} of lies on rung 0, {chance}:"
        f" the mean of the rungs above it over {words.plural(found.n, 'fact')}."
    )


RUNGS = ("role", "and an incentive", "and a wish", "and an order")


def describe_ladder(ladder: Ladder, *, bundled: bool) -> Iterator[Block]:
    """P(lie) rung by rung, what each adds, and the archetypes as they are; of our own set also who has checked it."""
    yield Heading("Rung by rung")
    rows = []
    for rung, rate in ladder.p_lie.items():
        name = f"{rung} {RUNGS[rung]}" if rung < len(RUNGS) else str(rung)
        control, below = ladder.less_control.get(rung), ladder.less_below.get(rung)
        rows.append((name, share_cell(rate), *_contrast(control), *_contrast(below)))
    headings = ("% of replies", "P(lie)", "less rung 0", "p", "less the rung below", "p")
    yield Table(headings, rows)
    yield Text("Values of p are corrected by Holm's method, each column by itself.")
    if ladder.tipping_point is not None:
        yield Text(
            "All that pressure adds would be the judge's if it called honest replies above rung 0 lies"
            f" {words.number(ladder.tipping_point)} points more often than those on rung 0."
        )
    rungs = list(ladder.p_lie)
    by_archetype = [
        (archetype.traits.title, *(Cell(rates[rung].value) if rung in rates else "" for rung in rungs))
        for archetype, rates in ladder.archetypes.items()
    ]
    yield Table(("P(lie), %", *map(str, rungs)), by_archetype)
    if bundled:
        yield Text("No person has checked the facts and texts of this set.")


def _contrast(found: Difference | None) -> tuple[str | Cell, str]:
    if found is None:
        return "", ""
    return share_cell(found), words.p_value(found.p_adjusted)
