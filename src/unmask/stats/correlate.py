"""Spearman's rank correlation over a few models, its interval, and what is left without one family of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh, sqrt, tanh

import msgspec

from unmask.records import Record
from unmask.stats.rate import Z95

LEAST = 4
"""Fewer models have no rank correlation worth a number: with three, one in three orders gives +1 or -1."""

LEAST_FOR_INTERVAL = 8
"""Fewer models give a value and a p-value only."""


class Correlation(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Spearman's rho over n models, or `None` and why there is none."""

    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    """In place of an interval, below 8 models and at +1 or -1: share of all orders whose rho is as far from 0."""
    without_family: dict[str, float] = msgspec.field(default_factory=dict)
    """The value when a family of two or more models is left out."""
    why: str | None = None


def correlate(x: Sequence[float], y: Sequence[float], families: Sequence[str] = ()) -> Correlation:
    """Correlation over models, each with its value on both sides and its family.

    The interval is Bonett and Wright's, on Fisher's scale; `bench/calibration` holds it against planted correlations.
    """
    n, value = len(x), _spearman(x, y)
    if value is None:
        few = f"only {n} models have both values; {LEAST} are needed"
        return Correlation(n=n, why=few if n < LEAST else "all models have the same value on one side")
    low = high = p_value = None
    if n < LEAST_FOR_INTERVAL or abs(value) > 1 - 1e-9:
        p_value = _permutation_p_value(x, y)
    else:
        reach = Z95 * sqrt((1 + value**2 / 2) / (n - 3))
        low, high = tanh(atanh(value) - reach), tanh(atanh(value) + reach)
    without_family = {}
    for family in sorted(set(families)):
        others = [place for place, name in enumerate(families) if name != family]
        rest = _spearman([x[place] for place in others], [y[place] for place in others])
        if rest is not None and len(others) < n - 1:
            without_family[family] = rest
    return Correlation(n=n, value=value, low=low, high=high, p_value=p_value, without_family=without_family)


def _spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    from scipy.stats import spearmanr

    if len(x) < LEAST or len(set(x)) == 1 or len(set(y)) == 1:
        return None
    return float(spearmanr(x, y).statistic)


def _permutation_p_value(x: Sequence[float], y: Sequence[float]) -> float:
    """Two-sided, of rho = 0: over all orders of up to 7 models, over 10,000 random ones of more."""
    import numpy as np
    from scipy.stats import permutation_test, rankdata

    left, right = (rankdata(side) - (len(side) + 1) / 2 for side in (x, y))
    return float(
        permutation_test(
            (left,),
            lambda ranks, axis: np.abs((ranks * right).sum(axis=axis)),
            permutation_type="pairings",
            n_resamples=10_000,
            alternative="greater",
            random_state=0,
        ).pvalue
    )
