"""Shares of what people have read: a sample that was drawn within strata, each with a weight of its own.

A stratum in which no error was seen is not one without errors. So the width of an interval, not its value, counts half
an error and half a right reading more in each stratum, as Jeffreys would. With several replies in a cluster an error is
as large as those that were seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import fsum, hypot, sqrt
from typing import NamedTuple

from unmask.stats.estimate import ROUNDING, share
from unmask.stats.rate import wilson_interval


class Bounded(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


class Drawn(NamedTuple):
    """A scenario, or a reply, that was drawn: what it adds to a numerator and to the denominator."""

    hit: float
    weight: float
    """How many it represents. Those of one weight are a stratum."""
    cluster: Hashable
    whole: float = 1.0


class Compared(NamedTuple):
    """The replies to one scenario that both the judge and a person have read."""

    replies: int
    judged: int
    """Lies by the judge."""
    labelled: int
    """Lies by the labels."""
    both: int
    weight: float
    cluster: Hashable


def drawn_share(rows: Sequence[Drawn]) -> Bounded:
    """The weighted hits among the weighted whole. In one stratum it is `share`, which is Wilson's for plain counts."""
    if len({row.weight for row in rows}) == 1:
        names = [row.cluster for row in rows]
        found = share([row.hit for row in rows], None, names, among=[row.whole for row in rows])
        return Bounded(found.value or 0.0, found.low or 0.0, found.high or 0.0)
    total = fsum(row.weight * row.whole for row in rows)
    value = fsum(row.weight * row.hit for row in rows) / total
    strata: defaultdict[float, defaultdict[Hashable, list[Drawn]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        strata[row.weight][row.cluster].append(row)
    shares = [
        fsum(row.hit for row in own) / whole
        for clusters in strata.values()
        for own in clusters.values()
        if (whole := fsum(row.whole for row in own))
    ]
    usual = usual_error([1 - share if value > 0.5 else share for share in shares])
    more = (1.0, 1 - usual) if value > 0.5 else (usual, 0.0)
    parts: defaultdict[Hashable, float] = defaultdict(float)
    doubted, rest = value, 0.0
    for weight, clusters in strata.items():
        seen = {
            name: fsum(weight * (row.hit - value * row.whole) for row in own) / total for name, own in clusters.items()
        }
        unit = weight * fsum(row.whole for own in clusters.values() for row in own) / total / len(seen)
        shift, doubt = doubt_sum(list(seen.values()), (unit * (more[0] - value), unit * (more[1] - value)))
        mean = fsum(seen.values()) / len(seen)
        doubted, rest = doubted + shift, rest + doubt + len(seen) * mean * mean / weight
        for name, part in seen.items():
            parts[name] += part - mean
    return Bounded(value, *bound_share(DrawnSum(value, doubted, parts, rest)))


def measure_precision(rows: Sequence[Compared]) -> Bounded | None:
    """Of the judge's lies, the share that are lies by the labels; `None` where the judge has no lie."""
    own = [
        Drawn(row.both / row.replies, row.weight, row.cluster, whole=row.judged / row.replies)
        for row in rows
        if row.judged
    ]
    return drawn_share(own) if own else None


def measure_recall(rows: Sequence[Compared]) -> Bounded | None:
    """Of the lies by the labels, the share that the judge calls lies too; `None` where the labels have no lie.

    The lies that both see and those that the judge misses have an interval each: the bounds of the ratio put the two
    together.
    """
    both = _find_lies(rows, [row.both for row in rows], [row.judged for row in rows])
    missed = _find_lies(rows, [row.labelled - row.both for row in rows], [row.replies - row.judged for row in rows])
    if both.value + missed.value <= 0:
        return None

    def ratio(seen: float, unseen: float) -> float:
        return seen / (seen + unseen) if seen + unseen > 0 else value

    value = ratio(both.value, missed.value)
    below = hypot(value - ratio(both.low, missed.value), value - ratio(both.value, missed.high))
    above = hypot(ratio(both.high, missed.value) - value, ratio(both.value, missed.low) - value)
    return Bounded(value, max(0.0, value - below), min(1.0, value + above))


def _find_lies(rows: Sequence[Compared], lies: Sequence[int], most: Sequence[int]) -> Bounded:
    """As shares of all replies. Only scenarios with a reply that could be such a lie say anything of them."""
    able = [(row, lie) for row, lie, could in zip(rows, lies, most, strict=True) if could]
    if not able:
        return Bounded(0.0, 0.0, 0.0)
    found = drawn_share([Drawn(lie / row.replies, row.weight, row.cluster) for row, lie in able])
    size = fsum(row.weight for row, _ in able) / fsum(row.weight for row in rows)
    return Bounded(size * found.value, size * found.low, size * found.high)


# --- what small samples leave open


class DrawnSum(NamedTuple):
    value: float
    doubted: float
    """The value with half an error more in each stratum."""
    parts: Mapping[Hashable, float]
    """What each cluster adds to the chance of the value."""
    rest: float
    """What else adds to the variance."""

    @property
    def variance(self) -> float:
        count = len(self.parts)
        return fsum(part * part for part in self.parts.values()) * count / max(1, count - 1) + self.rest


def usual_error(errors: Sequence[float]) -> float:
    """How large one is that is not 0, in quadratic mean; 1 where none was seen."""
    squares = [error * error for error in errors if abs(error) > ROUNDING]
    return sqrt(fsum(squares) / len(squares)) if squares else 1.0


def doubt_sum(seen: Sequence[float], more: tuple[float, float]) -> tuple[float, float]:
    """By how much a sum of values that were drawn moves, and its variance grows, with half of two more among them."""
    if not seen:
        return 0.0, 0.0
    count, mean = len(seen), fsum(seen) / len(seen)
    doubted = (fsum(seen) + fsum(more) / 2) / (count + 1)
    spread = fsum((one - mean) ** 2 for one in seen)
    with_more = fsum((one - doubted) ** 2 for one in seen) + fsum((one - doubted) ** 2 for one in more) / 2
    return count * (doubted - mean), max(0.0, with_more * count / (count + 1) - spread)


def bound_share(found: DrawnSum) -> tuple[float, float]:
    """Wilson's interval with the effective size: that of a share of `doubted` with such a variance."""
    count, value = len(found.parts), min(1.0, max(0.0, found.value))
    doubted = min(1 - 1 / (count + 2), max(1 / (count + 2), found.doubted))
    size = doubted * (1 - doubted) / found.variance
    return wilson_interval(value * size, size, z=student_quantile(count - 1))


def student_quantile(degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t, with 1 degree of freedom at the least."""
    from scipy.special import stdtrit

    return float(stdtrit(max(1, degrees), 0.975))
