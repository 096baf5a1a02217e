"""Blocking work in threads that nobody waits for: neither the event loop nor the process at its end."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_Work = tuple["Future[Any]", Callable[[], Any]]


async def run_in_daemon(work: Callable[[], T]) -> T:
    """What blocking work returns or raises. Work that never ends keeps nobody."""
    future: Future[T] = Future()
    threading.Thread(target=_run_work, args=(future, work), name="unmask-daemon", daemon=True).start()
    return await asyncio.wrap_future(future)


class DaemonPool:
    """A number of daemon threads that do blocking work in the order it comes."""

    def __init__(self, size: int, *, name: str) -> None:
        self._size, self._name = size, name
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def run(self, work: Callable[[], T]) -> T:
        """What the work returns or raises. Work whose caller is cancelled before it has begun is never done."""
        future: Future[T] = Future()
        self._waiting.put((future, work))
        if len(self._threads) < self._size:
            thread = threading.Thread(target=_serve_queue, args=(self._waiting,), name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return await asyncio.wrap_future(future)

    def drop(self) -> None:
        """Begin nothing more: what waits is cancelled, and the threads end after what they do now."""
        while True:
            try:
                item = self._waiting.get_nowait()
            except queue.Empty:
                break
            if item is not None:
                item[0].cancel()
        for _ in self._threads:
            self._waiting.put(None)

    def join(self) -> None:
        """Wait for the threads to end."""
        for thread in self._threads:
            thread.join()


def _serve_queue(waiting: queue.SimpleQueue[_Work | None]) -> None:
    while (item := waiting.get()) is not None:
        _run_work(*item)
        del item  # a thread that waits must not keep a model alive


def _run_work(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
