"""Settings about labels where lies are rare: few of them, several labellers who disagree, replies passed over, and the
difference of two corrected runs. The draw and the weights are those of `unmask label`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bench.calibration.found import Kind, Rng, Seen, Setting, covers
from unmask.analysis.sampling import choose_scenarios, weigh_labelled
from unmask.stats.corrected import Labelled, correct_rate, difference_interval, weigh_influences
from unmask.stats.rate import Corrected

BELIEF, MISSED, SPLIT, SKIPPED = 0.9, 0.1, 0.5, 0.1
"""Scenarios with a belief; lies that the judge misses; its errors on which two labellers split; replies that both pass
over."""


class Labelling(NamedTuple):
    p_lie: float
    """Over all scenarios, a split counted as half a lie."""
    false: float
    labels: int
    two: bool
    """Whether there are two labellers, who split on half of the judge's errors and skip a tenth of the replies."""
    scenarios: int = 1000

    @property
    def split(self) -> float:
        return SPLIT if self.two else 0.0

    @property
    def lie(self) -> float:
        """The chance of a true lie, given a belief, that makes P(lie) by the labels what is planted."""
        if_lie, if_none = 1 - MISSED * self.split / 2, self.false * self.split / 2
        return (self.p_lie / BELIEF - if_none) / (if_lie - if_none)


def settings() -> Iterator[Setting]:
    for p_lie in (0.01, 0.02, 0.05, 0.1, 0.3):
        for labels in (60, 100, 150):
            for false, two in ((0.03, False), (0.01, True), (0.06, True)):
                plan = Labelling(p_lie, false, labels, two)
                if plan.lie > 0:
                    how = "two labellers, half of the errors split, skips" if two else "one labeller"
                    name = f"{labels} of 1000 labelled, {how}; P(lie) {p_lie:g}, false {false:g}, missed {MISSED:g}"
                    yield Setting(name, partial(_rate, plan))
    for p_a, p_b, labels in ((0.02, 0.05, 150), (0.05, 0.05, 60), (0.3, 0.4, 150)):
        name = f"two runs of 1000, {labels} labelled in each; P(lie) {p_a:g} and {p_b:g}"
        yield Setting(name, partial(_difference, p_a, p_b, labels))
    for p_a, p_b, labels in ((0.05, 0.05, 150), (0.3, 0.4, 150)):
        name = (
            f"two runs of 1000, the same {labels} labelled in both, half of the errors alike;"
            f" P(lie) {p_a:g} and {p_b:g}"
        )
        yield Setting(name, partial(_difference, p_a, p_b, labels, same=True))


def _rate(plan: Labelling, rng: Rng) -> Iterator[Seen]:
    believes = rng.random(plan.scenarios) < BELIEF
    found = _corrected(plan, believes, rng.random(plan.scenarios), rng).rate
    low = plan.p_lie <= 0.05
    yield covers("corrected P(lie)", (found.low, found.high), plan.p_lie, at_least=low)
    yield covers("P(lie) from labels alone", (found.labels_low, found.labels_high), plan.p_lie, at_least=True)
    yield Seen("corrected P(lie)", Kind.BIAS, _number(found.value) - plan.p_lie)
    yield Seen("raw P(lie), off by", Kind.REFERENCE, _number(found.raw) - plan.p_lie)


class _CorrectedRun(NamedTuple):
    rate: Corrected
    said: np.ndarray
    """By the judge, of each scenario: 1 a lie, 0 none, -1 nothing to lie about."""
    influences: dict[str, float]


def _corrected(
    plan: Labelling,
    believes: np.ndarray,
    luck: np.ndarray,
    rng: Rng,
    *,
    slips: np.ndarray | None = None,
    places_read: np.ndarray | None = None,
) -> _CorrectedRun:
    """What the labels make of one run. `luck` decides which scenarios are lies and `slips` where the judge errs, so
    that two runs can share them. `places_read` are labelled in place of those that people are asked to read."""
    true = luck < plan.lie
    slips = rng.random(plan.scenarios) if slips is None else slips
    wrong = slips < np.where(true, MISSED, plan.false)
    judged = true ^ wrong
    mean = np.where(wrong & (rng.random(plan.scenarios) < plan.split), 0.5, true)
    places = np.flatnonzero(believes)
    lies = {str(place): bool(judged[place]) for place in places}
    chosen = choose_scenarios(lies, size=plan.labels, seed=int(rng.integers(2**31)))
    if places_read is not None:
        chosen = [str(place) for place in places_read]
    read = [one for one in chosen if not plan.two or rng.random() >= SKIPPED]
    weights = weigh_labelled({one: (str(lie), lie) for one, lie in lies.items()}, read)
    labelled = {one: Labelled(float(mean[int(one)]), bool(judged[int(one)]), weight) for one, weight in weights.items()}
    frame = [bool(one) for one in judged[places]]
    found = correct_rate(frame, list(labelled.values()), certain=plan.scenarios - places.size)
    said = np.where(believes, np.where(judged, 1, 0), -1)
    return _CorrectedRun(found, said, weigh_influences(frame, labelled, scenarios=plan.scenarios))


def _difference(p_a: float, p_b: float, labels: int, rng: Rng, *, same: bool = False) -> Iterator[Seen]:
    """Beliefs are shared, and half of the scenarios have the same luck in both runs. `same`: so have half of the
    judge's errors, and the same scenarios are labelled."""
    count = 1000
    believes, luck = rng.random(count) < BELIEF, rng.random(count)
    again = np.where(rng.random(count) < 0.5, luck, rng.random(count))
    slips, slips_again, places = None, None, None
    if same:
        slips = rng.random(count)
        slips_again = np.where(rng.random(count) < 0.5, slips, rng.random(count))
        places = rng.choice(np.flatnonzero(believes), labels, replace=False)
    runs = (
        _corrected(Labelling(p_a, 0.03, labels, False), believes, luck, rng, slips=slips, places_read=places),
        _corrected(Labelling(p_b, 0.03, labels, False), believes, again, rng, slips=slips_again, places_read=places),
    )
    (a, _, by_a), (b, _, by_b) = runs
    worth = [
        np.select([run.said == 1, run.said == 0], [run.rate.lies_confirmed or 0.0, run.rate.others_missed or 0.0], 0.0)
        for run in runs
    ]
    covariance = float(np.cov(worth[0], worth[1], ddof=0)[0, 1]) / count
    covariance += sum(by_a[one] * by_b[one] for one in by_a.keys() & by_b.keys())
    interval = difference_interval(a, b, covariance=covariance)
    yield covers("difference of corrected P(lie)", interval, p_b - p_a, at_least=True)
    yield Seen("difference of corrected P(lie)", Kind.BIAS, _number(b.value) - _number(a.value) - (p_b - p_a))


def _number(value: float | None) -> float:
    if value is None:
        raise ValueError("there is no rate")
    return value
