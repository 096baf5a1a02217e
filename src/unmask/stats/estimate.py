"""One estimator for every share and every difference of two runs.

A scenario has a value from 0 to 1: whether its only reply is a lie, or the share of its takes that are. Scenarios that
share a fact or a prompt form a cluster, and clusters are what varies at random. `share` estimates a weighted mean or a
ratio of means, and `difference` the mean of b - a over the same scenarios. `estimate_rate` and `compare_values` do the
same where some values are not known, with what holds whatever these are. `stats.clusters` finds the clusters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from math import fsum, inf, sqrt
from typing import NamedTuple

import msgspec

from unmask.records import Record
from unmask.stats.compare import holm, mcnemar_score, tango_interval
from unmask.stats.power import ALPHA, POWER, detectable_gap, normal_quantile
from unmask.stats.rate import FEW, Z95, Rate, wilson_interval

ROUNDING = 1e-9
"""Sums of shares that are closer than this are the same."""


class Estimate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A share with its interval. No value and no interval where the denominator is empty."""

    value: float | None
    low: float | None
    high: float | None
    scenarios: int
    """In the denominator."""
    clusters: int
    size: float
    """Independent yes/no observations that would vary as much."""
    telling: int
    """Clusters that have a hit, or clusters that lack one: the smaller number of the two."""

    @property
    def few(self) -> bool:
        return self.telling < FEW


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


def is_significant(difference: Difference) -> bool:
    """Whether it is larger than chance, and would be whatever is not known: by the corrected p-value, or by the only
    one where nothing was corrected."""
    p = difference.p_worst if difference.p_worst_adjusted is None else difference.p_worst_adjusted
    return p is not None and p < ALPHA


def depends_on_unjudged(difference: Difference) -> bool:
    """Whether it is larger than chance as far as is known, but what is not known could undo that."""
    p = difference.p_value if difference.p_adjusted is None else difference.p_adjusted
    return p is not None and p < ALPHA and not is_significant(difference)


def adjust_family(family: Sequence[Difference]) -> list[Difference]:
    """The differences with Holm's correction over all of them."""
    adjusted = zip(family, holm([one.p_value for one in family]), holm([one.p_worst for one in family]), strict=True)
    return [
        msgspec.structs.replace(one, p_adjusted=p_adjusted, p_worst_adjusted=p_worst)
        for one, p_adjusted, p_worst in adjusted
    ]


def share(
    values: Sequence[float],
    weights: Sequence[float] | None = None,
    clusters: Sequence[Hashable] | None = None,
    among: Sequence[float] | None = None,
    level: float = 0.95,
    *,
    doubts: Sequence[float] | None = None,
    strata: Sequence[Hashable] | None = None,
) -> Estimate:
    """The sum of w y over the sum of w d, for values y, weights w and denominators d (`among`; 1 unless given).

    Wilson's score interval (1927) with the effective size: as many yes/no observations as have the variance between
    clusters (linearised, times G / (G - 1)), and Student's t with G - 1 degrees of freedom in place of z, as for
    surveys (Korn and Graubard 1998, Dean and Pagano 2015). Where each cluster is all hits or none and weighs the same,
    which includes plain yes/no values, it is Wilson's own. `doubts` are variances of values that are only expected.
    With `strata` only what varies within them counts: six archetypes that weigh alike are not six of many.
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
        return Estimate(value=None, low=None, high=None, scenarios=0, clusters=0, size=0.0, telling=0)
    value = min(1.0, max(0.0, fsum(hits) / total))
    plain = len(set(wholes)) == 1 and all(hit in {0.0, wholes[0]} for hit in hits)
    size, reach = float(count), _reach(level)
    if not plain and count > 1:
        doubt = fsum(weight * weight * one for weight, one in zip(weights, doubts or (), strict=False))
        groups = [None if strata is None else strata[place] for place in counted]
        gaps = _sum_by_cluster(names, _center(parts, sizes, groups))
        freedom = max(1, count - len(set(groups)))
        squares = fsum(gap * gap for gap in gaps) * count / freedom
        size, reach = _effective_size(value, wholes, squares, telling, doubt), _reach(level, freedom)
    low, high = wilson_interval(value * size, size, z=reach)
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        scenarios=len(counted),
        clusters=count,
        size=size,
        telling=telling,
    )


def _center(parts: Sequence[float], sizes: Sequence[float], groups: Sequence[Hashable]) -> list[float]:
    """How much more each part is than the mean of its group says."""
    hits: defaultdict[Hashable, list[float]] = defaultdict(list)
    wholes: defaultdict[Hashable, list[float]] = defaultdict(list)
    for part, size, group in zip(parts, sizes, groups, strict=True):
        hits[group].append(part)
        wholes[group].append(size)
    means = {group: fsum(own) / fsum(wholes[group]) for group, own in hits.items()}
    return [part - means[group] * size for part, size, group in zip(parts, sizes, groups, strict=True)]


def _effective_size(value: float, wholes: Sequence[float], squares: float, telling: int, doubt: float) -> float:
    """Yes/no observations with the variance between clusters.

    Without any variance to see, each cluster is one observation (Kish's number of them, where they differ in weight).
    Where the variance is smaller than that, a cluster whose replies all agree is added to those that have hits: a
    handful of them says little about how alike the replies of a cluster are. Values that are expected from the others
    vary less than what they stand for: of all variance that would be seen if they were known, `doubt` is not, and by
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


class Value(NamedTuple):
    """What one scenario adds to a rate: to its numerator, and to the rest of its denominator."""

    hit: float | None
    """From 0 to 1. `None` where it is not known."""
    miss: float
    """From 0 to 1; without a meaning where the hit is not known."""
    least: float
    most: float
    """What the hit can be, whatever the unknown would have been."""
    least_miss: float
    most_miss: float
    kind: Hashable = None
    """Scenarios of a kind that are known represent those of the kind that are not."""
    doubt: float = 0.0
    """The variance of the hit, where it is only what the others make likely."""


Pair = tuple[Value, Value, Hashable]
"""A scenario in a and in b, and its cluster."""


def known_value(hit: float, miss: float, kind: Hashable = None) -> Value:
    return Value(hit, miss, hit, hit, miss, miss, kind)


def weigh_kinds(values: Sequence[Value]) -> list[float]:
    """How many scenarios each known one represents: 0 for those that are not known, 1 where a kind is all known.

    All are 0 where a kind has scenarios and none is known: nothing represents them, and the others alone would mislead.
    Those without a kind are left out.
    """
    kinds = Counter(value.kind for value in values)
    known = Counter(value.kind for value in values if value.hit is not None)
    if kinds.keys() - known.keys() - {None}:
        return [0.0] * len(values)
    weights = {kind: kinds[kind] / number for kind, number in known.items()}
    if len(set(weights.values())) == 1:
        weights = dict.fromkeys(weights, 1.0)
    return [0.0 if value.hit is None else weights[value.kind] for value in values]


def estimate_rate(
    values: Sequence[Value], clusters: Sequence[Hashable] | None = None, *, weights: Sequence[float] | None = None
) -> Rate:
    """The rate over these scenarios, and what it is at the least and at the most. `weights` replace those of the kinds.

    Known scenarios represent unknown ones, which can put the estimate where the rate cannot be: it is the nearest one
    that is possible then.
    """
    known = weigh_kinds(values) if weights is None else weights
    found = share(
        [value.hit or 0.0 for value in values],
        known,
        clusters,
        among=[(value.hit or 0.0) + value.miss for value in values],
        doubts=[value.doubt for value in values],
    )
    least, most = fsum(value.least for value in values), fsum(value.most for value in values)
    lowest = least + fsum(value.most_miss for value in values)
    highest = most + fsum(value.least_miss for value in values)
    counted = sum(value.hit is not None and value.hit + value.miss > 0 for value in values)
    worst_low, worst_high = least / lowest if lowest else None, most / highest if highest else None
    value, low, high = found.value, found.low, found.high
    if value is not None and worst_low is not None and worst_high is not None:
        value = min(max(value, worst_low), worst_high)
        low, high = min(low or 0.0, value), max(high or 0.0, value)
    hits = (value or 0.0) * counted
    return Rate(
        hits=round(hits) if abs(hits - round(hits)) < ROUNDING else hits,
        total=counted,
        value=value,
        low=low,
        high=high,
        worst_low=worst_low,
        worst_high=worst_high,
        unjudged=sum(value.hit is None for value in values),
        few=found.few,
    )


def estimate_worst(values: Sequence[Value], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """The rate if everything that is not known were a hit, with its interval."""
    hits, wholes = _fill(values, up=True)
    return share(hits, None, clusters, among=wholes)


def _fill(values: Sequence[Value], *, up: bool) -> tuple[list[float], list[float]]:
    """Hits and denominators where all that is not known is a hit, or none of it."""
    hits = [value.most if up else value.least for value in values]
    misses = [value.least_miss if up else value.most_miss for value in values]
    return hits, [hit + miss for hit, miss in zip(hits, misses, strict=True)]


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
    gaps, means, unit = _list_gaps(a, b, weights, None if plain else among)
    sums, sizes = _sum_gaps(gaps, clusters, weights)
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
        few=_count_differing(a, b, clusters) < FEW,
        detectable=detectable,
    )


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return fsum(weight * value for weight, value in zip(weights, values, strict=True)) / fsum(weights)


def _list_gaps(
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


def _count_differing(a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None) -> int:
    """The clusters that do not have the same hits in both."""
    gaps = _sum_by_cluster(clusters, [right - left for left, right in zip(a, b, strict=True)])
    return sum(abs(gap) > ROUNDING for gap in gaps)


def _sum_gaps(
    gaps: Sequence[float], clusters: Sequence[Hashable] | None, weights: Sequence[float]
) -> tuple[list[float], list[float]]:
    """The sum of each cluster and its size, on the scale on which sizes have mean 1."""
    sums = _sum_by_cluster(clusters, [weight * gap for weight, gap in zip(weights, gaps, strict=True)])
    sizes = _sum_by_cluster(clusters, weights)
    scale = len(sizes) / fsum(sizes)
    return [scale * one for one in sums], [scale * size for size in sizes]


def compare_values(
    a: Sequence[Value],
    b: Sequence[Value],
    clusters: Sequence[Hashable] | None = None,
    takes: int = 1,
    level: float = 0.95,
) -> Difference:
    """The difference over the scenarios known in both, and what it is whatever the others are.

    Pairs that are known represent those of their kind (with or without a belief in each run) that are not.
    """
    pairs = _pair_values(a, b, clusters)
    known = [pair for pair in pairs if pair[0].hit is not None and pair[1].hit is not None]
    wholes = [
        [(left.hit or 0.0) + left.miss for left, _, _ in known],
        [(right.hit or 0.0) + right.miss for _, right, _ in known],
    ]
    if not all(fsum(side) > 0 for side in wholes):
        return Difference(n=0, why="no scenario was judged in both runs")
    kinds = Counter((left.kind, right.kind) for left, right, _ in pairs)
    known_kinds = Counter((left.kind, right.kind) for left, right, _ in known)
    weights = [kinds[left.kind, right.kind] / known_kinds[left.kind, right.kind] for left, right, _ in known]
    if len(set(weights)) == 1:
        weights = [1.0] * len(weights)
    found = difference(
        [left.hit or 0.0 for left, _, _ in known],
        [right.hit or 0.0 for _, right, _ in known],
        [name for _, _, name in known],
        takes,
        level,
        weights=weights,
        among=(wholes[0], wholes[1]),
    )
    if len(known) == len(pairs) and all(one.least == one.most for pair in pairs for one in pair[:2]):
        value, low, high = found.value, found.low, found.high
        return msgspec.structs.replace(found, worst_low=value, worst_high=value, worst_lower=low, worst_upper=high)
    lowest, highest = (_difference_of_fills(pairs, takes, level, up=up) for up in (False, True))
    against = lowest if (found.value or 0.0) > 0 else highest
    survives = against is not None and against.value is not None and against.value * (found.value or 0.0) > 0
    p_worst = max(found.p_value or 0.0, against.p_value or 0.0) if against is not None and survives else 1.0
    return msgspec.structs.replace(
        found,
        p_worst=p_worst if found.value else found.p_value,
        worst_low=lowest.value if lowest else None,
        worst_high=highest.value if highest else None,
        worst_lower=lowest.low if lowest else None,
        worst_upper=highest.high if highest else None,
    )


def _pair_values(a: Sequence[Value], b: Sequence[Value], clusters: Sequence[Hashable] | None) -> list[Pair]:
    """The pairs, without those that are in neither denominator whatever is not known."""
    return [
        (left, right, name)
        for left, right, name in zip(a, b, range(len(a)) if clusters is None else clusters, strict=True)
        if left.most + left.most_miss > 0 or right.most + right.most_miss > 0
    ]


def _difference_of_fills(pairs: Sequence[Pair], takes: int, level: float, *, up: bool) -> Difference | None:
    """The difference where what is not known is all hits in b and none in a, or the reverse."""
    a, b, among = _fill_pairs(pairs, up=up)
    if not all(map(fsum, among)):
        return None
    return difference(a, b, [name for _, _, name in pairs], takes, level, among=among)


def _fill_pairs(pairs: Sequence[Pair], *, up: bool) -> tuple[list[float], list[float], tuple[list[float], list[float]]]:
    """Hits in a and in b, and both denominators."""
    a, among_a = _fill([left for left, _, _ in pairs], up=not up)
    b, among_b = _fill([right for _, right, _ in pairs], up=up)
    return a, b, (among_a, among_b)


def sum_fills(
    a: Sequence[Value], b: Sequence[Value], clusters: Sequence[Hashable] | None = None, *, up: bool
) -> tuple[list[float], list[float]]:
    """What each cluster adds to `worst_high`, with `up`, or to `worst_low`, and its size; sizes have mean 1. Empty
    where there is no such difference."""
    pairs = _pair_values(a, b, clusters)
    left, right, among = _fill_pairs(pairs, up=up)
    if not all(map(fsum, among)):
        return [], []
    weights = [1.0] * len(pairs)
    return _sum_gaps(_list_gaps(left, right, weights, among)[0], [name for _, _, name in pairs], weights)


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


def _reach(level: float, freedom: float = inf) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    from scipy.special import stdtrit

    if freedom < inf:
        return float(stdtrit(freedom, (1 + level) / 2))
    return Z95 if level == 0.95 else normal_quantile((1 + level) / 2)
