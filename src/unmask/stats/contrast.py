"""Two kinds of scenarios, compared within groups that hold both."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import sqrt

from unmask.records import Record
from unmask.stats.estimate import share

Named = Sequence[tuple[float, Hashable]]
"""A value from 0 to 1 and the cluster of each scenario."""


class Contrast(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The difference is first - second, and larger than chance where its interval leaves out 0."""

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


def contrast_kinds(groups: Iterable[tuple[Named, Named]]) -> Contrast | None:
    """Scenarios of the first and of the second kind, by group. `None` where no group has both.

    Groups weigh as in Mantel and Haenszel's method, n1 n2 / (n1 + n2). The interval is Newcombe's of the two weighted
    shares.
    """
    both = [(first, second) for first, second in groups if first and second]
    if not both:
        return None
    weights = [len(first) * len(second) / (len(first) + len(second)) for first, second in both]
    shares = [
        share(
            [value for pair in both for value, _ in pair[side]],
            [weight / len(pair[side]) for pair, weight in zip(both, weights, strict=True) for _ in pair[side]],
            [name for pair in both for _, name in pair[side]],
        )
        for side in (0, 1)
    ]
    (first, first_low, first_high), (second, second_low, second_high) = (
        (one.value or 0.0, one.low or 0.0, one.high or 0.0) for one in shares
    )
    gap = first - second
    return Contrast(
        n_first=sum(len(pair[0]) for pair in both),
        n_second=sum(len(pair[1]) for pair in both),
        groups=len(both),
        first=first,
        second=second,
        value=gap,
        low=max(-1.0, gap - sqrt((first - first_low) ** 2 + (second_high - second) ** 2)),
        high=min(1.0, gap + sqrt((first_high - first) ** 2 + (second - second_low) ** 2)),
    )
