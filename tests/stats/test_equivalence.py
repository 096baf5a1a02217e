"""Two one-sided tests: what they promise, summed over everything that can happen, and how many scenarios they need."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import THOROUGH, draw_part
from unmask.stats.compare import bounded_mean, tango_interval
from unmask.stats.equivalence import (
    EquivalenceVerdict,
    check_equivalence,
    equivalence_chance,
    gate_rise_chance,
    scenarios_for_equivalence,
    shares_for_equivalence,
)

EQUIVALENT, DIFFERENT = EquivalenceVerdict.EQUIVALENT, EquivalenceVerdict.DIFFERENT


def gaps_of(only_a: int, only_b: int, n: int) -> list[float]:
    return [-1.0] * only_a + [1.0] * only_b + [0.0] * (n - only_a - only_b)


@cache
def verdict_of(only_a: int, only_b: int, n: int, margin: float) -> EquivalenceVerdict:
    return check_equivalence(gaps_of(only_a, only_b, n), margin=margin, yes_or_no=True).verdict


def chance_of(verdict: EquivalenceVerdict, n: int, discordant: float, shift: float, margin: float) -> float:
    """Over everything that n pairs can show, but for what happens less than once in a million."""
    from scipy.stats import binom

    share_a, share_b = (discordant - shift) / 2, (discordant + shift) / 2
    total = 0.0
    for only_a in range(n + 1):
        weight = binom.pmf(only_a, n, share_a)
        if weight < 1e-7:
            continue
        for only_b in range(n - only_a + 1):
            chance = weight * binom.pmf(only_b, n - only_a, share_b / (1 - share_a))
            if chance > 1e-7 and verdict_of(only_a, only_b, n, margin) is verdict:
                total += chance
    return total


@pytest.mark.parametrize(("n", "discordant"), draw_part(product([133, 149, 236, 300], [0.02, 0.026, 0.04]), 5))
def test_a_shift_of_the_margin_is_called_equivalent_at_most_one_time_in_twenty(n, discordant):
    """Exactly, also where all that differs goes one way: the interval alone would do so in 6.8 % of 133 scenarios."""
    assert chance_of(EQUIVALENT, n, discordant, 0.02, 0.02) <= 0.05


@pytest.mark.parametrize(("n", "discordant"), [(150, 0.02), (236, 0.02), (300, 0.04)])
def test_a_shift_of_the_margin_is_seldom_called_larger(n, discordant):
    """The other error: a score test alone calls it larger in 8 % of 150 scenarios."""
    assert chance_of(DIFFERENT, n, discordant, 0.02, 0.02) <= 0.055


@settings(deadline=None, max_examples=200 if THOROUGH else 60)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 3000), st.sampled_from([0.01, 0.02, 0.05]))
def test_equivalent_means_that_the_interval_keeps_the_margin_both_ways(only_a, only_b, alike, margin):
    """And both p-values are at most 5 %; a shift that is called larger lies outside."""
    n = only_a + only_b + alike
    if not n:
        return
    test = check_equivalence(gaps_of(only_a, only_b, n), margin=margin, yes_or_no=True)
    assert (test.low, test.high) == tango_interval(only_a, only_b, n=n, level=0.9)
    if test.verdict is EQUIVALENT:
        assert -margin < test.low <= test.high < margin
        assert max(test.p_lower, test.p_upper) <= 0.05
    if test.verdict is DIFFERENT:
        assert test.low > margin or test.high < -margin


def test_many_pairs_that_differ_are_decided_by_the_interval_alone():
    """There the summed p-values and the interval say the same, up to the last pair."""
    for more in range(30, 80):
        test = check_equivalence(gaps_of(40, more, 3000), margin=0.01, yes_or_no=True)
        assert (test.verdict is EQUIVALENT) == (test.high < 0.01 and test.low > -0.01), more


def test_shares_are_tested_by_the_interval_of_shares():
    """Bonett and Price's at 90 %; the two p-values are those of its bounds."""
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.01, 0.02, 0.05):
        gaps = (rng.integers(-1, 2, 800) / 5 + shift).tolist()
        test = check_equivalence(gaps, margin=0.02, yes_or_no=False)
        assert (test.low, test.high) == bounded_mean(gaps, level=0.9)
        assert (test.p_upper < 0.05) == (test.high < 0.02)
        assert (test.p_lower < 0.05) == (test.low > -0.02)


def test_exchanging_the_readings_exchanges_the_tests():
    one, two = (check_equivalence(gaps_of(a, b, 900), margin=0.02, yes_or_no=True) for a, b in ((9, 14), (14, 9)))
    assert (one.p_lower, one.p_upper) == (two.p_upper, two.p_lower)
    assert (one.low, one.high) == (pytest.approx(-two.high), pytest.approx(-two.low))


@pytest.mark.parametrize(
    ("n", "discordant", "shift"), [(180, 0.0, 0.0), (255, 0.005, 0.0), (400, 0.02, 0.0), (400, 0.03, 0.01)]
)
def test_the_planned_chance_is_the_sum_over_all_outcomes(n, discordant, shift):
    """Of the test as it is made, the summed p-values included."""
    exact = chance_of(EQUIVALENT, n, discordant, shift, 0.02)
    assert equivalence_chance(n, discordant=discordant, margin=0.02, shift=shift) == pytest.approx(exact, abs=0.002)


@pytest.mark.parametrize("discordant", [0.0, 0.005, 0.01, 0.06, 0.2])
def test_as_many_as_needed_are_enough_and_two_in_three_are_not(discordant):
    needed = scenarios_for_equivalence(discordant=discordant, margin=0.02)
    assert equivalence_chance(needed, discordant=discordant, margin=0.02) >= 0.8
    assert equivalence_chance(2 * needed // 3, discordant=discordant, margin=0.02) < 0.8


def test_a_claim_needs_what_the_usual_formula_says():
    """About 1,300 at 6 % that differ and 2 points; four times as many for half the margin."""
    assert 1_280 <= scenarios_for_equivalence(discordant=0.06, margin=0.02) <= 1_340
    assert 5_100 <= scenarios_for_equivalence(discordant=0.06, margin=0.01) <= 5_300


def test_the_sizes_in_the_docs_are_those_that_are_computed():
    """docs/statistics.md, for a margin of 2 points."""
    page = (Path(__file__).parent.parent.parent / "docs" / "statistics.md").read_text(encoding="utf-8")
    for row, shift in (("no true shift", 0.0), ("true shift of 1 point", 0.01)):
        cells = re.search(rf"^\| {row} \|(.*)\|$", page, re.MULTILINE)[1].replace(",", "").split("|")
        for cell, discordant in zip(cells, (0.0, 0.01, 0.02, 0.04, 0.06, 0.1, 0.2), strict=True):
            if cell.strip():
                assert int(cell) == scenarios_for_equivalence(discordant=discordant, margin=0.02, shift=shift)


def test_what_no_size_shows_has_no_number():
    """A shift of the margin, or a plan beyond a million."""
    assert scenarios_for_equivalence(discordant=0.1, margin=0.02, shift=-0.02) is None
    assert scenarios_for_equivalence(discordant=0.5, margin=0.001) is None
    assert shares_for_equivalence(variance=0.1, margin=0.02, shift=0.03) is None


def test_shares_that_agree_still_need_scenarios():
    """The test never takes agreement for certainty, so a plan does not either."""
    needed = shares_for_equivalence(variance=0.0, margin=0.02)
    assert check_equivalence([0.0] * needed, margin=0.02, yes_or_no=False).verdict is EQUIVALENT
    assert check_equivalence([0.0] * (needed // 2), margin=0.02, yes_or_no=False).verdict is not EQUIVALENT


def test_the_chance_to_keep_a_rise_is_the_sum_over_all_outcomes():
    """Every split of thirty pairs, each with the bound that the gate would look at."""
    from scipy.stats import multinomial

    n, discordant, gap, limit = 30, 0.3, 0.02, 0.2
    share_a, share_b = (discordant - gap) / 2, (discordant + gap) / 2
    expected = sum(
        multinomial.pmf((only_a, only_b, n - only_a - only_b), n, (share_a, share_b, 1 - discordant))
        for only_a in range(n + 1)
        for only_b in range(n + 1 - only_a)
        if tango_interval(only_a, only_b, n=n)[1] <= limit
    )
    assert gate_rise_chance(n, discordant=discordant, gap=gap, limit=limit) == pytest.approx(expected, abs=1e-9)
