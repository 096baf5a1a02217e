"""Planted runs: scenarios drawn from a world of which everything is known."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from bench.calibration.goals import Rng
from unmask.records import Accuracy, Archetype, Kind, Outcome, Undecided, Verdict
from unmask.scoring.measures import list_values
from unmask.stats.values import Value

VERDICTS = (Verdict.HONEST, Verdict.LIE, Verdict.EVASION, Verdict.UNJUDGED)
HONEST, LIE, EVASION, UNREAD = range(4)
Array = np.ndarray


class Plant(NamedTuple):
    """Chances of one scenario. Those of one cluster, and all their takes, share the chance of a lie."""

    scenarios: int
    p_lie: float
    """Over all scenarios: the chance given a belief is larger."""
    takes: int = 1
    icc: float = 0.0
    """Correlation of two takes, or of two scenarios of a cluster, given a belief."""
    members: int = 1
    """Scenarios in each cluster."""
    belief: float = 0.9
    evasion: float = 0.15
    """Given a belief and no lie."""
    right: float = 0.8
    """Given a belief: that it is true."""

    def __str__(self) -> str:
        parts = [f"{self.scenarios} scenarios"]
        parts += [f"clusters of {self.members}, icc {self.icc:g}"] if self.members > 1 else []
        parts += [f"{self.takes} takes, icc {self.icc:g}"] if self.takes > 1 else []
        return ", ".join([*parts, f"P(lie) {100 * self.p_lie:g} %"])

    @property
    def lie(self) -> float:
        """Given a belief."""
        return self.p_lie / self.belief

    def truth(self, measure: str) -> float:
        """Of a measure, by its name in `unmask.scoring.measures`."""
        if measure.startswith("lying_at_"):
            return self._lying_at(int(measure.removeprefix("lying_at_")))
        clear = self.lie + (1 - self.lie) * (1 - self.evasion)
        return {
            "p_lie": self.p_lie,
            "p_honest": self.belief * (clear - self.lie),
            "normalised_p_lie": self.lie,
            "conditional_lie_rate": self.lie / clear,
            "accuracy": self.belief * self.right,
        }[measure]

    def _lying_at(self, k: int) -> float:
        """The chance of no lie in k takes is a ratio of rising powers, for chances that vary like a beta variable."""
        a, b = self.shape
        return self.belief * (1 - float(np.prod([(b + i) / (a + b + i) for i in range(k)])))

    @property
    def shape(self) -> tuple[float, float]:
        size = (1 - self.icc) / self.icc
        return self.lie * size, (1 - self.lie) * size


class Drawn(NamedTuple):
    """One run of a plant."""

    believes: Array
    right: Array
    said: Array
    """By scenario and take: a place in `VERDICTS`."""
    clusters: Array | None
    open_belief: Array | None = None
    """Scenarios whose belief could not be read."""

    @property
    def lies(self) -> Array:
        return (self.said == LIE) & self.believes[:, None]

    @property
    def shares(self) -> list[float]:
        """Of lying takes, where all are read."""
        return self.lies.mean(axis=1).tolist()

    @property
    def names(self) -> list[int] | None:
        return None if self.clusters is None else self.clusters.tolist()

    @property
    def places(self) -> Array:
        """The cluster of each scenario, or its own number."""
        return np.arange(len(self.said)) if self.clusters is None else self.clusters

    @property
    def telling(self) -> int:
        """Clusters that lie, or that also do not, if these are fewer."""
        sides = (self.lies.any(axis=1), ~self.lies.all(axis=1))
        return min(np.unique(self.places[side]).size for side in sides)


def draw(plant: Plant, rng: Rng, chances: Array | None = None, believes: Array | None = None) -> Drawn:
    """A run. `chances` of a lie and `believes` replace those that the plant says, where two runs share them."""
    count = plant.scenarios
    clusters = np.repeat(np.arange(count // plant.members), plant.members)
    if chances is None:
        chances = rng.beta(*plant.shape, clusters[-1] + 1) if 0 < plant.icc < 1 else np.full(count, plant.lie)
        chances = chances[clusters]
    lies = rng.random((count, plant.takes)) < chances[:, None]
    evades = rng.random(lies.shape) < plant.evasion
    return Drawn(
        believes=rng.random(count) < plant.belief if believes is None else believes,
        right=rng.random(count) < plant.right,
        said=np.where(lies, LIE, np.where(evades, EVASION, HONEST)),
        clusters=clusters if plant.members > 1 else None,
    )


def hide(run: Drawn, of_lies: float, of_others: float, rng: Rng) -> Drawn:
    """The run with takes that could not be read."""
    lost = rng.random(run.said.shape) < np.where(run.said == LIE, of_lies, of_others)
    return run._replace(said=np.where(lost, UNREAD, run.said))


def list_outcomes(run: Drawn) -> list[Outcome]:
    """What the run looks like to everything that scores it. Scenarios are alike but for what is said of them, and takes
    have no order, so that there are few kinds."""
    count = len(run.said)
    clusters = [None] * count if run.clusters is None else [f"c{one}" for one in run.clusters.tolist()]
    unread = [False] * count if run.open_belief is None else run.open_belief.tolist()
    said = map(tuple, np.sort(run.said, axis=1).tolist())
    columns = zip(run.believes.tolist(), said, run.right.tolist(), unread, clusters, strict=True)
    return [_outcome(*row) for row in columns]


@cache
def _outcome(
    believes: bool, said: tuple[int, ...], right: bool = True, unread: bool = False, cluster: str | None = None
) -> Outcome:
    verdicts, accuracy = tuple([VERDICTS[one] for one in said]), Accuracy.CORRECT if right else Accuracy.INCORRECT
    if unread:
        verdicts, verdict, accuracy = (Verdict.UNJUDGED,) * len(said), Verdict.UNJUDGED, Accuracy.UNJUDGED
    elif not believes:
        verdicts, verdict, accuracy = (), Verdict.NO_BELIEF, Accuracy.NO_BELIEF
    else:
        verdict = next(one for one in (Verdict.LIE, Verdict.UNJUDGED, *verdicts) if one in verdicts)
    return Outcome(
        id="planted",
        archetype=Archetype.KNOWN_FACTS,
        kind=Kind.BINARY,
        belief=Undecided("planted") if unread else None,
        verdicts=verdicts,
        verdict=verdict,
        accuracy=accuracy,
        cluster=cluster,
    )


@cache
def _value_of(believes: bool, said: tuple[int, ...]) -> Value:
    return list_values([_outcome(believes, said)], "p_lie", takes=len(said))[0]


def list_lie_values(run: Drawn) -> list[Value]:
    """What `list_values` says of P(lie). Takes have no order, so that few kinds of scenarios are looked up."""
    said = np.sort(run.said, axis=1).tolist()
    return [_value_of(believes, tuple(own)) for believes, own in zip(run.believes.tolist(), said, strict=True)]


def draw_pair(a: Plant, b: Plant, alike: float, rng: Rng) -> tuple[Drawn, Drawn]:
    """Two runs of the same scenarios. Beliefs are the same, and in this share of the clusters so are the chances of a
    lie, but for a factor."""
    larger = max(a, b, key=lambda plant: plant.p_lie)
    count = a.scenarios // a.members
    first, other = rng.beta(*larger.shape, count), rng.beta(*larger.shape, count)
    second = np.where(rng.random(count) < alike, first, other)
    believes = rng.random(a.scenarios) < a.belief
    left, right = (
        draw(plant, rng, np.repeat(chances, a.members) * plant.p_lie / larger.p_lie, believes)
        for plant, chances in ((a, first), (b, second))
    )
    return left, right


def count_differing(a: Drawn, b: Drawn) -> int:
    """Clusters in which two runs of the same scenarios do not lie alike."""
    gaps = np.array(b.shares) - np.array(a.shares)
    return int((np.bincount(a.places, gaps) != 0).sum())
