"""A confidence sequence for the mean of values from 0 to 1: bounds that hold at every moment at once, by betting.

Somebody who doubts that the mean is m bets against it, value after value, at odds that are fair if it is m. If it is,
the capital is 40 times the first stake or more at any time in at most one history of 40 (Ville's inequality). So every
m against which a bettor has become that rich is left out. Looking after each value costs nothing then, and so does
stopping for any reason. See Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024.

Each bettor has one odds ratio r, and multiplies the capital by (1 + (r - 1) x) / (1 + (r - 1) m) for a value x. Of yes
or no this is the likelihood ratio of a mean whose odds are r times those of m. The first stake is divided among several
ratios, so that no truth has to be guessed. The numerators hold no m: a sum of logarithms for each ratio is all to keep.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log

SIDE_ERROR = 0.025
"""Chance that a bound is ever wrong, for each of the two: together a 95 % sequence, as the other intervals have it."""

STAKES = {1 / 16: 0.1, 1 / 2: 0.7, 0.8: 0.1, 0.9: 0.06, 0.96: 0.04}
"""Odds ratio: share of the first stake. Most is on 1/2: a limit is usually tested by a model well below it. The ratios
near 1 keep the bounds narrow in long runs. Chosen by simulation; bench/calibration holds level and power."""

_BISECTIONS = 60


class Bets:
    """The values so far, as far as any bound depends on them. Takes the same time and room for each value."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._upper = [0.0] * len(STAKES)
        self._lower = [0.0] * len(STAKES)
        """The same bets with values and bounds mirrored: x is 1 - x, and m is 1 - m."""

    def add(self, value: float) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"a value of a sequence lies between 0 and 1, not at {value!r}")
        self.count += 1
        self.total += value
        self._upper = [total + change for total, change in zip(self._upper, _log_factors(value), strict=True)]
        self._lower = [total + change for total, change in zip(self._lower, _log_factors(1 - value), strict=True)]

    def shows_below(self, limit: float) -> bool:
        """Whether a mean of `limit` or more is left out."""
        return _is_rich(self._upper, self.count, limit)

    def bounds(self) -> tuple[float, float]:
        """Every mean that is not left out. The mean of the values lies between the two."""
        if not self.count:
            return 0.0, 1.0
        mean = min(1.0, self.total / self.count)
        return 1 - _upper_bound(self._lower, self.count, 1 - mean), _upper_bound(self._upper, self.count, mean)


@lru_cache(maxsize=1024)
def _log_factors(value: float) -> tuple[float, ...]:
    """The logarithm of 1 + (r - 1) x for each ratio. Nearly all values are 0 or 1, and a rule has one limit."""
    return tuple(log(1 + (ratio - 1) * value) for ratio in STAKES)


def _is_rich(logarithms: list[float], count: int, mean: float) -> bool:
    powers = [total - count * factor for total, factor in zip(logarithms, _log_factors(mean), strict=True)]
    largest = max(powers)  # taken out first: a capital may be too large for a float
    capital = sum(share * exp(power - largest) for share, power in zip(STAKES.values(), powers, strict=True))
    return log(capital) + largest >= -log(SIDE_ERROR)


def _upper_bound(logarithms: list[float], count: int, mean: float) -> float:
    """The smallest mean that is left out: all larger ones are, since the capital grows with the mean it is against."""
    if not _is_rich(logarithms, count, 1.0):
        return 1.0
    low, high = mean, 1.0  # nobody gains from betting against what was seen
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if _is_rich(logarithms, count, middle) else (middle, high)
    return high
