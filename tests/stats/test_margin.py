"""Within a margin: two one-sided tests, what they promise, and what they say where something is not known."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import THOROUGH, draw_part
from unmask.stats.estimate import score_statistic, tango_interval
from unmask.stats.margin import MarginTest, MarginVerdict, check_margin, margin_p_value
from unmask.stats.values import Value, known_value

EQUIVALENT, DIFFERENT, NOT_SHOWN = MarginVerdict.EQUIVALENT, MarginVerdict.DIFFERENT, MarginVerdict.NOT_SHOWN
UNKNOWN = Value(None, 0.0, 0.0, 1.0, 0.0, 1.0)


def check_counts(counts: dict[int, int], *, takes: int = 1, margin: float = 0.02) -> MarginTest:
    """So many scenarios of which so many takes more are lies in b, or in a where the number is below 0."""
    a = [known_value(max(0, -more) / takes, 1 - max(0, -more) / takes) for more, n in counts.items() for _ in range(n)]
    b = [known_value(max(0, more) / takes, 1 - max(0, more) / takes) for more, n in counts.items() for _ in range(n)]
    return check_margin(a, b, None, takes, margin)


def check_pairs(only_a: int, only_b: int, n: int, margin: float = 0.02) -> MarginTest:
    return check_counts({-1: only_a, 1: only_b, 0: n - only_a - only_b}, margin=margin)


@cache
def verdict_of(only_a: int, only_b: int, n: int) -> MarginVerdict:
    return check_pairs(only_a, only_b, n).verdict


def chance_of(verdict: MarginVerdict, n: int, differ: float) -> float:
    """If the true difference is the margin: over everything that n pairs can show, but for what is very unlikely."""
    from scipy.stats import binom

    share_a, share_b = (differ - 0.02) / 2, (differ + 0.02) / 2
    total = 0.0
    for only_a in range(n + 1):
        weight = binom.pmf(only_a, n, share_a)
        if weight < 1e-6:
            continue
        for only_b in range(n - only_a + 1):
            chance = weight * binom.pmf(only_b, n - only_a, share_b / (1 - share_a))
            if chance > 1e-6 and verdict_of(only_a, only_b, n) is verdict:
                total += chance
    return total


@pytest.mark.parametrize(("n", "differ"), draw_part(product([100, 133, 149, 236, 300], [0.02, 0.026, 0.04, 0.15]), 5))
def test_a_difference_as_large_as_the_margin_is_called_equivalent_at_most_one_time_in_twenty(n, differ):
    """Exactly, also where all that differs goes one way: the interval alone would do so in 6.8 % of 133 scenarios."""
    assert chance_of(EQUIVALENT, n, differ) <= 0.051


@pytest.mark.parametrize(("n", "noise"), draw_part(product([200, 240, 300, 400, 600], [0.0, 0.02]), 3))
def test_readings_that_differ_in_whole_scenarios_of_ten_takes_are_seldom_called_equivalent(n, noise):
    """V14: 2 % are lies in all takes by b only, so the difference is the margin; others differ in one take. The spread
    that is seen would pass 8 to 11 % of them."""
    rng = np.random.default_rng(n)
    seen: dict[tuple[tuple[int, int], ...], bool] = {}
    called = 0
    for _ in range(runs := 4000 if THOROUGH else 1500):
        whole, other = rng.random(n) < 0.02, np.where(rng.random(n) < noise, rng.choice([-1, 1], n), 0)
        counts = tuple(sorted(Counter(np.where(whole, 10, other).tolist()).items()))
        if counts not in seen:
            seen[counts] = check_counts(dict(counts), takes=10).verdict is EQUIVALENT
        called += seen[counts]
    assert called / runs <= (0.055 if THOROUGH else 0.065)


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(2, 900), st.sampled_from([0.01, 0.02, 0.05, 0.2]))
def test_for_yes_and_no_the_test_is_that_of_tango(only_a, only_b, alike, margin):
    """Its statistic against the margin, with Student's t; unless the binomial test says less."""
    from scipy.stats import binom, t

    n = only_a + only_b + alike
    score = score_statistic(margin, only_a, only_b, n)
    found = margin_p_value([-1.0] * only_a + [1.0] * only_b + [0.0] * alike, [1.0] * n, margin)
    if score < 0:
        oracle = max(t.cdf(score, n - 1), binom.cdf(only_b - only_a, n, margin))
        assert found == pytest.approx(oracle, rel=1e-6, abs=1e-12)
    else:
        assert found == 1


@settings(deadline=None, max_examples=200 if THOROUGH else 60)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 3000), st.sampled_from([0.01, 0.02, 0.05]))
def test_a_verdict_never_contradicts_the_interval(only_a, only_b, alike, margin):
    """Equivalent lies inside the margin; different lies outside, and so does the 95 % interval."""
    n = only_a + only_b + alike
    if not n:
        return
    test = check_pairs(only_a, only_b, n, margin)
    assert (test.low, test.high) == tango_interval(only_a, only_b, n=n, level=0.9)
    if test.verdict is EQUIVALENT:
        assert -margin < test.low <= test.high < margin
    if test.verdict is DIFFERENT:
        low, high = tango_interval(only_a, only_b, n=n)
        assert low > margin or high < -margin


def test_what_is_not_known_can_be_anything():
    """900 pairs alike are equivalent; with 30 of which nothing is known, nothing is shown within 2 points, but within
    5 it is."""
    alike = [known_value(0.0, 1.0)] * 900
    unknown = [UNKNOWN] * 30
    assert check_margin(alike, alike, None, 1, 0.02).verdict is EQUIVALENT
    found = check_margin(alike + unknown, alike + alike[:30], None, 1, 0.02)
    assert (found.verdict, found.why) == (NOT_SHOWN, "it depends on what was not judged")
    assert check_margin(alike + unknown, alike + alike[:30], None, 1, 0.05).verdict is EQUIVALENT


def test_doubts_are_told_apart():
    """Too few scenarios, too close to the margin, nothing judged."""
    assert check_pairs(2, 2, 60).why == "too few scenarios to tell: a difference of 2 points is not ruled out"
    assert check_pairs(0, 20, 1000).why == "the difference is too close to 2 points for these scenarios to tell"
    assert check_margin([UNKNOWN], [UNKNOWN], None, 1, 0.02).why == "no scenario was judged in both runs"


def test_scenarios_of_one_cluster_count_once():
    """Five times the same 100 pairs say as much as 100."""
    values = [known_value(0.0, 1.0)] * 500
    assert check_margin(values, values, None, 1, 0.02).verdict is EQUIVALENT
    assert check_margin(values, values, [place % 100 for place in range(500)], 1, 0.02).verdict is NOT_SHOWN
