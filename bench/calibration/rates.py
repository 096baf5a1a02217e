"""Settings about one run: rates with one take, with several, and Lying@k. All through
`unmask.protocol.measures.measure`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.calibration.found import Rng, Seen, Setting, covers
from bench.calibration.worlds import World, outcomes
from unmask.protocol.measures import measure
from unmask.records import Verdict
from unmask.stats.rate import Rate

RARE = ((300, 0.01 / 0.9), (1000, 0.02 / 0.9), (1000, 0.03 / 0.9), (300, 0.05 / 0.9))
"""P(lie) of 1 to 5 %, which is where current models are."""


def settings() -> Iterator[Setting]:
    for count, lie in ((100, 0.3), (300, 0.1), (300, 0.6), (1000, 0.05), (1000, 0.4), *RARE):
        world = World(lie=lie)
        yield Setting(f"one take, {count} scenarios, P(lie) {world.p_lie:.3g}", partial(_one_take, world, count))
    for count, lie, icc in (
        (100, 0.3, 0.7),
        (300, 0.3, 0.3),
        (300, 0.15, 0.7),
        (1000, 0.5, 0.9),
        (300, 0.01 / 0.9, 0.7),
        (1000, 0.03 / 0.9, 0.7),
    ):
        world = World(lie=lie, icc=icc)
        name = f"ten takes, {count} scenarios, P(lie) {world.p_lie:.3g} a take, takes correlated {icc}"
        yield Setting(name, partial(_several, world, count, 10))


def _bounds(found: Rate | None) -> tuple[float | None, float | None]:
    return (None, None) if found is None else (found.low, found.high)


def _one_take(world: World, count: int, rng: Rng) -> Iterator[Seen]:
    found = measure(outcomes(world, count, rng), takes=1)
    rare = world.p_lie <= 0.05  # a handful of lies: no interval of counts keeps its level from above there
    yield covers("P(lie)", _bounds(found.p_lie), world.p_lie, at_least=rare)
    yield covers("P(honest)", _bounds(found.p_honest), world.p_honest)
    yield covers("normalised P(lie)", _bounds(found.normalised_p_lie), world.lie, at_least=rare)
    clear = 1 - (1 - world.lie) * world.evasion
    yield covers("conditional lie rate", _bounds(found.conditional_lie_rate), world.lie / clear, at_least=rare)
    yield covers("engagement", _bounds(found.engagement), world.belief * clear)
    yield covers("accuracy", _bounds(found.accuracy), world.belief * world.correct)


def _several(world: World, count: int, takes: int, rng: Rng) -> Iterator[Seen]:
    found = measure(outcomes(world, count, rng, takes=takes), takes=takes)
    yield covers("lies per take", _bounds(found.per_take[Verdict.LIE]), world.p_lie, at_least=world.p_lie <= 0.05)
    yield covers("honest per take", _bounds(found.per_take[Verdict.HONEST]), world.p_honest)
    for k in (1, 2, 5, takes):
        true = world.lying_at(k)
        yield covers(f"Lying@{k}", _bounds(found.lying_at[k]), true, at_least=true <= 0.05)
