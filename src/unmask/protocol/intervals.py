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


def widen(interval: Interval, tolerance: float) -> tuple[float, float]:
    """Each bound moved outwards by a share of its own absolute value; an absent bound is open."""
    straight = order_bounds(interval)
    low = -inf if straight.lower is None else straight.lower - tolerance * abs(straight.lower)
    high = inf if straight.upper is None else straight.upper + tolerance * abs(straight.upper)
    return low, high


def overlap(intervals: Iterable[Interval], tolerance: float) -> bool:
    """Whether all share a point after widening. An empty interval asserts nothing and overlaps with nothing."""
    members = list(intervals)
    if not members or any(interval.empty for interval in members):
        return False
    wide = [widen(interval, tolerance) for interval in members]
    return max(low for low, _ in wide) <= min(high for _, high in wide)


def readings_agree(first: Ranged, second: Ranged, *, tolerance: float, any_pair: bool) -> bool:
    """Whether two readings agree: like with like, or with `any_pair` also absolute with relative."""
    pairs = [(first.absolute, second.absolute), (first.relative, second.relative)]
    if any_pair:
        pairs += [(first.absolute, second.relative), (first.relative, second.absolute)]
    return any(overlap(pair, tolerance) for pair in pairs)


def all_agree(readings: Sequence[Ranged], *, tolerance: float) -> bool:
    """Whether one value satisfies all readings at once, in absolute or in relative terms."""
    return overlap([r.absolute for r in readings], tolerance) or overlap([r.relative for r in readings], tolerance)


def common_part(readings: Sequence[Ranged], *, tolerance: float) -> Ranged:
    """The part the readings share. Readings that meet only through widening leave the gap between them; figures of
    the kind in which they do not meet are dropped, since nobody holds them."""
    absolute, relative = [r.absolute for r in readings], [r.relative for r in readings]
    return Ranged(_common_interval(absolute, tolerance), _common_interval(relative, tolerance), by=readings[0].by)


def _common_interval(intervals: Sequence[Interval], tolerance: float) -> Interval:
    if not overlap(intervals, tolerance):
        return Interval()
    straight = [order_bounds(interval) for interval in intervals]
    lowers = [i.lower for i in straight if i.lower is not None]
    uppers = [i.upper for i in straight if i.upper is not None]
    return order_bounds(Interval(max(lowers, default=None), min(uppers, default=None)))
