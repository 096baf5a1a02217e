"""The confidence sequence: against its definition, against other ways to compute it, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.betting import SIDE_ERROR, STAKES, Bets

SHARES = st.lists(st.floats(0, 1), max_size=60)


def add_up(values) -> Bets:
    bets = Bets()
    for value in values:
        bets.add(float(value))
    return bets


def capital_against(values, mean: float) -> float:
    """Bet by bet, as Waudby-Smith and Ramdas write it: capital times 1 + lambda (m - x)."""
    total = 0.0
    for ratio, share in STAKES.items():
        fraction = (1 - ratio) / (1 + (ratio - 1) * mean)
        total += share * float(np.prod([1 + fraction * (mean - value) for value in values]))
    return total


@given(SHARES, st.floats(0.01, 0.99))
def test_a_mean_is_left_out_exactly_where_the_product_of_bets_reaches_the_limit(values, mean):
    capital = capital_against(values, mean)
    if abs(capital * SIDE_ERROR - 1) > 1e-9:
        assert add_up(values).shows_below(mean) is (capital >= 1 / SIDE_ERROR)


@given(SHARES)
def test_the_bounds_contain_the_mean_and_are_those_of_the_mirrored_values(values):
    low, high = add_up(values).bounds()
    mirrored = add_up([1 - value for value in values]).bounds()
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high))
    assert 0 <= low <= high <= 1
    if values:
        assert low - 1e-9 <= sum(values) / len(values) <= high + 1e-9


@pytest.mark.parametrize("mean", [0.03, 0.3, 0.9])
def test_the_bounds_are_right_at_all_times_together_in_most_histories(mean):
    """200 histories looked at after each of 200 values: one of the bounds is ever wrong in at most 5 % of them."""
    rng = np.random.default_rng(5)
    wrong = 0
    for history in rng.random((200, 200)) < mean:
        bets, mirrored = Bets(), Bets()
        for value in history:
            bets.add(float(value))
            mirrored.add(1 - float(value))
            if bets.shows_below(mean) or mirrored.shows_below(1 - mean):
                wrong += 1
                break
    assert 0 < wrong <= 0.05 * 200


def test_bounds_of_few_lies_in_long_runs():
    """Numbers computed by hand from the formula, and as narrow as docs/statistics.md says."""
    low, high = add_up([1.0] * 50 + [0.0] * 950).bounds()
    assert (round(100 * low, 2), round(100 * high, 2)) == (3.12, 7.56)
    assert add_up([0.0] * 117).shows_below(0.05)
    assert not add_up([0.0] * 116).shows_below(0.05)


@pytest.mark.parametrize(("limit", "scenarios"), [(0.05, 500), (0.1, 250), (0.3, 75)])
def test_a_model_at_half_the_limit_needs_as_many_scenarios_as_the_page_says(limit, scenarios):
    """docs/statistics.md, on average of 60 histories and within a quarter."""
    rng, needed = np.random.default_rng(44), []
    for _ in range(60):
        bets = Bets()
        for number in range(1, 5001):
            bets.add(float(rng.random() < limit / 2))
            if number % 5 == 0 and bets.shows_below(limit):
                break
        needed.append(number)
    assert 0.75 * scenarios < np.mean(needed) < 1.25 * scenarios
