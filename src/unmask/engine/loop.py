"""Running a coroutine from plain code, whether or not an event loop is running; ending it cleanly on a signal; doing
something beside it again and again."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_INTERVAL = 0.2
"""Seconds between two looks for a signal while work in another thread is waited for."""


def run_blocking(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run to the end and return the result. Inside a running loop (a notebook) the work gets a thread of its own, and
    an interruption is passed on to it and raised when it has ended: not before, because whoever waits may hold a lock.
    """
    if not _in_running_loop():
        return _run_in_new_loop(work)
    thread = _OwnThread(work)
    with _catch_interrupts(thread.interrupt) as interrupted:
        thread.start()
        try:
            thread.wait()
        except BaseException:  # some other signal's
            thread.interrupt()
            thread.wait()
            raise
    if interrupted:
        raise KeyboardInterrupt from thread.failed
    if thread.failed is not None:
        raise thread.failed
    return thread.results[0]


def _in_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_new_loop(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """`asyncio.run`, but a signal that comes while the loop is being made waits until the work has begun: Python would
    leave half a loop and a coroutine that nobody awaits, and complain about both."""
    waiting = {signal.SIGINT, signal.SIGTERM}

    async def begin() -> T:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waiting)
        return await work()

    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return asyncio.run(work())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    try:
        return asyncio.run(begin())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_handlers: ContextVar[list[Callable[[signal.Signals], None]]] = ContextVar("_handlers")
"""What `on_signals` was given, for the one who waits for this work in another thread."""


class _OwnThread(Generic[T]):
    """Work on a loop in a thread of its own, which begins when it is waited for: then nobody can miss its end."""

    def __init__(self, work: Callable[[], Coroutine[object, object, T]]) -> None:
        self.results: list[T] = []
        self.failed: BaseException | None = None
        self._waited_for, self._ended = threading.Event(), threading.Event()
        self._handlers: list[Callable[[signal.Signals], None]] = []
        context = contextvars.Context()
        context.run(_handlers.set, self._handlers)
        # Both are there before the thread is, so that it can be interrupted at any time.
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(work(), context=context)

    def start(self) -> None:
        threading.Thread(target=self._run, name="unmask", daemon=True).start()

    def wait(self) -> None:
        """Until nothing of it runs any more."""
        self._waited_for.set()
        # A signal that comes just before a wait does not end that wait, and Python calls its handler only after it.
        while not self._ended.wait(LOOK_INTERVAL):
            pass

    def interrupt(self) -> None:
        """As a signal would: the work's own handler is called, and work that has none is cancelled."""
        with contextlib.suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(self._pass_on_interrupt)

    def _run(self) -> None:
        self._waited_for.wait()
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                self.results.append(runner.run(self._await_task()))
        except BaseException as error:
            self.failed = error
        finally:
            self._ended.set()

    async def _await_task(self) -> T:
        return await self._task

    def _pass_on_interrupt(self) -> None:
        if self._handlers:
            self._handlers[-1](signal.SIGINT)
        else:
            self._task.cancel()


@contextlib.contextmanager
def _catch_interrupts(action: Callable[[], None]) -> Iterator[list[int]]:
    """Call `action` on SIGINT, instead of an exception in whatever happens to run. Only the main thread can; gives a
    list of those that came."""
    signals: list[int] = []

    def handler(number: int, _: object) -> None:
        signals.append(number)
        action()

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield signals
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def on_signals(handler: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Call `handler` on SIGINT and SIGTERM while the body runs. Only the main thread can; elsewhere it is called when
    whoever waits for the work with `run_blocking` is interrupted."""
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

    task = asyncio.get_running_loop().create_task(beat())
    try:
        yield
    finally:
        task.cancel()
