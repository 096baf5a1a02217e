"""The area under the ROC curve: against scikit-learn, and by groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.thorough import THOROUGH
from unmask.stats.auroc import area, auroc, auroc_gap

SCORES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40)


@given(SCORES)
def test_the_area_is_that_of_scikit_learn(pairs):
    """Ties count half."""
    from sklearn.metrics import roc_auc_score

    scores, labels = zip(*pairs, strict=True)
    assume(len(set(labels)) == 2)
    assert area(scores, labels) == pytest.approx(roc_auc_score(labels, scores))


@given(SCORES)
def test_turning_the_score_round_turns_the_area_round(pairs):
    """1 minus it."""
    scores, labels = zip(*pairs, strict=True)
    assume(len(set(labels)) == 2)
    assert area([-score for score in scores], labels) == pytest.approx(1 - area(scores, labels))


def test_an_empty_class_has_no_area():
    """Null and the reason."""
    found = auroc([1.0, 2.0], [True, True], groups=["a", "b"], rng=np.random.default_rng(0))
    assert (found.value, found.positives, found.negatives) == (None, 2, 0)
    assert found.why


def test_takes_of_one_scenario_count_as_one():
    """Each sample five times over leaves the interval as wide; as five samples it would be narrower."""
    rng = np.random.default_rng(1)
    labels = list(rng.random(60) < 0.5)
    scores = list(rng.normal(size=60) + np.array(labels))
    names = [f"s{number}" for number in range(60)]
    once = auroc(scores, labels, groups=names, rng=np.random.default_rng(2))
    five = auroc(scores * 5, labels * 5, groups=names * 5, rng=np.random.default_rng(2))
    apart = auroc(scores * 5, labels * 5, groups=[str(n) for n in range(300)], rng=np.random.default_rng(2))
    assert five.value == pytest.approx(once.value)
    assert five.high - five.low == pytest.approx(once.high - once.low)
    assert apart.high - apart.low < 0.7 * (once.high - once.low)


def test_the_interval_holds_the_true_area_most_of_the_time():
    """A score one standard deviation apart has an area of 0.760; at least 9 of 10 intervals hold it."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(count := 200 if THOROUGH else 60):
        labels = np.arange(120) < 60
        scores = rng.normal(size=120) + labels
        found = auroc(list(scores), list(labels), groups=[str(n) for n in range(120)], rng=rng)
        held += found.low <= 0.7602 <= found.high
    assert held >= 0.9 * count


def test_the_gap_of_a_score_to_itself_is_nothing():
    """With an interval of no width."""
    rng = np.random.default_rng(0)
    labels = list(rng.random(50) < 0.5)
    scores = list(rng.normal(size=50))
    names = [str(number) for number in range(50)]
    assert auroc_gap((scores, scores), labels, groups=names, rng=rng) == (0, 0, 0)


def test_within_strata_only_pairs_of_one_stratum_count():
    """A score that knows the stratum and nothing else is worth a half; every pair of one stratum counts once."""
    strata = ["a"] * 4 + ["b"] * 4
    labels = [True, True, True, False, True, False, False, False]
    knows_stratum = [1.0] * 4 + [0.0] * 4
    assert area(knows_stratum, labels) == 0.75
    assert area(knows_stratum, labels, strata=strata) == 0.5
    mixed = [0.9, 0.8, 0.1, 0.5, 0.3, 0.4, 0.2, 0.1]
    assert area(mixed, labels, strata=strata) == pytest.approx((2 + 2) / 6)
