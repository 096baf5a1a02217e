"""Running a coroutine from plain code, whether or not an event loop is running; ending it cleanly on a signal; doing
something beside it again and again, or in a thread that nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TypeVar

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
