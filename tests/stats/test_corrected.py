"""The corrected rate, against ppi-python (its answers are kept: see make_ppi.py) and against the published formula."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden_files import FOLDER
from unmask.stats.corrected import LEAST, Labelled, correct_rate, covary, difference_interval
from unmask.stats.rate import Corrected, wilson_interval

PPI = json.loads((FOLDER / "ppi.json").read_text(encoding="utf-8"))


def read(labelled, unlabelled=(), *, certain=0):
    """A run of one take: pairs of label and judge, what only the judge has read, and what no label could change."""
    rows = [Labelled(float(judged), float(lie), bool(judged)) for lie, judged in labelled]
    return rows + [Labelled(float(judged), None, bool(judged)) for judged in unlabelled] + [Labelled(0.0)] * certain


def ours(case):
    lies, judged, rest = ([word == "1" for word in case[name]] for name in ("labels", "judged", "unlabelled"))
    return correct_rate(read(zip(lies, judged, strict=True), rest))


@pytest.mark.parametrize("case", PPI["cases"])
def test_the_estimate_is_that_of_ppi_python(case):
    """The same value for the power that the labelled give."""
    assert ours(case).value == pytest.approx(case["value"], abs=1e-9)


def test_the_interval_is_about_as_wide_as_that_of_ppi_python():
    """Theirs is normal. Where it stays between 0 and 1, ours is as wide on the middle, and wider by up to a third where
    the labels show no error on one side: theirs takes that for knowing that there is none."""
    inside = [case for case in PPI["cases"] if 0 < case["low"] < case["high"] < 1]
    ratios = [(ours(case).high - ours(case).low) / (case["high"] - case["low"]) for case in inside]
    assert len(ratios) > 15
    assert 0.9 < min(ratios) <= max(ratios) < 1.35
    assert 0.97 < np.median(ratios) < 1.05


def test_a_judge_that_calls_everything_a_lie_is_ignored():
    """It says nothing about the labels, so these decide alone: ten of forty, with their own interval."""
    found = correct_rate(read([(place % 4 == 0, True) for place in range(40)], [True] * 3960))
    assert (found.raw, found.value) == (1.0, pytest.approx(0.25))
    assert (found.low, found.high) == pytest.approx(wilson_interval(10, 40), abs=0.01)


def test_labels_stand_for_their_own_stratum():
    """Of two strata with the judge's lies one has all its labels wrong: 100 lies of 300, not the 150 that all the
    labels of its lies together would give."""
    rows = [Labelled(1.0, 1.0 if place < 10 else None, "seen by both") for place in range(100)]
    rows += [Labelled(1.0, 0.0 if place < 10 else None, "seen by one") for place in range(100)]
    rows += [Labelled(0.0, 0.0 if place < 10 else None, "none") for place in range(100)]
    found = correct_rate(rows)
    assert (found.raw, found.value) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


def test_with_several_takes_the_mean_of_label_less_judge_is_added():
    """The judge sees a lie in 3 of 10 takes of each, and labels in one take less of half of those labelled."""
    rows = [Labelled(0.3, None, True)] * 60 + [Labelled(0.3, 0.2, True)] * 10 + [Labelled(0.3, 0.3, True)] * 10
    found = correct_rate(rows + [Labelled(0.0, 0.0, False)] * 20)
    assert found.raw == pytest.approx(0.24)
    assert found.value == pytest.approx(0.24 - 0.8 * 0.05)


def test_a_scenario_weighs_as_much_as_it_represents():
    """Those with a belief represent those that could not be judged: the 100 of weight 2 are two thirds of all."""
    rows = [Labelled(1.0, 1.0 if place < 20 else None, True, 2.0) for place in range(50)]
    rows += [Labelled(0.0, 0.0 if place < 20 else None, False, 2.0) for place in range(50)]
    found = correct_rate(rows + [Labelled(0.0)] * 100)
    assert (found.raw, found.value) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "has read no reply"),
        (read([], certain=3), "has read no reply"),
        (read([], [True, False]), "no scenario of this run is labelled"),
        (read([(True, True)], [True, False]), "only 1 scenario is labelled"),
    ],
)
def test_too_little_gives_no_number_but_the_reason(rows, reason):
    """Never a number that stands for not knowing."""
    found = correct_rate(rows)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert reason in found.why


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=LEAST, max_size=40),
    st.lists(st.integers(0, 5), max_size=60),
    st.integers(0, 200),
)
def test_the_interval_holds_its_value_and_stays_inside(labelled, rest, certain):
    """0 ≤ low ≤ value ≤ high ≤ 1, for any lies among five takes."""
    rows = [Labelled(judged / 5, lie / 5, judged > 0) for lie, judged in labelled]
    rows += [Labelled(judged / 5, None, judged > 0) for judged in rest]
    found = correct_rate(rows + [Labelled(0.0)] * certain)
    assert 0 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1
    assert found.high - found.low > 0


@pytest.mark.parametrize(("errors", "few"), [((10, 10), False), ((9, 10), True), ((10, 9), True), ((0, 0), True)])
def test_few_corrections_on_either_side_are_marked(errors, few):
    """What fewer than ten errors of a kind say about the judge is rough."""
    false, missed = errors
    pairs = [(False, True)] * false + [(True, True)] * 20 + [(True, False)] * missed + [(False, False)] * 20
    assert correct_rate(read(pairs, [True, False] * 100)).few is few


def test_where_no_lie_of_the_judge_is_labelled_its_word_counts_and_anything_is_possible():
    """Twenty of two hundred are lies by the judge, and none of the forty labels is of these."""
    found = correct_rate(read([(False, False)] * 40, [True] * 20 + [False] * 140))
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.0, abs=0.01)
    assert found.high > 0.1


def test_the_covariance_of_a_rate_with_itself_is_its_variance():
    """Two runs with the same labels of the same scenarios: what the labels leave to chance, stratum by stratum, and
    what the scenarios do."""
    rows = read([(n < 180, True) for n in range(200)] + [(n < 30, False) for n in range(300)])
    rows += read([], [True] * 2800 + [False] * 5700, certain=1000)
    rows = [row._replace(cluster=place) for place, row in enumerate(rows)]
    rate = 0.3 * 0.9 + 0.6 * 0.1
    labels_only = 0.3**2 * 0.9 * 0.1 / 200 + 0.6**2 * 0.1 * 0.9 / 300
    scenarios = (0.3 * 0.9**2 + 0.6 * 0.1**2 - rate**2) / 10_000
    assert covary(rows, rows) == pytest.approx(labels_only + scenarios, rel=0.01)
    assert covary(rows, [row._replace(cluster=-place) for place, row in enumerate(rows, 1)]) == 0


def test_the_interval_of_a_difference_is_narrower_for_runs_that_vary_together():
    """And for none it is that of independent rates."""
    a = Corrected(value=0.1, low=0.08, high=0.13)
    b = Corrected(value=0.2, low=0.17, high=0.24)
    low, high = difference_interval(a, b, covariance=0.0)
    assert (low, high) == pytest.approx((0.1 - np.hypot(0.03, 0.03), 0.1 + np.hypot(0.04, 0.02)))
    close = difference_interval(a, b, covariance=0.00005)
    assert low < close[0] < 0.1 < close[1] < high


def test_a_perfect_judge_and_perfect_labels_are_right_whatever_takes_are_unread():
    """V2: ten takes, 2 % of them unread at random, 150 labels. Where a lie next to an unread take counted and an honest
    take next to one did not, the rate was 4.4 points too high and its interval held the truth in 23 %."""
    rng = np.random.default_rng(4)
    off, held = [], []
    for _ in range(200):
        lies = rng.random((1000, 10)) < rng.beta(0.2 * 3 / 7, 0.8 * 3 / 7, 1000)[:, None]
        unread = rng.random((1000, 10)) < 0.02
        seen, said = (lies & ~unread).sum(1) / (~unread).sum(1), lies.mean(1)
        read_by_people = {
            *rng.choice(np.flatnonzero(seen > 0), 75, replace=False),
            *rng.choice(np.flatnonzero(seen == 0), 75, replace=False),
        }
        found = correct_rate(
            [
                Labelled(float(seen[place]), float(said[place]) if place in read_by_people else None, seen[place] > 0)
                for place in range(1000)
            ]
        )
        off.append(found.value - 0.2)
        held.append(found.low <= 0.2 <= found.high)
    assert abs(np.mean(off)) < 0.003
    assert np.mean(held) > 0.91
