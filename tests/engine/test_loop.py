"""Something done again and again while a coroutine runs, and work inside a running loop that is interrupted."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from unmask.engine.loop import call_repeatedly, run_blocking


def test_an_action_is_repeated_while_the_body_runs_and_not_after_it():
    """Called again and again, then never more."""
    called = []

    async def main() -> int:
        enough = asyncio.Event()

        def action() -> None:
            called.append(1)
            if len(called) == 3:
                enough.set()

        async with call_repeatedly(action, every=0.01):
            await enough.wait()
        before = len(called)
        await asyncio.sleep(0.05)
        return before

    assert asyncio.run(main()) == len(called)


# --- in a notebook ------------------------------------------------------------------------------------------

NOTEBOOK = """
import asyncio, signal, sys
from unmask.engine.loop import run_blocking, on_signals

async def with_handler():
    heard = []
    with on_signals(lambda number: heard.append(number)):
        print("ready", flush=True)
        while len(heard) < int(sys.argv[3]):
            await asyncio.sleep(0.01)
            if len(heard) == 1:
                print("heard one", flush=True)
    await asyncio.sleep(0.3)
    print("ended", flush=True)

async def without_handler():
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.3)
        print("ended", flush=True)

async def cell():
    try:
        run_blocking(globals()[sys.argv[2]])
    except KeyboardInterrupt:
        print("KeyboardInterrupt", flush=True)

if sys.argv[1] == "kernel":
    asyncio.new_event_loop().run_until_complete(cell())
else:
    asyncio.run(cell())
"""


def notebook(*arguments: str, times: int = 1) -> list[str]:
    """What work in a running loop said that was interrupted so many times."""
    command = [sys.executable, "-c", NOTEBOOK, *arguments, str(times)]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        watchdog = threading.Timer(60, child.kill)
        watchdog.start()
        for line in child.stdout:
            if line == "ready\n" or (line == "heard one\n" and times == 2 and line not in said):
                child.send_signal(signal.SIGINT)
            said.append(line)
        watchdog.cancel()
    return [line.strip() for line in dict.fromkeys(said)]


@pytest.mark.parametrize("loop", ["kernel", "asyncio.run"])
def test_an_interrupted_notebook_tells_its_work_and_waits_for_its_end(loop: str):
    """The work's own handler hears of it; only when nothing of it runs any more is the interruption raised."""
    assert notebook(loop, "with_handler") == ["ready", "heard one", "ended", "KeyboardInterrupt"]


def test_work_that_listens_to_no_signal_is_cancelled_and_waited_for():
    assert notebook("kernel", "without_handler") == ["ready", "ended", "KeyboardInterrupt"]


def test_in_a_running_loop_results_and_errors_come_out_as_they_do_outside():
    async def good() -> int:
        return threading.get_ident()

    async def bad() -> int:
        raise ZeroDivisionError

    async def cell() -> tuple[int, signal.Handlers | Any]:
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(ZeroDivisionError):
            run_blocking(bad)
        return run_blocking(good), before is signal.getsignal(signal.SIGINT)

    found, same = asyncio.run(cell())
    assert (found != threading.get_ident(), same) == (True, True)
