"""Running a coroutine from plain code, whether or not an event loop is running; ending it cleanly on a signal; doing
something again and again meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LOOK_INTERVAL = 0.2
"""Seconds between two looks for a signal while work in another thread is waited for."""

_handlers: ContextVar[list[Callable[[signal.Signals], None]]] = ContextVar("_handlers")
"""What `on_signals` was given, for the one who waits for this work in another thread."""


def run_blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to the end and return the result. Inside a running loop (a notebook) the work gets a thread of its own, and
    an interruption is passed on to it and raised when it has ended: not before, because it may hold a lock."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_in_new_loop(work)
    thread, interruptions, before = _OwnThread(work), [], signal.getsignal(signal.SIGINT)
    catches = threading.current_thread() is threading.main_thread() and callable(before)

    def pass_on(*_: object) -> None:
        interruptions.append(True)
        thread.interrupt()

    if catches:
        signal.signal(signal.SIGINT, pass_on)
    try:
        thread.start()
        while thread.is_alive():  # a handler is called only between two waits
            thread.join(LOOK_INTERVAL)
    finally:
        if catches:
            signal.signal(signal.SIGINT, before)
    if interruptions:
        raise KeyboardInterrupt from (None if thread.task.cancelled() else thread.task.exception())
    return thread.task.result()


def _run_in_new_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """`asyncio.run`, but a signal that comes while the loop is made or closed waits until the work has begun, or the
    loop is gone: Python would leave half a loop and a coroutine that nobody awaits, and complain about both."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return asyncio.run(work())
    waiting = {signal.SIGINT, signal.SIGTERM}

    async def begin() -> T:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waiting)
        try:
            return await work()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, waiting)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    try:
        return asyncio.run(begin())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _OwnThread(threading.Thread, Generic[T]):
    """Work on a loop in a thread of its own."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        super().__init__(name="unmask", daemon=True)
        self._handlers: list[Callable[[signal.Signals], None]] = []
        context = contextvars.Context()
        context.run(_handlers.set, self._handlers)
        # Both are there before the thread is, so that it can be interrupted at any time.
        self._loop = asyncio.new_event_loop()
        self.task = self._loop.create_task(work(), context=context)

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(asyncio.wait([self.task]))

    def interrupt(self) -> None:
        """As a signal would: the work's own handler is called, and work that has none is cancelled."""
        with contextlib.suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(self._pass_on_interrupt)

    def _pass_on_interrupt(self) -> None:
        if self._handlers:
            self._handlers[-1](signal.SIGINT)
        else:
            self.task.cancel()


@contextlib.contextmanager
def on_signals(handler: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Call `handler` on SIGINT and SIGTERM while the body runs. Only the main thread can; elsewhere it is called when
    the caller of `run_blocking` is interrupted."""
    if threading.current_thread() is not threading.main_thread():
        handlers = _handlers.get([])
        handlers.append(handler)
        try:
            yield
        finally:
            handlers.remove(handler)
        return
    loop = asyncio.get_running_loop()
    caught = []
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        with contextlib.suppress(NotImplementedError):  # Windows has no loop signals: Ctrl-C raises there
            loop.add_signal_handler(number, handler, number)
            caught.append((number, before))
    try:
        yield
    finally:
        for number, before in caught:
            loop.remove_signal_handler(number)
            signal.signal(number, before)


@contextlib.asynccontextmanager
async def call_repeatedly(action: Callable[[], None], *, every: float) -> AsyncIterator[None]:
    """Call `action` every so many seconds while the body runs."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(every)
            action()

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
