"""Signals at random points, twice in a row, and two processes on one run: the real command, the real folder."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from bench import faulty
from bench.fault import Fault
from bench.planted import write_jsonl
from tests.faults.served import flags, journal, kept_once, serving, settled
from tests.faults.watched import Watched, finished, start_python, watched
from tests.thorough import THOROUGH, draw_part

SCENARIOS = 40


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_at_random_points_a_run_loses_nothing_and_buys_nothing_twice(tmp_path: Path, number: signal.Signals):
    """At its start and later, with faults going on: exit 130 each time and how to continue, and then the whole."""
    rng = random.Random(number)
    with serving(SCENARIOS, faulty.schedule([*faulty.PASSING, *faulty.HARMLESS], rate=0.1), latency=0.02) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        for _ in range(5 if THOROUGH else 2):
            point = served.answered + rng.randrange(1, 25)
            with watched("run", *command) as child:
                child.when(lambda point=point: served.answered >= point)
                with served.slowed(seconds=1.0):
                    child.send(number)
                    assert child.end() == 130
                assert "same command again" in child.errors
        assert served.stats()["abandoned"] == 0
        assert finished("run", *command).process.returncode == 0
        # What is in flight is waited for, so that not even that is lost.
        settled(served, tmp_path / "run")


BEGIN = "from unmask.cli.start import main; print(0, flush=True); main()"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_anything_is_sent_leaves_no_traceback(tmp_path: Path, number: signal.Signals):
    """While the program is imported or the data loaded, at several moments."""
    with serving(SCENARIOS) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        for wait in draw_part((0.01, 0.05, 0.1, 0.2, 0.4), 2):
            child = Watched(start_python("-c", BEGIN, "run", *command))
            child.until("0")
            time.sleep(wait)
            child.send(number)
            assert child.end() in (0, 130)
        assert finished("run", *command).process.returncode == 0
        assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}


def test_ctrl_c_twice_drops_what_is_in_flight_and_keeps_what_was_answered(tmp_path: Path):
    """The second one does not wait for answers that never come; the next run asks only what is missing."""
    held = lambda seen: Fault(delay=faulty.FOREVER) if seen.number >= 30 else None  # noqa: E731
    with serving(SCENARIOS, held, latency=0.01) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        with watched("run", *command) as child:
            child.when(lambda: served.answered == 30 and served.endpoint.in_flight >= 20)
            child.send(signal.SIGINT)
            child.until("Ctrl-C again")
            child.send(signal.SIGINT)
            assert child.end() == 130
            assert "same command again" in child.errors
        assert kept_once(tmp_path / "run") == served.answered == 30
        served.endpoint.faults = None
        finished("run", *command)
        settled(served, tmp_path / "run")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_that_wait_for_their_next_try_are_not_sent_after_a_signal(tmp_path: Path, number: signal.Signals):
    """They would be paid for and dropped. The run ends without waiting for them, and they are no failures."""
    failing = lambda seen: Fault(500) if seen.number >= 30 else None  # noqa: E731
    with serving(SCENARIOS, failing, latency=0.01) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        with watched("run", *command) as child:
            child.when(lambda: served.stats()["faulted"] >= 50 and served.endpoint.in_flight == 0)
            child.send(signal.SIGSTOP)  # until the signal is there, so that no moment comes before it
            served.endpoint.faults = None
            before = served.answered
            child.send(number)
            child.send(signal.SIGCONT)
            assert child.end() == 130
        assert served.answered - before < 20  # of those whose moment came before the signal
        assert not [line for lines in journal(tmp_path / "run") for line in lines if "error" in line]
        assert finished("run", *command).process.returncode == 0
        settled(served, tmp_path / "run")


NOTEBOOK = """
import asyncio, sys, unmask
data, url, out = sys.argv[1:]

def cell():
    unmask.run(data=data, model="openai/mock", judge="openai/judge", base_url=url, judge_base_url=url, out=out)

async def notebook():
    try:
        cell()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    cell()
    print("done", flush=True)

asyncio.new_event_loop().run_until_complete(notebook())
"""


def test_an_interrupted_notebook_sends_nothing_more_and_the_cell_can_be_run_again_at_once(tmp_path: Path):
    """Never two of them at work on one run: what the first had under way is in the journal when the second starts."""
    with serving(SCENARIOS, latency=0.2) as served:
        data = write_jsonl(served.plants, tmp_path / "p.jsonl")
        child = Watched(start_python("-c", NOTEBOOK, str(data), served.url, str(tmp_path / "run")))
        child.when(lambda: served.answered >= 30)
        with served.slowed(seconds=1.0):
            child.send(signal.SIGINT)
            child.until("interrupted")
        assert (child.end(), child.printed) == (0, "interrupted\ndone\n")
        assert served.stats()["abandoned"] == 0
        settled(served, tmp_path / "run")


def test_two_processes_started_at_once_on_one_run_do_not_mix(tmp_path: Path):
    """Exactly one of them works; the other is told who, and nothing is asked twice."""
    with serving(SCENARIOS, latency=0.1) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        with watched("run", *command) as one, watched("run", *command) as two:
            with served.slowed(seconds=5.0):
                one.when(lambda: two.process.poll() is not None)
            codes = sorted((one.end(), two.end()))
        assert codes == [0, 4]
        winner, loser = sorted((one, two), key=lambda child: child.process.returncode)
        assert f"in use by process {winner.process.pid}" in loser.errors
        settled(served, tmp_path / "run")
