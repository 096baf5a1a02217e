"""Rates made of other rates: means over groups, P(lie) times a share, two kinds within groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.rate import contrast_kinds, effective_size, mean_interval, mean_rate, rate, rectified_rate

COUNTS = st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@given(COUNTS)
def test_the_effective_size_of_a_count_is_its_total(counts):
    """Wilson's interval is turned round."""
    assert effective_size(rate(*counts)) == pytest.approx(counts[1], rel=1e-6)


@given(COUNTS)
def test_the_mean_of_one_rate_is_that_rate(counts):
    """Value and interval."""
    one = rate(*counts)
    assert tuple(mean_interval([one])) == pytest.approx((one.value, one.low, one.high), abs=1e-6)


def test_the_mean_of_equal_groups_is_as_sure_as_the_pool():
    """Six times 15 of 50 is 90 of 300."""
    pooled, mean = rate(90, 300), mean_interval([rate(15, 50)] * 6)
    assert tuple(mean) == pytest.approx((pooled.value, pooled.low, pooled.high))


def test_a_tiny_group_widens_the_mean():
    """One scenario that agrees is not certain."""
    sure, doubtful = (mean_interval([rate(20, 100), rate(*other)]) for other in ((40, 200), (0, 1)))
    assert doubtful.high - doubtful.low > 3 * (sure.high - sure.low)


def test_a_mean_of_rates_needs_all_of_them():
    """Balanced accuracy does not exist without lies; its bounds do not either."""
    found = mean_rate([rate(9, 10), rate(0, 0)])
    assert (found.value, found.worst_low, found.total) == (None, None, 10)
    assert mean_rate([rate(9, 10), rate(0, 0, unjudged=2)]).worst_low == 0.45


@given(COUNTS, st.data())
def test_where_all_lies_are_known_the_rectified_rate_is_that_of_the_count(counts, data):
    """Also its interval."""
    lies, total = counts
    sincere = data.draw(st.integers(0, lies))
    found, plain = (
        rectified_rate(rate(lies, total), sincere=sincere, played=lies - sincere, worst_low=0, worst_high=1),
        rate(sincere, total),
    )
    assert (found.value, found.low, found.high) == pytest.approx((plain.value, plain.low, plain.high), abs=1e-6)


def test_the_test_of_two_kinds_is_that_of_cochran_mantel_and_haenszel():
    """Against statsmodels, without its correction for continuity."""
    from statsmodels.stats.contingency_tables import StratifiedTable

    tables = [((5, 10), (4, 31)), ((9, 6), (14, 21)), ((1, 14), (0, 35))]
    groups = [([1.0] * a + [0.0] * b, [1.0] * c + [0.0] * d) for (a, b), (c, d) in tables]
    known = StratifiedTable([np.array(table) for table in tables]).test_null_odds(correction=False)
    assert contrast_kinds(groups).p_value == pytest.approx(known.pvalue)


def test_groups_with_one_kind_only_say_nothing_about_the_difference():
    """They are left out, however many lies they have."""
    both = ([1.0, 0.0, 0.0], [0.0, 0.0])
    assert contrast_kinds([both, ([1.0] * 50, [])]) == contrast_kinds([both])
    assert contrast_kinds([([1.0] * 50, []), ([], [0.0])]) is None


def test_where_nobody_lies_the_difference_is_zero_with_a_width():
    """And p is 1."""
    found = contrast_kinds([([0.0] * 15, [0.0] * 35)])
    assert (found.value, found.p_value) == (0, 1)
    assert found.low < -0.05
    assert found.high > 0.1
