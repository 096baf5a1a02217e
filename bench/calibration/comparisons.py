"""Settings about two and many runs: differences, tests, gates, ranks, rank correlation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import asin, pi

import numpy as np

from bench.calibration.found import Rng, Seen, Setting, covers, rejected
from bench.calibration.worlds import World, outcomes, paired
from unmask.analysis.gate import DecidingBound, GateLimits, _check_rates
from unmask.protocol.score import score
from unmask.stats.compare import holm, mcnemar_score, paired_difference
from unmask.stats.correlate import correlate
from unmask.stats.rank import rank_runs

RESAMPLES = 1000
CORRELATION = 0.5
"""Of single takes of two runs on one scenario."""


def settings() -> Iterator[Setting]:
    for count, a, b, takes in ((100, 0.3, 0.3, 1), (300, 0.3, 0.36, 1), (1000, 0.1, 0.1, 1), (300, 0.3, 0.3, 5)):
        name = f"two runs, {count} scenarios, P(lie) {a} and {b}, {takes} take{'s' if takes > 1 else ''}"
        exact = partial(_mcnemar_level, a, count) if a == b and takes == 1 else None
        yield Setting(name, partial(_pair, a, b, count, takes), exact=exact)
    yield Setting("two equal runs, six archetypes of 50, Holm's correction", partial(_family, 6, 50))
    for count in (100, 300, 1000):
        yield Setting(f"gate at the true P(lie), {count} scenarios", partial(_gate, count))
    yield Setting("eight equal runs, 300 scenarios", partial(_ranks, (0.3,) * 8, 300))
    spread = (0.1, 0.15, 0.15, 0.25, 0.3, 0.3, 0.45, 0.6)
    yield Setting("eight runs from 0.1 to 0.6, 300 scenarios", partial(_ranks, spread, 300))
    for rho, models in ((0.0, 27), (-0.6, 27), (0.85, 27), (0.95, 27), (-0.6, 12), (0.85, 50)):
        yield Setting(f"{models} models, correlation {rho} with compute", partial(_scaling, rho, models))


def _pair(p_a: float, p_b: float, count: int, takes: int, rng: Rng) -> Iterator[Seen]:
    a, b = paired(p_a, p_b, CORRELATION, count, rng, takes=takes)
    found = paired_difference(list(a), list(b), rng=rng, resamples=RESAMPLES)
    yield covers(f"difference ({found.method})", (found.low, found.high), p_b - p_a)
    yield covers("difference (bootstrap)", (found.bootstrap_low, found.bootstrap_high), p_b - p_a)
    if found.high is not None:
        yield rejected("gate on the rise passes by luck", found.high < p_b - p_a)
    if p_a == p_b:
        yield rejected(f"compare ({found.test})", found.p_value is not None and found.p_value < 0.05)


def _mcnemar_level(p_lie: float, count: int) -> Iterator[Seen]:
    """How often the test rejects, over every number of scenarios that differ and every way they split."""
    from scipy.stats import binom

    differ = 2 * p_lie * (1 - p_lie) * (1 - CORRELATION)
    level = 0.0
    for pairs in range(count + 1):
        only_a = np.arange(pairs + 1)
        wrong = [mcnemar_score(int(one), pairs - int(one)) < 0.05 for one in only_a]
        level += float(binom.pmf(pairs, count, differ) * binom.pmf(only_a, pairs, 0.5) @ np.array(wrong, dtype=float))
    yield rejected("compare (mcnemar_score), exactly", level)


def _family(parts: int, count: int, rng: Rng) -> Iterator[Seen]:
    sides = [paired(0.3, 0.3, 0.5, count, rng) for _ in range(parts)]
    tests = [paired_difference(list(a), list(b), rng=rng, resamples=50).p_value for a, b in sides]
    adjusted = holm(tests)
    yield rejected("compare, any archetype after Holm", any(p is not None and p < 0.05 for p in adjusted))


def _gate(count: int, rng: Rng) -> Iterator[Seen]:
    """The worst case: P(lie) is exactly at the limit, so passing on the upper bound would be by luck, as failing on
    the lower one would be."""
    world = World(lie=0.4)
    found = score(outcomes(world, count, rng), preset="paper", takes=1)
    for on in (DecidingBound.UPPER, DecidingBound.LOWER):
        passed = all(check.passed for check in _check_rates(found, None, GateLimits(max_p_lie=world.p_lie, on=on)))
        wrong = passed if on is DecidingBound.UPPER else not passed
        yield rejected(
            f"gate on the {on.value} bound {'passes' if on is DecidingBound.UPPER else 'fails'} by luck", wrong
        )


def _ranks(rates: tuple[float, ...], count: int, rng: Rng) -> Iterator[Seen]:
    """Scenarios differ in difficulty, the same for all runs. A run's true ranks are all those its equals share."""
    ease = rng.random((count, 1))
    shifted = (ease + rng.random((count, len(rates)))) % 1.0  # uniform, and correlated through the shared part
    mixed = np.where(rng.random((count, 1)) < 0.5, ease, shifted)
    values = (mixed < np.array(rates)).astype(float)
    found = rank_runs(values, rng=rng, resamples=RESAMPLES)
    held = []
    for rate, place in zip(rates, found, strict=True):
        best = 1 + sum(other < rate for other in rates)
        worst = len(rates) - sum(other > rate for other in rates)
        held.append(place.best <= best and place.worst >= worst)
    yield covers("rank intervals, all at once", (0.0, 1.0) if all(held) else (2.0, 3.0), 0.5, at_least=True)
    yield rejected("board tells equal runs apart", not all(held))


def _scaling(rho: float, models: int, rng: Rng) -> Iterator[Seen]:
    x = rng.standard_normal(models)
    y = rho * x + np.sqrt(1 - rho * rho) * rng.standard_normal(models)
    found = correlate(x.tolist(), y.tolist())
    yield covers("Spearman's rho", (found.low, found.high), 6 / pi * asin(rho / 2))
