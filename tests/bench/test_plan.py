"""A few of the worlds of `python -m bench.plan --check`: the bill lies in the range that `plan` gives."""

from __future__ import annotations

import pytest

from bench.plan import CLOSE, PILOT, WIDEST, World, plant_world, try_world
from tests.thorough import draw_part
from unmask.records import Letter

USUAL = World(
    seed=7,
    scenarios=60,
    takes=1,
    belief=0.5,
    length=1.0,
    scatter=0.3,
    characters=4.0,
    unread=0.0,
    cut=0.0,
    failing=0.0,
    cached=0.0,
    flex=False,
)


WORLDS = {
    "no beliefs, short": USUAL._replace(belief=0.0, length=1 / 3),
    "all beliefs, long, asked again": USUAL._replace(belief=1.0, length=3.0, unread=0.15, cut=0.05),
    "flex, cached": USUAL._replace(flex=True, cached=0.4, takes=3),
}


@pytest.mark.parametrize("name", draw_part(WORLDS, 2))
def test_the_bill_lies_in_the_range_before_a_pilot_and_after_it(name):
    """The second range is for what is left, its upper end at most three times the lower one, and the likely value is
    close."""
    done = try_world(WORLDS[name])
    assert done.contained == (True, True)
    assert done.width <= WIDEST < done.before[2] / done.before[0]
    assert done.factor <= CLOSE


@pytest.mark.parametrize("belief", [0.0, 1.0])
def test_all_or_none_have_a_belief(belief):
    """Direct takes that differ, or an indirect one against them, are no belief."""
    believed = []
    for item in plant_world(USUAL._replace(belief=belief)):
        if item.scenario.asks_belief and item.joint is None:
            direct = {item.reading("direct", take) for take in range(3)}
            indirect = {item.reading(slot, 0) for slot in ("indirect_1", "indirect_2")} - {Letter.C}
            believed.append(len(direct | indirect) == 1)
    assert len(believed) > PILOT
    assert set(believed) == {bool(belief)}
