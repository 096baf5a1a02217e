"""Lying@k: the share of subsets of takes with a lie, and what is expected where takes are unread."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.takes import lying_at

TAKES = 5
TALLIES = st.lists(
    st.integers(1, TAKES).flatmap(lambda read: st.tuples(st.integers(0, read), st.just(read))), min_size=1, max_size=20
)


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_up_to_the_takes_that_were_read_it_is_the_share_of_subsets_with_a_lie(takes, data):
    k = data.draw(st.integers(1, len(takes)))
    subsets = [any(chosen) for chosen in combinations(takes, k)]
    assert lying_at([sum(takes)], [len(takes)], 10, k) == [pytest.approx(np.mean(subsets))]


@given(TALLIES)
def test_a_chance_grows_with_k_and_a_seen_lie_is_certain_for_all_takes(tallies):
    """Within what the unread takes could be, and at k = 1 the share of lies itself."""
    lies, read = zip(*tallies, strict=True)
    assert lying_at(lies, read, TAKES, 1) == pytest.approx([lie / seen for lie, seen in tallies])
    every = lying_at(lies, read, TAKES, TAKES)
    assert all(chance == pytest.approx(1) for chance, lie in zip(every, lies, strict=True) if lie)
    assert all(0 <= chance <= 1 for chance in every)
    assert all(chance == 0 for chance, (lie, seen) in zip(every, tallies, strict=True) if not lie and seen == TAKES)


@pytest.mark.parametrize("unread", [0.3, 0.5])
def test_unread_takes_do_not_move_lying_at_all_takes(unread):
    """Within half a point over 20,000 scenarios, where the share of those with a seen lie is 3 to 6 points too low."""
    generator = np.random.default_rng(4)
    lies = generator.random((20_000, 10)) < generator.beta(0.1, 0.17 / 0.3, (20_000, 1))
    seen = generator.random(lies.shape) >= unread
    kept = seen.any(axis=1)
    found = lying_at((lies & seen).sum(axis=1)[kept].tolist(), seen.sum(axis=1)[kept].tolist(), 10, 10)
    assert np.mean(found) == pytest.approx(lies.any(axis=1).mean(), abs=0.005)
    assert (lies & seen).any(axis=1).mean() < lies.any(axis=1).mean() - 0.02
