"""Rates of which a part of one kind was left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.rate import rate, wilson_interval
from unmask.stats.takes import Layer, layered_rate, weigh_layers


@given(st.integers(1, 200), st.integers(0, 200), st.data())
def test_without_anything_left_out_it_is_the_plain_rate(believed, unbelieved, data):
    """Value and interval of the count."""
    hits = data.draw(st.integers(0, believed))
    layers = [Layer(believed, 0, hits, believed, hits), Layer(unbelieved, 0, 0, unbelieved, 0)]
    plain = rate(hits, believed + unbelieved)
    found = layered_rate(layers, plain=plain, unjudged=0)
    assert (found.value, found.low, found.high) == pytest.approx((plain.value, plain.low, plain.high), abs=1e-9)


def test_what_was_seen_of_a_kind_stands_for_all_of_it():
    """Half of 100 believers hit, of 60 that were seen; 100 others never do."""
    layers = [Layer(60, 40, 30, 60, 30), Layer(100, 0, 0, 100, 0)]
    found = layered_rate(layers, plain=rate(30, 160, unjudged=40), unjudged=40)
    assert (found.value, found.total, found.unjudged) == (pytest.approx(0.25), 160, 40)
    assert (found.worst_low, found.worst_high) == (0.15, 0.35)


def test_the_effective_size_is_that_of_the_variance_between_simulated_runs():
    """Within 5 %: 1,000 scenarios, 60 % with a belief, of which one in five is left out."""
    rng = np.random.default_rng(2)
    values, sizes = [], []
    for _ in range(4000):
        believed = rng.binomial(1000, 0.6)
        seen = rng.binomial(believed, 0.8)
        hits = rng.binomial(seen, 0.4)
        layers = [Layer(seen, believed - seen, hits, seen, hits), Layer(1000 - believed, 0, 0, 1000 - believed, 0)]
        value, size = weigh_layers(layers)
        values.append(value)
        sizes.append(size)
    assert np.mean(values) * (1 - np.mean(values)) / np.var(values) == pytest.approx(np.mean(sizes), rel=0.05)


def test_no_hit_at_all_has_the_upper_bound_of_what_was_seen():
    """Of 100 believers 50 were seen; 100 have no belief: an effective 100, not 150."""
    layers = [Layer(50, 50, 0, 50, 0), Layer(100, 0, 0, 100, 0)]
    found = layered_rate(layers, plain=rate(0, 150, unjudged=50), unjudged=50)
    assert found.high == pytest.approx(wilson_interval(0, 100)[1])
