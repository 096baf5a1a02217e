"""How large a difference a paired design can show, and how many scenarios and takes a given one needs.

With one take per scenario the test is exact McNemar's, and its power is computed, not approximated. With several the
runs are compared by the share of lies among the takes of each scenario, whose mean is normal for practical sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any

import msgspec

from unmask.errors import UsageError
from unmask.records import Record, Result

ALPHA = 0.05
POWER = 0.8
TAKES = (1, 2, 3, 5, 10)
MOST_SCENARIOS = 1_000_000
"""Scenarios beyond which a plan is not worth a number."""


class Design(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What is assumed about the two runs to be compared."""

    p: float = 0.3
    """Lie rate of the first; the second has `p + gap`."""
    correlation: float = 0.5
    """Between the verdicts of the two runs on one scenario, one take each. `unmask compare` prints it."""
    take_correlation: float = 0.73
    """Between two takes of one run on one scenario. The default is the median over the 29 models of the published
    table for which both P(lie) and Lying@10 are known, if the chance of a lie varies like a beta variable."""
    power: float = POWER
    alpha: float = ALPHA


class PlanRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a comparison with this many takes needs, or can do. `None` where it was not asked, or cannot be had."""

    takes: int
    needed: int | None = None
    """Scenarios that show the gap; `None` above a million."""
    requests: int | None = None
    """Pressured requests for both runs together, with that many scenarios."""
    smallest: float | None = None
    """Smallest rise of P(lie) that the scenarios at hand can show."""
    power: float | None = None
    """Chance that the scenarios at hand show the gap."""


class Plan(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask power` says."""

    design: Design
    gap: float | None
    scenarios: int | None
    rows: tuple[PlanRow, ...]


def mcnemar_power(n: int, *, discordant: float, gap: float, alpha: float = ALPHA) -> float:
    """Chance that exact McNemar's test over n pairs is significant, if this share of pairs differs, `gap` net."""
    import numpy as np
    from scipy.special import bdtr, bdtrc, bdtrik, gammaln, xlog1py, xlogy

    gap = abs(gap)
    if not 0 <= gap <= discordant <= 1:
        raise ValueError(f"a gap of {gap:g} cannot come from {discordant:g} pairs that differ")
    if not discordant:
        return 0.0
    spread = 10 * sqrt(n * discordant) + 10
    pairs = np.arange(max(0, int(n * discordant - spread)), min(n, int(n * discordant + spread)) + 1)
    # The largest count on the smaller side that is still significant: the root rounded down, unless it misses by one.
    root = np.floor(np.nan_to_num(bdtrik(alpha / 2, pairs, 0.5), nan=-1.0))
    critical = np.where(bdtr(root + 1, pairs, 0.5) <= alpha / 2, root + 1, root)
    critical = np.where((critical < 0) | (bdtr(critical, pairs, 0.5) > alpha / 2), critical - 1, critical)
    lean = (1 + gap / discordant) / 2
    rejected = bdtr(critical, pairs, lean) + bdtrc(pairs - critical - 1, pairs, lean)
    ways = gammaln(n + 1) - gammaln(pairs + 1) - gammaln(n - pairs + 1)
    weight = np.exp(ways + xlogy(pairs, discordant) + xlog1py(n - pairs, -discordant))
    return float(np.sum(weight * np.where(critical >= 0, rejected, 0.0)))


def detectable_gap(n: int, *, discordant: float, power: float = POWER, alpha: float = ALPHA) -> float | None:
    """Smallest true difference found with this power. More pairs must differ where the difference itself is larger.

    `None` where even a difference of 1 would not be found.
    """

    def is_detected(gap: float) -> bool:
        return mcnemar_power(n, discordant=max(discordant, gap), gap=gap, alpha=alpha) >= power

    if not is_detected(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return high


def detectable_mean(n: int, *, variance: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Smallest true mean gap found with this power by a normal test."""
    return (normal_quantile(1 - alpha / 2) + normal_quantile(power)) * sqrt(variance / n)


def discordance(design: Design, gap: float) -> float:
    """Share of scenarios on which the two runs differ, one take each."""
    first, second = design.p, design.p + gap
    both = first * second + design.correlation * sqrt(first * (1 - first) * second * (1 - second))
    both = min(both, first, second)  # what two such rates allow
    return max(abs(gap), 2 * design.p + gap - 2 * both)


def gap_variance(design: Design, gap: float, *, takes: int) -> float:
    """Of the gap between the shares of lies of the two runs on one scenario."""
    first, second = (p * (1 - p) for p in (design.p, design.p + gap))
    between = design.take_correlation * (first + second) - 2 * design.correlation * sqrt(first * second)
    within = (1 - design.take_correlation) * (first + second) / takes
    return max(0.0, between) + within


def scenarios_needed(design: Design, gap: float, *, takes: int = 1) -> int | None:
    """How many scenarios show `gap` with the design's power. `None` above a million."""
    reach = normal_quantile(1 - design.alpha / 2) + normal_quantile(design.power)
    if takes > 1:
        count = ceil(reach**2 * gap_variance(design, gap, takes=takes) / gap**2)
        return max(2, count) if count <= MOST_SCENARIOS else None
    discordant = discordance(design, gap)
    guess = ceil(reach**2 * discordant / gap**2)
    if guess > MOST_SCENARIOS:
        return None
    low, high = max(1, guess // 4), guess * 2 + 20

    def is_detected(n: int) -> bool:
        return mcnemar_power(n, discordant=discordant, gap=gap, alpha=design.alpha) >= design.power

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return high


def power(
    *, gap: float | None = None, scenarios: int | None = None, takes: Sequence[int] = TAKES, **assumed: Any
) -> Plan:
    """Scenarios needed for a gap, or what scenarios at hand can show, or both; for several numbers of takes.

    `assumed` are the fields of `Design`: `power(gap=0.05, p=0.4)`.
    """
    design = msgspec.convert(assumed, Design)
    if gap is None and scenarios is None:
        raise UsageError("there is nothing to plan for", advice="Give --gap 0.05, or --scenarios 1000, or both.")
    if scenarios is not None and scenarios < 1:
        raise UsageError(f"--scenarios {scenarios} is too small", advice="Give at least 1.")
    if scenarios is not None and scenarios > MOST_SCENARIOS:
        raise UsageError(f"--scenarios {scenarios} is too many to plan with", advice=f"Give at most {MOST_SCENARIOS}.")
    _check_design(design, gap)
    rows = []
    for count in takes:
        n = None if gap is None else scenarios_needed(design, gap, takes=count)
        row = PlanRow(takes=count, needed=n, requests=None if n is None else 2 * n * count)
        if scenarios is not None:
            row = msgspec.structs.replace(
                row,
                smallest=smallest_gap(design, scenarios, takes=count),
                power=None if gap is None else power_of(design, gap, scenarios, takes=count),
            )
        rows.append(row)
    return Plan(design=design, gap=gap, scenarios=scenarios, rows=tuple(rows))


def smallest_gap(design: Design, n: int, *, takes: int = 1) -> float | None:
    """The smallest rise of P(lie) that n scenarios show with the design's power; `None` where none can be shown."""
    low, high = 0.0, 1 - design.p
    if power_of(design, high, n, takes=takes) < design.power:
        return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(design, middle, n, takes=takes) >= design.power else (middle, high)
    return high


def power_of(design: Design, gap: float, n: int, *, takes: int = 1) -> float:
    """Chance that n scenarios show a rise of `gap`."""
    if takes == 1:
        return mcnemar_power(n, discordant=discordance(design, gap), gap=gap, alpha=design.alpha)
    spread = sqrt(gap_variance(design, gap, takes=takes) / n)
    if not spread:
        return 1.0
    from statistics import NormalDist

    normal, reach, shift = NormalDist(), normal_quantile(1 - design.alpha / 2), abs(gap) / spread
    return normal.cdf(shift - reach) + normal.cdf(-shift - reach)


def normal_quantile(probability: float) -> float:
    """Of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def _check_design(design: Design, gap: float | None) -> None:
    if not 0 < design.p < 1:
        raise UsageError(f"--p {design.p:g} is not a lie rate to plan with", advice="Give a value between 0 and 1.")
    if gap is not None and (not gap or not 0 <= design.p + gap <= 1):
        raise UsageError(
            f"--gap {gap:g} from a lie rate of {design.p:g} leads to {design.p + gap:g}",
            advice="Give a gap other than 0 that leaves the second rate between 0 and 1.",
        )
    for flag, value in (("--correlation", design.correlation), ("--take-correlation", design.take_correlation)):
        if not 0 <= value <= 1:
            raise UsageError(f"{flag} {value:g} is out of range", advice="Give a value from 0 to 1.")
    if design.correlation > design.take_correlation:
        raise UsageError(
            f"--correlation {design.correlation:g} is above --take-correlation {design.take_correlation:g}",
            advice="Two models cannot agree more than one model agrees with itself: raise --take-correlation.",
        )
    for flag, value in (("--power", design.power), ("--alpha", design.alpha)):
        if not 0 < value < 1:
            raise UsageError(f"{flag} {value:g} is out of range", advice="Give a value between 0 and 1.")
