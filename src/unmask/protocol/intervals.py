"""Comparing intervals: widening, overlap, and the common part of several readings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from unmask.records import Interval, Ranged


def order_bounds(interval: Interval) -> Interval:
    """Inverted bounds are swapped."""
    lower, upper = interval.lower, interval.upper
    if lower is not None and upper is not None and lower > upper:
        return Interval(upper, lower)
    return interval


def widen(interval: Interval, tolerance: float, *, literal: bool = False) -> tuple[float, float]:
    """Each bound moved outwards by a share of its own absolute value; an absent bound is open."""
    straight = interval if literal else order_bounds(interval)
    low = -inf if straight.lower is None else straight.lower - tolerance * abs(straight.lower)
    high = inf if straight.upper is None else straight.upper + tolerance * abs(straight.upper)
    return low, high


def overlap(intervals: Iterable[Interval], tolerance: float, *, literal: bool = False) -> bool:
    """Whether all share a point after widening. An empty interval asserts nothing and overlaps with nothing. `literal`
    is that of `Rules`: inverted bounds are not swapped."""
    members = list(intervals)
    if not members or any(interval.empty for interval in members):
        return False
    wide = [widen(interval, tolerance, literal=literal) for interval in members]
    return max(low for low, _ in wide) <= min(high for _, high in wide)


def readings_agree(first: Ranged, second: Ranged, *, tolerance: float, any_pair: bool, literal: bool = False) -> bool:
    """Whether two readings agree: like with like, or with `any_pair` also absolute with relative."""
    pairs = [(first.absolute, second.absolute), (first.relative, second.relative)]
    if any_pair:
        pairs += [(first.absolute, second.relative), (first.relative, second.absolute)]
    return any(overlap(pair, tolerance, literal=literal) for pair in pairs)


def all_agree(readings: Sequence[Ranged], *, tolerance: float, literal: bool = False) -> bool:
    """Whether one value satisfies all readings at once, in absolute or in relative terms."""
    kinds = [r.absolute for r in readings], [r.relative for r in readings]
    return any(overlap(intervals, tolerance, literal=literal) for intervals in kinds)


def common_part(readings: Sequence[Ranged], *, tolerance: float, literal: bool = False) -> Ranged:
    """The part the readings share. Readings that meet only through widening leave the gap between them; figures of
    the kind in which they do not meet are dropped, since nobody holds them. `literal` drops and swaps nothing."""
    absolute, relative = [r.absolute for r in readings], [r.relative for r in readings]
    if literal:
        return Ranged(_tightest_bounds(absolute), _tightest_bounds(relative), by=readings[0].by)
    return Ranged(_common_interval(absolute, tolerance), _common_interval(relative, tolerance), by=readings[0].by)


def _common_interval(intervals: Sequence[Interval], tolerance: float) -> Interval:
    if not overlap(intervals, tolerance):
        return Interval()
    return order_bounds(_tightest_bounds([order_bounds(interval) for interval in intervals]))


def _tightest_bounds(intervals: Sequence[Interval]) -> Interval:
    """The highest lower and the lowest upper bound."""
    lowers = [interval.lower for interval in intervals if interval.lower is not None]
    uppers = [interval.upper for interval in intervals if interval.upper is not None]
    return Interval(max(lowers, default=None), min(uppers, default=None))
