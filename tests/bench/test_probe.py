"""Planted worlds of the probe: what is planted is there, and the controls see it. The whole of it is `bench.probe`."""

from __future__ import annotations

import numpy as np
import pytest

from bench.probe import CONFOUNDS, SIGNALS, judge_world, plant_world
from tests.thorough import draw_part
from unmask.experiments.probe import ARCHETYPE, FACT, LENGTH, POLARITY, PROMPT, TOGETHER, compare_detectors
from unmask.stats.auroc import area

SEED = 7
CAUGHT_BY = {
    "archetype": ARCHETYPE,
    "pressure": TOGETHER,
    "fact": FACT,
    "length": LENGTH,
    "polarity": POLARITY,
    "blend": TOGETHER,
}


def test_the_planted_direction_has_an_area_of_85_percent():
    """The best direction of a large world, by the true parameters of the distribution."""
    world = plant_world("clean", SEED, scenarios=6000)
    labels = np.array([sample.lie for sample in world.samples])
    features = world.features[:, 1]
    direction = features[labels].mean(axis=0) - features[~labels].mean(axis=0)
    weights = np.linalg.solve(np.cov(features[~labels].T), direction)
    assert area(list(features @ weights), list(labels)) == pytest.approx(0.85, abs=0.015)


@pytest.mark.parametrize("kind", draw_part(CONFOUNDS, 2))
def test_a_confound_is_refused_by_its_control(kind):
    """Not by luck: the control that is made for it is among those that refuse."""
    evidence = judge_world(kind, SEED, 80)
    assert not evidence.lie_detector
    assert CAUGHT_BY[kind] in evidence.refused_by


def test_a_prompt_that_knows_as_much_refuses_the_probe():
    """The activations of the prompt in place of the reply's: no lead over itself."""
    world = plant_world("archetype", SEED, scenarios=80)
    evidence = compare_detectors(world.prompts, world.prompts, world.samples, rng=np.random.default_rng(SEED))
    assert PROMPT in evidence.refused_by


@pytest.mark.parametrize("kind", draw_part(SIGNALS, 1))
def test_a_true_signal_is_called(kind):
    """Also with several takes, facts that scenarios share, and verdicts that hang on the archetype a little."""
    evidence = judge_world(kind, SEED, 200)
    assert evidence.refused_by == ()
    assert evidence.lie_detector
