"""What runs beside a coroutine: something again and again, and work in a thread that nobody waits for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from unmask.loops import beating, in_daemon

STUCK = """
import asyncio, time
from unmask.loops import in_daemon

async def main():
    try:
        await asyncio.wait_for(in_daemon(lambda: time.sleep(600)), 0.1)
    except TimeoutError:
        print("gave up", flush=True)

asyncio.run(main())
"""


def test_an_action_is_repeated_while_the_body_runs_and_not_after_it():
    """Called again and again, then never more."""
    called = []

    async def main() -> int:
        enough = asyncio.Event()

        def action() -> None:
            called.append(1)
            if len(called) == 3:
                enough.set()

        async with beating(action, every=0.01):
            await enough.wait()
        before = len(called)
        await asyncio.sleep(0.05)
        return before

    assert asyncio.run(main()) == len(called)


def test_blocking_work_returns_or_raises_from_another_thread():
    """The result of the work, or its error."""
    assert asyncio.run(in_daemon(threading.get_ident)) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_daemon(lambda: 1 / 0))


def test_work_that_never_ends_keeps_neither_the_loop_nor_the_process():
    """A resolver that hangs must not keep a command that has been given up."""
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("gave up\n", "")
