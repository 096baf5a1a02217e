"""The linear probe: against scikit-learn, and on labels that mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.thorough import THOROUGH
from unmask.stats.auroc import auroc
from unmask.stats.probe import assign_folds, cross_validate, estimate_excess_scatter, fit_probe


@pytest.mark.parametrize("strength", [0.001, 0.1, 1.0, 100.0])
@pytest.mark.parametrize(("samples", "size"), [(40, 5), (30, 200), (25, 25)])
def test_a_fit_is_that_of_scikit_learn(samples, size, strength):
    """Fewer features than samples, and more."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(samples)
    features = rng.normal(size=(samples, size))
    labels = features[:, 0] + rng.normal(size=samples) > 0.3
    line = fit_probe(features, labels, strength=strength)
    oracle = LogisticRegression(C=strength, tol=1e-10, max_iter=20_000).fit(features, labels)
    assert line.weights == pytest.approx(oracle.coef_[0], abs=2e-4)
    assert line.offset == pytest.approx(oracle.intercept_[0], abs=2e-4)
    assert line(features) == pytest.approx(oracle.decision_function(features), abs=2e-3)


def test_classes_that_a_line_parts_have_a_finite_fit():
    """The penalty holds the weights."""
    features = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    line = fit_probe(features, np.array([False, False, True, True]), strength=1.0)
    assert np.isfinite(line.weights).all()
    assert (line(features) > 0).tolist() == [False, False, True, True]


def test_equal_features_say_nothing():
    """No direction, no error."""
    line = fit_probe(np.ones((6, 3)), np.array([True, False] * 3), strength=1.0)
    assert np.allclose(line(np.ones((1, 3))), 0, atol=1e-6)


def test_folds_keep_groups_whole_and_classes_spread():
    """No scenario in two folds, and each fold with its share of lies."""
    rng = np.random.default_rng(0)
    groups = [f"s{number // 3}" for number in range(90)]
    labels = np.array([number // 3 % 3 == 0 for number in range(90)])
    found = assign_folds(labels, groups, count=5, rng=rng)
    for name in set(groups):
        assert len({fold for fold, group in zip(found, groups, strict=True) if group == name}) == 1
    assert [int(labels[found == fold].sum()) for fold in range(5)] == [6] * 5


def planted(seed, *, signal, samples=80, size=60, layers=3, speaks=1):
    """Random activations in which one layer carries the label."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(samples) < samples // 2)
    features = rng.normal(size=(samples, layers, size))
    features[:, speaks, 0] += signal * np.where(labels, 1, -1)
    return features, list(labels), [str(number) for number in range(samples)]


def test_a_planted_direction_is_found_in_its_layer():
    """All outer folds choose the layer that speaks."""
    features, labels, groups = planted(0, signal=3.0)
    found = cross_validate(features, labels, groups, rng=np.random.default_rng(1))
    assert set(found.layers) == {1}
    assert auroc(list(found.scores), labels, groups=groups, rng=np.random.default_rng(2)).low > 0.8


def test_labels_that_mean_nothing_are_told_apart_by_nobody():
    """On permuted labels at least 17 of 20 intervals hold a half (9 of 10 where fewer are drawn), and the mean is near
    it."""
    values, held = [], 0
    for seed in range(count := 20 if THOROUGH else 10):
        features, labels, groups = planted(seed, signal=0.0, samples=50, size=30, layers=2)
        rng = np.random.default_rng(seed)
        found = cross_validate(features, labels, groups, rng=rng)
        widen = estimate_excess_scatter(features, found, labels, groups, rng=rng, times=25)
        area = auroc(list(found.scores), labels, groups=groups, rng=rng, widen=widen)
        values.append(area.value)
        held += area.low <= 0.5 <= area.high
    assert held >= 0.85 * count
    assert abs(np.mean(values) - 0.5) < 0.06


def test_a_scenario_seen_in_another_take_is_no_help():
    """Takes that are copies of each other, with labels that mean nothing: a fold by take would look perfect."""
    areas = []
    for seed in range(3):
        features, labels, groups = planted(seed, signal=0.0, samples=40)
        found = cross_validate(
            np.repeat(features, 4, axis=0),
            list(np.repeat(labels, 4)),
            list(np.repeat(groups, 4)),
            rng=np.random.default_rng(seed),
        )
        areas.append(
            auroc(
                list(found.scores),
                list(np.repeat(labels, 4)),
                groups=list(np.repeat(groups, 4)),
                rng=np.random.default_rng(0),
            ).value
        )
    assert np.mean(areas) < 0.65
