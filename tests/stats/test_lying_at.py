"""Lying@k: the estimator, what unknown takes do to it, and its interval."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.rate import Z95, rate
from unmask.stats.takes import Tally, estimate_lie_chance, lying_at


@st.composite
def tallied(draw: st.DrawFn) -> tuple[int, list[Tally]]:
    """A number of takes, and scenarios with some lies and some unknown takes each."""
    n = draw(st.integers(1, 8))
    one = st.integers(0, n).flatmap(
        lambda lies: st.integers(0, n - lies).map(lambda unknown: Tally(lies=lies, unknown=unknown))
    )
    return n, draw(st.lists(one, max_size=12))


@pytest.mark.parametrize("n", [1, 3, 6])
def test_the_chance_is_the_share_of_subsets_with_a_lie(n):
    """Every subset of the takes, counted."""
    for lies in range(n + 1):
        for k in range(1, n + 1):
            subsets = list(combinations([True] * lies + [False] * (n - lies), k))
            assert estimate_lie_chance(lies, n=n, k=k) == pytest.approx(
                sum(map(any, subsets)) / len(subsets), abs=1e-15
            )


def test_the_estimator_is_unbiased():
    """Over all outcomes of n takes with lie probability p, its mean is 1 - (1-p)^k."""
    n, p = 6, 0.3
    for k in range(1, n + 1):
        mean = sum(
            p ** sum(takes) * (1 - p) ** (n - sum(takes)) * estimate_lie_chance(sum(takes), n=n, k=k)
            for takes in np.ndindex(*[2] * n)
        )
        assert mean == pytest.approx(1 - (1 - p) ** k)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 5))
def test_for_k_equal_n_it_is_the_plain_rate_of_scenarios_with_a_lie(lies, unjudged):
    """Value, Wilson interval and worst-case bounds are those of the count."""
    tallies = [Tally(lies=one) for one in lies] + [Tally(lies=0, unknown=5)] * unjudged
    found = lying_at(tallies, n=5, k=5)
    assert found == rate(sum(one > 0 for one in lies), len(lies), unjudged=unjudged)


def test_for_k_1_it_is_the_mean_share_of_lies():
    """2 of 4, 0 of 4 and 1 of 4."""
    found = lying_at([Tally(lies=2), Tally(lies=0), Tally(lies=1)], n=4, k=1)
    assert (found.hits, found.total, found.value) == (0.75, 3, 0.25)


@given(tallied())
def test_it_never_falls_with_more_takes_when_all_are_known(given_):
    """A lie in k takes is a lie in k + 1."""
    n, tallies = given_
    known = [Tally(lies=tally.lies) for tally in tallies] or [Tally(lies=0)]
    values = [lying_at(known, n=n, k=k).value for k in range(1, n + 1)]
    assert all(now <= later + 1e-12 for now, later in pairwise(values))


@given(tallied(), st.data())
def test_bounds_contain_the_value_and_order_does_not_matter(given_, data):
    """Interval and worst case lie around the value; a permutation changes not one digit."""
    n, tallies = given_
    shuffled = data.draw(st.permutations(tallies))
    for k in range(1, n + 1):
        found = lying_at(tallies, n=n, k=k)
        assert found == lying_at(shuffled, n=n, k=k)
        if found.value is not None:
            assert 0 <= found.low <= found.value + 1e-12
            assert found.value <= found.high + 1e-12 <= 1 + 1e-9
        if tallies:
            assert 0 <= found.worst_low <= found.worst_high <= 1
            if found.value is not None:
                assert found.worst_low <= found.value + 1e-12
                assert found.value <= found.worst_high + 1e-12


@given(tallied(), st.data())
def test_worst_case_bounds_hold_for_every_way_to_fill_the_unknown_takes(given_, data):
    """Whatever the unknown takes turn out to be, the completed value lies between them."""
    n, tallies = given_
    filled = [Tally(lies=tally.lies + data.draw(st.integers(0, tally.unknown))) for tally in tallies]
    for k in range(1, n + 1):
        bounds, complete = lying_at(tallies, n=n, k=k), lying_at(filled, n=n, k=k)
        if complete.value is not None:
            assert bounds.worst_low - 1e-12 <= complete.value <= bounds.worst_high + 1e-12


def test_a_scenario_counts_up_to_as_many_takes_as_were_read():
    """One lie in two of three takes: half for k = 1, one for k = 2, and left out for k = 3 though it has a lie."""
    partly = [Tally(lies=1, unknown=1), Tally(lies=0)]
    found = [lying_at(partly, n=3, k=k) for k in (1, 2, 3)]
    assert [(one.total, one.unjudged, one.value) for one in found] == [(2, 0, 0.25), (2, 0, 0.5), (1, 1, 0)]
    assert (found[2].worst_low, found[2].worst_high) == (0, 0.5)


def test_scenarios_without_a_belief_do_not_gain_weight_by_unread_takes():
    """Four believe, two of them lie always; two have no belief. One of each with an unread take changes nothing."""
    complete = [Tally(lies=3), Tally(lies=3), Tally(lies=0), Tally(lies=0), *[Tally(lies=0, belief=False)] * 2]
    partly = [Tally(lies=3), Tally(lies=2, unknown=1), Tally(lies=0), Tally(lies=0, unknown=1), *complete[4:]]
    assert lying_at(partly, n=3, k=3).value == pytest.approx(lying_at(complete, n=3, k=3).value)
    assert lying_at(partly, n=3, k=3).high > lying_at(complete, n=3, k=3).high


def test_without_scenarios_there_is_no_value():
    """Null, not 0."""
    found = lying_at([], n=3, k=2)
    assert (found.value, found.low, found.high, found.worst_low) == (None, None, None, None)


@pytest.mark.parametrize("k", [0, 4])
def test_a_k_outside_the_takes_is_refused(k):
    """There is no estimate for more takes than were asked."""
    with pytest.raises(ValueError, match=f"Lying@{k}"):
        lying_at([Tally(lies=0)], n=3, k=k)


def test_the_interval_tends_to_the_clustered_normal_one_for_many_scenarios():
    """Its half-width is 1.96 standard errors over scenarios, within 2 %."""
    rng = np.random.default_rng(7)
    lies = rng.binomial(10, rng.beta(1, 2, size=4000))
    found = lying_at([Tally(lies=int(one)) for one in lies], n=10, k=3)
    chances = [estimate_lie_chance(int(one), n=10, k=3) for one in lies]
    error = np.std(chances) / sqrt(len(chances))
    assert (found.high - found.low) / 2 == pytest.approx(Z95 * error, rel=0.02)


def test_the_interval_covers_the_true_chance_about_as_often_as_it_says():
    """40 scenarios that differ a lot, 500 times: 95 % nominal, at least 91 % seen for every k."""
    rng = np.random.default_rng(11)
    covered = dict.fromkeys((1, 3, 5), 0)
    for _ in range(500):
        lies = rng.binomial(5, rng.beta(0.5, 1.5, size=40))
        tallies = [Tally(lies=int(one)) for one in lies]
        for k in covered:
            # E[1 - (1-p)^k] for p ~ Beta(a, b) is 1 - prod (b+i)/(a+b+i).
            truth = 1 - float(np.prod([(1.5 + i) / (2 + i) for i in range(k)]))
            found = lying_at(tallies, n=5, k=k)
            covered[k] += found.low <= truth <= found.high
    assert min(covered.values()) >= 455


def test_the_interval_does_not_collapse_when_all_scenarios_agree():
    """Ten scenarios with one lie in four takes each do not prove that every scenario has a quarter."""
    found = lying_at([Tally(lies=1)] * 10, n=4, k=1)
    assert found.high - found.low > 0.2
