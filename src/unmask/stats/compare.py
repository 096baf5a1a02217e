"""Two runs on the same scenarios: the difference, its interval, and whether it can be chance.

All functions look at b - a: positive where the second run has more. Values are one per scenario, from 0 to 1: whether
it is a lie for one take per scenario, or the chance of one for several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erfc, fsum, inf, sqrt
from typing import TYPE_CHECKING

from unmask.records import Record
from unmask.stats.power import ALPHA, constrained_share, detectable_gap, detectable_mean, normal_quantile
from unmask.stats.rate import Z95
from unmask.stats.resample import RESAMPLES, mean_draws, percentile_interval

if TYPE_CHECKING:
    from numpy.random import Generator


class Difference(Record, frozen=True, kw_only=True, omit_defaults=False):
    """b - a over `n` scenarios known in both. Everything is `None` where there are none; `why` says so."""

    n: int
    a: float | None = None
    b: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    """Of the interval. Above 0.95 where it was corrected together with the test; see `holm_levels`."""
    method: str | None = None
    """`tango`: score interval for paired yes/no values. `bonett_price`: adjusted normal interval for shares."""
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None
    p_value: float | None = None
    test: str | None = None
    """`mcnemar_score` for yes/no values, `paired_z` for shares. Each is the test that the interval inverts: the p-value
    is below 0.05 exactly where the 95 % interval leaves out 0."""
    p_adjusted: float | None = None
    """After Holm's correction over the family it was tested in; `None` before that."""
    only_a: float = 0
    """Sum over the scenarios where a is larger; for yes/no values the number of them."""
    only_b: float = 0
    correlation: float | None = None
    """Of the two values over scenarios. `None` where one run has the same value everywhere."""
    detectable: float | None = None
    """Smallest true difference that n such pairs would show as significant four times in five."""
    worst_low: float | None = None
    """The difference over all shared scenarios if every unjudged one is a lie in a and none in b; for a measure that
    is no lie, if it counts for a and not for b."""
    worst_high: float | None = None
    """The same the other way round."""
    worst_upper: float | None = None
    """Upper bound of the 95 % interval of `worst_high`: what `gate --max-rise` decides on."""
    why: str | None = None


def is_significant(difference: Difference) -> bool:
    """Whether it is larger than chance by the corrected p-value, or by the only one where nothing was corrected."""
    p = difference.p_value if difference.p_adjusted is None else difference.p_adjusted
    return p is not None and p < ALPHA


def paired_difference(
    a: Sequence[float],
    b: Sequence[float],
    *,
    rng: Generator,
    resamples: int = RESAMPLES,
    why: str | None = None,
    weights: Sequence[float] | None = None,
) -> Difference:
    """Everything about b - a. `why` is the reason given where there is no pair to compare.

    `weights` say how many scenarios each pair stands for, where pairs of its kind were left out; their mean is 1.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values cannot be paired with {len(b)}")
    n = len(a)
    if not n:
        return Difference(n=0, why=why or "no scenario was judged in both runs")
    weighted = weights is not None and len(set(weights)) > 1
    if weights is not None and weighted:
        a, b = ([value * weight for value, weight in zip(side, weights, strict=True)] for side in (a, b))
    gaps = [right - left for left, right in zip(a, b, strict=True)]
    more, less = fsum(gap for gap in gaps if gap > 0), fsum(-gap for gap in gaps if gap < 0)
    plain = not weighted and _are_yes_or_no(a, b)
    low, high = paired_interval(a, b) if plain else bounded_mean(gaps)
    # Where all gaps are the same every resample is, and a width of 0 would claim to know it exactly.
    boot = percentile_interval(mean_draws(gaps, rng=rng, resamples=resamples)) if len(set(gaps)) > 1 else None
    return Difference(
        n=n,
        a=fsum(a) / n,
        b=fsum(b) / n,
        value=(more - less) / n,
        low=low,
        high=high,
        method="tango" if plain else "bonett_price",
        bootstrap_low=boot[0] if boot else None,
        bootstrap_high=boot[1] if boot else None,
        p_value=mcnemar_score(int(less), int(more)) if plain else paired_z(gaps),
        test="mcnemar_score" if plain else "paired_z",
        only_a=less,
        only_b=more,
        correlation=pearson_correlation(a, b),
        detectable=detectable_difference(a, b),
    )


def worst_difference(a: Sequence[tuple[float, float]], b: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Lowest and highest difference of what could be, and the upper bound of the interval of the highest.

    Each scenario has the least and the most its value can be; the two are the same where it is known.
    """
    n = len(a)
    low = fsum(right[0] - left[1] for left, right in zip(a, b, strict=True)) / n
    gaps = [right[1] - left[0] for left, right in zip(a, b, strict=True)]
    if set(gaps) <= {-1.0, 0.0, 1.0}:
        _, upper = tango_interval(gaps.count(-1.0), gaps.count(1.0), n=n)
    else:
        _, upper = bounded_mean(gaps)
    return low, fsum(gaps) / n, upper


def paired_interval(a: Sequence[float], b: Sequence[float], *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the mean of b - a: Tango's for yes/no values, Bonett and Price's for shares."""
    gaps = [right - left for left, right in zip(a, b, strict=True)]
    if _are_yes_or_no(a, b):
        return tango_interval(gaps.count(-1), gaps.count(1), n=len(gaps), level=level)
    return bounded_mean(gaps, level=level)


def detectable_difference(a: Sequence[float], b: Sequence[float], *, level: float = 0.95) -> float | None:
    """Smallest true difference that as many such pairs would show four times in five, tested at this level."""
    n, squares = len(a), fsum((right - left) ** 2 for left, right in zip(a, b, strict=True))
    alpha = round(1 - level, 12)
    if _are_yes_or_no(a, b):
        return detectable_gap(n, discordant=squares / n, alpha=alpha)
    return detectable_mean(n, variance=(squares + 2) / (n + 2), alpha=alpha)


def mcnemar_score(only_a: int, only_b: int) -> float:
    """Two-sided p-value: how the scenarios that differ split, against a fair coin. 1 where none differs.

    McNemar's test as a score test, which is Tango's test of a difference of 0. The exact test would contradict the
    interval where few scenarios differ.
    """
    count = only_a + only_b
    return erfc(abs(only_b - only_a) / sqrt(2 * count)) if count else 1.0


def paired_z(gaps: Sequence[float]) -> float:
    """Two-sided p-value for a mean gap of 0, where gaps are not whole; the test of `bounded_mean`."""
    total, squares = fsum(gaps), fsum(gap * gap for gap in gaps) + 2
    studentised = total / sqrt(squares - total * total / (len(gaps) + 2))
    return erfc(abs(studentised) / sqrt(2))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values in the order given. What was not tested (`None`) does not count towards the family."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for rank, (p, place) in enumerate(order):
        reached = max(reached, min(1.0, p * (len(order) - rank)))
        adjusted[place] = reached
    return adjusted


def holm_levels(p_values: Sequence[float | None], *, alpha: float = ALPHA) -> list[float]:
    """The confidence level at which Holm's method tested each value: 1 - alpha / (hypotheses not yet rejected).

    An interval of that level leaves out 0 exactly where Holm's method rejects, if it inverts the same test.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    left = max(1, len(order))
    levels = [1 - alpha / left] * len(p_values)
    rejects = True
    for p, place in order:
        levels[place] = 1 - alpha / left
        rejects = rejects and p * left < alpha
        left -= rejects and left > 1
    return levels


def tango_interval(only_a: float, only_b: float, *, n: float, level: float = 0.95) -> tuple[float, float]:
    """Score interval of the difference of two paired shares (Tango 1998).

    Every difference that a score test would not reject, found by bisection. It keeps its level for few scenarios and
    few disagreements, and does not collapse where the runs agree everywhere.
    """
    reach = _normal_reach(level)
    return (
        _bisect_crossing(lambda gap: score_statistic(gap, only_a, only_b, n) > reach),
        _bisect_crossing(lambda gap: score_statistic(gap, only_a, only_b, n) > -reach),
    )


def bounded_mean(gaps: Sequence[float], *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the mean of gaps between -1 and 1 (Bonett and Price 2012, for shares in place of yes/no).

    A normal interval after one scenario with gap 1 and one with gap -1 were added, which keeps it from collapsing.
    """
    n = len(gaps)
    total, squares = fsum(gaps), fsum(gap * gap for gap in gaps) + 2
    centre = total / (n + 2)
    half = _normal_reach(level) * sqrt((squares - total * total / (n + 2)) / (n + 2) ** 2)
    return max(-1.0, centre - half), min(1.0, centre + half)


def pearson_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's, which is phi for yes/no values. `None` where one side does not vary."""
    n = len(a)
    mean_a, mean_b = fsum(a) / n, fsum(b) / n
    spread_a, spread_b = fsum((x - mean_a) ** 2 for x in a), fsum((y - mean_b) ** 2 for y in b)
    if spread_a <= 1e-12 or spread_b <= 1e-12:
        return None
    shared = fsum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    return max(-1.0, min(1.0, shared / sqrt(spread_a * spread_b)))


def _are_yes_or_no(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(value in {0, 1} for value in (*a, *b))


def _normal_reach(level: float) -> float:
    return Z95 if level == 0.95 else normal_quantile((1 + level) / 2)


def score_statistic(gap: float, only_a: float, only_b: float, n: float) -> float:
    """Score statistic of the observed difference against a true one of `gap`; falls as `gap` grows."""
    variance = n * (2 * constrained_share(gap, only_a, only_b, n) + gap * (1 - gap))
    off = only_b - only_a - n * gap
    if variance <= 0:
        return inf if off > 0 else -inf if off < 0 else 0.0
    return off / sqrt(variance)


def _bisect_crossing(above: Callable[[float], bool]) -> float:
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return (low + high) / 2
