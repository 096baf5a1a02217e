"""Rates and differences of values that are not all known: the estimate, and what holds whatever the unknown are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import fsum
from typing import NamedTuple

import msgspec

from unmask.stats.estimate import ROUNDING, Difference, Estimate, difference, list_gaps, share, sum_gaps
from unmask.stats.rate import Rate


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


class Part(NamedTuple):
    """A part of a kind. Those of the part represent each other, and then with the others of the kind those of which not
    even the part is known."""

    kind: Hashable
    part: Hashable


def weigh_kinds(values: Sequence[Value]) -> list[float]:
    """How many scenarios each known one represents: 0 for those that are not known, 1 where a kind is all known.

    All are 0 where a kind has scenarios and none is known: nothing represents them, and the others alone would mislead.
    Those without a kind are left out.
    """
    weights = [0.0 if value.hit is None else 1.0 for value in values]
    parts = [value.kind if isinstance(value.kind, Part) else None for value in values]
    wholes = [value.kind.kind if isinstance(value.kind, Part) else value.kind for value in values]
    for kinds in (parts, wholes):
        sizes, known = Counter(kinds), dict.fromkeys(kinds, 0.0)
        for kind, weight in zip(kinds, weights, strict=True):
            known[kind] += weight
        if any(not known[kind] for kind in sizes if kind is not None):
            return [0.0] * len(values)
        scales = {kind: sizes[kind] / known[kind] for kind in sizes if known[kind]}
        if kinds is parts:
            scales[None] = 1.0
        if len(set(scales.values())) > 1:
            weights = [weight * scales.get(kind, 1.0) for kind, weight in zip(kinds, weights, strict=True)]
    return weights


def estimate_rate(
    values: Sequence[Value], clusters: Sequence[Hashable] | None = None, *, weights: Sequence[float] | None = None
) -> Rate:
    """The rate over these scenarios, and what it is at the least and at the most. `weights` replace those of the kinds.

    Known scenarios represent unknown ones, which can put the estimate where the rate cannot be: it is the nearest one
    that is possible then.
    """
    known = weigh_kinds(values) if weights is None else weights
    hits, wholes = _split(values)
    found = share(hits, known, clusters, among=wholes, doubts=[value.doubt for value in values])
    least, most = fsum(value.least for value in values), fsum(value.most for value in values)
    lowest = least + fsum(value.most_miss for value in values)
    highest = most + fsum(value.least_miss for value in values)
    counted = sum(value.hit is not None and value.hit + value.miss > 0 for value in values)
    worst_low, worst_high = least / lowest if lowest else None, most / highest if highest else None
    value, low, high = found.value, found.low, found.high
    if value is not None and worst_low is not None and worst_high is not None:
        value = min(max(value, worst_low), worst_high)
        low, high = min(low or 0.0, value), max(high or 0.0, value)
    total = (value or 0.0) * counted
    return Rate(
        hits=round(total) if abs(total - round(total)) < ROUNDING else total,
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
    filled = [_fill(value, up=True) for value in values]
    hits, wholes = _split(filled)
    return share(hits, None, clusters, among=wholes)


def _fill(value: Value, *, up: bool) -> Value:
    """The value where all that is not known is a hit, or none of it."""
    hit, miss = (value.most, value.least_miss) if up else (value.least, value.most_miss)
    return value._replace(hit=hit, miss=miss)


def _split(values: Sequence[Value]) -> tuple[list[float], list[float]]:
    """Hits and denominators of what is known."""
    hits = [value.hit or 0.0 for value in values]
    return hits, [hit + value.miss for hit, value in zip(hits, values, strict=True)]


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
    kinds = Counter((left.kind, right.kind) for left, right, _ in pairs)
    known_kinds = Counter((left.kind, right.kind) for left, right, _ in known)
    weights = [kinds[left.kind, right.kind] / known_kinds[left.kind, right.kind] for left, right, _ in known]
    if len(set(weights)) == 1:
        weights = [1.0] * len(weights)
    found = _difference_of(known, takes, level, weights)
    if found is None:
        return Difference(n=0, why="no scenario was judged in both runs")
    if len(known) == len(pairs) and all(one.least == one.most for pair in pairs for one in pair[:2]):
        value, low, high = found.value, found.low, found.high
        return msgspec.structs.replace(found, worst_low=value, worst_high=value, worst_lower=low, worst_upper=high)
    lowest, highest = (_difference_of(_fill_pairs(pairs, up=up), takes, level) for up in (False, True))
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


def _fill_pairs(pairs: Sequence[Pair], *, up: bool) -> list[Pair]:
    """What is not known is all hits in b and none in a, or the reverse."""
    return [(_fill(left, up=not up), _fill(right, up=up), name) for left, right, name in pairs]


def _difference_of(
    pairs: Sequence[Pair], takes: int, level: float, weights: Sequence[float] | None = None
) -> Difference | None:
    """Of known pairs; `None` where a denominator is empty."""
    a, b, names = zip(*pairs, strict=True) if pairs else ((), (), ())
    (hits_a, wholes_a), (hits_b, wholes_b) = _split(a), _split(b)
    if not fsum(wholes_a) or not fsum(wholes_b):
        return None
    return difference(hits_a, hits_b, names, takes, level, weights=weights, among=(wholes_a, wholes_b))


def sum_fills(
    a: Sequence[Value], b: Sequence[Value], clusters: Sequence[Hashable] | None = None, *, up: bool
) -> tuple[list[float], list[float]]:
    """What each cluster adds to `worst_high`, with `up`, or to `worst_low`, and its size; sizes have mean 1. Empty
    where there is no such difference."""
    pairs = _fill_pairs(_pair_values(a, b, clusters), up=up)
    hits_a, wholes_a = _split([left for left, _, _ in pairs])
    hits_b, wholes_b = _split([right for _, right, _ in pairs])
    if not fsum(wholes_a) or not fsum(wholes_b):
        return [], []
    weights = [1.0] * len(pairs)
    gaps, _, _ = list_gaps(hits_a, hits_b, weights, (wholes_a, wholes_b))
    return sum_gaps(gaps, [name for _, _, name in pairs], weights)
