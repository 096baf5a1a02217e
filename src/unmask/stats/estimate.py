"""One estimator for every share and every difference of two runs.

A scenario has a value from 0 to 1: whether its only reply is a lie, or the share of its takes that are. Scenarios that
share a fact or a prompt form a cluster, and clusters are what varies at random. `share` estimates a weighted mean or a
ratio of means, and `difference` the mean of b - a over the same scenarios. `stats.values` does the same where some
values are not known, and `stats.clusters` finds the clusters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from math import erfc, fsum, inf, sqrt
from statistics import NormalDist
from typing import NamedTuple

from unmask.records import Record
from unmask.stats.rate import FEW, Z95, wilson_interval

ALPHA = 0.05
POWER = 0.8
ROUNDING = 1e-9
"""Sums of shares that are closer than this are the same."""


class Estimate(NamedTuple):
    """A share with its 95 % interval. No value and no interval where the denominator is empty."""

    value: float | None
    low: float | None
    high: float | None
    size: float
    """Independent yes/no observations that would vary as much."""
    few: bool
    """Whether few clusters have a hit, or few lack one."""


class Difference(Record, frozen=True, kw_only=True, omit_defaults=False):
    """b - a over the scenarios known in both runs. All is `None` where there are none, and `why` says so."""

    n: int
    """Scenarios known in both."""
    a: float | None = None
    b: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    """Of the interval. Above 0.95 where it was corrected together with the test; see `holm_levels`."""
    method: str | None = None
    """`tango` for yes/no values of independent scenarios with one take, `t` for all others."""
    p_value: float | None = None
    """Below 1 - level exactly where the interval leaves out 0."""
    p_worst: float | None = None
    """The same if all that is not known spoke against the difference; 1 where that would turn its sign."""
    p_adjusted: float | None = None
    """After Holm's correction over the family it was tested in; `None` before that."""
    p_worst_adjusted: float | None = None
    clusters: int = 0
    few: bool = False
    """Whether so few clusters differ that the interval is not sure to keep its level."""
    detectable: float | None = None
    """Smallest true difference that as many such pairs would show as significant four times in five."""
    worst_low: float | None = None
    """The difference over all shared scenarios if everything unknown counted for a and not for b."""
    worst_high: float | None = None
    """The same the other way round."""
    worst_lower: float | None = None
    """Lower bound of the interval of `worst_low`."""
    worst_upper: float | None = None
    """Upper bound of the interval of `worst_high`: what `gate --max-rise` decides on."""
    why: str | None = None


def share(
    values: Sequence[float],
    weights: Sequence[float] | None = None,
    clusters: Sequence[Hashable] | None = None,
    among: Sequence[float] | None = None,
    *,
    doubts: Sequence[float] | None = None,
) -> Estimate:
    """The sum of w y over the sum of w d, for values y, weights w and denominators d (`among`; 1 unless given).

    Wilson's score interval (1927) with the effective size: as many yes/no observations as have the variance between
    clusters (linearised, times G / (G - 1)), and Student's t with G - 1 degrees of freedom in place of z, as for
    surveys (Korn and Graubard 1998, Dean and Pagano 2015). Where each cluster is all hits or none and weighs the same,
    which includes plain yes/no values, it is Wilson's own. `doubts` are variances of values that are only expected.
    """
    among = among if among is not None else [1.0] * len(values)
    weights = weights if weights is not None else [1.0] * len(values)
    if not all(0 <= value <= whole + ROUNDING for value, whole in zip(values, among, strict=True)):
        raise ValueError("a value is below 0 or above its denominator")
    counted = [place for place, (weight, whole) in enumerate(zip(weights, among, strict=True)) if weight * whole > 0]
    names = None if clusters is None else [clusters[place] for place in counted]
    parts = [weights[place] * values[place] for place in counted]
    sizes = [weights[place] * among[place] for place in counted]
    hits, wholes = _sum_by_cluster(names, parts), _sum_by_cluster(names, sizes)
    telling = min(sum(hit > 0 for hit in hits), sum(hit < whole for hit, whole in zip(hits, wholes, strict=True)))
    count, total = len(hits), fsum(wholes)
    if not count:
        return Estimate(None, None, None, size=0.0, few=True)
    value = min(1.0, max(0.0, fsum(hits) / total))
    plain = len(set(wholes)) == 1 and all(hit in {0.0, wholes[0]} for hit in hits)
    size, reach = float(count), Z95
    if not plain and count > 1:
        doubt = fsum(weight * weight * one for weight, one in zip(weights, doubts or (), strict=False))
        gaps = (hit - value * whole for hit, whole in zip(hits, wholes, strict=True))
        squares = fsum(gap * gap for gap in gaps) * count / (count - 1)
        size, reach = _effective_size(value, wholes, squares, telling, doubt), _reach(0.95, count - 1)
    low, high = wilson_interval(value * size, size, z=reach)
    return Estimate(value, min(low, value), max(high, value), size, telling < FEW)


def _effective_size(value: float, wholes: Sequence[float], squares: float, telling: int, doubt: float) -> float:
    """Yes/no observations with the variance between clusters.

    Without any variance to see, each cluster is one observation (Kish's number of them, where they differ in weight).
    Where the variance is smaller than that, a cluster whose replies all agree is added to those that have hits: a
    handful of them says little about how alike the replies of a cluster are. Values that are expected from the others
    vary less than what they represent: of all variance that would be seen if they were known, `doubt` is not, and by
    that share there is less information (Louis 1982).
    """
    total = fsum(wholes)
    units = total**2 / fsum(whole**2 for whole in wholes)
    if not 0 < value < 1:
        return units
    squares *= (1 + doubt / squares) ** 2 if squares else 1
    ratio = squares / total**2 * units / (value * (1 - value))
    if ratio < 1:
        ratio = (telling * ratio + 1) / (telling + 1)
    return units / ratio


def difference(
    a: Sequence[float],
    b: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    takes: int = 1,
    level: float = 0.95,
    *,
    weights: Sequence[float] | None = None,
    among: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Difference:
    """The mean of b - a, paired by position; with `among`, the denominators in a and in b, that of two ratios.

    Tango's score interval (1998) and McNemar's score test for one take per scenario, yes or no, each scenario its own
    cluster. Otherwise Student's t over clusters after two clusters were added, at plus and minus the root mean square
    of the differences that are not 0, or what one of the replies of a cluster makes if that is more (1 / takes for
    single scenarios). It is the adjustment of Bonett and Price (2012) on the scale of the differences that were seen,
    and keeps an interval from collapsing where few clusters differ. Ratios are linearised.
    """
    if not a:
        raise ValueError("a difference needs at least one scenario in both runs")
    weights = weights if weights is not None else [1.0] * len(a)
    plain = among is None or all(whole == 1 for side in among for whole in side)
    gaps, means, unit = list_gaps(a, b, weights, None if plain else among)
    sums, sizes = sum_gaps(gaps, clusters, weights)
    count = len(sums)
    single = plain and takes == 1 and count == len(gaps) and len(set(weights)) == 1
    yes_or_no = single and all(value in {0, 1} for value in (*a, *b))
    if yes_or_no:
        only_a, only_b = gaps.count(-1), gaps.count(1)
        low, high = tango_interval(only_a, only_b, n=count, level=level)
        p_value = mcnemar_score(only_a, only_b)
        alpha = round(1 - level, 12)
        detectable = detectable_gap(count, discordant=(only_a + only_b) / count, alpha=alpha)
    else:
        low, high, p_value, error = _t_interval(sums, sizes, least=unit * count / (takes * len(gaps)), level=level)
        detectable = None if error == inf else (_reach(level, count - 1) + normal_quantile(POWER)) * error
    differing = _sum_by_cluster(clusters, [right - left for left, right in zip(a, b, strict=True)])
    return Difference(
        n=len(gaps),
        a=means[0],
        b=means[1],
        value=_weighted_mean(gaps, weights) if plain else means[1] - means[0],
        low=low,
        high=high,
        p_value=p_value,
        p_worst=p_value,
        level=level,
        method="tango" if yes_or_no else "t",
        clusters=count,
        few=sum(abs(gap) > ROUNDING for gap in differing) < FEW,
        detectable=detectable,
    )


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return fsum(weight * value for weight, value in zip(weights, values, strict=True)) / fsum(weights)


def list_gaps(
    a: Sequence[float],
    b: Sequence[float],
    weights: Sequence[float],
    among: tuple[Sequence[float], Sequence[float]] | None,
) -> tuple[list[float], list[float], float]:
    """What each scenario adds to the difference of two means or, linearised, of two ratios; these two; and how much one
    that is a hit in only one run adds at the most."""
    if among is None:
        means = [_weighted_mean(side, weights) for side in (a, b)]
        return [right - left for left, right in zip(a, b, strict=True)], means, 1.0
    total, unit = fsum(weights), 1.0
    parts, means = [], []
    for hits, wholes in zip((a, b), among, strict=True):
        whole = fsum(weight * one for weight, one in zip(weights, wholes, strict=True))
        if whole <= 0:
            raise ValueError("a ratio has an empty denominator")
        mean = fsum(weight * hit for weight, hit in zip(weights, hits, strict=True)) / whole
        parts.append([total * (hit - mean * one) / whole for hit, one in zip(hits, wholes, strict=True)])
        means.append(mean)
        unit = max(unit, total / whole)
    gap = means[1] - means[0]
    return [gap + right - left for left, right in zip(*parts, strict=True)], means, unit


def sum_gaps(
    gaps: Sequence[float], clusters: Sequence[Hashable] | None, weights: Sequence[float]
) -> tuple[list[float], list[float]]:
    """The sum of each cluster and its size, on the scale on which sizes have mean 1."""
    sums = _sum_by_cluster(clusters, [weight * gap for weight, gap in zip(weights, gaps, strict=True)])
    sizes = _sum_by_cluster(clusters, weights)
    scale = len(sizes) / fsum(sizes)
    return [scale * one for one in sums], [scale * size for size in sizes]


def _t_interval(
    sums: Sequence[float], sizes: Sequence[float], *, least: float, level: float
) -> tuple[float, float, float, float]:
    """Interval, p-value and standard error of the mean of the clusters' sums; their sizes have mean 1."""
    from scipy.special import stdtr

    count = len(sums)
    if count == 1:
        return -1.0, 1.0, 1.0, inf
    differing = [one * one for one in sums if abs(one) > ROUNDING]
    added = max(least, sqrt(fsum(differing) / len(differing)) if differing else 0.0)
    centre = fsum(sums) / (count + 2)
    squares = fsum((one - centre * size) ** 2 for one, size in zip(sums, sizes, strict=True))
    error = sqrt(squares + 2 * (added**2 + centre**2)) / (count + 2)
    half = _reach(level, count - 1) * error
    p_value = float(2 * stdtr(count - 1, -abs(centre) / error))
    return max(-1.0, centre - half), min(1.0, centre + half), p_value, error


def _sum_by_cluster(clusters: Sequence[Hashable] | None, parts: Sequence[float]) -> list[float]:
    """Exactly rounded, so that the order of the scenarios does not matter."""
    if clusters is None:
        return list(parts)
    groups: defaultdict[Hashable, list[float]] = defaultdict(list)
    for name, part in zip(clusters, parts, strict=True):
        groups[name].append(part)
    return [fsum(own) for own in groups.values()]


def mcnemar_score(only_a: int, only_b: int) -> float:
    """Two-sided p-value: how the scenarios that differ split, against a fair coin. 1 where none differs.

    McNemar's test as a score test, which is Tango's test of a difference of 0. The exact test would contradict the
    interval where few scenarios differ.
    """
    count = only_a + only_b
    return erfc(abs(only_b - only_a) / sqrt(2 * count)) if count else 1.0


def tango_interval(only_a: float, only_b: float, *, n: float, level: float = 0.95) -> tuple[float, float]:
    """Score interval of the difference of two paired shares (Tango 1998).

    Every difference that a score test would not reject, found by bisection. It keeps its level for few scenarios and
    few disagreements, and does not collapse where the runs agree everywhere.
    """
    reach = _reach(level)
    return (
        _bisect_crossing(lambda gap: score_statistic(gap, only_a, only_b, n) > reach),
        _bisect_crossing(lambda gap: score_statistic(gap, only_a, only_b, n) > -reach),
    )


def score_statistic(gap: float, only_a: float, only_b: float, n: float) -> float:
    """Score statistic of the observed difference against a true one of `gap`; falls as `gap` grows."""
    variance = n * (2 * constrained_share(gap, only_a, only_b, n) + gap * (1 - gap))
    off = only_b - only_a - n * gap
    if variance <= 0:
        return inf if off > 0 else -inf if off < 0 else 0.0
    return off / sqrt(variance)


def constrained_share(gap: float, only_a: float, only_b: float, n: float) -> float:
    """The share of only-a pairs that is most likely if the difference is `gap`."""
    # Root of 2n q^2 + first q + second = 0.
    first = -only_a - only_b + (2 * n - only_b + only_a) * gap
    second = -only_a * gap * (1 - gap)
    return (sqrt(max(first * first - 8 * n * second, 0.0)) - first) / (4 * n)


def _bisect_crossing(above: Callable[[float], bool]) -> float:
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return (low + high) / 2


def detectable_gap(n: int, *, discordant: float, power: float = POWER, alpha: float = ALPHA) -> float | None:
    """Smallest true difference that McNemar's test finds with this power. More pairs must differ where the difference
    itself is larger. `None` where even a difference of 1 would not be found."""
    reach, sure = normal_quantile(1 - alpha / 2), normal_quantile(power)
    left = n + sure**2 - reach**2
    if left < 0:
        return None
    # Root of reach sqrt(d) + sure sqrt(d - g^2) = g sqrt(n), where d is at least g.
    factor = (reach * sqrt(n) + sure * sqrt(left)) / (n + sure**2)
    return factor * max(factor, sqrt(discordant)) if factor <= 1 else None


def _reach(level: float, freedom: float = inf) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    from scipy.special import stdtrit

    if freedom < inf:
        return float(stdtrit(freedom, (1 + level) / 2))
    return Z95 if level == 0.95 else normal_quantile((1 + level) / 2)


def normal_quantile(probability: float) -> float:
    """Of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)
