"""Rates over takes, with scenarios as clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.stats.rate import rate
from unmask.stats.takes import clustered_rate, robust_variance

CLUSTERS = st.lists(
    st.integers(0, 6).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))), max_size=15
)


def test_the_variance_is_the_cluster_robust_one_of_statsmodels():
    """A constant fitted to all takes, with clusters of unequal size."""
    from statsmodels.regression.linear_model import OLS

    rng = np.random.default_rng(6)
    totals = rng.integers(1, 8, 60)
    hits = rng.binomial(totals, rng.beta(1, 2, 60))
    takes = np.concatenate([np.arange(total) < hit for hit, total in zip(hits, totals, strict=True)]).astype(float)
    clusters = {"groups": np.repeat(np.arange(60), totals), "df_correction": True}
    fit = OLS(takes, np.ones(takes.size)).fit(cov_type="cluster", cov_kwds=clusters)
    assert robust_variance(list(hits), list(totals)) == pytest.approx(float(fit.cov_params()[0, 0]))


def test_one_take_per_scenario_is_a_plain_rate():
    """Up to the c / (c - 1), which tends to Wilson's interval."""
    found = clustered_rate([1] * 300 + [0] * 700, [1] * 1000)
    plain = rate(300, 1000)
    assert (found.value, found.low, found.high) == pytest.approx((plain.value, plain.low, plain.high), abs=1e-4)


def test_takes_that_always_agree_count_once():
    """Ten equal takes of 100 scenarios are 100 observations."""
    found, plain = clustered_rate([10] * 30 + [0] * 70, [10] * 100), rate(30, 100)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=2e-3)


@settings(deadline=None)
@given(CLUSTERS, st.integers(0, 5))
def test_bounds_contain_the_value(clusters, unjudged):
    """Interval and worst case; nothing at all gives nulls."""
    found = clustered_rate([hit for hit, _ in clusters], [total for _, total in clusters], unjudged=unjudged)
    if found.value is None:
        assert (found.total, found.low, found.high) == (0, None, None)
    else:
        assert 0 <= found.low <= found.value + 1e-12
        assert found.value - 1e-12 <= found.high <= 1
        assert found.worst_low - 1e-12 <= found.value <= found.worst_high + 1e-12


def test_agreement_everywhere_counts_scenarios_not_takes():
    """Five scenarios of twenty lies each say as much as five lies."""
    assert clustered_rate([20] * 5, [20] * 5).low == rate(5, 5).low


def test_the_interval_covers_the_true_rate_about_as_often_as_it_says():
    """60 scenarios that differ a lot, 800 times: at least 92 %."""
    rng = np.random.default_rng(12)
    covered = 0
    for _ in range(800):
        hits = rng.binomial(5, rng.beta(0.6, 1.4, 60))
        found = clustered_rate([int(hit) for hit in hits], [5] * 60)
        covered += found.low <= 0.3 <= found.high
    assert covered / 800 >= 0.92
