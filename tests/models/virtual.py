"""Time that passes only when nothing else is left to do, so that an hour of retries takes a moment to test."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        assert events or timeout is not None, "waits for something other than time"
        if not events and timeout:
            self.loop.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 1000.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run_virtually(test: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test())


def now() -> float:
    return asyncio.get_running_loop().time()


async def settle() -> None:
    """Let everything go on that can without a wait."""
    await asyncio.sleep(1e-6)
