"""Running a coroutine from plain code, whether or not an event loop is running; as a task that has begun already;
ending it cleanly on a signal; doing something beside it again and again, or in a thread that nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import signal
import threading
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def blocking(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run to the end and return the result. Inside a running loop (a notebook) the work gets a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    found: list[T] = []
    failed: list[BaseException] = []

    def target() -> None:
        try:
            found.append(asyncio.run(work()))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=target, name="unmask", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def at_once(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task whose work has come as far as its first wait when this returns.

    A task of `create_task` begins after everything that is ready now: when two hundred answers come in together, the
    request that follows from the first would go out after the last of them has been read. To the work nothing looks
    different: it finds its own task and its own context variables.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    first = _First()
    task = loop.create_task(_carry_on(work, first), context=context)
    current = asyncio.current_task(loop)
    if current is not None:
        asyncio.tasks._leave_task(loop, current)
    asyncio.tasks._enter_task(loop, task)
    try:
        first.waits_for = context.run(work.send, None)
    except BaseException as error:  # its end, for good or ill: the task's affair
        first.ended = error
    finally:
        asyncio.tasks._leave_task(loop, task)
        if current is not None:
            asyncio.tasks._enter_task(loop, current)
    return task


class _First:
    """How the first step of some work came out: what it waits for, or how it ended."""

    __slots__ = ("ended", "waits_for")

    def __init__(self) -> None:
        self.waits_for: Any = None
        self.ended: BaseException | None = None


@types.coroutine
def _carry_on(work: Coroutine[Any, Any, T], first: _First) -> Generator[Any, None, T]:
    """The rest of the work, as the task runs it. Cancelled before that begins, it is closed with this generator."""
    waits_for, ended = first.waits_for, first.ended
    while ended is None:
        try:
            yield waits_for
        except BaseException as error:  # a cancellation: the work is where it stands, and may catch it
            try:
                waits_for = work.throw(error)
            except BaseException as last:
                ended = last
        else:
            result: T = yield from work
            return result
    if isinstance(ended, StopIteration):
        value: T = ended.value
        return value
    raise ended


@contextlib.contextmanager
def on_signals(handler: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Call `handler` on SIGINT and SIGTERM while the body runs. Only the main thread can; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
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
async def beating(action: Callable[[], None], *, every: float) -> AsyncIterator[None]:
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


async def in_daemon(work: Callable[[], T]) -> T:
    """What blocking work returns or raises. Its thread is one that neither the loop nor the process waits for at its
    end, so that work which never ends keeps nobody."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():  # whoever waited has gone
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def target() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=target, name="unmask-daemon", daemon=True).start()
    return await future
