"""Settings about two readings of the same replies: how often they are called equivalent, rightly or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np

from bench.calibration.found import Kind, Rng, Seen, Setting
from bench.calibration.worlds import World
from unmask.analysis.equivalence import MARGIN, _find_gaps
from unmask.analysis.sides import ScenarioValue
from unmask.stats.equivalence import (
    EquivalenceVerdict,
    check_equivalence,
    scenarios_for_equivalence,
    shares_for_equivalence,
)
from unmask.stats.takes import Tally, chance_bounds, tally_chance

DRAWS = 10
TAKES = 5
WORLD = World()
ERRORS = 0.06
"""Share of the takes that the two read in different ways, in the settings with several takes."""


def settings() -> Iterator[Setting]:
    at = f"true shift of {100 * MARGIN:g} points"
    for count, discordant in (
        (150, 0.02),
        (236, 0.02),
        (300, 0.04),
        (1300, 0.06),
        (1500, 0.02),
        (1500, 0.2),
        (3000, 0.1),
    ):
        name = f"two readings, {count} scenarios, {100 * discordant:g} % differ, {at}"
        yield Setting(name, partial(_one_take, count, discordant, MARGIN))
    for discordant in (0.0, 0.01, 0.06, 0.15):
        count = _plan_scenarios(discordant)
        name = f"two readings, the {count} scenarios planned where {100 * discordant:g} % differ, no true shift"
        yield Setting(name, partial(_one_take, count, discordant, 0.0))
    for count, unread in ((300, 0.0), (1000, 0.0), (1000, 0.02)):
        name = f"two readings, {count} scenarios, {TAKES} takes, {100 * unread:g} % unread by one, {at}"
        yield Setting(name, partial(_several_takes, count, MARGIN, unread))
    planned = _plan_takes()
    name = f"two readings, the {planned} scenarios planned for {TAKES} takes, no true shift"
    yield Setting(name, partial(_several_takes, planned, 0.0, 0.0))


def _one_take(count: int, discordant: float, shift: float, rng: Rng) -> Iterator[Seen]:
    """Half of the runs fall by the shift, half rise. Several are drawn at a time: each is only two numbers."""
    only_a, only_b = (discordant - shift) / 2, (discordant + shift) / 2
    verdicts = []
    for number, (less, more, same) in enumerate(rng.multinomial(count, [only_a, only_b, 1 - discordant], size=DRAWS)):
        first, second = (-1.0, 1.0) if number % 2 else (1.0, -1.0)
        gaps = [first] * int(less) + [second] * int(more) + [0.0] * int(same)
        verdicts.append(check_equivalence(gaps, margin=MARGIN, yes_or_no=True).verdict)
    yield from _see(verdicts, shift)


def _several_takes(count: int, shift: float, unread: float, rng: Rng) -> Iterator[Seen]:
    first, second, believes = _draw_takes(count, shift, rng)
    missing = rng.random(second.shape) < unread
    shared = []
    for place in range(count):
        lies = [int(first[place].sum()), int((second[place] & ~missing[place]).sum())]
        unknown = [0, int(missing[place].sum())]
        tallies = [
            Tally(lies=number, unknown=hidden, belief=bool(believes[place]))
            for number, hidden in zip(lies, unknown, strict=True)
        ]
        shared.append(
            tuple(
                ScenarioValue(tally_chance(tally, n=TAKES, k=1), *chance_bounds(tally, n=TAKES, k=1), tally.belief)
                for tally in tallies
            )
        )
    gaps, yes_or_no = _find_gaps(shared, weigh=True)
    yield from _see([check_equivalence(gaps, margin=MARGIN, yes_or_no=yes_or_no).verdict], shift)


def _see(verdicts: Sequence[EquivalenceVerdict], shift: float) -> Iterator[Seen]:
    equivalent, different = (
        verdicts.count(verdict) / len(verdicts)
        for verdict in (EquivalenceVerdict.EQUIVALENT, EquivalenceVerdict.DIFFERENT)
    )
    if shift:
        yield Seen("called equivalent at the margin", Kind.FALSE_POSITIVE, equivalent)
        yield Seen("called different at the margin", Kind.FALSE_POSITIVE, different)
    else:
        yield Seen("called equivalent", Kind.PLANNED, equivalent)
        yield Seen("called different", Kind.FALSE_POSITIVE, different)


def _draw_takes(count: int, shift: float, rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lies by one reading and by another that misses some and adds some, in every other scenario twice as often."""
    believes = rng.random(count) < WORLD.belief
    chances = rng.beta(*WORLD.shape, size=count) * believes
    first = rng.random((count, TAKES)) < chances[:, None]
    often = 2 * (rng.random(count) < 0.5)[:, None]
    missed, added = (ERRORS - shift) / 2 / WORLD.p_lie, (ERRORS + shift) / 2 / (WORLD.belief - WORLD.p_lie)
    turned = rng.random(first.shape) < often * np.where(first, missed, added)
    return first, (first ^ turned) & believes[:, None], believes


@cache
def _plan_scenarios(discordant: float) -> int:
    count = scenarios_for_equivalence(discordant=discordant, margin=MARGIN)
    assert count is not None
    return count


@cache
def _plan_takes() -> int:
    first, second, _ = _draw_takes(100_000, 0.0, np.random.default_rng(0))
    gaps = second.mean(1) - first.mean(1)
    count = shares_for_equivalence(variance=float((gaps * gaps).mean()), margin=MARGIN)
    assert count is not None
    return count
