"""Are two paired rates the same within a margin? Two one-sided tests (TOST), and how many scenarios they need.

A test that finds no difference shows nothing: few scenarios find none either. Here the burden is the other way round.
Two rates are called equivalent where the data speak against a shift as large as the margin, upwards and downwards,
each at 5 %. That is where the 90 % interval lies between the two margins.

For yes/no values the tests are Tango's score tests, as in `unmask compare`. Where hardly a pair differs their real
error can be 7 %, so the p-values are summed over what the pairs may show, and these have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from math import ceil, fsum, log, log1p, sqrt
from statistics import NormalDist
from typing import Any

from unmask.records import Record
from unmask.stats.compare import bounded_mean, score_statistic, tango_interval
from unmask.stats.power import ALPHA, MOST_SCENARIOS, POWER, constrained_share, normal_quantile

LEVEL = 1 - 2 * ALPHA
"""Of the interval that lies between the margins where both tests reject."""
SPARSE = 20
"""Pairs that differ up to which a plan asks the summed p-value, too: with more it hardly says anything else."""

_NORMAL = NormalDist()
_REACH = normal_quantile(1 - ALPHA)


class EquivalenceVerdict(StrEnum):
    """What the two tests say together."""

    EQUIVALENT = "equivalent"
    """A shift as large as the margin is ruled out both ways."""
    DIFFERENT = "different"
    """A shift larger than the margin is shown: the interval lies outside."""
    NOT_SHOWN = "not_shown"
    """Neither: the interval holds a margin."""


class EquivalenceTest(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Two one-sided tests of a shift against a margin."""

    margin: float
    low: float
    high: float
    level: float = LEVEL
    p_lower: float
    """Against a fall by the margin or more."""
    p_upper: float
    """Against a rise by the margin or more."""
    verdict: EquivalenceVerdict


def check_equivalence(gaps: Sequence[float], *, margin: float, yes_or_no: bool) -> EquivalenceTest:
    """Whether the mean of `gaps`, b - a for each scenario, lies within the margin. `yes_or_no` says that both values of
    every scenario are 0 or 1."""
    if yes_or_no:
        only_a, only_b, n = gaps.count(-1), gaps.count(1), len(gaps)
        low, high = tango_interval(only_a, only_b, n=n, level=LEVEL)
        p_lower = sum_score_test(only_b, only_a, n=n, margin=margin)
        p_upper = sum_score_test(only_a, only_b, n=n, margin=margin)
        p_beyond = sum_score_test(*sorted((only_a, only_b)), n=n, margin=margin, beyond=True)
    else:
        low, high = bounded_mean(gaps, level=LEVEL)
        centre, error = _adjusted_mean(gaps)
        p_lower, p_upper = (_NORMAL.cdf(-(margin + side * centre) / error) for side in (1, -1))
        p_beyond = 1 - max(p_lower, p_upper)
    verdict = EquivalenceVerdict.NOT_SHOWN
    if -margin < low and high < margin and max(p_lower, p_upper) <= ALPHA:
        verdict = EquivalenceVerdict.EQUIVALENT
    elif (low > margin or high < -margin) and p_beyond <= ALPHA:
        verdict = EquivalenceVerdict.DIFFERENT
    return EquivalenceTest(margin=margin, low=low, high=high, p_lower=p_lower, p_upper=p_upper, verdict=verdict)


def sum_score_test(only_a: int, only_b: int, *, n: int, margin: float, beyond: bool = False) -> float:
    """Chance of a rise from a to b as small as this one or smaller, if the true rise is the margin; `beyond`, as large
    or larger. It is summed over what n pairs may show, with as many that differ as are most likely then."""
    score = score_statistic(margin, only_a, only_b, n)
    p = _NORMAL.cdf(-score if beyond else score)
    if not 1e-9 < p < 0.5:  # nothing near 5 %
        return p
    discordant = 2 * constrained_share(margin, only_a, only_b, n) + margin
    # What was seen counts on both sides, also where it is rounded.
    reach = 2 * _NORMAL.cdf(score - 1e-9 if beyond else score + 1e-9)
    smaller = gate_rise_chance(n, discordant=discordant, gap=margin, limit=margin, alpha=reach)
    return 1 - smaller if beyond else smaller


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


def equivalence_chance(n: int, *, discordant: float, margin: float, shift: float = 0.0) -> float:
    """Chance that n pairs are called equivalent, if this share of pairs differs, `shift` net. One take per scenario."""
    import numpy as np
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    shift = abs(shift)
    if not 0 <= shift <= discordant <= 1:
        raise ValueError(f"a shift of {shift:g} cannot come from {discordant:g} pairs that differ")
    spread = 10 * sqrt(n * discordant) + 10
    pairs = np.arange(max(0, int(n * discordant - spread)), min(n, int(n * discordant + spread)) + 1)
    # For each number of pairs that differ, the most on one side that still rule out the margin there: by bisection.
    low, high = np.full(pairs.shape, -1), pairs + 1
    while np.any(high - low > 1):
        middle = (low + high) // 2
        rules_out = tango_score(margin, pairs - middle, middle, n) < -_REACH
        low, high = np.where(rules_out, middle, low), np.where(rules_out, high, middle)
    for place, count in enumerate(pairs.tolist()):
        while (
            count <= SPARSE
            and low[place] >= 0
            and sum_score_test(count - low[place], low[place], n=n, margin=margin) > ALPHA
        ):
            low[place] -= 1
    lean = (1 + shift / discordant) / 2 if discordant else 0.5
    # The other side has as many at most.
    least = np.maximum(pairs - low, 0)
    inside = bdtr(low, pairs, lean) - np.where(least > 0, bdtr(least - 1, pairs, lean), 0.0)
    ways = gammaln(n + 1) - gammaln(pairs + 1) - gammaln(n - pairs + 1)
    weight = np.exp(ways + xlogy(pairs, discordant) + xlog1py(n - pairs, -discordant))
    return float(np.sum(weight * np.where(low >= least, inside, 0.0)))


def scenarios_for_equivalence(*, discordant: float, margin: float, shift: float = 0.0) -> int | None:
    """Scenarios that are called equivalent four times in five, if this share of them differs, `shift` net. `None` where
    the shift is not within the margin, or above a million."""
    shift = abs(shift)
    if shift >= margin:
        return None
    discordant = max(discordant, shift)
    least = ceil(log(ALPHA) / log1p(-margin))  # with fewer, not even pairs that all agree rule out the margin
    return _search_size(
        lambda n: equivalence_chance(n, discordant=discordant, margin=margin, shift=shift),
        guess=_normal_size(discordant, margin, shift),
        least=least,
    )


def shares_for_equivalence(*, variance: float, margin: float, shift: float = 0.0) -> int | None:
    """The same for shares of takes. `variance` is the mean square of the gaps."""
    shift = abs(shift)
    if shift >= margin:
        return None

    def chance(n: int) -> float:
        error = sqrt(variance * n + 2) / (n + 2)  # as `bounded_mean` has it
        upper, lower = ((margin + side * shift) / error - _REACH for side in (-1, 1))
        return max(0.0, _NORMAL.cdf(upper) + _NORMAL.cdf(lower) - 1)

    return _search_size(chance, guess=_normal_size(variance, margin, shift), least=2)


def _normal_size(variance: float, margin: float, shift: float) -> int:
    """Near what is needed; without a shift either test may fail, each in half of the failures."""
    reach = _REACH + normal_quantile((1 + POWER) / 2 if not shift else POWER)
    return ceil(reach**2 * variance / (margin - shift) ** 2)


def _search_size(chance: Callable[[int], float], *, guess: int, least: int) -> int | None:
    """The smallest size, from `least` on, whose chance is the power that plans ask for; `None` above a million."""
    if guess > MOST_SCENARIOS:
        return None
    low, high = least - 1, max(least, guess)
    while chance(high) < POWER:
        low, high = high, 2 * high
        if high > 4 * MOST_SCENARIOS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= POWER else (middle, high)
    return high if high <= MOST_SCENARIOS else None


def _adjusted_mean(gaps: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error of `bounded_mean`."""
    size, total, squares = len(gaps) + 2, fsum(gaps), fsum(gap * gap for gap in gaps) + 2
    return total / size, sqrt((squares - total * total / size) / size**2)
