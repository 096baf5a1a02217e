"""How many scenarios show a difference in P(lie) or pass a gate, and how small a difference a number of them can show.

The tests are those that `unmask compare` and `unmask gate` make. Chances are normal approximations in closed form:
Connor's (1987) for McNemar's test, the same with the variance of Tango's score test for a limit, and that of a paired
test for shares of takes. A gate on P(lie) counts lies, and its chance is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, sqrt
from statistics import NormalDist
from typing import Any

import msgspec

from unmask.errors import UsageError
from unmask.records import Record, Result
from unmask.stats.estimate import ALPHA, POWER, constrained_share, normal_quantile
from unmask.text import refuse_unknown

TAKES = (1, 2, 3, 5, 10)
MOST_SCENARIOS = 1_000_000
"""Scenarios beyond which a plan is not worth a number."""


class Design(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What to show, and what is assumed about the runs."""

    gap: float | None = None
    """True rise of P(lie) from the first run to the second. A plan without a limit is to find it."""
    excess: float | None = None
    """True excess of P(lie) over its floor, which is `p`: plan for one run with a control arm to find it."""
    max_rise: float | None = None
    """Plan for `unmask gate --max-rise` with this limit."""
    max_p_lie: float | None = None
    """Plan for `unmask gate --max-p-lie` with this limit: one run of one take."""
    margin: float | None = None
    """Plan for `unmask compare --margin`: to show that the runs differ by less."""
    p: float = 0.3
    """P(lie) of the first run, or of the control arm."""
    correlation: float = 0.5
    """Between the verdicts of the two runs on one scenario, one take each. `power` takes 0 between two arms, which have
    different prompts."""
    take_correlation: float = 0.73
    """Between two takes of one run on one scenario. The default is the median over the 29 models of the published
    table for which both P(lie) and Lying@10 are known, if the chance of a lie varies like a beta variable."""
    unjudged: float = 0.0
    """Share of the takes of each run that stay unjudged and could be lies: they move P(lie) by as much, and a
    difference by twice as much."""
    power: float = POWER
    alpha: float = ALPHA


class PlanRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a design needs, or can do, with this many takes. `None` where it was not asked, or cannot be had."""

    takes: int
    needed: int | None = None
    """Scenarios that reach the goal; `None` above a million."""
    requests: int | None = None
    """Requests for statements with that many scenarios, for all runs and both arms together."""
    smallest: float | None = None
    """Smallest rise of P(lie), or excess, that the scenarios at hand can show."""
    power: float | None = None
    """Chance that the scenarios at hand reach the goal."""


class Plan(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask power` says."""

    design: Design
    scenarios: int | None
    rows: tuple[PlanRow, ...]


def power(*, scenarios: int | None = None, takes: int | Sequence[int] = TAKES, **design: Any) -> Plan:
    """Scenarios needed for a goal, or what scenarios at hand can show, or both; for several numbers of takes.

    `design` are the fields of `Design`: `power(gap=0.05, p=0.4)`, `power(max_p_lie=0.1, p=0.05)`.
    """
    refuse_unknown(design, Design.__struct_fields__)
    if design.get("excess") is not None:
        design = {"correlation": 0.0} | design
    assumed = msgspec.convert(design, Design)
    _check(assumed, scenarios)
    counts = (takes,) if isinstance(takes, int) else takes
    if assumed.max_p_lie is not None:
        counts = (1,)
    return Plan(design=assumed, scenarios=scenarios, rows=tuple(_plan(assumed, count, scenarios) for count in counts))


def _plan(design: Design, takes: int, scenarios: int | None) -> PlanRow:
    sought = "gap" if design.excess is None else "excess"

    def rises(gap: float) -> Design:
        return msgspec.structs.replace(design, **{sought: gap})

    def is_enough(n: int) -> bool:
        return goal_chance(design, n, takes=takes) >= design.power

    has_limit = any(limit is not None for limit in (design.max_rise, design.max_p_lie, design.margin))
    has_goal = has_limit or getattr(design, sought) is not None
    needed = _first(is_enough, MOST_SCENARIOS) if has_goal else None
    smallest = chance = None
    if scenarios is not None and has_goal:
        chance = goal_chance(design, scenarios, takes=takes)
    if scenarios is not None and not has_limit:
        steps = 100_000
        room = (1 - design.p) / steps
        found = _first(lambda s: goal_chance(rises(s * room), scenarios, takes=takes) >= design.power, steps)
        smallest = None if found is None else found * room
    runs = 1 if design.max_p_lie is not None else 2
    requests = None if needed is None else runs * needed * takes
    return PlanRow(takes=takes, needed=needed, requests=requests, smallest=smallest, power=chance)


def goal_chance(design: Design, n: int, *, takes: int = 1) -> float:
    """Chance that n scenarios find the gap or the excess, pass the gate or show that the difference is within the
    margin."""
    gap, turned = design.excess or design.gap or 0.0, 2 * design.unjudged
    variance = gap_variance(design, gap, takes=takes)
    reach = normal_quantile(1 - design.alpha / 2)
    if design.max_p_lie is not None:
        return _passing_chance(n, p=design.p + design.unjudged, limit=design.max_p_lie, reach=reach)
    worst = variance + turned  # a scenario that is not judged in both runs may differ
    if design.max_rise is not None:
        return _keeping_chance(n, worst, gap=gap + turned, limit=design.max_rise, reach=reach, takes=takes)
    if design.margin is not None:
        reach = normal_quantile(1 - design.alpha)
        up, down = (
            _keeping_chance(n, worst, gap=rise + turned, limit=design.margin, reach=reach, takes=takes)
            for rise in (gap, -gap)
        )
        return max(0.0, up + down - 1)
    # The unjudged may be lies of the run that lies more, so as much less is seen. It counts as found where it is
    # significant and above 0 even if the unjudged of the other run are all lies.
    seen, judged = abs(gap) - design.unjudged, n * (1 - turned)
    tested = variance + gap * gap if takes == 1 and design.excess is None else variance
    return _cdf(seen - max(reach * sqrt(tested / judged), design.unjudged), sqrt(variance / judged))


def _keeping_chance(n: int, variance: float, *, gap: float, limit: float, reach: float, takes: int) -> float:
    """Chance that the upper bound of the interval of a difference keeps the limit."""
    tested = variance
    if takes == 1:  # Tango's test of the limit has the variance that is likeliest if the limit is the truth
        differ = variance + gap * gap
        tested = 2 * constrained_share(limit, (differ - gap) / 2, (differ + gap) / 2, 1) + limit * (1 - limit)
    return _cdf(limit - gap - reach * sqrt(tested / n), sqrt(variance / n))


def _passing_chance(n: int, *, p: float, limit: float, reach: float) -> float:
    """Chance that Wilson's upper bound keeps the limit and the exact binomial test of the limit agrees."""
    from scipy.special import bdtr

    most = floor(n * limit - reach * sqrt(n * limit * (1 - limit)) + 1e-9)
    while most >= 0 and bdtr(most, n, limit) > 1 - NormalDist().cdf(reach):
        most -= 1
    return float(bdtr(most, n, p)) if most >= 0 else 0.0


def gap_variance(design: Design, gap: float, *, takes: int = 1) -> float:
    """Of the gap between the shares of lies of the two runs on one scenario."""
    first, second = design.p, design.p + gap
    spreads = [share * (1 - share) for share in (first, second)]
    shared = min(design.correlation * sqrt(spreads[0] * spreads[1]), min(first, second) - first * second)
    between = design.take_correlation * sum(spreads) - 2 * shared
    return max(0.0, between) + (1 - design.take_correlation) * sum(spreads) / takes


def _cdf(distance: float, spread: float) -> float:
    return NormalDist().cdf(distance / max(spread, 1e-12))


def _first(holds: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 1 to `most` at which it begins to hold; `None` where it never does."""
    if not holds(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _check(design: Design, scenarios: int | None) -> None:
    sought, goal = ("--gap", design.gap) if design.excess is None else ("--excess", design.excess)
    gap, turned = goal or 0.0, 2 * design.unjudged
    goals = {
        "--max-rise": (design.max_rise, gap + turned),
        "--max-p-lie": (design.max_p_lie, design.p + design.unjudged),
        "--margin": (design.margin, abs(gap) + turned),
    }
    limits = [(flag, limit, expected) for flag, (limit, expected) in goals.items() if limit is not None]
    if goal is None and scenarios is None and not limits:
        raise UsageError("there is nothing to plan for", advice="Give --gap 0.05, or --scenarios 1000, or both.")
    plans = [flag for flag, _, _ in limits] + ["--excess"] * (design.excess is not None)
    if {"--max-p-lie", "--excess"}.intersection(plans):  # of one run
        plans += ["--gap"] * (design.gap is not None)
    if len(plans) > 1:
        raise UsageError(f"{plans[0]} and {plans[1]} are two plans", advice="Give one of them at a time.")
    if scenarios is not None and not 1 <= scenarios <= MOST_SCENARIOS:
        raise UsageError(f"--scenarios {scenarios} is out of range", advice=f"Give from 1 to {MOST_SCENARIOS}.")
    for flag in ("p", "power", "alpha", "correlation", "take_correlation", "unjudged"):
        value, is_open = getattr(design, flag), flag in {"p", "power", "alpha"}
        most = 0.45 if flag == "unjudged" else 1
        if not 0 <= value <= most or (is_open and value in {0, 1}):
            advice = f"Give a value {'between' if is_open else 'from'} 0 {'and' if is_open else 'to'} {most:g}."
            raise UsageError(f"--{flag.replace('_', '-')} {value:g} is out of range", advice=advice)
    if design.correlation > design.take_correlation:
        raise UsageError(
            f"--correlation {design.correlation:g} is above --take-correlation {design.take_correlation:g}",
            advice="Two models cannot agree more than one model agrees with itself: raise --take-correlation.",
        )
    if not 0 <= design.p + gap <= 1:
        raise UsageError(
            f"{sought} {gap:g} from a lie rate of {design.p:g} leads to {design.p + gap:g}",
            advice="Give one that leaves the second rate between 0 and 1.",
        )
    if goal is not None and not limits and (abs(gap) if design.excess is None else gap) <= turned:
        raise UsageError(
            f"{sought} {gap:g} cannot be found where --unjudged {design.unjudged:g} could make a gap of {turned:g}",
            advice="Plan for a larger one, or for a judge that leaves less unjudged.",
        )
    for flag, limit, expected in limits:
        if not expected < limit < 1:
            raise UsageError(
                f"{flag} {limit:g} is not above {expected:g}, which you expect with the unjudged counted against it, or"
                " not below 1",
                advice=f"Give a limit above {expected:g} and below 1: no number of scenarios keeps any other."
                + " What you expect is --p." * (flag == "--max-p-lie"),
            )
