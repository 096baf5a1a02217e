"""The bootstrap over scenarios, against scipy's."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats import resample
from unmask.stats.rank import separate_pairs
from unmask.stats.resample import draw_counts, mean_draws, percentile_interval, ratio_draws


def whole(blocks):
    return np.concatenate(list(blocks))


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_every_resample_draws_as_many_scenarios_as_there_are(n, seed):
    """Whole counts that sum to n."""
    counts = whole(draw_counts(n, rng=np.random.default_rng(seed), resamples=50))
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
        draw_counts(0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_means_have_the_interval_of_the_scipy_bootstrap(share):
    """Percentile interval of the mean of 300 yes/no values, within a tenth of its width."""
    from scipy import stats

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
    plain = whole(draw_counts(200, rng=np.random.default_rng(2), resamples=8000)) @ values / 200
    assert grouped.std() == pytest.approx(plain.std(), rel=0.05)
    assert grouped.mean() == pytest.approx(plain.mean(), abs=0.002)


def test_a_ratio_without_a_denominator_has_no_value():
    """Drawn only from scenarios outside it."""
    found = ratio_draws(np.array([1.0, 0.0]), np.array([1.0, 0.0]), rng=np.random.default_rng(0), resamples=60)
    drawn = whole(draw_counts(2, rng=np.random.default_rng(0), resamples=60))[:, 0] > 0
    assert 0 < drawn.sum() < 60
    assert np.all(found[drawn] == 1)
    assert np.all(np.isnan(found[~drawn]))


def test_too_many_resamples_without_a_value_leave_no_interval():
    """More than one in twenty."""
    assert percentile_interval(np.array([0.5] * 90 + [np.nan] * 10)) is None
    assert percentile_interval(np.array([0.5] * 99 + [np.nan])) == (0.5, 0.5)


GAPS = [0, 0.1, 0.5, -0.3, 1, 0.7] * 50
COMPUTED = {
    "draws": lambda rng: whole(draw_counts(300, rng=rng)),
    "means": lambda rng: mean_draws(GAPS, rng=rng),
    "ratios": lambda rng: ratio_draws(np.array(GAPS), np.arange(1.0, 301.0), rng=rng),
    "ranks": lambda rng: separate_pairs(np.random.default_rng(8).random((300, 6)) ** np.arange(1, 7), rng=rng),
}


@pytest.mark.parametrize("what", COMPUTED)
def test_blocks_change_no_number(what, monkeypatch):
    """Computed in blocks of seven resamples (of one, of few pairs) as computed at once, from the same seed."""
    at_once = COMPUTED[what](np.random.default_rng(4))
    for block in (7 * 300, 11):
        monkeypatch.setattr(resample, "BLOCK", block)
        np.testing.assert_allclose(COMPUTED[what](np.random.default_rng(4)), at_once, rtol=1e-12)


@pytest.mark.parametrize("what", ["draws", "means", "ratios", "ranks"])
def test_memory_does_not_grow_with_the_number_of_resampled_scenarios(what, monkeypatch):
    """40,000 scenarios: 2,000 resamples of them at once would be 640 MB of counts; blocks of 0.8 MB are held."""
    monkeypatch.setattr(resample, "BLOCK", 100_000)
    n, rng = 40_000, np.random.default_rng(0)
    values, ones = rng.random(n), np.ones(n)
    runs = rng.random((n, 8))
    use = {
        "draws": lambda: sum(len(block) for block in draw_counts(n, rng=rng, resamples=60)),
        "means": lambda: mean_draws(values, rng=rng, resamples=60),
        "ratios": lambda: ratio_draws(values, ones, rng=rng, resamples=60),
        "ranks": lambda: separate_pairs(runs, rng=rng, resamples=20),
    }[what]
    tracemalloc.start()
    try:
        use()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * 8 * max(100_000, n)
