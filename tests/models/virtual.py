"""Time that passes only when nothing else is left to do, so that an hour of retries takes a moment to test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from heapq import heappop, heappush
from typing import TypeVar

T = TypeVar("T")


class Virtual:
    """`clock` and `sleep` for an Endpoint, and `run` to drive what waits on them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._due: list[tuple[float, int, asyncio.Future[None]]] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._due, (self.now + seconds, len(self.slept), future))
        await future

    async def settle(self) -> None:
        """Let everything that can go on go on."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def step(self) -> bool:
        """Go to the next moment somebody waits for; false when nobody does."""
        await self.settle()
        while self._due:
            due, _, future = heappop(self._due)
            if not future.done():
                self.now = max(self.now, due)
                future.set_result(None)
                await self.settle()
                return True
        return False

    async def run(self, work: Awaitable[T]) -> T:
        """The result of `work`, with the clock moved on whenever it waits."""
        task = asyncio.ensure_future(work)
        await self.settle()
        while not task.done():
            assert await self.step(), "waits for something other than time"
        return task.result()
