"""Servers as processes of this machine, its GPUs by index."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from unmask.models.daemon import run_in_daemon
from unmask.sweep.servers.base import Machine, ServerAddress, ServerSpec
from unmask.sweep.servers.process import SupervisedServer


class LocalPool:
    """`gpus` are indices as `nvidia-smi` shows them. Logs go into `folder`."""

    def __init__(self, gpus: Sequence[int], folder: Path) -> None:
        self.gpus = tuple(dict.fromkeys(gpus))
        self.folder = folder
        self.free = list(self.gpus)
        self.freed = asyncio.Condition()

    def machines(self) -> list[Machine]:
        return [Machine(len(self.gpus))]

    async def reserve(self, specs: Sequence[ServerSpec]) -> LocalRoom:
        wanted = sum(spec.gpus for spec in specs)
        async with self.freed:
            await self.freed.wait_for(lambda: len(self.free) >= wanted)
            taken, self.free = self.free[:wanted], self.free[wanted:]
        return LocalRoom(self, specs, taken)

    async def close(self) -> None:
        """There is nothing to leave."""


class LocalRoom:
    """Some GPUs of this machine."""

    def __init__(self, pool: LocalPool, specs: Sequence[ServerSpec], gpus: Sequence[int]) -> None:
        self._pool, self._specs, self._gpus = pool, specs, gpus
        self._servers: dict[int, SupervisedServer] = {}

    async def start(self, number: int) -> ServerAddress:
        await self._end(number)
        spec, before = self._specs[number], sum(spec.gpus for spec in self._specs[:number])
        own = self._gpus[before : before + spec.gpus]
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, own))} if self._pool.gpus else {}
        server = SupervisedServer(spec, folder=self._pool.folder, environment=visible)
        self._servers[number] = server
        return ServerAddress((await run_in_daemon(server.await_ready)).address, server.key)

    async def await_loss(self, number: int) -> str:
        event = await run_in_daemon(self._servers[number].next_event)
        return event.describe(self._specs[number].name)

    async def close(self) -> None:
        await asyncio.gather(*map(self._end, list(self._servers)))
        async with self._pool.freed:
            self._pool.free += self._gpus
            self._gpus = []
            self._pool.freed.notify_all()

    async def _end(self, number: int) -> None:
        """A server that was lost has to be ended, too: its last process may still hold its GPU."""
        server = self._servers.pop(number, None)
        if server is not None:
            server.ask_to_end()
            await run_in_daemon(server.end)
