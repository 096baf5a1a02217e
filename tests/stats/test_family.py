"""Families of tests, ranges of ranks and letters."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.family import assign_letters, rank_runs


def places(order, better):
    return [(place.best, place.worst, place.group) for place in rank_runs(order, better)]


def test_runs_that_are_all_told_apart_have_one_rank_each():
    """Run 1 is the best, then 0, then 2."""
    assert places([1, 0, 2], {(1, 0), (1, 2), (0, 2)}) == [(2, 2, "b"), (1, 1, "a"), (3, 3, "c")]


def test_a_run_between_two_groups_belongs_to_both():
    """Neighbours cannot be told apart, the ends can: letters overlap where ties do."""
    assert places([0, 1, 2], {(0, 2)}) == [(1, 2, "a"), (1, 3, "ab"), (2, 3, "b")]


@st.composite
def relations(draw: st.DrawFn):
    size = draw(st.integers(1, 7))
    pairs = [frozenset(pair) for pair in combinations(range(size), 2)]
    apart = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    return apart, list(draw(st.permutations(range(size))))


@given(relations())
def test_two_runs_share_a_letter_exactly_where_they_are_not_apart(given_):
    """For any relation and order, and every run has a letter."""
    apart, order = given_
    letters = assign_letters(apart, order)
    assert all(letters)
    for one, other in combinations(range(len(order)), 2):
        assert bool(set(letters[one]) & set(letters[other])) is not ({one, other} in apart)


def test_many_groups_have_letters_of_their_own():
    """Thirty runs all apart: the letters go on after z."""
    letters = assign_letters({frozenset(pair) for pair in combinations(range(30), 2)}, range(30))
    assert len(set(letters)) == 30
    assert letters[26] == "a2"
