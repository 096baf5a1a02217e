"""The peers' bench: clients are counted and judged alike, and goals are read off the cells."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.peers import __main__ as command
from bench.peers.cells import Cell, Found, Peer, measure, truth
from bench.peers.cells import by_script as script_verdict
from bench.peers.goals import goals, list_lines
from bench.planted import expected, plant
from bench.process import timed
from unmask.records import Archetype, Letter


def cell(peer: Peer = Peer.UNMASK, **changes) -> Cell:
    given = {"takes": 1, "latency": 0.5, "shape": "fixed", "connections": 200, "peer": peer, "scenarios": 1000}
    return Cell(**(given | changes))


def found(peer: Peer = Peer.UNMASK, /, *, of: dict | None = None, **changes) -> Found:
    given = {
        "cell": cell(peer, **(of or {})),
        **{"calls": 5000, "tokens_in": 3_000_000, "tokens_out": 900_000, "wall": 13.0, "ideal": 12.5},
        **{"cpu_ms_per_call": 0.3, "peak_mb": 60.0, "first_call": 0.3, "most_at_a_time": 200, "endpoint_busy": 0.2},
        **{"as_planted": 1000, "stopped": False, "load": 0.1},
    }
    return Found(**(given | changes))


@pytest.mark.parametrize(("peer", "shape"), [(Peer.UNMASK, "lognormal"), (Peer.FULL, "fixed")])
def test_unmask_is_measured_and_right(peer, shape):
    """Calls are counted, every verdict is as planted."""
    small = cell(peer, latency=0.01, shape=shape, connections=8, scenarios=12 if shape == "fixed" else 40)
    one = measure(small, python=Path("/nonexistent"), limit=60)
    assert one.as_planted == one.cell.scenarios
    assert one.calls > one.cell.scenarios
    assert shape != "fixed" or one.ideal == pytest.approx(one.calls * 0.01 / 8, abs=0.01)
    assert not one.stopped


def test_a_command_that_runs_too_long_is_stopped_and_shown_as_that():
    done = timed([sys.executable, "-c", "import time; time.sleep(60)"], limit=0.5)
    assert done.stopped
    assert 0.5 <= done.wall < 30
    row = list(list_lines([found(Peer.INSPECT, stopped=True, wall=170.2, as_planted=0)]))[2]
    assert "stopped after 170 s" in row
    assert "of 1000" not in row


def test_each_client_has_the_truth_of_its_own_rules():
    """Under inspect's rules a stated D is evasion, under the paper's a lie."""
    item = next(
        one
        for one in plant(1000)
        if one.scenario.archetype is Archetype.PROVIDED_FACTS and one.reading("pressured", 0) is Letter.D
    )
    assert [truth(item, cell(peer)) for peer in (Peer.UNMASK, Peer.INSPECT)] == ["lie", "evasion"]


CPU, WALL = "one take, 500 ms, fixed", "200 connections, one take"
CALLS, PLANTED = "calls against inspect_evals, one take", "as planted"


@pytest.mark.parametrize(
    ("about", "cells", "met"),
    [
        # 0.3 ms is a thirtieth of 9 ms; a cell elsewhere does not count.
        (CPU, [found(), found(Peer.INSPECT, cpu_ms_per_call=9.1)], True),
        (CPU, [found(), found(Peer.INSPECT, cpu_ms_per_call=8.9)], False),
        (CPU, [found(), found(Peer.INSPECT, of={"connections": 50}, cpu_ms_per_call=99)], None),
        (WALL, [found(wall=13.1)], True),  # 1.05 times 12.5 s is 13.125 s
        (WALL, [found(wall=13.2)], False),
        (CALLS, [found(calls=6500), found(Peer.INSPECT, of={"latency": 0.0}, calls=10_000)], True),
        (CALLS, [found(calls=6501), found(Peer.INSPECT, of={"latency": 0.0}, calls=10_000)], False),
        (CALLS, [found(), found(Peer.INSPECT, calls=10, stopped=True)], None),
        (PLANTED, [found(Peer.FULL, as_planted=999)], False),
        (PLANTED, [found(), found(Peer.INSPECT, as_planted=0)], True),
        (PLANTED, [], None),
    ],
)
def test_goals_are_read_off_the_cells(about, cells, met):
    """One whose cells are missing is neither met nor missed."""
    (one,) = (one for one in goals(cells) if about in one.what)
    assert one.met is met


def test_the_command_measures_a_small_cell_and_prints_both_tables(capsys):
    flags = ["--peer", "unmask", "--latency", "0", "--connections", "8", "--takes", "1", "--limit", "6"]
    assert command.main(flags) == 0
    said = capsys.readouterr().out
    assert "| 6 of 6 |" in said
    assert "| verdicts as planted, with every saving | 0 others | 0 others in 6 | met |" in said


def test_readings_of_the_reference_order_lead_to_the_planted_verdicts():
    """Readings written down as they were planted give the verdicts of the oracle; a row that was given up has none."""
    for item in plant(60, takes=3):
        read = {slot: [_written(value) for value in takes[:3]] for slot, takes in item.readings.items()}
        if item.joint is not None:
            read["direct"] = [_written(item.joint)]
        assert script_verdict(item, read) == expected(item, takes=3)[0].value
    assert script_verdict(plant(1)[0], {}) == "unjudged"


def _written(value):
    if isinstance(value, Letter):
        return value.value
    absolute, relative = value.absolute, value.relative
    keys = ("lower_bound", "upper_bound", "relative_lower_bound", "relative_upper_bound")
    return dict(zip(keys, (absolute.lower, absolute.upper, relative.lower, relative.upper), strict=True))
