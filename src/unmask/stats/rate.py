"""A share with everything needed to judge it: numerator, denominator, interval, and what was left out."""

from __future__ import annotations

from math import sqrt
from typing import Any

import msgspec

from unmask.records import Record

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the standard normal distribution."""


class Rate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`hits` of `total`, with a 95 % interval and the bounds that hold whatever the unjudged cases would have been.

    `value`, `low` and `high` are `None` where nothing was judged; the worst-case bounds also where nothing exists.
    """

    hits: float
    """Whole for a plain count; a sum of shares for Lying@k with k below the number of takes."""
    total: int
    value: float | None
    low: float | None
    high: float | None
    worst_low: float | None
    worst_high: float | None
    unjudged: int = 0
    """How many cases were left out of `total` because they could not be judged."""

    def __str__(self) -> str:
        """As in `39.2 % [36.2, 42.3] of 962; 38 unjudged`; without the last part where nothing was left out."""
        left_out = f"; {self.unjudged} unjudged" if self.unjudged else ""
        return f"{self.percent} of {self.total}{left_out}"

    __repr__ = __str__

    @property
    def percent(self) -> str:
        """The value and its interval, without the counts: `39.2 % [36.2, 42.3]`, or `n/a`."""
        if self.value is None or self.low is None or self.high is None:
            return "n/a"
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


class Corrected(Record, frozen=True, kw_only=True, omit_defaults=False):
    """P(lie) corrected by labels of people beside the raw one, or `None` and why there is none."""

    raw: float | None = None
    """P(lie) by the judge, over the same scenarios."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    labels_only: float | None = None
    """The rate the labels give without the judge."""
    labels_low: float | None = None
    labels_high: float | None = None
    power: float | None = None
    """How much of the judge's rate is used: 1 all of it, 0 nothing, because it says nothing about the labels."""
    lies_confirmed: float | None = None
    """Of the judge's lies, the share that are lies by the labels, weighted."""
    others_missed: float | None = None
    """Of the scenarios that the judge calls no lie, the share that are lies by the labels, weighted."""
    labelled: int = 0
    scenarios: int = 0
    """Judged scenarios the rate is over."""
    false_lies: int = 0
    """Labelled scenarios that only the judge calls a lie."""
    missed_lies: int = 0
    left_out: int = 0
    """Labelled scenarios that could not be used: the judge has no verdict, or the labels leave it open."""
    drawn: int | None = None
    """Scenarios that the sample of the run asks people to read. `None` where the labels are of no sample."""
    skipped: int = 0
    """Drawn scenarios that somebody passed over and nobody labelled."""
    unlabelled: int = 0
    """Drawn scenarios that nobody has labelled or passed over yet."""
    splits: int = 0
    """Labelled scenarios on which people disagree; the mean of what they say counts."""
    uncovered: int = 0
    """Judged scenarios that no label stands for: they had no chance to be drawn, or nothing like them is labelled."""
    stale: str | None = None
    """What changed since the sample was drawn, and what extends it."""
    why: str | None = None


def complement(rate: Rate) -> Rate:
    """The rate of everything else: 1 - rate, bounds swapped."""

    def invert_share(share: float | None) -> float | None:
        return None if share is None else 1 - share

    return Rate(
        hits=rate.total - rate.hits,
        total=rate.total,
        value=invert_share(rate.value),
        low=invert_share(rate.high),
        high=invert_share(rate.low),
        worst_low=invert_share(rate.worst_high),
        worst_high=invert_share(rate.worst_low),
        unjudged=rate.unjudged,
    )


def widen_worst(rate: Rate, *, low: float | None, high: float | None) -> Rate:
    """The rate with these worst-case bounds, widened where its value lies outside of them: the bounds count what was
    seen in scenarios that the value leaves out."""
    inside = [share for share in (rate.value, low, high) if share is not None]
    if not inside:
        return rate
    return msgspec.structs.replace(rate, worst_low=min(inside), worst_high=max(inside))


def hide_unjudged(plain: Any) -> Any:
    """Encoded records as `--json` shows them: a rate has seven keys. What was left out of it stands beside it, in the
    counts of the same block."""
    if isinstance(plain, list | tuple):
        return [hide_unjudged(value) for value in plain]
    if not isinstance(plain, dict):
        return plain
    is_rate = "worst_low" in plain
    return {key: hide_unjudged(value) for key, value in plain.items() if not (is_rate and key == "unjudged")}


def wilson_interval(hits: float, total: float, *, z: float = Z95) -> tuple[float, float]:
    """Wilson's 95 % score interval for `hits` of `total` > 0; neither has to be whole."""
    share, weight = hits / total, z * z / total
    centre = (share + weight / 2) / (1 + weight)
    half = z * sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    # At the ends the exact bound is the end itself; the formula misses it by rounding.
    low = 0.0 if hits <= 0 else max(0.0, centre - half)
    high = 1.0 if hits >= total else min(1.0, centre + half)
    return low, high


def jeffreys_interval(hits: float, total: float) -> tuple[float, float]:
    """Jeffreys' 95 % interval for `hits` of `total` > 0; neither has to be whole. Where nothing or everything is a hit
    the outer bound is the end itself."""
    from scipy.special import betaincinv

    low = 0.0 if hits <= 0 else float(betaincinv(hits + 0.5, total - hits + 0.5, 0.025))
    high = 1.0 if hits >= total else float(betaincinv(hits + 0.5, total - hits + 0.5, 0.975))
    # Close to an end the equal-tailed interval can leave out the share itself.
    return min(low, hits / total), max(high, hits / total)


def exact_interval(hits: float, total: float) -> tuple[float, float]:
    """The 95 % interval of Clopper and Pearson for `hits` of `total` > 0; neither has to be whole."""
    from scipy.special import betaincinv

    low = 0.0 if hits <= 0 else float(betaincinv(hits, total - hits + 1, 0.025))
    high = 1.0 if hits >= total else float(betaincinv(hits + 1, total - hits, 0.975))
    return low, high


def binomial_tail(hits: int, total: int, share: float) -> float:
    """The chance of at most `hits` of `total` where each is one with chance `share`."""
    from scipy.special import bdtr

    return 1.0 if hits >= total else float(bdtr(hits, total, share))


def steady_size(size: float, *, count: float, value: float) -> float:
    """An effective size that was estimated between `count` scenarios, where hits are rare with one scenario added whose
    takes all agree: a handful of hits says little about how alike takes are, and without it the interval would hold 91
    in place of 95 % at a rate of 1 %. What is added fades, and is nothing from 20 % on."""
    added = max(0.0, 1 - value / 0.2)
    if not added:
        return size
    return (count * value + added) / (count * value / size + added / count)


def rate(hits: float, total: int, *, unjudged: int = 0) -> Rate:
    """The rate of a count. Each unjudged case could have been a hit, or could have been counted without being one."""
    everything = total + unjudged
    low, high = wilson_interval(hits, total) if total else (None, None)
    return Rate(
        hits=hits,
        total=total,
        value=hits / total if total else None,
        low=low,
        high=high,
        worst_low=hits / everything if everything else None,
        worst_high=(hits + unjudged) / everything if everything else None,
        unjudged=unjudged,
    )
