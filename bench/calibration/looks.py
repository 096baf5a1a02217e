"""Settings about looking often: a gate at one look, and a gate looked at after every scenario."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from bench.calibration.found import Kind, Rng, Seen, Setting
from bench.calibration.worlds import outcome
from unmask.analysis.gate import GateLimits, _check_rates
from unmask.protocol.score import score
from unmask.records import (
    Accuracy,
    Outcome,
    Verdict,
)
from unmask.stats.betting import Bets, _is_rich, _log_factors

LIMITS = (0.05, 0.1, 0.3)
SCENARIOS = 1000
LOOKS_AT_ONCE = 200
"""Single looks in each simulated run: each is only one number of lies."""


def settings() -> Iterator[Setting]:
    for limit in (0.02, *LIMITS, 0.5):
        for count in (100, 300, 1000):
            name = f"gate, one look at {count} scenarios, P(lie) at the limit of {limit:g}"
            yield Setting(name, partial(_look_once, limit, count))
    for limit in LIMITS:
        name = f"gate --anytime, a look after each of {SCENARIOS} scenarios, limit {limit:g}"
        yield Setting(name, partial(_look_often, limit), exact=partial(_look_exactly, limit))


def _look_once(limit: float, count: int, rng: Rng) -> Iterator[Seen]:
    passes = [_passes_once(int(lies), count, limit) for lies in rng.binomial(count, limit, size=LOOKS_AT_ONCE)]
    yield Seen("gate", Kind.ONE_LOOK, sum(passes) / len(passes))


@cache
def _passes_once(lies: int, count: int, limit: float) -> bool:
    """What `gate` decides about P(lie)."""
    rows = [_planted(lied) for lied in [True] * lies + [False] * (count - lies)]
    checks = _check_rates(score(rows, preset="paper", takes=1), None, GateLimits(max_p_lie=limit))
    return all(check.passed for check in checks)


def _planted(lied: bool) -> Outcome:
    verdict = Verdict.LIE if lied else Verdict.HONEST
    return outcome((verdict,), verdict, Accuracy.CORRECT)


def _look_often(limit: float, rng: Rng) -> Iterator[Seen]:
    yield Seen("P(lie) at the limit", Kind.HISTORIES, float(_first_pass(limit, limit, rng) is not None))
    yield Seen("P(lie) at half the limit", Kind.POWER, float(_first_pass(limit / 2, limit, rng) is not None))


def _look_exactly(limit: float) -> Iterator[Seen]:
    at_limit, below = _chances_to_pass(limit, limit), _chances_to_pass(limit / 2, limit)
    yield Seen("P(lie) at the limit, exactly", Kind.HISTORIES, float(at_limit.sum()))
    yield Seen("P(lie) at half the limit, exactly", Kind.POWER, float(below.sum()))


@cache
def _chances_to_pass(p_lie: float, limit: float) -> np.ndarray:
    """The chance that the rule is met for the first time after 1, 2, 3 … scenarios. Whether it is met depends on the
    numbers of lies and of scenarios alone, so the chances of both can be followed scenario by scenario."""
    chances, passes = np.zeros(SCENARIOS + 1), np.zeros(SCENARIOS)
    chances[0], fewest = 1.0, -1
    for place in range(SCENARIOS):
        chances = chances * (1 - p_lie) + np.concatenate([[0.0], chances[:-1]]) * p_lie
        while _is_rich([(fewest + 1) * factor for factor in _log_factors(1.0)], place + 1, limit):
            fewest += 1
        passes[place] = chances[: fewest + 1].sum()
        chances[: fewest + 1] = 0.0
    return passes


def _first_pass(p_lie: float, limit: float, rng: Rng) -> int | None:
    """After how many scenarios a gate that is looked at after each passes for the first time."""
    bets = Bets()
    for count, lied in enumerate(rng.random(SCENARIOS) < p_lie, 1):
        bets.add(bool(lied))
        if bets.shows_below(limit):
            return count
    return None
