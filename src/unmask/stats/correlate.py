"""Spearman's rank correlation over a few models, its bootstrap interval, and what single models do to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from unmask.records import Record
from unmask.stats.resample import bca_interval

if TYPE_CHECKING:
    from numpy.random import Generator

    from unmask.stats.resample import Floats

LEAST = 4
"""Fewer models have no rank correlation worth a number: with three, one in three orders gives +1 or -1."""

LEAST_FOR_INTERVAL = 8
"""Fewer models give a value and a p-value only: intervals from resampled models miss the truth too often there."""


class Correlation(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Spearman's rho over n models, or `None` and why there is none."""

    n: int
    value: float | None = None
    low: float | None = None
    """`None` below 8 models, where no interval keeps its level."""
    high: float | None = None
    p_value: float | None = None
    """Below 8 models, in place of an interval: share of all orders of the models whose rho is as far from 0."""
    without_one: tuple[float, float] | None = None
    """Smallest and largest value when one model is left out."""
    swayed_by: str | None = None
    """The model whose absence moves the value most."""
    without_group: dict[str, float | None] = msgspec.field(default_factory=dict)
    """The value when a whole family is left out, for families of two or more."""
    why: str | None = None


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Rank correlation, ties at their mean rank. `None` where one side does not vary."""
    import numpy as np

    rho = _spearman_by_row(np.asarray([x], dtype=np.float64), np.asarray([y], dtype=np.float64))[0]
    return float(rho) if np.isfinite(rho) else None


def correlate(
    x: Mapping[str, float],
    y: Mapping[str, float],
    *,
    rng: Generator,
    groups: Mapping[str, str] | None = None,
    resamples: int = 5000,
) -> Correlation:
    """Correlation over the names in both, with an interval from resampled models if there are eight or more. `groups`
    names families.

    A correlation near 1 or -1 can only fall when models are drawn twice: plain percentiles lie too low there. The
    interval is BCa, which corrects for that; `bench/calibration` holds it against planted correlations.
    """
    import numpy as np

    names = sorted(set(x) & set(y))
    if len(names) < LEAST:
        return Correlation(n=len(names), why=f"only {len(names)} models have both values; {LEAST} are needed")
    left, right = np.array([x[name] for name in names]), np.array([y[name] for name in names])
    value = spearman(list(left), list(right))
    if value is None:
        return Correlation(n=len(names), why="all models have the same value on one side")
    alone = {name: _spearman_without(names, left, right, {name}) for name in names}
    values_without = {name: value_without for name, value_without in alone.items() if value_without is not None}
    interval = None
    if len(names) >= LEAST_FOR_INTERVAL:
        picked = rng.integers(0, len(names), size=(resamples, len(names)))
        interval = bca_interval(
            _spearman_by_row(left[picked], right[picked]), seen=value, without=np.array([*values_without.values()])
        )
    families: dict[str, set[str]] = {}
    for name in names:
        if groups and name in groups:
            families.setdefault(groups[name], set()).add(name)
    return Correlation(
        n=len(names),
        value=value,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        p_value=permutation_p_value(left, right) if len(names) < LEAST_FOR_INTERVAL else None,
        without_one=(min(values_without.values()), max(values_without.values())) if values_without else None,
        swayed_by=max(values_without, key=lambda name: abs(values_without[name] - value)) if values_without else None,
        without_group={
            group: _spearman_without(names, left, right, members)
            for group, members in families.items()
            if len(members) > 1
        },
    )


def permutation_p_value(x: Floats, y: Floats) -> float:
    """Exact two-sided p-value of rho = 0 for a few models: over every order of one side."""
    from itertools import permutations

    import numpy as np

    orders = np.array(list(permutations(range(x.size))))
    shuffled = np.abs(_spearman_by_row(np.broadcast_to(x, orders.shape), y[orders]))
    # The first order is the one that was seen.
    return float(np.mean(shuffled >= shuffled[0] - 1e-9))


def _spearman_without(names: Sequence[str], x: Floats, y: Floats, left_out: set[str]) -> float | None:
    import numpy as np

    included = np.array([name not in left_out for name in names])
    if included.sum() < LEAST:
        return None
    return spearman(list(x[included]), list(y[included]))


def _spearman_by_row(x: Floats, y: Floats) -> Floats:
    """Rank correlation of each row of x with the same row of y; NaN where a row does not vary."""
    import numpy as np
    from scipy.stats import rankdata

    a, b = (rankdata(side, axis=-1) - (side.shape[-1] + 1) / 2 for side in (x, y))
    below = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    correlations: Floats = np.divide((a * b).sum(-1), below, out=np.full(below.shape, np.nan), where=below > 1e-9)
    return np.clip(correlations, -1, 1)
