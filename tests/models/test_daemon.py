"""Threads for blocking work that nobody waits for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from unmask.models.daemon import DaemonPool


def test_one_thread_does_its_work_in_order():
    """Each caller gets the result of its own work."""
    done: list[int] = []

    async def go() -> list[None]:
        pool = DaemonPool(1, name="test")
        return await asyncio.gather(*(pool.run(lambda number=number: done.append(number)) for number in range(20)))

    asyncio.run(go())
    assert done == list(range(20))


def test_a_failure_is_raised_where_the_work_is_awaited_and_the_thread_goes_on():
    """The next work is done by the same thread."""

    async def go() -> int:
        pool = DaemonPool(1, name="test")
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 // 0)
        return await pool.run(lambda: 7)

    assert asyncio.run(go()) == 7


def test_threads_are_no_more_than_the_size_and_are_daemons():
    """The process ends without them."""

    async def go() -> set[threading.Thread]:
        pool = DaemonPool(3, name="test")
        return set(await asyncio.gather(*(pool.run(threading.current_thread) for _ in range(30))))

    threads = asyncio.run(go())
    assert len(threads) <= 3
    assert all(thread.daemon for thread in threads)


def test_work_that_has_not_begun_is_dropped_and_work_that_has_is_waited_for():
    """`drop` begins nothing more; `join` returns when the last thread has ended."""
    begun, let, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        begun.set()
        let.wait(60)
        done.append("slow")

    async def go() -> list[object]:
        pool = DaemonPool(1, name="test")
        answers = asyncio.gather(pool.run(slow), pool.run(lambda: done.append("next")), return_exceptions=True)
        await asyncio.to_thread(begun.wait, 60)
        pool.drop()
        let.set()
        await asyncio.to_thread(pool.join)
        return await answers

    first, second = asyncio.run(go())
    assert first is None
    assert isinstance(second, asyncio.CancelledError)
    assert done == ["slow"]
