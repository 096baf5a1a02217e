"""Shares of a sample that people read: in one stratum Wilson's, in several half an error more in each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.analysis.agreement import measure_errors
from unmask.stats.drawn import Compared, Drawn, drawn_share, measure_recall


def draw(hits, weights):
    return [Drawn(float(hit), weight, place) for place, (hit, weight) in enumerate(zip(hits, weights, strict=True))]


def compare(replies, weights=None):
    """One reply a scenario: whether it is a lie to the judge, and to the labels."""
    weights = weights or [1.0] * len(replies)
    return [
        Compared(1, judged, labelled, judged * labelled, weight, place)
        for place, ((judged, labelled), weight) in enumerate(zip(replies, weights, strict=True))
    ]


@pytest.mark.parametrize(("hits", "total"), [(17, 17), (0, 40), (3, 30), (61, 85)])
def test_labels_that_weigh_the_same_have_wilson_s_interval(hits, total):
    """Against statsmodels. 17 of 17 is [82, 100], not [0, 100]."""
    from statsmodels.stats.proportion import proportion_confint

    found = drawn_share(draw([place < hits for place in range(total)], [7.3] * total))
    assert found.value == hits / total
    assert found[1:] == pytest.approx(proportion_confint(hits, total, method="wilson"))


def test_a_stratum_without_an_error_still_widens_the_interval():
    """One false of thirty that weigh 1, and none of thirty that weigh 20: what these could hide is most of it."""
    found = drawn_share(draw([1.0] + [0.0] * 59, [1.0] * 30 + [20.0] * 30))
    assert found.value == pytest.approx(1 / 630)
    assert found.high > 0.05


def test_an_interval_holds_the_truth_where_most_errors_are_in_a_heavy_stratum():
    """A tenth are the judge's lies, 10 % of them wrong, and 2 % of the others. Half of 150 labels are of either."""
    rng = np.random.default_rng(4)
    weights, held = [100 / 75] * 75 + [900 / 75] * 75, []
    for _ in range(400):
        found = drawn_share(draw([*(rng.random(75) < 0.1), *(rng.random(75) < 0.02)], weights))
        held.append(found.low <= 0.028 <= found.high)
    assert np.mean(held) > 0.92


def test_replies_of_one_cluster_are_one_observation():
    once = [Drawn(float(place < 20), 1.0, place) for place in range(30)]
    assert drawn_share([row for row in once for _ in range(3)]) == pytest.approx(drawn_share(once))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from((1.0, 4.5, 20.0))), min_size=2))
def test_intervals_hold_their_value(rows):
    """Of recall, whatever the labels and weights."""
    compared = compare([row[:2] for row in rows], [row[2] for row in rows])
    recall = measure_recall(compared)
    assert (recall is None) == (not any(lie for _, lie, _ in rows))
    assert recall is None or 0 <= recall.low <= recall.value + 1e-9 <= recall.high + 2e-9 <= 1 + 2e-9


def test_the_shift_is_of_the_run_and_no_error_among_twenty_labels_does_not_show_that_there_is_none():
    even = measure_errors(compare([(1, 1)] * 10 + [(0, 0)] * 10)).shift
    assert even.value == 0
    assert even.low < 0 < even.high
    found = measure_errors(
        compare([(1, 0)] * 2 + [(1, 1)] * 8 + [(0, 1)] + [(0, 0)] * 9, [1.0] * 10 + [9.0] * 10)
    ).shift
    assert found.value == pytest.approx((2 - 9) / 100)


def test_of_several_takes_every_scenario_weighs_the_same():
    """One of ten takes is a false lie, and both of two are missed: five points up, and fifty down."""
    rows = [Compared(10, 4, 3, 3, 1.0, "a"), Compared(2, 0, 2, 0, 1.0, "b")]
    assert measure_errors(rows).shift.value == pytest.approx((0.1 - 1) / 2)
    assert measure_recall(rows).value == pytest.approx(0.3 / 1.3)
