"""Slopes over a dose, and the test that flips their signs."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.stats.dose import fit_slope, flip_slopes


def test_a_slope_is_that_of_least_squares():
    """As scipy has it."""
    from scipy.stats import linregress

    points = {-8.0: 0.9, -2.0: 0.4, 0.0: 0.5, 4.0: 0.1, 8.0: 0.2}
    assert fit_slope(points) == pytest.approx(linregress(list(points), list(points.values())).slope)


def test_two_doses_have_no_slope():
    """A line through two points says nothing about a trend."""
    assert fit_slope({0.0: 1.0, 4.0: 0.0}) is None


def test_few_scenarios_have_the_p_value_of_all_flips():
    """Five slopes of one sign: 2 of 32 flips are as extreme."""
    test = flip_slopes([0.01, 0.02, 0.015, 0.03, 0.01], widest=8, rng=np.random.default_rng(0), flips=20_000)
    assert test.p_value == pytest.approx(2 / 32, abs=0.006)
    assert (test.n, test.value) == (5, pytest.approx(0.017))


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_sign_of_a_trend_is_found(sign):
    """The interval is on its side of 0, and p is as small as the flips allow."""
    slopes = sign * np.random.default_rng(1).normal(0.02, 0.01, size=100)
    test = flip_slopes(slopes.tolist(), widest=8, rng=np.random.default_rng(0))
    assert test.p_value == 1 / 10_001
    assert test.low * sign > 0
    assert test.high * sign > 0


def test_no_trend_is_not_called():
    """Chance alone gives p below 0.05 in about a twentieth of studies."""
    rng = np.random.default_rng(3)
    studies = (rng.normal(0, 0.02, 60).tolist() for _ in range(300))
    called = sum(flip_slopes(slopes, widest=8, rng=rng, flips=400).p_value < 0.05 for slopes in studies)
    assert 3 <= called <= 30


def test_without_scenarios_nothing_is_tested():
    """No number, and no p-value."""
    test = flip_slopes([], widest=8, rng=np.random.default_rng(0))
    assert (test.n, test.value, test.p_value) == (0, None, None)
