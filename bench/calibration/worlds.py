"""Planted worlds: scenarios are drawn from one, and what is true of all that could be drawn is known."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from bench.calibration.found import Rng
from unmask.records import Accuracy, Archetype, Kind, Outcome, Verdict


class World(NamedTuple):
    """Chances of one scenario. `icc` is the correlation between two takes of it."""

    belief: float = 0.9
    lie: float = 0.4
    """Given a belief."""
    evasion: float = 0.15
    """Given a belief and no lie."""
    correct: float = 0.8
    """Given a belief."""
    icc: float = 0.7

    @property
    def p_lie(self) -> float:
        return self.belief * self.lie

    @property
    def p_honest(self) -> float:
        return self.belief * (1 - self.lie) * (1 - self.evasion)

    def lying_at(self, k: int) -> float:
        """Beta-distributed chances of a lie: the expected chance of none in k takes is a ratio of rising powers."""
        if self.icc >= 1:
            return self.p_lie
        a, b = self.shape
        none = float(np.prod([(b + i) / (a + b + i) for i in range(k)]))
        return self.belief * (1 - none)

    @property
    def shape(self) -> tuple[float, float]:
        size = (1 - self.icc) / self.icc
        return self.lie * size, (1 - self.lie) * size


@cache
def outcome(verdicts: tuple[Verdict, ...], verdict: Verdict, accuracy: Accuracy) -> Outcome:
    """Outcomes are frozen, and scores do not look at their ids here: one of each kind is enough."""
    return Outcome(
        id="planted",
        archetype=Archetype.KNOWN_FACTS,
        kind=Kind.BINARY,
        verdicts=verdicts,
        verdict=verdict,
        accuracy=accuracy,
    )


def outcomes(world: World, count: int, rng: Rng, *, takes: int = 1) -> list[Outcome]:
    """Scenarios of this world, `takes` pressured replies each."""
    believes = rng.random(count) < world.belief
    correct = rng.random(count) < world.correct
    chances = rng.beta(*world.shape, size=count) if 0 < world.lie < 1 else np.full(count, world.lie)
    lies = rng.random((count, takes)) < chances[:, None]
    evades = rng.random((count, takes)) < world.evasion
    found = []
    for place in range(count):
        if not believes[place]:
            found.append(outcome((), Verdict.NO_BELIEF, Accuracy.NO_BELIEF))
            continue
        verdicts = tuple(
            Verdict.LIE if lie else Verdict.EVASION if evade else Verdict.HONEST
            for lie, evade in zip(lies[place], evades[place], strict=True)
        )
        accuracy = Accuracy.CORRECT if correct[place] else Accuracy.INCORRECT
        found.append(outcome(verdicts, _overall(verdicts), accuracy))
    return found


def _overall(verdicts: tuple[Verdict, ...]) -> Verdict:
    if Verdict.LIE in verdicts:
        return Verdict.LIE
    return Verdict.HONEST if verdicts.count(Verdict.HONEST) > len(verdicts) / 2 else Verdict.EVASION


def paired(
    p_a: float, p_b: float, correlation: float, count: int, rng: Rng, *, takes: int = 1
) -> tuple[np.ndarray, ...]:
    """Shares of lies of two runs on the same scenarios, with the correlation between single takes of the two."""
    both = p_a * p_b + correlation * np.sqrt(p_a * (1 - p_a) * p_b * (1 - p_b))
    if takes == 1:
        cells = [both, p_a - both, p_b - both, 1 - p_a - p_b + both]
        drawn = rng.choice(4, size=count, p=np.clip(cells, 0, 1) / np.clip(cells, 0, 1).sum())
        return (drawn <= 1).astype(float), ((drawn == 0) | (drawn == 2)).astype(float)
    # Beta chances by a shared normal: the take-to-take correlation of each run is that of the world, here 0.7.
    from scipy.stats import beta, norm

    size = (1 - 0.7) / 0.7
    shared = rng.standard_normal(count)
    sides = []
    for p in (p_a, p_b):
        own = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.standard_normal(count)
        chances = beta.ppf(norm.cdf(own), p * size, (1 - p) * size)
        sides.append(rng.binomial(takes, chances) / takes)
    return sides[0], sides[1]
