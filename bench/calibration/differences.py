"""Worlds of two and more runs: differences, boards, margins; and of scenarios in clusters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import asin, pi

import numpy as np

from bench.calibration.gates import passes
from bench.calibration.goals import Kind, Rng, Seen, World, holds
from bench.calibration.planted import (
    HONEST,
    LIE,
    Drawn,
    Plant,
    count_differing,
    draw,
    draw_pair,
    hide,
    list_lie_values,
    list_outcomes,
)
from unmask.scoring.measures import list_values, measure_rate
from unmask.stats.correlate import correlate
from unmask.stats.estimate import Difference, difference
from unmask.stats.family import adjust_family, depends_on_unjudged, is_significant
from unmask.stats.margin import MarginVerdict, check_margin
from unmask.stats.power import power
from unmask.stats.values import compare_values

MARGIN = 0.02


def list_worlds() -> Iterator[World]:
    for count, members, icc in ((300, 5, 0.1), (300, 5, 0.3), (300, 10, 0.3), (1000, 20, 0.2)):
        plant = Plant(count, 0.2, members=members, icc=icc)
        yield World("clusters", f"{plant} (V8)", partial(_see_clusters, plant))
    for plant, p_b, alike in (
        (Plant(300, 0.3, icc=0.5), 0.3, 1.0),
        (Plant(1000, 0.05, icc=0.5), 0.05, 1.0),
        (Plant(300, 0.02, icc=0.5), 0.02, 1.0),
        (Plant(300, 0.3, icc=0.5), 0.36, 1.0),
        (Plant(100, 0.1, takes=10, icc=0.6), 0.1, 0.7),
        (Plant(300, 0.05, takes=10, icc=0.6), 0.05, 0.7),
        (Plant(60, 0.05, takes=10, icc=0.6), 0.15, 0.7),
    ):
        name = f"{plant} and {100 * p_b:g} %"
        yield World("two runs", name, partial(_see_pair, plant, plant._replace(p_lie=p_b), alike))
    plant = Plant(1000, 0.1, icc=0.5)
    yield World("two runs", f"{plant} in both; 30 % of the second's lies unjudged (V10)", partial(_lose_lies, plant))
    plants = Plant(300, 0.1, belief=0.5), Plant(300, 0.15, belief=0.5)
    yield World(
        "two runs", "300 scenarios, belief 50 %, normalised P(lie) 20 % and 30 %", partial(_see_ratios, *plants)
    )
    for runs, plant in (
        (10, Plant(300, 0.3, icc=0.5)),
        (30, Plant(300, 0.3, icc=0.5)),
        (10, Plant(300, 0.3, members=10, icc=0.3)),
    ):
        yield World("board", f"{runs} equal runs, {plant}", partial(_see_board, runs, plant))
    for count, differ in ((300, 0.04), (600, 0.06)):
        name = f"{count} scenarios, {100 * differ:g} % read in two ways, 2 points more in one"
        yield World("margin of 2 points", name, partial(_see_readings, Plant(count, 0.3), differ, MARGIN))
    name = "300 scenarios, 5 takes, 2 % all lies in one reading, 2 % with one take more or less (V14)"
    yield World("margin of 2 points", name, _see_whole_scenarios)
    count = power(margin=MARGIN, p=0.3, correlation=1 - 0.04 / 0.42, take_correlation=1.0).rows[0].needed
    name = f"the {count} scenarios planned where 4 % are read in two ways"
    yield World("margin of 2 points", name, partial(_see_readings, Plant(count, 0.3), 0.04, 0.0))
    for rho, models in ((-0.6, 27), (0.85, 12)):
        yield World("board --compute", f"{models} models, correlation {rho:g}", partial(_see_ranks, rho, models))


def _see_clusters(plant: Plant, rng: Rng) -> Iterator[Seen]:
    """Two equal runs, each with clusters that lie of its own."""
    a, b = draw(plant, rng), draw(plant, rng)
    rows, telling = list_outcomes(a), a.telling
    yield holds("P(lie)", measure_rate(rows, "p_lie", takes=1), plant.p_lie, telling)
    yield Seen("gate, P(lie) the limit", Kind.LIMIT, float(passes(rows, plant.p_lie)), telling)
    yield _call(a, b, difference(a.shares, b.shares, a.names))


def _see_pair(first: Plant, second: Plant, alike: float, rng: Rng) -> Iterator[Seen]:
    a, b = draw_pair(first, second, alike, rng)
    found = difference(a.shares, b.shares, a.names, first.takes)
    if first.p_lie == second.p_lie:
        yield _call(a, b, found)
    else:
        yield holds("difference", found, second.p_lie - first.p_lie, count_differing(a, b))
        yield Seen("called different", Kind.ALONE, float(is_significant(found)))


def _call(a: Drawn, b: Drawn, found: Difference) -> Seen:
    """Whether two equal runs are called different."""
    width = (found.high or 0.0) - (found.low or 0.0)
    return Seen("called different", Kind.WRONG, float(is_significant(found)), count_differing(a, b), found.few, width)


def _lose_lies(plant: Plant, rng: Rng) -> Iterator[Seen]:
    a, b = draw_pair(plant, plant, 1.0, rng)
    found = compare_values(list_lie_values(a), list_lie_values(hide(b, 0.3, 0.005, rng)))
    yield Seen("called different", Kind.WRONG, float(is_significant(found)))
    yield Seen("depends on the unjudged", Kind.ALONE, float(depends_on_unjudged(found)))


def _see_ratios(first: Plant, second: Plant, rng: Rng) -> Iterator[Seen]:
    """Which scenarios have a belief is not the same in both."""
    a, b = draw(first, rng), draw(second, rng)
    found = compare_values(*(list_values(list_outcomes(run), "normalised_p_lie", takes=1) for run in (a, b)))
    yield holds("difference", found, second.lie - first.lie, count_differing(a, b))


def _see_board(count: int, plant: Plant, rng: Rng) -> Iterator[Seen]:
    """All pairs are one family. Those that could not be told apart in a family of this size are not looked at."""
    believes = rng.random(plant.scenarios) < plant.belief
    ease = rng.beta(*plant.shape, plant.scenarios)
    chances = [ease if plant.members == 1 else None] * count
    runs = [draw(plant, rng, chance, believes) for chance in chances]
    shares, places = np.array([run.shares for run in runs]), runs[0].places
    sums = np.array([np.bincount(places, own) for own in shares])
    gaps = sums[:, None, :] - sums[None, :, :]
    far = np.abs(gaps.sum(-1)) > 2.5 * np.sqrt((gaps**2).sum(-1))
    family = [
        difference(runs[left].shares, runs[right].shares, runs[0].names)
        if far[left, right]
        else Difference(n=plant.scenarios, value=0.0, p_value=1.0, p_worst=1.0)
        for left in range(count)
        for right in range(left)
    ]
    yield Seen("any pair told apart", Kind.WRONG, float(any(map(is_significant, adjust_family(family)))))


def _see_readings(plant: Plant, differ: float, shift: float, rng: Rng) -> Iterator[Seen]:
    """Two readings of the same replies. The one that finds more lies is either."""
    run = draw(plant, rng)
    lost, added = (differ - shift) / 2 / plant.p_lie, (differ + shift) / 2 / (plant.belief - plant.p_lie)
    turned = rng.random(run.said.shape) < np.where(run.said == LIE, lost, added)
    again = run._replace(said=np.where(turned, np.where(run.said == LIE, HONEST, LIE), run.said))
    sides = [run, again] if rng.random() < 0.5 else [again, run]
    yield from _see_margin(sides[0], sides[1], at_margin=shift > 0)


def _see_whole_scenarios(rng: Rng) -> Iterator[Seen]:
    run = draw(Plant(300, 0.2, takes=5, icc=0.5, belief=1.0), rng)
    first, second = run.said.copy(), run.said.copy()
    single = rng.random(300) < 0.02
    second[single, 0] = np.where(second[single, 0] == LIE, HONEST, LIE)
    whole = rng.random(300) < MARGIN
    first[whole], second[whole] = HONEST, LIE
    yield from _see_margin(run._replace(said=first), run._replace(said=second), at_margin=True)


def _see_margin(a: Drawn, b: Drawn, *, at_margin: bool) -> Iterator[Seen]:
    takes = a.said.shape[1]
    found = check_margin(list_lie_values(a), list_lie_values(b), a.names, takes, MARGIN).verdict
    kind = Kind.WRONG if at_margin else Kind.POWER
    yield Seen("called equivalent", kind, float(found is MarginVerdict.EQUIVALENT))


def _see_ranks(rho: float, models: int, rng: Rng) -> Iterator[Seen]:
    x = rng.standard_normal(models)
    y = rho * x + np.sqrt(1 - rho * rho) * rng.standard_normal(models)
    found = correlate(x.tolist(), y.tolist())
    yield holds("Spearman's rho", found, 6 / pi * asin(rho / 2), models)
