"""Rates made of other rates: a mean over groups, a rate times a share, two kinds of scenarios within groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import erfc, fsum, sqrt
from typing import NamedTuple

from unmask.records import Record
from unmask.stats.rate import Z95, Rate, rate, widen_worst, wilson_interval


class MeanInterval(NamedTuple):
    value: float
    low: float
    high: float


def mean_interval(rates: Sequence[Rate], weights: Sequence[float] | None = None) -> MeanInterval | None:
    """Mean of independent rates, with a 95 % interval: Wilson's with as many observations as have its variance.

    The variance is that of each rate, for which two scenarios at the mean are added to it: a few scenarios that all
    agree do not claim to be certain. Rates without a value are left out; `None` where there is no other. Without
    `weights` all rates weigh the same.
    """
    parts = [
        (part.value, effective_size(part), weight)
        for part, weight in zip(rates, weights or [1.0] * len(rates), strict=True)
        if part.value is not None and weight
    ]
    if not parts:
        return None
    total = fsum(weight for _, _, weight in parts)
    value = fsum(weight * share for share, _, weight in parts) / total
    size = total**2 / fsum(weight * weight / count for _, count, weight in parts)
    if 0 < value < 1:
        variance = fsum(weight * weight * _shrunk_variance(share, count, value) for share, count, weight in parts)
        size = total**2 * value * (1 - value) / variance
    return MeanInterval(value, *wilson_interval(value * size, size))


def _shrunk_variance(share: float, count: float, mean: float) -> float:
    drawn_in = (share * count + 2 * mean) / (count + 2)
    return drawn_in * (1 - drawn_in) / count


def mean_rate(rates: Sequence[Rate]) -> Rate:
    """The mean as a rate, over all their cases. No value unless every one of them has one."""
    total, unjudged = sum(part.total for part in rates), sum(part.unjudged for part in rates)
    lows = [part.worst_low for part in rates if part.worst_low is not None]
    highs = [part.worst_high for part in rates if part.worst_high is not None]
    mean = mean_interval(rates) if all(part.value is not None for part in rates) else None
    return Rate(
        hits=mean.value * total if mean else 0,
        total=total,
        value=mean.value if mean else None,
        low=mean.low if mean else None,
        high=mean.high if mean else None,
        worst_low=fsum(lows) / len(lows) if len(lows) == len(rates) else None,
        worst_high=fsum(highs) / len(highs) if len(highs) == len(rates) else None,
        unjudged=unjudged,
    )


def rectified_rate(
    p_lie: Rate, *, sincere: int, played: int, worst_low: float | None, worst_high: float | None
) -> Rate:
    """P(lie) times the share of sincere ones among the lies of which it is known.

    Wilson's interval with as many observations as have the variance of the product (delta method). That is the plain
    interval of the count where all lies are known. No value where there are lies and nothing is known of them.
    """
    count, value = sincere + played, p_lie.value
    rectified: tuple[float | None, float | None, float | None] = (None, None, None)
    if value is not None and (count or not value):
        share = sincere / count if count else 0.0
        product, size = value * share, effective_size(p_lie)
        if count and value:
            spread = share * (1 - value) / size + value * (1 - share) / count
            size = (1 - product) / spread if spread > 0 else min(size, float(count))
        rectified = (product, *wilson_interval(product * size, size))
    plain = Rate(
        hits=(rectified[0] or 0.0) * p_lie.total,
        total=p_lie.total,
        value=rectified[0],
        low=rectified[1],
        high=rectified[2],
        worst_low=worst_low,
        worst_high=worst_high,
        unjudged=p_lie.unjudged,
    )
    return widen_worst(plain, low=worst_low, high=worst_high)


def effective_size(measured: Rate) -> float:
    """The number of observations whose Wilson interval has the width of this one: `total` for a plain count."""
    if measured.value is None or measured.low is None or measured.high is None:
        raise ValueError("a rate without an interval has no size")
    # half^2 (1 + c)^2 = c v (1 - v) + c^2 / 4 with c = z^2 / size
    half, spread = (measured.high - measured.low) / 2, measured.value * (1 - measured.value)
    first, second, third = half * half - 0.25, 2 * half * half - spread, half * half
    return Z95 * Z95 * 2 * -first / (second + sqrt(second * second - 4 * first * third))


class Contrast(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Two kinds of scenarios, compared within groups: the difference is first - second."""

    n_first: int
    n_second: int
    groups: int
    """Groups that hold scenarios of both kinds; the others say nothing about the difference."""
    first: float
    second: float
    """Rates of the two kinds, both with the groups weighed alike."""
    value: float
    low: float
    high: float
    p_value: float


def contrast_kinds(groups: Iterable[tuple[Sequence[float], Sequence[float]]]) -> Contrast | None:
    """Values from 0 to 1 of scenarios of the first and of the second kind, by group. `None` where no group has both.

    Groups weigh as in Mantel and Haenszel's method, n1 n2 / (n1 + n2). The interval is Newcombe's of the two weighted
    rates, each with Wilson's; the test is that of Cochran, Mantel and Haenszel, which is exactly theirs for yes and no.
    """
    both = [(first, second) for first, second in groups if first and second]
    if not both:
        return None
    weights = [len(first) * len(second) / (len(first) + len(second)) for first, second in both]
    means = [
        mean_interval([_value_rate(pair[side]) for pair in both], weights) or MeanInterval(0.0, 0.0, 1.0)
        for side in (0, 1)
    ]
    gap = means[0].value - means[1].value
    below = sqrt((means[0].value - means[0].low) ** 2 + (means[1].high - means[1].value) ** 2)
    above = sqrt((means[0].high - means[0].value) ** 2 + (means[1].value - means[1].low) ** 2)
    excess = variance = 0.0
    for first, second in both:
        everything = [*first, *second]
        count, mean = len(everything), fsum(everything) / len(everything)
        excess += fsum(first) - len(first) * mean
        if count > 1:
            squares = fsum((value - mean) ** 2 for value in everything)
            variance += len(first) * len(second) / (count * (count - 1)) * squares
    return Contrast(
        n_first=sum(len(first) for first, _ in both),
        n_second=sum(len(second) for _, second in both),
        groups=len(both),
        first=means[0].value,
        second=means[1].value,
        value=gap,
        low=max(-1.0, gap - below),
        high=min(1.0, gap + above),
        p_value=erfc(abs(excess) / sqrt(2 * variance)) if variance > 1e-12 else 1.0,
    )


def _value_rate(values: Sequence[float]) -> Rate:
    """A rate of values from 0 to 1, each scenario one observation."""
    return rate(fsum(values), len(values))
