"""Paired tests and families of them: McNemar's, Tango's interval, Holm's correction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erfc, inf, sqrt

from unmask.stats.power import ALPHA, constrained_share, normal_quantile
from unmask.stats.rate import Z95


def mcnemar_score(only_a: int, only_b: int) -> float:
    """Two-sided p-value: how the scenarios that differ split, against a fair coin. 1 where none differs.

    McNemar's test as a score test, which is Tango's test of a difference of 0. The exact test would contradict the
    interval where few scenarios differ.
    """
    count = only_a + only_b
    return erfc(abs(only_b - only_a) / sqrt(2 * count)) if count else 1.0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values in the order given. What was not tested (`None`) does not count towards the family."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for rank, (p, place) in enumerate(order):
        reached = max(reached, min(1.0, p * (len(order) - rank)))
        adjusted[place] = reached
    return adjusted


def holm_levels(p_values: Sequence[float | None], *, alpha: float = ALPHA) -> list[float]:
    """The confidence level at which Holm's method tested each value: 1 - alpha / (hypotheses not yet rejected).

    An interval of that level leaves out 0 exactly where Holm's method rejects, if it inverts the same test.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    left = max(1, len(order))
    levels = [1 - alpha / left] * len(p_values)
    rejects = True
    for p, place in order:
        levels[place] = 1 - alpha / left
        rejects = rejects and p * left < alpha
        left -= rejects and left > 1
    return levels


def tango_interval(only_a: float, only_b: float, *, n: float, level: float = 0.95) -> tuple[float, float]:
    """Score interval of the difference of two paired shares (Tango 1998).

    Every difference that a score test would not reject, found by bisection. It keeps its level for few scenarios and
    few disagreements, and does not collapse where the runs agree everywhere.
    """
    reach = _normal_reach(level)
    return (
        _bisect_crossing(lambda gap: score_statistic(gap, only_a, only_b, n) > reach),
        _bisect_crossing(lambda gap: score_statistic(gap, only_a, only_b, n) > -reach),
    )


def _normal_reach(level: float) -> float:
    return Z95 if level == 0.95 else normal_quantile((1 + level) / 2)


def score_statistic(gap: float, only_a: float, only_b: float, n: float) -> float:
    """Score statistic of the observed difference against a true one of `gap`; falls as `gap` grows."""
    variance = n * (2 * constrained_share(gap, only_a, only_b, n) + gap * (1 - gap))
    off = only_b - only_a - n * gap
    if variance <= 0:
        return inf if off > 0 else -inf if off < 0 else 0.0
    return off / sqrt(variance)


def _bisect_crossing(above: Callable[[float], bool]) -> float:
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return (low + high) / 2
