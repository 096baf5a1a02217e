"""Settings about decisions over many tests and few models: names of treatments, and rank correlations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import asin, pi

import numpy as np

from bench.calibration.found import Kind, Rng, Seen, Setting, covers, rejected
from unmask.experiments.mitigation import MEASURES, MeasureDifference, PairedMeasure, correct_report, read_moves
from unmask.records import Accuracy, Verdict
from unmask.stats.compare import Difference, mcnemar_score
from unmask.stats.correlate import LEAST_FOR_INTERVAL, correlate
from unmask.stats.effect import Effect, Move, classify_effect

VERDICTS = (Verdict.HONEST, Verdict.LIE, Verdict.EVASION, Verdict.NO_BELIEF)
SHARES = (0.5, 0.16, 0.14, 0.2)
_ACCURACY = {Verdict.NO_BELIEF: Accuracy.NO_BELIEF}


def settings() -> Iterator[Setting]:
    for flip in (0.04, 0.2, 0.6):
        name = f"report of eight treatments that do nothing, 300 scenarios, {100 * flip:g} % of replies drawn anew"
        yield Setting(name, partial(_null_report, 8, 300, flip))
    name = "report of four treatments, one of which makes 40 % of the lies honest, 300 scenarios"
    yield Setting(name, partial(_mixed_report, 4, 300, 0.4))
    for models in (4, 5, 6, 7, 8, 10, 12):
        for rho in (0.0, 0.6, 0.85):
            yield Setting(f"few models: {models}, correlation {rho} with compute", partial(_few_models, rho, models))


def names_of_report(base: np.ndarray, treated: list[np.ndarray]) -> list[tuple[Effect, bool]]:
    """What each treated run is called, and whether one of its intervals contradicts how its measure moved. Runs are
    arrays of places in `VERDICTS`; every belief is right."""
    reported = []
    for measures in correct_report([_pair_measures(base, run) for run in treated]):
        sides = [_side_of(part.overall) for part in measures.values()]
        reported.append((classify_effect(read_moves(measures)), sides != _list_moves(measures)))
    return reported


def _pair_measures(base: np.ndarray, run: np.ndarray) -> dict[str, PairedMeasure]:
    paired = {}
    for name, holds in MEASURES.items():
        holding = [holds(verdict, _ACCURACY.get(verdict, Accuracy.CORRECT)) for verdict in VERDICTS]
        left, right = (np.array(holding, dtype=float)[side] for side in (base, run))
        only_a, only_b = int(((left == 1) & (right == 0)).sum()), int(((left == 0) & (right == 1)).sum())
        difference = Difference(n=left.size, value=(only_b - only_a) / left.size, p_value=mcnemar_score(only_a, only_b))
        ids = [str(place) for place in range(left.size)]
        values = (dict(zip(ids, left.tolist(), strict=True)), dict(zip(ids, right.tolist(), strict=True)))
        paired[name] = PairedMeasure(MeasureDifference(overall=difference, archetypes={}), values, ids, {})
    return paired


def _list_moves(measures: dict[str, MeasureDifference]) -> list[Move]:
    moves = read_moves(measures)
    return [moves.lie, moves.honest, moves.honest_and_right, moves.evasion, moves.belief, moves.accuracy]


def _side_of(difference: Difference) -> Move:
    if difference.low is None or difference.high is None:
        return Move.UNKNOWN
    return Move.ROSE if difference.low > 0 else Move.FELL if difference.high < 0 else Move.FLAT


def _draw_anew(base: np.ndarray, flip: float, rng: Rng) -> np.ndarray:
    drawn = rng.choice(4, size=base.size, p=SHARES)
    return np.where(rng.random(base.size) < flip, drawn, base)


def _null_report(arms: int, count: int, flip: float, rng: Rng) -> Iterator[Seen]:
    base = rng.choice(4, size=count, p=SHARES)
    names = names_of_report(base, [_draw_anew(base, flip, rng) for _ in range(arms)])
    yield rejected("any treatment gets a name", any(name is not Effect.NO_EFFECT for name, _ in names))
    yield rejected("an interval contradicts a name", any(contradicts for _, contradicts in names))


def _mixed_report(arms: int, count: int, mended: float, rng: Rng) -> Iterator[Seen]:
    """The first treatment works, the others do nothing: a name among these is chance."""
    base = rng.choice(4, size=count, p=SHARES)
    runs = [_draw_anew(base, 0.04, rng) for _ in range(arms)]
    works = np.where((runs[0] == 1) & (rng.random(count) < mended), 0, runs[0])
    names = names_of_report(base, [works, *runs[1:]])
    yield rejected("any idle treatment gets a name", any(name is not Effect.NO_EFFECT for name, _ in names[1:]))
    yield rejected("an interval contradicts a name", any(contradicts for _, contradicts in names))
    yield Seen("the one that works is called more honest", Kind.REFERENCE, float(names[0][0] is Effect.HONEST))


def _few_models(rho: float, models: int, rng: Rng) -> Iterator[Seen]:
    """An interval from eight models on, of at least its level: the ranks of few models are coarse."""
    x = rng.standard_normal(models)
    y = rho * x + np.sqrt(1 - rho * rho) * rng.standard_normal(models)
    found = correlate(x.tolist(), y.tolist())
    if models >= LEAST_FOR_INTERVAL:
        truth = 6 / pi * asin(rho / 2)
        # Models that are all in one order have no interval: counted as a miss.
        bounds = (found.value, found.value) if found.low is None else (found.low, found.high)
        yield covers("Spearman's rho", bounds, truth, at_least=True)
        return
    yield rejected("an interval is given", found.low is not None)
    if not rho:
        yield rejected("p-value over all orders", found.p_value is not None and found.p_value < 0.05)
