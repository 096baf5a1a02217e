"""What runs beside a coroutine: something again and again, work in a thread that nobody waits for, a task that has
begun already; and work inside a running loop that is interrupted."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

from unmask.loops import at_once, beating, blocking, in_daemon

T = TypeVar("T")

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


# --- in a notebook ------------------------------------------------------------------------------------------

NOTEBOOK = """
import asyncio, signal, sys
from unmask.loops import blocking, on_signals

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

def late(*_):
    raise TimeoutError

signal.signal(signal.SIGALRM, late)

async def cell():
    try:
        blocking(globals()[sys.argv[2]])
    except (KeyboardInterrupt, TimeoutError) as error:
        print(type(error).__name__, flush=True)

if sys.argv[1] == "kernel":
    asyncio.new_event_loop().run_until_complete(cell())
else:
    asyncio.run(cell())
"""


def notebook(*arguments: str, number: signal.Signals = signal.SIGINT, times: int = 1) -> list[str]:
    """What work in a running loop said that was interrupted so many times."""
    command = [sys.executable, "-c", NOTEBOOK, *arguments, str(times)]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        watchdog = threading.Timer(60, child.kill)
        watchdog.start()
        for line in child.stdout:
            if line == "ready\n" or (line == "heard one\n" and times == 2 and line not in said):
                child.send_signal(number)
            said.append(line)
        watchdog.cancel()
    return [line.strip() for line in dict.fromkeys(said)]


@pytest.mark.parametrize("loop", ["kernel", "asyncio.run"])
def test_an_interrupted_notebook_tells_its_work_and_waits_for_its_end(loop: str):
    """The work's own handler hears of it; only when nothing of it runs any more is the interruption raised."""
    assert notebook(loop, "with_handler") == ["ready", "heard one", "ended", "KeyboardInterrupt"]


def test_a_notebook_interrupted_twice_tells_its_work_twice():
    assert notebook("kernel", "with_handler", times=2) == ["ready", "heard one", "ended", "KeyboardInterrupt"]


def test_work_that_listens_to_no_signal_is_cancelled_and_waited_for():
    assert notebook("kernel", "without_handler") == ["ready", "ended", "KeyboardInterrupt"]


@pytest.mark.parametrize("work", ["with_handler", "without_handler"])
def test_whatever_ends_the_wait_for_work_does_not_leave_it_running(work: str):
    """An alarm whose handler raises, for one."""
    said = notebook("kernel", work, number=signal.SIGALRM)
    assert said[-2:] == ["ended", "TimeoutError"]


def test_in_a_running_loop_results_and_errors_come_out_as_they_do_outside():
    async def good() -> int:
        return threading.get_ident()

    async def bad() -> int:
        raise ZeroDivisionError

    async def cell() -> tuple[int, signal.Handlers | Any]:
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(ZeroDivisionError):
            blocking(bad)
        return blocking(good), before is signal.getsignal(signal.SIGINT)

    found, same = asyncio.run(cell())
    assert (found != threading.get_ident(), same) == (True, True)


# --- a task that has begun ---------------------------------------------------------------------------------


def begun(scene: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(scene())


def test_the_work_has_come_to_its_first_wait_when_at_once_returns():
    """What a plain task would do only after everything that is ready."""

    async def scene() -> list[str]:
        said: list[str] = []

        async def work() -> None:
            said.append("first")
            await asyncio.sleep(0)
            said.append("second")

        task = at_once(work())
        said.append("returned")
        await task
        return said

    assert begun(scene) == ["first", "returned", "second"]


@pytest.mark.parametrize("waits", [0, 1, 3])
def test_what_the_work_returns_or_raises_is_the_tasks(waits):
    """Whether it ends in its first step or later."""

    async def work(failing: bool) -> int:
        for _ in range(waits):
            await asyncio.sleep(0)
        if failing:
            raise ZeroDivisionError
        return waits

    async def scene() -> tuple[int, BaseException | None]:
        good, bad = at_once(work(False)), at_once(work(True))
        await asyncio.wait([good, bad])
        return good.result(), bad.exception()

    result, error = begun(scene)
    assert result == waits
    assert isinstance(error, ZeroDivisionError)


def test_the_work_finds_its_own_task_in_every_step():
    """So that a time limit in it ends it, and not whoever began it."""

    async def scene() -> tuple[bool, bool, bool]:
        found = []

        async def work() -> None:
            found.append(asyncio.current_task())
            await asyncio.sleep(0)
            found.append(asyncio.current_task())

        task = at_once(work())
        outer = asyncio.current_task()
        await task
        return found[0] is task, found[1] is task, asyncio.current_task() is outer

    assert begun(scene) == (True, True, True)


def test_a_time_limit_set_in_the_first_step_holds():
    async def work() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "late"
        return "never"

    async def scene() -> str:
        return await asyncio.wait_for(at_once(work()), 10)

    assert begun(scene) == "late"


def test_context_variables_of_the_first_step_are_those_of_the_rest():
    """A value set in one step is taken back in another, and nobody outside has seen it."""
    name: ContextVar[str] = ContextVar("name", default="outside")

    async def work() -> str:
        token = name.set("inside")
        await asyncio.sleep(0)
        seen = name.get()
        name.reset(token)
        return seen

    async def scene() -> tuple[str, str]:
        task = at_once(work())
        between = name.get()
        return await task, between

    assert begun(scene) == ("inside", "outside")


def test_cancelled_before_its_turn_the_work_is_closed():
    """It holds a connection, which must come back."""

    async def scene() -> list[str]:
        said: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                said.append("given back")

        task = at_once(work())
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return said

    assert begun(scene) == ["given back"]


def test_cancelled_while_it_waits_the_work_hears_of_it():
    """It may clean up, waiting once more, before it goes."""

    async def scene() -> list[str]:
        said: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                said.append("heard")
                raise

        task = at_once(work())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return said

    assert begun(scene) == ["heard"]


def test_work_that_survives_a_cancellation_goes_on():
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "went on"

    async def scene() -> str:
        task = at_once(work())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert begun(scene) == "went on"
