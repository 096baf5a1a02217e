"""A share with everything needed to judge it: numerator, denominator, interval, and what was left out."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from math import sqrt

import msgspec

from unmask.records import Record

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the standard normal distribution."""
FEW = 10
"""Below this many clusters that lie or differ, an interval is not sure to keep its level."""


def in_percent(share: float, *, places: int = 1, sign: bool = False) -> str:
    """A share in percent without the sign of percent, halves away from zero: `39.2`, or `35` for 0.345 in no places."""
    exact = Decimal(f"{100 * share:.9f}")  # what binary fractions add is cut off: 100 * 0.285 is 28.499999999999996
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{rounded:+}" if sign else str(rounded)


class Rate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`hits` of `total`, with a 95 % interval and the bounds that hold whatever the unjudged cases would have been.

    `value`, `low` and `high` are `None` where nothing was judged, or nothing where there is a belief; the worst-case
    bounds where nothing exists.
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
    few: bool = False
    """Whether so few clusters have a hit, or lack one, that the interval is not sure to keep its level."""

    def __str__(self) -> str:
        """As in `39.2 % [36.2, 42.3] of 962; 38 unjudged`; without the last part where nothing was left out."""
        left_out = f"; {self.unjudged} unjudged" if self.unjudged else ""
        return f"{self.percent} of {self.total}{left_out}"

    __repr__ = __str__

    @property
    def why_absent(self) -> str:
        """Why there is no value."""
        if not self.total:
            return "nothing was judged"
        return f"only {self.total} of {self.total + self.unjudged} were judged, and none with a belief"

    @property
    def percent(self) -> str:
        """The value and its interval, without the counts: `39.2 % [36.2, 42.3]`, or `n/a`."""
        if self.value is None or self.low is None or self.high is None:
            return "n/a"
        return f"{in_percent(self.value)} % [{in_percent(self.low)}, {in_percent(self.high)}]"


class Corrected(Record, frozen=True, kw_only=True, omit_defaults=False):
    """P(lie) corrected by labels of people next to the raw one, or `None` and why there is none."""

    raw: float | None = None
    """P(lie) by the judge, over the same scenarios."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    few: bool = False
    """Whether labels correct the judge in fewer than 10 of its lies, or in fewer than 10 of the other replies. The
    interval is then rather too wide than too narrow."""
    labelled: int = 0
    scenarios: int = 0
    """Judged scenarios the rate is over."""
    false_lies: float = 0.0
    """Labelled replies that only the judge calls a lie; one on which people disagree counts in part."""
    missed_lies: float = 0.0
    left_out: int = 0
    """Labelled scenarios that could not be used: the judge has no verdict, or the labels leave it open."""
    other_replies: int = 0
    """Labels that are for other replies than the run has; they are not used."""
    splits: int = 0
    """Labelled replies on which people disagree; the mean of what they say counts."""
    people: dict[str, Corrected] = msgspec.field(default_factory=dict)
    """By each person, where there are several."""
    why: str | None = None


def wilson_interval(hits: float, total: float, *, z: float = Z95) -> tuple[float, float]:
    """Wilson's 95 % score interval for `hits` of `total` > 0; neither has to be whole."""
    share, weight = hits / total, z * z / total
    centre = (share + weight / 2) / (1 + weight)
    half = z * sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    # At the ends the exact bound is the end itself; the formula misses it by rounding.
    low = 0.0 if hits <= 0 else max(0.0, centre - half)
    high = 1.0 if hits >= total else min(1.0, centre + half)
    return low, high


def binomial_tail(hits: float, total: float, share: float) -> float:
    """The chance of at most `hits` of `total` where each is one with chance `share`. Between whole numbers it is that
    of the beta distribution, as for effective sizes in surveys (Korn and Graubard 1998)."""
    from scipy.special import betainc

    return 1.0 if hits >= total else float(betainc(total - hits, hits + 1, 1 - share))
