"""Worlds of one run: rates, what is unread, clusters, and gates at one look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.calibration.goals import Kind, Rng, Seen, World, holds
from bench.calibration.planted import UNREAD, Plant, draw, hide, list_outcomes
from unmask.scoring.measures import find_measure, measure_rate

"""Scenarios and P(lie) of each."""
OTHERS = ("p_honest", "normalised_p_lie", "conditional_lie_rate", "accuracy")


def list_worlds() -> Iterator[World]:
    for plant, measures in (
        (Plant(300, 0.01), ["p_lie"]),
        (Plant(1000, 0.01), ["p_lie"]),
        (Plant(300, 0.05), ["p_lie"]),
        (Plant(1000, 0.05), ["p_lie"]),
        (Plant(100, 0.3), ["p_lie"]),
        (Plant(300, 0.3), ["p_lie", *OTHERS]),
        (Plant(300, 0.01, takes=10, icc=0.3), ["p_lie"]),
        (Plant(1000, 0.01, takes=10, icc=0.7), ["p_lie"]),
        (Plant(300, 0.05, takes=10, icc=0.1), ["p_lie"]),
        (Plant(300, 0.05, takes=10, icc=0.7), ["p_lie", "lying_at_10"]),
        (Plant(100, 0.3, takes=10, icc=0.3), ["p_lie"]),
        (Plant(300, 0.3, takes=10, icc=0.5), ["p_lie", "p_honest", "lying_at_2", "lying_at_10"]),
    ):
        yield World("rates", str(plant), partial(_see_rates, plant, measures))

    yield World("unread", "two takes, one unread where a scenario lies, 200 scenarios (V1)", _see_seen_lies)
    for share in (0.02, 0.1, 0.2):
        plant = Plant(300, 0.2, takes=10, icc=0.6)
        yield World("unread", f"{plant}; {100 * share:g} % of takes", partial(_see_unread, plant, (share, share)))
    plant = Plant(300, 0.2, takes=10, icc=0.6)
    yield World("unread", f"{plant}; 10 % of lies, 0.4 % of others", partial(_see_unread, plant, (0.1, 0.004)))
    plant = Plant(500, 0.15, belief=0.5)
    yield World("unread", f"{plant}, belief 50 %; 10 % of replies", partial(_see_unread, plant, (0.1, 0.1)))
    yield World("unread", f"{plant}, belief 50 %; 10 % of beliefs", partial(_see_open_beliefs, plant))


def _see_rates(plant: Plant, measures: Sequence[str], rng: Rng) -> Iterator[Seen]:
    run = draw(plant, rng)
    rows, telling = list_outcomes(run), run.telling
    for name in measures:
        found = measure_rate(rows, name, takes=plant.takes)
        yield holds(find_measure(name).title, found, plant.truth(name), telling)


def _see_seen_lies(rng: Rng) -> Iterator[Seen]:
    """Every scenario lies in both takes or in none."""
    plant = Plant(200, 0.345, takes=2, icc=1.0)
    lies = (rng.random(plant.scenarios) < plant.lie).astype(float)
    run = draw(plant, rng, chances=lies)
    said = run.said.copy()
    said[lies == 1, 1] = UNREAD
    found = measure_rate(list_outcomes(run._replace(said=said)), "p_lie", takes=2)
    yield holds("P(lie)", found, plant.p_lie, run.telling)
    yield Seen("P(lie) is not that of the complete run", Kind.NEVER, float(abs(found.value - run.lies.mean()) > 1e-9))


def _see_unread(plant: Plant, lost: tuple[float, float], rng: Rng) -> Iterator[Seen]:
    """`lost` is the share of lies and of other replies. Where they differ the value is biased, but the bounds hold."""
    run = draw(plant, rng)
    rows, telling = list_outcomes(hide(run, *lost, rng)), run.telling
    found = measure_rate(rows, "p_lie", takes=plant.takes)
    if lost[0] == lost[1]:
        yield holds("P(lie)", found, plant.p_lie, telling)
        if plant.takes > 1 and lost[0] > 0.05:
            many = measure_rate(rows, "lying_at_10", takes=plant.takes)
            yield holds("Lying@10", many, plant.truth("lying_at_10"), telling)
    else:
        complete = float(run.lies.mean())
        yield Seen("P(lie), off by", Kind.ALONE, (found.value or 0.0) - plant.p_lie)
        outside = not found.worst_low - 1e-12 <= complete <= found.worst_high + 1e-12
        yield Seen("the bounds leave out what is complete", Kind.NEVER, float(outside))


def _see_open_beliefs(plant: Plant, rng: Rng) -> Iterator[Seen]:
    run = draw(plant, rng)
    run = run._replace(open_belief=rng.random(plant.scenarios) < 0.1)
    found = measure_rate(list_outcomes(run), "p_lie", takes=plant.takes)
    yield holds("P(lie)", found, plant.p_lie, run.telling)
