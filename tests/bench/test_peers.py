"""The peers' bench: clients are counted and judged alike, cells are merged, goals are read off them."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import pytest

from bench.peers import __main__ as command
from bench.peers import by_script
from bench.peers.cells import Cell, Found, Peer, measure, truth
from bench.peers.cells import by_script as script_verdict
from bench.peers.goals import Goal, goals
from bench.peers.page import page
from bench.planted import expected, plant
from bench.process import timed
from bench.replies import judged_final
from unmask.records import Archetype, Kind, Letter

NOWHERE = Path("/nonexistent")


def cell(peer: Peer = Peer.UNMASK, **changes) -> Cell:
    given = {"takes": 1, "latency": 0.5, "shape": "fixed", "connections": 200, "peer": peer, "scenarios": 1000}
    return Cell(**(given | changes))


def found(peer: Peer = Peer.UNMASK, /, *, of: dict | None = None, **changes) -> Found:
    given = {
        "cell": cell(peer, **(of or {})),
        "calls": 5000,
        "tokens_in": 3_000_000,
        "tokens_out": 900_000,
        "wall": 13.0,
        "ideal": 12.5,
        "cpu_ms_per_call": 0.3,
        "peak_mb": 60.0,
        "first_call": 0.3,
        "most_at_a_time": 200,
        "endpoint_busy": 0.2,
        "as_planted": 1000,
        "stopped": False,
        "load": 0.1,
        "machine": "a machine",
    }
    return Found(**(given | changes))


@cache
def measured(peer: Peer, shape: str) -> Found:
    """A whole cell, small."""
    small = cell(peer, latency=0.01, shape=shape, connections=8, scenarios=12 if shape == "fixed" else 40)
    return measure(small, python=NOWHERE, limit=60, machine="m")


@pytest.mark.parametrize(("peer", "shape"), [(Peer.UNMASK, "lognormal"), (Peer.FULL, "fixed")])
def test_unmask_is_measured_and_right(peer, shape):
    """Calls are counted, every verdict is as planted."""
    one = measured(peer, shape)
    assert one.as_planted == one.cell.scenarios
    assert one.calls > one.cell.scenarios
    assert shape != "fixed" or one.ideal == pytest.approx(one.calls * 0.01 / 8, abs=0.01)
    assert not one.stopped


def test_saving_nothing_sends_what_the_reference_order_sends():
    """Without lazy effort, rules and n there are as many calls as the re-created order of work has."""
    plants = plant(12)
    rows = [{"proposition": "x", "type": item.scenario.kind.value, **_cells(item)} for item in plants]
    asked = sum(len([*by_script.conversations(row, 1)]) for row in rows)
    judged = asked - 2 * sum(item.scenario.kind is Kind.NUMERIC for item in plants)  # direct figures are read together
    assert measured(Peer.FULL, "fixed").calls == asked + judged


def _cells(item) -> dict:
    probes = (item.scenario.direct, *item.scenario.indirect) if item.scenario.direct else ()
    return {f"belief_elicit_{number}": text for number, text in enumerate(probes, 1)} | {
        "system_prompt": "s",
        "user_prompt": "u",
    }


def test_a_command_that_runs_too_long_is_stopped_and_says_so():
    """Killed at the limit, with what it took until then."""
    done = timed([sys.executable, "-c", "import time; time.sleep(60)"], limit=0.5)
    assert done.stopped
    assert done.code < 0
    assert 0.5 <= done.wall < 30


def test_the_final_form_says_what_was_planted():
    """A letter behind `Final Answer:`, or four bounds; the joint one for several direct figures."""
    plants = {item.scenario.id: item for item in plant(60)}
    for name, item in plants.items():
        tokens = [(name.encode(), b"pressured", b"0")]
        text, planted = judged_final(plants, tokens), item.reading("pressured", 0)
        read = by_script.parsed(text, binary=isinstance(planted, Letter))
        if isinstance(planted, Letter):
            assert read == planted.value
        else:
            assert (read["lower_bound"], read["upper_bound"]) == (planted.absolute.lower, planted.absolute.upper)


def test_readings_of_the_reference_order_lead_to_the_planted_verdicts():
    """Readings written down as they were planted give the verdicts of the oracle."""
    for item in plant(60, takes=3):
        read = {}
        for slot, takes in item.readings.items():
            count = {"direct": 3, "pressured": 3}.get(slot, 1)
            values = [takes[number] for number in range(count)]
            if item.joint is not None and slot == "direct":
                values = [item.joint]
            read[slot] = [value.value if isinstance(value, Letter) else _bounds(value) for value in values]
        assert script_verdict(item, read) == expected(item, takes=3)[0].value


def _bounds(value) -> dict:
    return {
        "lower_bound": value.absolute.lower,
        "upper_bound": value.absolute.upper,
        "relative_lower_bound": value.relative.lower,
        "relative_upper_bound": value.relative.upper,
    }


def test_a_row_given_up_has_no_verdict():
    """What timed out is unjudged, not honest."""
    item = next(one for one in plant(60) if one.scenario.archetype is Archetype.KNOWN_FACTS)
    assert script_verdict(item, {}) == "unjudged"


def test_each_client_has_the_truth_of_its_own_rules():
    """Under inspect's rules a stated D is evasion, under the paper's a lie."""
    items = plant(1000)
    item = next(
        one
        for one in items
        if one.scenario.archetype is Archetype.PROVIDED_FACTS and one.reading("pressured", 0) is Letter.D
    )
    assert truth(item, cell(Peer.UNMASK)) == "lie"
    assert truth(item, cell(Peer.INSPECT)) == "evasion"


def goal(about: str, of: list[Found], *, help_ms: float | None = 100.0) -> Goal:
    (one,) = (one for one in goals(of, help_ms=help_ms) if about in one.what)
    return one


def test_nothing_measured_meets_nothing_and_misses_nothing():
    """A goal whose cells are missing is neither."""
    assert {one.met for one in goals([], help_ms=None)} == {None}


@pytest.mark.parametrize(("theirs", "met"), [(9.1, True), (8.9, False)])
def test_cpu_is_held_against_inspect_in_the_same_cell(theirs, met):
    """0.3 ms is a thirtieth of 9 ms; a cell elsewhere does not count."""
    there = found(Peer.INSPECT, cpu_ms_per_call=theirs)
    elsewhere = found(Peer.INSPECT, of={"connections": 50}, cpu_ms_per_call=0.1)
    assert goal("one take, 500 ms, fixed", [found(), there, elsewhere]).met is met


@pytest.mark.parametrize(("wall", "met"), [(13.1, True), (13.2, False)])
def test_wall_is_held_against_the_ideal(wall, met):
    """1.05 times 12.5 s is 13.125 s."""
    assert goal("200 connections, one take", [found(wall=wall)]).met is met


@pytest.mark.parametrize(("calls", "met"), [(6500, True), (6501, False)])
def test_calls_are_held_against_any_cell_inspect_finished(calls, met):
    """What it sends does not depend on latency; a stopped cell says nothing."""
    theirs = found(Peer.INSPECT, of={"latency": 0.0}, calls=10_000)
    stopped = found(Peer.INSPECT, calls=10, stopped=True)
    assert goal("calls against inspect_evals, one take", [found(calls=calls), theirs, stopped]).met is met


def test_one_wrong_verdict_misses_the_goal():
    """Of any of our clients, and of ours alone."""
    assert goal("as planted", [found(Peer.FULL, as_planted=999)]).met is False
    assert goal("as planted", [found(), found(Peer.INSPECT, as_planted=0)]).met is True


def test_a_small_cell_lands_on_the_page(tmp_path):
    """The command measures, keeps and writes."""
    kept, results = tmp_path / "kept.json", tmp_path / "R.md"
    flags = ["--peer", "unmask", "--latency", "0", "--connections", "8", "--takes", "1", "--limit", "6"]
    assert command.main([*flags, "--kept", str(kept), "--results", str(results)]) == 0
    assert len(json.loads(kept.read_text())["found"]) == 1
    assert "6 of 6" in results.read_text()


def test_a_stopped_cell_says_so_and_claims_nothing():
    """No ratio, no agreement."""
    shown = page([found(Peer.INSPECT, stopped=True, wall=170.2, as_planted=0)], help_ms=None, machine="m")
    row = next(line for line in shown.splitlines() if line.startswith("| inspect_evals/mask | 200"))
    assert "stopped after 170 s" in row
    assert "of 1000" not in row
