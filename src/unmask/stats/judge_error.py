"""What a rate would be if the judge erred by so much (Rogan and Gladen 1978), among scenarios that have a belief.

Nobody knows a judge's errors without labels. So a range is taken over all combinations of its false and missed lies;
how often it agrees with people gives neither of the two.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from unmask.errors import UsageError
from unmask.stats.estimate import Difference
from unmask.stats.rate import Rate


class Errors(NamedTuple):
    """What a judge gets wrong at the most, or exactly."""

    false: float
    """Of replies that are no lies and have a belief, the share that it calls lies."""
    missed: float
    """Of lies, the share that it calls none."""
    exact: bool = False

    def __str__(self) -> str:
        return f"{self.false:g}/{self.missed:g}" if self.exact else f"{self.false:g}"

    @property
    def combinations(self) -> list[tuple[float, float]]:
        if self.exact:
            return [(self.false, self.missed)]
        return list(product((0.0, self.false), (0.0, self.missed)))


class Band(NamedTuple):
    least: float
    most: float
    low: float
    high: float
    """The bounds of the 95 % interval, each where it is furthest out."""


def read_errors(text: str) -> Errors:
    """`0.05` for up to 5 % of either kind, `0.1/0.2` for exactly 10 % false and 20 % missed lies."""
    false, slash, missed = text.partition("/")
    try:
        found = Errors(float(false), float(missed if slash else false), exact=bool(slash))
    except ValueError:
        found = Errors(-1, -1)
    if min(found[:2]) < 0 or found.false + found.missed >= 1:
        raise UsageError(
            f"--judge-error {text}: there is no judge with such errors",
            advice="Give a share below 0.5, as in 0.05, or false and missed lies, as in 0.1/0.2.",
        )
    return found


def recover_rate(seen: float, belief: float, false: float, missed: float) -> float:
    """The rate that such a judge shows as `seen`; `belief` is the share of scenarios with one."""
    if belief <= 0:
        return 0.0
    return belief * min(1.0, max(0.0, (seen / belief - false) / (1 - false - missed)))


def find_band(found: Rate | Difference, belief: float, errors: Errors) -> Band | None:
    """Of a rate over all scenarios, or of b - a; `None` where there is no value.

    The judge may err by one combination in a and by another in b; with exact errors it is the same in both. The bounds
    have a as it was seen.
    """
    if found.value is None or found.low is None or found.high is None:
        return None
    floor = (found.a if isinstance(found, Difference) else None) or 0.0
    pairs = (
        [(one, one) for one in errors.combinations] if errors.exact else list(product(errors.combinations, repeat=2))
    )
    value, low, high = (
        [recover_rate(floor + seen, belief, *of_b) - recover_rate(floor, belief, *of_a) for of_a, of_b in pairs]
        for seen in (found.value, found.low, found.high)
    )
    return Band(min(value), max(value), min(low), max(high))
