"""The bootstrap over scenarios, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unmask.stats.resample import draws, mean_draws, percentile_interval, ratios


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_every_resample_draws_as_many_scenarios_as_there_are(n, seed):
    """Whole counts that sum to n."""
    counts = draws(n, rng=np.random.default_rng(seed), resamples=50)
    assert counts.shape == (50, n)
    assert np.all(counts == counts.round())
    assert np.all(counts.sum(axis=1) == n)


def test_the_same_seed_gives_the_same_draws():
    """Randomness is the argument and nothing else."""
    one, other = (mean_draws([0, 1, 1, 0.5], rng=np.random.default_rng(3), resamples=100) for _ in range(2))
    assert np.array_equal(one, other)


def test_nothing_cannot_be_resampled():
    """An error, not an empty array that means nothing."""
    with pytest.raises(ValueError, match="nothing to resample"):
        draws(0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_means_have_the_interval_of_the_scipy_bootstrap(share):
    """Percentile interval of the mean of 300 yes/no values, within a tenth of its width."""
    values = (np.random.default_rng(5).random(300) < share).astype(float)
    low, high = percentile_interval(mean_draws(list(values), rng=np.random.default_rng(1), resamples=5000))
    oracle = stats.bootstrap(
        (values,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (low, high) == pytest.approx((oracle.low, oracle.high), abs=0.1 * (oracle.high - oracle.low))


def test_grouped_and_plain_draws_have_the_same_spread():
    """Drawing distinct values by their counts is drawing scenarios."""
    values = np.random.default_rng(9).choice([0, 0.25, 1], size=200)
    grouped = mean_draws(list(values), rng=np.random.default_rng(1), resamples=8000)
    plain = draws(200, rng=np.random.default_rng(2), resamples=8000) @ values / 200
    assert grouped.std() == pytest.approx(plain.std(), rel=0.05)
    assert grouped.mean() == pytest.approx(plain.mean(), abs=0.002)


def test_a_ratio_without_a_denominator_has_no_value():
    """Drawn only from scenarios outside it."""
    found = ratios(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    assert found[0] == 1
    assert np.isnan(found[1])


def test_too_many_resamples_without_a_value_leave_no_interval():
    """More than one in twenty."""
    assert percentile_interval(np.array([0.5] * 90 + [np.nan] * 10)) is None
    assert percentile_interval(np.array([0.5] * 99 + [np.nan])) == (0.5, 0.5)
