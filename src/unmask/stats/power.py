"""How large a difference a paired design can show, and how many scenarios and takes a given one needs.

The tests are those that `unmask compare` and `unmask gate` make. With one take per scenario that is McNemar's score
test, whose interval is Tango's: its power is summed over what the scenarios may show, not approximated. With several
takes the runs are compared by Lying@1, the share of lies among the takes of each scenario, whose mean is normal for
practical sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Any

import msgspec

from unmask.errors import UsageError
from unmask.records import Record, Result
from unmask.text import refuse_unknown

ALPHA = 0.05
POWER = 0.8
TAKES = (1, 2, 3, 5, 10)
TAKE_CORRELATIONS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""A plan for several takes hangs on the correlation between takes, which few know: it is given for all of these."""
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
    """Scenarios that show the gap, or that keep the gate's limit; `None` above a million."""
    requests: int | None = None
    """Pressured requests with that many scenarios, for both runs together; for one run with `max_p_lie`."""
    smallest: float | None = None
    """Smallest rise of P(lie) that the scenarios at hand can show."""
    power: float | None = None
    """Chance that the scenarios at hand show the gap, or keep the gate's limit."""


class Plan(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask power` says."""

    design: Design
    gap: float | None
    scenarios: int | None
    max_rise: float | None = None
    """The limit of `unmask gate --max-rise` that is planned for, in place of showing a gap."""
    max_p_lie: float | None = None
    """The limit of `unmask gate --max-p-lie` that is planned for."""
    rows: tuple[PlanRow, ...]
    by_take_correlation: dict[str, tuple[PlanRow, ...]] = msgspec.field(default_factory=dict)
    """The rows of several takes once more, for each correlation between takes that the design allows."""


def mcnemar_power(n: int, *, discordant: float, gap: float, alpha: float = ALPHA) -> float:
    """Chance that McNemar's score test over n pairs is significant, if this share of pairs differs, `gap` net."""
    import numpy as np
    from scipy.special import bdtr, bdtrc, gammaln, xlog1py, xlogy

    gap = abs(gap)
    if not 0 <= gap <= discordant <= 1:
        raise ValueError(f"a gap of {gap:g} cannot come from {discordant:g} pairs that differ")
    if not discordant:
        return 0.0
    spread = 10 * sqrt(n * discordant) + 10
    pairs = np.arange(max(0, int(n * discordant - spread)), min(n, int(n * discordant + spread)) + 1)
    # The largest count on the smaller side that is still significant.
    critical = np.ceil((pairs - normal_quantile(1 - alpha / 2) * np.sqrt(pairs)) / 2) - 1
    lean = (1 + gap / discordant) / 2
    rejected = bdtr(critical, pairs, lean) + bdtrc(pairs - critical - 1, pairs, lean)
    ways = gammaln(n + 1) - gammaln(pairs + 1) - gammaln(n - pairs + 1)
    weight = np.exp(ways + xlogy(pairs, discordant) + xlog1py(n - pairs, -discordant))
    return float(np.sum(weight * np.where(critical >= 0, rejected, 0.0)))


def gate_rise_chance(n: int, *, discordant: float, gap: float, limit: float, alpha: float = ALPHA) -> float:
    """Chance that the upper bound of Tango's interval keeps `limit` over n pairs, if the second run lies `gap` more."""
    import numpy as np
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    share_a, share_b = (discordant - gap) / 2, (discordant + gap) / 2
    spread = 8 * sqrt(n * share_a) + 10
    only_a = np.arange(max(0, int(n * share_a - spread)), min(n, int(n * share_a + spread)) + 1)
    # For each number of pairs in which only the first lies, the most in which only the second may: by bisection.
    low, high = np.full(only_a.shape, -1), n - only_a + 1
    reach = normal_quantile(1 - alpha / 2)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        keeps = tango_score(limit, only_a, middle, n) <= -reach
        low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
    ways = gammaln(n + 1) - gammaln(only_a + 1) - gammaln(n - only_a + 1)
    weight = np.exp(ways + xlogy(only_a, share_a) + xlog1py(n - only_a, -share_a))
    passes = bdtr(np.minimum(low, n - only_a), n - only_a, min(1.0, share_b / (1 - share_a)))
    return float(np.sum(weight * np.where(low >= 0, passes, 0.0)))


def gate_rate_chance(n: int, *, p: float, limit: float, alpha: float = ALPHA) -> float:
    """Chance that the upper bound of Wilson's interval keeps `limit` in a run of n scenarios whose P(lie) is p."""
    from scipy.special import bdtr

    # The bound is at most the limit where a score test rejects the limit: the largest such count of lies.
    most = ceil(n * limit - normal_quantile(1 - alpha / 2) * sqrt(n * limit * (1 - limit)) + 1e-9) - 1
    return float(bdtr(most, n, p)) if most >= 0 else 0.0


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


def scenarios_needed(
    design: Design, gap: float, *, takes: int = 1, max_rise: float | None = None, max_p_lie: float | None = None
) -> int | None:
    """How many scenarios show `gap`, or keep a limit of the gate, with the design's power. `None` above a million."""
    reach = normal_quantile(1 - design.alpha / 2) + normal_quantile(design.power)
    distance = gap if max_rise is None else max_rise - gap
    if max_p_lie is not None:
        guess = ceil(reach**2 * max_p_lie * (1 - max_p_lie) / (max_p_lie - design.p) ** 2)
    elif takes > 1:
        count = ceil(reach**2 * gap_variance(design, gap, takes=takes) / distance**2)
        return max(2, count) if count <= MOST_SCENARIOS else None
    else:
        guess = ceil(reach**2 * max(discordance(design, gap), abs(distance)) / distance**2)
    if guess > MOST_SCENARIOS:
        return None
    low, high = max(1, guess // 8), guess * 2 + 20

    def is_enough(n: int) -> bool:
        return power_of(design, gap, n, max_rise=max_rise, max_p_lie=max_p_lie) >= design.power

    while not is_enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def power(
    *,
    gap: float | None = None,
    scenarios: int | None = None,
    max_rise: float | None = None,
    max_p_lie: float | None = None,
    takes: int | Sequence[int] = TAKES,
    **assumed: Any,
) -> Plan:
    """Scenarios needed for a gap, or what scenarios at hand can show, or both; for several numbers of takes.

    With `max_rise` or `max_p_lie` the plan is for `unmask gate` with that limit: how many scenarios pass it, if the
    second run lies `gap` more (nothing more, unless said), or if the run's P(lie) is `p`. `assumed` are the fields of
    `Design`: `power(gap=0.05, p=0.4)`.
    """
    refuse_unknown(assumed, Design.__struct_fields__)
    design = msgspec.convert(assumed, Design)
    if gap is None and scenarios is None and max_rise is None and max_p_lie is None:
        raise UsageError("there is nothing to plan for", advice="Give --gap 0.05, or --scenarios 1000, or both.")
    if scenarios is not None and scenarios < 1:
        raise UsageError(f"--scenarios {scenarios} is too small", advice="Give at least 1.")
    if scenarios is not None and scenarios > MOST_SCENARIOS:
        raise UsageError(f"--scenarios {scenarios} is too many to plan with", advice=f"Give at most {MOST_SCENARIOS}.")
    _check_design(design, gap)
    _check_limits(design, gap, max_rise=max_rise, max_p_lie=max_p_lie)
    limits = {"max_rise": max_rise, "max_p_lie": max_p_lie}
    counts = (1,) if max_p_lie is not None else (takes,) if isinstance(takes, int) else takes
    several = [count for count in counts if count > 1]
    designs = [msgspec.structs.replace(design, take_correlation=value) for value in TAKE_CORRELATIONS]
    return Plan(
        design=design,
        gap=gap,
        scenarios=scenarios,
        rows=tuple(_plan_row(design, count, gap, scenarios, limits) for count in counts),
        by_take_correlation={
            str(varied.take_correlation): tuple(_plan_row(varied, count, gap, scenarios, limits) for count in several)
            for varied in designs
            if several and varied.take_correlation >= design.correlation
        },
        **limits,
    )


def _plan_row(
    design: Design, takes: int, gap: float | None, scenarios: int | None, limits: Mapping[str, float | None]
) -> PlanRow:
    is_gate = any(limit is not None for limit in limits.values())
    assumed = 0.0 if is_gate and gap is None else gap
    n = None if assumed is None else scenarios_needed(design, assumed, takes=takes, **limits)
    runs = 1 if limits["max_p_lie"] is not None else 2
    row = PlanRow(takes=takes, needed=n, requests=None if n is None else runs * n * takes)
    if scenarios is None:
        return row
    return msgspec.structs.replace(
        row,
        smallest=None if is_gate else smallest_gap(design, scenarios, takes=takes),
        power=None if assumed is None else power_of(design, assumed, scenarios, takes=takes, **limits),
    )


def smallest_gap(design: Design, n: int, *, takes: int = 1) -> float | None:
    """The smallest rise of P(lie) that n scenarios show with the design's power; `None` where none can be shown."""
    low, high = 0.0, 1 - design.p
    if power_of(design, high, n, takes=takes) < design.power:
        return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(design, middle, n, takes=takes) >= design.power else (middle, high)
    return high


def power_of(
    design: Design,
    gap: float,
    n: int,
    *,
    takes: int = 1,
    max_rise: float | None = None,
    max_p_lie: float | None = None,
) -> float:
    """Chance that n scenarios show a rise of `gap`, or keep a limit of the gate if that is the rise."""
    if max_p_lie is not None:
        return gate_rate_chance(n, p=design.p, limit=max_p_lie, alpha=design.alpha)
    if takes == 1 and max_rise is not None:
        discordant = discordance(design, gap)
        return gate_rise_chance(n, discordant=discordant, gap=gap, limit=max_rise, alpha=design.alpha)
    if takes == 1:
        return mcnemar_power(n, discordant=discordance(design, gap), gap=gap, alpha=design.alpha)
    spread = sqrt(gap_variance(design, gap, takes=takes) / n)
    if not spread:
        return 1.0
    from statistics import NormalDist

    normal, reach = NormalDist(), normal_quantile(1 - design.alpha / 2)
    if max_rise is not None:
        return normal.cdf((max_rise - gap) / spread - reach)
    shift = abs(gap) / spread
    return normal.cdf(shift - reach) + normal.cdf(-shift - reach)


def normal_quantile(probability: float) -> float:
    """Of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def tango_score(gap: float, only_a: Any, only_b: Any, n: int) -> Any:
    """Tango's score statistic against a true difference of `gap`, for whole arrays of counts.

    The same as `score_statistic` in `unmask.stats.compare`; a test holds the two together.
    """
    import numpy as np

    first = -only_a - only_b + (2 * n - only_b + only_a) * gap
    second = -only_a * gap * (1 - gap)
    share = (np.sqrt(np.maximum(first * first - 8 * n * second, 0.0)) - first) / (4 * n)
    variance, off = n * (2 * share + gap * (1 - gap)), only_b - only_a - n * gap
    return off / np.sqrt(np.maximum(variance, 1e-300))


def _check_limits(design: Design, gap: float | None, *, max_rise: float | None, max_p_lie: float | None) -> None:
    """A limit can be planned for where the truth keeps it."""
    if max_rise is not None and max_p_lie is not None:
        raise UsageError("--max-rise and --max-p-lie are two plans", advice="Give one of them at a time.")
    if max_p_lie is not None and gap is not None:
        raise UsageError("--gap belongs to two runs, --max-p-lie to one", advice="Leave out --gap.")
    if max_p_lie is not None and not design.p < max_p_lie < 1:
        raise UsageError(
            f"--max-p-lie {max_p_lie:g} is not above --p {design.p:g}",
            advice="Give as --p the P(lie) you expect, below the limit: no size makes any other run pass.",
        )
    if max_rise is not None and not (gap or 0.0) < max_rise < 1:
        raise UsageError(
            f"--max-rise {max_rise:g} is not above the true rise, --gap {gap or 0.0:g}",
            advice="Give a limit above the rise you expect: no size makes any other run pass.",
        )


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
