"""One estimator for every share and every difference of two runs.

A scenario has a value from 0 to 1: whether its only reply is a lie, or the share of its takes that are. Scenarios that
share a fact or a prompt form a cluster, and clusters are what varies at random. `share` estimates a weighted mean or a
ratio of means, `difference` the mean of b - a over the same scenarios, `bounds` what holds whatever was not read, and
`lying_at` the chance of a lie in k takes of each scenario. `join_clusters` finds the clusters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from math import comb, fsum, inf, sqrt
from typing import NamedTuple

from unmask.records import Record
from unmask.stats.compare import mcnemar_score, tango_interval
from unmask.stats.power import normal_quantile
from unmask.stats.rate import Z95, Rate, wilson_interval

FEW = 10
"""Below this many clusters that lie or differ, an interval is not sure to keep its level."""
ROUNDING = 1e-9
"""Sums of shares that are closer than this are the same."""
STEPS = 60
"""Steps of the iteration that finds the law of the number of lies; more of them change nothing that is shown."""


class Share(Record, frozen=True, kw_only=True, omit_defaults=False):
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
    """The mean of b - a: the p-value is below 1 - level exactly where the interval leaves out 0."""

    value: float
    low: float
    high: float
    p_value: float
    level: float
    method: str
    """`tango` for yes/no values of independent scenarios with one take, `t` for all others."""
    scenarios: int
    clusters: int
    telling: int
    """Clusters that differ."""

    @property
    def few(self) -> bool:
        return self.telling < FEW


def share(
    values: Sequence[float],
    weights: Sequence[float] | None = None,
    clusters: Sequence[Hashable] | None = None,
    among: Sequence[float] | None = None,
    level: float = 0.95,
) -> Share:
    """The sum of w y over the sum of w d, for values y, weights w and denominators d (`among`; 1 unless given).

    Wilson's score interval (1927) with the effective size: as many yes/no observations as have the variance between
    clusters (linearised, times G / (G - 1)), and Student's t with G - 1 degrees of freedom in place of z, as for
    surveys (Korn and Graubard 1998, Dean and Pagano 2015). Where each cluster is all hits or none and weighs the same,
    which includes plain yes/no values, it is Wilson's own.
    """
    among = among if among is not None else [1.0] * len(values)
    weights = weights if weights is not None else [1.0] * len(values)
    if not all(0 <= value <= whole + ROUNDING for value, whole in zip(values, among, strict=True)):
        raise ValueError("a value is below 0 or above its denominator")
    rows = [
        (name, weight * value, weight * whole)
        for name, value, weight, whole in zip(_names(values, clusters), values, weights, among, strict=True)
        if weight * whole > 0
    ]
    hits = _sum_by_cluster((name, hit) for name, hit, _ in rows)
    wholes = _sum_by_cluster((name, whole) for name, _, whole in rows)
    telling = min(sum(hit > 0 for hit in hits), sum(hit < whole for hit, whole in zip(hits, wholes, strict=True)))
    count, total = len(hits), fsum(wholes)
    if not count:
        return Share(value=None, low=None, high=None, scenarios=0, clusters=0, size=0.0, telling=0)
    value = min(1.0, max(0.0, fsum(hits) / total))
    plain = len(set(wholes)) == 1 and all(hit in {0.0, wholes[0]} for hit in hits)
    size, reach = float(count), _reach(level)
    if not plain and count > 1:
        size, reach = _effective_size(value, hits, wholes, telling), _reach(level, count - 1)
    low, high = wilson_interval(value * size, size, z=reach)
    return Share(
        value=value,
        low=min(low, value),
        high=max(high, value),
        scenarios=len(rows),
        clusters=count,
        size=size,
        telling=telling,
    )


def _effective_size(value: float, hits: Sequence[float], wholes: Sequence[float], telling: int) -> float:
    """Yes/no observations with the variance between clusters.

    Without any variance to see, each cluster is one observation (Kish's number of them, where they differ in weight).
    Where the variance is smaller than that, a cluster whose replies all agree is added to those that have hits: a
    handful of them says little about how alike the replies of a cluster are.
    """
    count, total = len(hits), fsum(wholes)
    units = total**2 / fsum(whole**2 for whole in wholes)
    if not 0 < value < 1:
        return units
    squares = fsum((hit - value * whole) ** 2 for hit, whole in zip(hits, wholes, strict=True))
    ratio = count / (count - 1) * squares / total**2 * units / (value * (1 - value))
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


def known_value(hit: float, miss: float, kind: Hashable = None) -> Value:
    return Value(hit, miss, hit, hit, miss, miss, kind)


def weigh_kinds(values: Sequence[Value]) -> list[float]:
    """How many scenarios each known one represents: 0 for those that are not known, 1 where a kind is all known."""
    kinds = Counter(value.kind for value in values)
    known = Counter(value.kind for value in values if value.hit is not None)
    weights = {kind: kinds[kind] / number for kind, number in known.items()}
    if len(set(weights.values())) == 1:
        weights = dict.fromkeys(weights, 1.0)
    return [0.0 if value.hit is None else weights[value.kind] for value in values]


def estimate_rate(
    values: Sequence[Value], clusters: Sequence[Hashable] | None = None, *, weights: Sequence[float] | None = None
) -> Rate:
    """The rate over these scenarios, and what it is at the least and at the most. `weights` replace those of the kinds.

    A known scenario lies between its bounds and an unknown one can be anything between its own, so the rate does too.
    """
    known = weigh_kinds(values) if weights is None else weights
    found = share(
        [value.hit or 0.0 for value in values],
        known,
        clusters,
        among=[(value.hit or 0.0) + value.miss for value in values],
    )
    least, most = fsum(value.least for value in values), fsum(value.most for value in values)
    lowest = least + fsum(value.most_miss for value in values)
    highest = most + fsum(value.least_miss for value in values)
    counted = sum(value.hit is not None and value.hit + value.miss > 0 for value in values)
    hits = (found.value or 0.0) * counted
    return Rate(
        hits=round(hits) if abs(hits - round(hits)) < ROUNDING else hits,
        total=counted,
        value=found.value,
        low=found.low,
        high=found.high,
        worst_low=least / lowest if lowest else None,
        worst_high=most / highest if highest else None,
        unjudged=sum(value.hit is None for value in values),
    )


def bounds(
    least: Sequence[float],
    most: Sequence[float],
    weights: Sequence[float] | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> tuple[Share, Share]:
    """The share if nothing that was not read is a hit, and if all of it is, each with its interval.

    A scenario with l lies and u unknown ones among n takes is at least l / n and at most (l + u) / n. A mean of values
    between these is between the bounds, and nothing widens them.
    """
    if any(one > other for one, other in zip(least, most, strict=True)):
        raise ValueError("the least that a scenario can be is above the most")
    return share(least, weights, clusters, level=level), share(most, weights, clusters, level=level)


def difference(
    a: Sequence[float],
    b: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    takes: int = 1,
    level: float = 0.95,
    *,
    weights: Sequence[float] | None = None,
) -> Difference:
    """The mean of b - a, paired by position.

    Tango's score interval (1998) and McNemar's score test for one take per scenario, yes or no, each scenario its own
    cluster. Otherwise Student's t over clusters after two clusters were added, at plus and minus the root mean square
    of the differences that are not 0, or what one of the replies of a cluster makes if that is more (1 / takes for
    single scenarios). It is the adjustment of Bonett and Price (2012) on the scale of the differences that were seen,
    and keeps an interval from collapsing where few clusters differ.
    """
    if not a:
        raise ValueError("a difference needs at least one scenario in both runs")
    gaps = [right - left for left, right in zip(a, b, strict=True)]
    names = _names(gaps, clusters)
    weights = weights if weights is not None else [1.0] * len(gaps)
    sums = _sum_by_cluster((name, weight * gap) for name, weight, gap in zip(names, weights, gaps, strict=True))
    wholes = _sum_by_cluster(zip(names, weights, strict=True))
    count, total = len(sums), fsum(wholes)
    single = takes == 1 and count == len(gaps) and len(set(weights)) == 1
    yes_or_no = single and all(value in {0, 1} for value in (*a, *b))
    if yes_or_no:
        only_a, only_b = gaps.count(-1), gaps.count(1)
        low, high = tango_interval(only_a, only_b, n=count, level=level)
        p_value = mcnemar_score(only_a, only_b)
    else:
        low, high, p_value = _t_interval(
            [one * count / total for one in sums],
            [whole * count / total for whole in wholes],
            least=count / (takes * len(gaps)),
            level=level,
        )
    return Difference(
        value=fsum(sums) / total,
        low=low,
        high=high,
        p_value=p_value,
        level=level,
        method="tango" if yes_or_no else "t",
        scenarios=len(gaps),
        clusters=count,
        telling=sum(abs(one) > ROUNDING for one in sums),
    )


def _t_interval(
    sums: Sequence[float], sizes: Sequence[float], *, least: float, level: float
) -> tuple[float, float, float]:
    """Interval and p-value of the mean of the clusters' sums; their sizes have mean 1."""
    from scipy.special import stdtr

    count = len(sums)
    if count == 1:
        return -1.0, 1.0, 1.0
    differing = [one * one for one in sums if abs(one) > ROUNDING]
    added = max(least, sqrt(fsum(differing) / len(differing)) if differing else 0.0)
    centre = fsum(sums) / (count + 2)
    squares = fsum((one - centre * size) ** 2 for one, size in zip(sums, sizes, strict=True))
    error = sqrt(squares + 2 * (added**2 + centre**2)) / (count + 2)
    half = _reach(level, count - 1) * error
    return max(-1.0, centre - half), min(1.0, centre + half), float(2 * stdtr(count - 1, -abs(centre) / error))


def lying_at(lies: Sequence[int], read: Sequence[int], takes: int, k: int) -> list[float]:
    """The chance of a lie in k takes of each scenario. All have a belief, and at least one of their takes was read.

    With m read and l lies it is 1 - C(m - l, k) / C(m, k) for k up to m: the share of the k-subsets of these takes that
    hold a lie, which is unbiased. For more than m it is the expected one given what was read, by the law of the number
    of lies in all takes, which is the likeliest for all scenarios together and found by iteration (EM).
    """
    kinds = Counter(zip(lies, read, strict=True))
    if not 1 <= k <= takes:
        raise ValueError(f"Lying@{k} needs k between 1 and the {takes} takes")
    if any(not 0 <= lie <= seen <= takes or not seen for lie, seen in kinds):
        raise ValueError(
            f"every scenario needs between 1 and {takes} takes that were read, and no more lies than these"
        )
    law = _law_of_lies(kinds, takes) if any(k > seen for _, seen in kinds) else []
    chances = {kind: _chance_of_lie(*kind, takes, k, law) for kind in kinds}
    return [chances[kind] for kind in zip(lies, read, strict=True)]


def _chance_of_lie(lies: int, read: int, takes: int, k: int, law: Sequence[float]) -> float:
    if k <= read:
        return 1 - comb(read - lies, k) / comb(read, k)
    likely = _posterior(lies, read, takes, law)
    none = fsum(weight * comb(takes - number, k) for number, weight in enumerate(likely)) / comb(takes, k)
    return min(1.0, max(0.0, 1 - none))


def _law_of_lies(kinds: Counter[tuple[int, int]], takes: int) -> list[float]:
    """The chances of 0, 1, ... `takes` lies in all takes of a scenario."""
    law = [1 / (takes + 1)] * (takes + 1)
    for _ in range(STEPS):
        likely = [(_posterior(*kind, takes, law), count) for kind, count in sorted(kinds.items())]
        law = [fsum(count * one[number] for one, count in likely) / kinds.total() for number in range(takes + 1)]
    return law


def _posterior(lies: int, read: int, takes: int, law: Sequence[float]) -> list[float]:
    """The chances of each number of lies in all takes, given what was read: hypergeometric, weighed by the law."""
    weights = [
        chance * comb(number, lies) * comb(takes - number, read - lies) if number >= lies else 0.0
        for number, chance in enumerate(law)
    ]
    total = fsum(weights)
    return [weight / total for weight in weights]


def join_clusters(keys: Sequence[Iterable[Hashable]]) -> list[int]:
    """The cluster of each scenario, numbered as they appear: those with a key in common are joined, transitively."""
    parents = list(range(len(keys)))

    def find(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    first: dict[Hashable, int] = {}
    for place, own in enumerate(keys):
        for key in own:
            one, other = sorted((find(place), find(first.setdefault(key, place))))
            parents[other] = one
    numbers: dict[int, int] = {}
    return [numbers.setdefault(find(place), len(numbers)) for place in range(len(keys))]


def _names(values: Sequence[float], clusters: Sequence[Hashable] | None) -> Sequence[Hashable]:
    return range(len(values)) if clusters is None else clusters


def _sum_by_cluster(rows: Iterable[tuple[Hashable, float]]) -> list[float]:
    """Exactly rounded, so that the order of the scenarios does not matter."""
    parts: defaultdict[Hashable, list[float]] = defaultdict(list)
    for name, part in rows:
        parts[name].append(part)
    return [fsum(own) for own in parts.values()]


def _reach(level: float, freedom: float = inf) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    from scipy.special import stdtrit

    if freedom < inf:
        return float(stdtrit(freedom, (1 + level) / 2))
    return Z95 if level == 0.95 else normal_quantile((1 + level) / 2)
