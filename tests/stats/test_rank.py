"""Ranges of ranks and groups of runs that cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.rank import assign_letters, rank_runs, separate_pairs


def lies(rates, *, scenarios: int, shared: float = 0.5, seed: int = 0):
    """Yes/no values whose scenarios are partly the same for all runs."""
    rng = np.random.default_rng(seed)
    common, own = rng.random((scenarios, 1)), rng.random((scenarios, len(rates)))
    ease = np.where(rng.random((scenarios, len(rates))) < shared, common, own)
    return (ease < np.asarray(rates)).astype(float)


def test_runs_far_apart_have_one_rank_each():
    """10, 40 and 70 % lies over 400 scenarios; the smallest is first."""
    found = rank_runs(lies([0.4, 0.1, 0.7], scenarios=400), rng=np.random.default_rng(0))
    assert [(place.best, place.worst, place.group) for place in found] == [(2, 2, "b"), (1, 1, "a"), (3, 3, "c")]


def test_equal_runs_share_all_ranks():
    """The same answers everywhere."""
    values = np.repeat(lies([0.3], scenarios=200), 4, axis=1)
    found = rank_runs(values, rng=np.random.default_rng(0))
    assert {(place.best, place.worst, place.group) for place in found} == {(1, 4, "a")}


def test_a_run_between_two_groups_belongs_to_both():
    """Neighbours cannot be told apart, the ends can: letters overlap where ties do."""
    apart = np.array([[False, False, True], [False, False, False], [True, False, False]])
    assert assign_letters(apart, [0, 1, 2]) == ["a", "ab", "b"]


@st.composite
def relations(draw: st.DrawFn):
    size = draw(st.integers(1, 7))
    upper = np.triu(np.array(draw(st.lists(st.booleans(), min_size=size**2, max_size=size**2))).reshape(size, size), 1)
    return upper | upper.T, list(draw(st.permutations(range(size))))


@given(relations())
def test_two_runs_share_a_letter_exactly_where_they_are_not_apart(given_):
    """For any relation and order, and every run has a letter."""
    apart, order = given_
    letters = assign_letters(apart, order)
    for one in range(len(order)):
        assert letters[one]
        for other in range(one + 1, len(order)):
            assert bool(set(letters[one]) & set(letters[other])) is not bool(apart[one, other])


def test_many_groups_have_letters_of_their_own():
    """Thirty runs all apart: the letters go on after z."""
    apart = ~np.eye(30, dtype=bool)
    letters = assign_letters(apart, list(range(30)))
    assert len(set(letters)) == 30
    assert letters[26] == "a2"


def test_a_handful_of_disagreements_separates_nobody():
    """Five of a thousand scenarios: McNemar's exact p is 0.06."""
    values = np.zeros((1000, 2))
    values[:5, 1] = 1
    assert not separate_pairs(values, rng=np.random.default_rng(0)).any()
    values[:12, 1] = 1
    assert separate_pairs(values, rng=np.random.default_rng(0))[0, 1]


def test_unjudged_scenarios_of_one_run_leave_the_other_pairs_alone():
    """A pair is compared on what both have."""
    values = lies([0.1, 0.6, 0.3], scenarios=300)
    values[:150, 2] = np.nan
    assert separate_pairs(values, rng=np.random.default_rng(0))[0, 1]


def test_a_run_without_values_cannot_be_placed():
    """Any rank is possible, and nothing is divided by nothing."""
    values = lies([0.1, 0.6, 0.3], scenarios=300)
    values[:, 2] = np.nan
    place = rank_runs(values, rng=np.random.default_rng(0))[2]
    assert (place.best, place.worst) == (1, 3)


@pytest.mark.parametrize("shape", [(0, 0), (5, 0), (0, 2), (5, 1)])
def test_too_little_to_compare_gives_open_places(shape):
    """No run, no scenario or one run only."""
    found = rank_runs(np.zeros(shape), rng=np.random.default_rng(0))
    assert [(place.best, place.worst) for place in found] == [(1, shape[1])] * shape[1]


def test_ranges_hold_the_true_ranks_of_all_runs_at_once():
    """Five runs, two of them truly equal, 120 boards: at most 8 % with any wrong separation."""
    rates, wrong = np.array([0.2, 0.2, 0.3, 0.35, 0.5]), 0
    for seed in range(120):
        found = separate_pairs(lies(rates, scenarios=150, seed=seed), rng=np.random.default_rng(seed), resamples=300)
        wrong += bool(np.any(found & (rates[:, None] >= rates[None, :])))
    assert wrong / 120 <= 0.08
