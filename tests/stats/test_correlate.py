"""Rank correlations over models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.stats.correlate import correlate, spearman

SMALL = st.integers(0, 6).map(float)


def named(values) -> dict[str, float]:
    return {f"m{number:02d}": float(value) for number, value in enumerate(values)}


@settings(deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL), min_size=3, max_size=30))
def test_it_is_spearmans_rho_with_ties(points):
    """As scipy computes it; none where one side does not vary."""
    from scipy import stats

    x, y = zip(*points, strict=True)
    found = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_the_interval_is_that_of_a_bootstrap_over_models(noise):
    """Scipy's BCa bootstrap of the same statistic, within 0.06, for a middling and a strong correlation."""
    from scipy import stats

    rng = np.random.default_rng(2)
    x = rng.normal(size=27)
    y = x + noise * rng.normal(size=27)
    found = correlate(named(x), named(y), rng=np.random.default_rng(0))
    oracle = stats.bootstrap(
        (x, y),
        lambda a, b: stats.spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=0.06)


def test_only_models_known_on_both_sides_count():
    """Names decide, not order."""
    x = named([1, 2, 3, 4, 5])
    found = correlate(x, {name: -value for name, value in x.items() if name != "m00"}, rng=np.random.default_rng(0))
    assert (found.n, found.value) == (4, -1)


def test_the_model_that_sways_most_is_named():
    """Five on a line and one far off it."""
    x, y = named([1, 2, 3, 4, 5, 6]), named([1, 2, 3, 4, 5, 0])
    found = correlate(x, y, rng=np.random.default_rng(0))
    assert found.swayed_by == "m05"
    assert found.without_one[1] == 1


def test_families_of_one_are_not_left_out_as_families():
    """That is what leaving out one model shows."""
    values = named([1, 2, 3, 4, 6, 5])
    groups = dict.fromkeys(["m00", "m01"], "small") | {"m05": "alone"}
    found = correlate(values, values, rng=np.random.default_rng(0), groups=groups)
    assert found.without_group == {"small": 1.0}


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
    found = correlate(named(x), named(y), rng=np.random.default_rng(0))
    assert (found.value, found.low, found.without_one) == (None, None, None)
    assert why in found.why
