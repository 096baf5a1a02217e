"""Paired tests and families of them, against statsmodels, the likelihood and published examples."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.stats.estimate import mcnemar_score, tango_interval
from unmask.stats.family import holm, holm_levels
from unmask.stats.rate import Z95

COUNTS = st.integers(0, 60)


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_mcnemar_is_the_score_test(only_a, only_b):
    """The p-value of statsmodels' test without correction for continuity."""
    from statsmodels.stats.contingency_tables import mcnemar as oracle_mcnemar

    found = mcnemar_score(only_a, only_b)
    table = [[0, only_a], [only_b, 0]]
    oracle = oracle_mcnemar(table, exact=False, correction=False) if only_a + only_b else None
    assert found == pytest.approx(1.0 if oracle is None else oracle.pvalue, abs=1e-12)


@given(st.lists(st.one_of(st.none(), st.floats(0, 0.2)), min_size=1, max_size=12))
def test_the_levels_of_holm_decide_as_holm_does(p_values):
    """A p-value is below what its level leaves exactly where Holm's method rejects; never below the plain 95 %."""
    for p, adjusted, level in zip(p_values, holm(p_values), holm_levels(p_values), strict=True):
        assert level >= 0.95
        if p is not None and abs(adjusted - 0.05) > 1e-9:
            assert (p < 1 - level) == (adjusted < 0.05)


@pytest.mark.parametrize("size", [1, 2, 7, 20])
def test_holm_is_holm(size):
    """As statsmodels corrects them, in the order given, ties and a 0 included."""
    from statsmodels.stats.multitest import multipletests

    p_values = [*(np.random.default_rng(size).random(size) ** 3).round(3), 0.0, 0.02, 0.02]
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], abs=1e-12)
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]  # what was not tested makes no other test stricter


def likelihood_score(gap: float, only_a: int, only_b: int, n: int) -> float:
    """The score statistic with its nuisance parameter found by brute force, from the likelihood itself."""
    from scipy import optimize

    def minus_log(share: float) -> float:
        cells = (only_b, share + gap), (only_a, share), (n - only_a - only_b, 1 - gap - 2 * share)
        return -sum(count * np.log(max(p, 1e-300)) for count, p in cells if count)

    least, most = max(0.0, -gap), (1 - gap) / 2
    share = optimize.minimize_scalar(minus_log, bounds=(least, most), method="bounded", options={"xatol": 1e-12}).x
    return (only_b - only_a - n * gap) / sqrt(n * (2 * share + gap * (1 - gap)))


@pytest.mark.parametrize(
    ("only_a", "only_b", "n"), [(7, 1, 21), (12, 30, 100), (3, 3, 50), (40, 2, 60), (150, 90, 1000)]
)
def test_tango_bounds_are_where_the_score_test_turns(only_a, only_b, n):
    """At each bound the likelihood's own score statistic is 1.96."""
    low, high = tango_interval(only_a, only_b, n=n)
    assert likelihood_score(low, only_a, only_b, n) == pytest.approx(Z95, abs=1e-3)
    assert likelihood_score(high, only_a, only_b, n) == pytest.approx(-Z95, abs=1e-3)


def test_tango_gives_the_published_example():
    """Airway data of Fagerland, Lydersen and Laake (2014): 1 and 7 of 21 disagree, -0.517 to -0.026."""
    assert tango_interval(7, 1, n=21) == pytest.approx((-0.517, -0.026), abs=5e-4)


@settings(deadline=None)
@given(COUNTS, COUNTS, COUNTS)
def test_tango_contains_the_difference_and_turns_with_its_sides(only_a, only_b, rest):
    """Swapping the runs mirrors the interval."""
    n = only_a + only_b + rest
    if n:
        low, high = tango_interval(only_a, only_b, n=n)
        assert -1 <= low <= (only_b - only_a) / n + 1e-9
        assert (only_b - only_a) / n - 1e-9 <= high <= 1
        assert tango_interval(only_b, only_a, n=n) == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.3, 0.35)])
def test_intervals_cover_the_true_difference_about_as_often_as_they_say(rates):
    """80 pairs that agree more than by chance, 1,500 times: between 93.5 and 98 %."""
    rng = np.random.default_rng(21)
    covered = 0
    for _ in range(1500):
        ease = rng.random(80)
        again = np.where(rng.random(80) < 0.6, ease, rng.random(80))
        only_a = int(np.sum((ease < rates[0]) & (again >= rates[1])))
        only_b = int(np.sum((ease >= rates[0]) & (again < rates[1])))
        low, high = tango_interval(only_a, only_b, n=80)
        covered += low <= rates[1] - rates[0] <= high
    assert 0.935 <= covered / 1500 <= 0.98
