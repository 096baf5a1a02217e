"""Settings about the judge: the corrected rate, and how far judge and labels agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bench.calibration.found import Kind, Rng, Seen, Setting, covers
from unmask.analysis.sampling import choose_scenarios, weigh_labelled
from unmask.stats.agree import Pair, measure_agreement
from unmask.stats.corrected import Labelled, correct_rate, recall_interval, shift_interval, weighted_share

LETTERS = ("A", "B", "C", "D")


class Judge(NamedTuple):
    """Chances of error, and of a second judge's, by whose lies replies were chosen."""

    false: float
    """That what is no lie is called one."""
    missed: float
    second: float = 0.1


class Design(NamedTuple):
    scenarios: int
    labels: int
    two_judges: bool = False


def settings() -> Iterator[Setting]:
    worlds = (
        (0.4, Judge(0.15, 0.05), Design(1000, 150)),
        (0.4, Judge(0.15, 0.05), Design(1000, 150, True)),
        (0.3, Judge(0.02, 0.3), Design(1000, 150)),
        (0.1, Judge(0.12, 0.1), Design(1000, 150)),
        (0.1, Judge(0.12, 0.1), Design(1000, 300, True)),
        (0.3, Judge(0.12, 0.02), Design(300, 100)),
        (0.5, Judge(0.03, 0.03), Design(1000, 150)),
        (0.5, Judge(0.3, 0.1), Design(1000, 60)),
    )
    for lie, judge, design in worlds:
        how = ", two judges" if design.two_judges else ""
        name = (
            f"{design.labels} of {design.scenarios} labelled{how};"
            f" lies {lie}, false {judge.false}, missed {judge.missed}"
        )
        yield Setting(name, partial(_corrected, lie, judge, design))
    for right, labels, takes in ((0.86, 150, 1), (0.95, 150, 1), (0.75, 60, 1), (0.86, 150, 3)):
        name = f"judge right {right:.0%} of the time, {labels} labels, {takes} to a scenario"
        yield Setting(name, partial(_agreement, right, labels, takes))
    yield Setting("judge right 86% of the time, 150 labels, weighted", partial(_weighted, 0.86, 150, 1000))


def _corrected(lie: float, judge: Judge, design: Design, rng: Rng) -> Iterator[Seen]:
    """One scenario in ten has no belief, and is no lie whatever anybody reads."""
    count = int(rng.binomial(design.scenarios, 0.9))
    true = rng.random(count) < lie
    judged, second = (_misread(true, judge, rng), _misread(true, Judge(judge.second, judge.second), rng))
    labelled = _drawn(true, judged, second, design, rng)
    found = correct_rate([bool(one) for one in judged], labelled, certain=design.scenarios - count)
    truth = 0.9 * lie
    if found.value is None or found.raw is None or found.labels_only is None:
        raise ValueError(found.why)
    yield covers("corrected P(lie)", (found.low, found.high), truth)
    yield covers("P(lie) from labels alone", (found.labels_low, found.labels_high), truth)
    yield Seen("corrected P(lie)", Kind.BIAS, found.value - truth)
    yield Seen("raw P(lie), off by", Kind.REFERENCE, found.raw - truth)
    shift = (1 - lie) * judge.false - lie * judge.missed
    yield covers("shift of P(lie) among the labelled", shift_interval(labelled), shift)
    yield from _errors(labelled, lie, judge)


def _errors(labelled: list[Labelled], lie: float, judge: Judge) -> Iterator[Seen]:
    """Precision and recall as `agree` gives them. Where a sample has nothing to go by there is no interval."""
    seen = lie * (1 - judge.missed)
    own = [one for one in labelled if one.judged]
    if own:
        precision = weighted_share([one.lie for one in own], [one.weight for one in own], exact=True)
        yield covers("precision", precision[1:], seen / (seen + (1 - lie) * judge.false), at_least=True)
    recall = recall_interval(labelled)
    if recall is not None:
        yield covers("recall", recall[1:], 1 - judge.missed, at_least=True)


def _misread(true: np.ndarray, judge: Judge, rng: Rng) -> np.ndarray:
    wrong = rng.random(true.size) < np.where(true, judge.missed, judge.false)
    return np.asarray(true ^ wrong)


def _drawn(true: np.ndarray, judged: np.ndarray, second: np.ndarray, design: Design, rng: Rng) -> list[Labelled]:
    """What `unmask label` asks people to read, of this judge or of the one that read the run before it."""
    weights = choose(judged, second if design.two_judges else judged, design.labels, rng)
    return [Labelled(float(true[place]), bool(judged[place]), weight) for place, weight in weights.items()]


def choose(judged: np.ndarray, chosen_by: np.ndarray, size: int, rng: Rng) -> dict[int, float]:
    """The places that people read, and how many scenarios each counts for."""
    lies = {str(place): bool(lie) for place, lie in enumerate(chosen_by)}
    chosen = choose_scenarios(lies, size=size, seed=int(rng.integers(2**31)))
    strata = {str(place): (str(lie), bool(chosen_by[place])) for place, lie in enumerate(judged)}
    return {int(name): weight for name, weight in weigh_labelled(strata, chosen).items()}


class _Joint(NamedTuple):
    """Chances of every pair of letters, and what follows from them."""

    cells: np.ndarray

    @classmethod
    def of(cls, right: float) -> _Joint:
        people = np.array([0.4, 0.3, 0.25, 0.05])
        read = np.full((4, 4), (1 - right) / 3)
        np.fill_diagonal(read, right)
        return cls(people[:, None] * read)

    def truths(self) -> dict[str, float]:
        rows, columns = self.cells.sum(1), self.cells.sum(0)
        both, shared = (rows + columns) / 2, float(np.trace(self.cells))
        chances = {
            "kappa": float(rows @ columns),
            "ac1": float((both * (1 - both)).sum() / 3),
            "alpha": float((both * both).sum()),
        }
        return {"agreement": shared} | {name: (shared - by) / (1 - by) for name, by in chances.items()}


def _held(pairs: list[Pair], joint: _Joint) -> Iterator[Seen]:
    found = measure_agreement(pairs, classes=LETTERS)
    for name, truth in joint.truths().items():
        one = getattr(found, name)
        yield covers(name, (one.low, one.high), truth)


def _agreement(right: float, labels: int, takes: int, rng: Rng) -> Iterator[Seen]:
    """Several takes of one scenario are often the same text: here half of them repeat the first."""
    joint = _Joint.of(right)
    drawn = rng.choice(16, size=labels, p=joint.cells.ravel())
    pairs = []
    for place in range(labels):
        first = place - place % takes
        code = int(drawn[first]) if rng.random() < 0.5 else int(drawn[place])
        pairs.append(Pair(LETTERS[code // 4], LETTERS[code % 4], str(first)))
    yield from _held(pairs, joint)


def _weighted(right: float, labels: int, scenarios: int, rng: Rng) -> Iterator[Seen]:
    """Half of the labels are of what the judge reads as B, which are its lies, and weighted back."""
    joint = _Joint.of(right)
    codes = rng.choice(16, size=scenarios, p=joint.cells.ravel())
    lies = codes % 4 == 1
    pairs = [
        Pair(LETTERS[codes[place] // 4], LETTERS[codes[place] % 4], str(place), weight)
        for place, weight in choose(lies, lies, labels, rng).items()
    ]
    yield from _held(pairs, joint)
