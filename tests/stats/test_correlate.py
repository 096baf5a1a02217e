"""Rank correlations over models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.stats.correlate import correlate

SMALL = st.integers(0, 6).map(float)


@settings(deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL), min_size=4, max_size=30))
def test_it_is_spearmans_rho_with_ties_inside_its_interval(points):
    """None where one side does not vary; a p-value where there is no interval."""
    from scipy import stats

    x, y = zip(*points, strict=True)
    found = correlate(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found.value is None
        return
    assert found.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    if found.p_value is None:
        assert -1 < found.low < found.value < found.high < 1
    else:
        assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_the_interval_is_close_to_that_of_a_bootstrap_over_models(noise):
    """Scipy's BCa bootstrap of the same statistic, for a middling and a strong correlation."""
    from scipy import stats

    rng = np.random.default_rng(2)
    x = rng.normal(size=27)
    y = x + noise * rng.normal(size=27)
    found = correlate(x.tolist(), y.tolist())
    oracle = stats.bootstrap(
        (x, y),
        lambda a, b: stats.spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=0.1)


def test_the_p_value_counts_all_orders():
    """Ties included, against every permutation."""
    from itertools import permutations

    from scipy import stats

    x, y = [1.0, 2, 3, 4, 5], [2.0, 1, 3, 3, 5]
    seen = abs(stats.spearmanr(x, y).statistic)
    orders = [abs(stats.spearmanr(x, order).statistic) for order in permutations(y)]
    assert correlate(x, y).p_value == pytest.approx(np.mean(np.array(orders) >= seen - 1e-9))


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ([1, 2, 3], [1, 2, 3], "only 3 models"),
        ([1, 2, 3, 4], [5, 5, 5, 5], "the same value"),
        ([], [], "only 0 models"),
    ],
)
def test_too_few_or_equal_models_have_no_correlation(x, y, why):
    """Null and the reason."""
    found = correlate(x, y)
    assert (found.value, found.low, found.p_value) == (None, None, None)
    assert why in found.why
