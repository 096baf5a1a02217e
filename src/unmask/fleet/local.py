"""Servers as processes of this machine, its GPUs handed out by index."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from unmask.errors import UsageError
from unmask.fleet.base import NoRoom, Server, ServerFailed, ServerSpec
from unmask.fleet.process import SupervisedServer
from unmask.models.daemon import run_in_daemon


class LocalFleet:
    """`gpus` are indices as `nvidia-smi` shows them. Logs go into `folder`. A server that was lost is not started
    again here: whoever placed it knows whether it is still needed."""

    def __init__(self, gpus: Sequence[int], folder: Path) -> None:
        self._gpus = tuple(dict.fromkeys(gpus))
        self._free = list(self._gpus)
        self._folder = folder
        self._running: dict[Server, tuple[SupervisedServer, asyncio.Task[None]]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        """What ends servers that were never ready because nobody waits for them any more."""

    async def place(self, spec: ServerSpec) -> Server:
        if spec.gpus > len(self._gpus):
            raise UsageError(
                f"server {spec.name} needs {spec.gpus} GPUs, and this fleet has {len(self._gpus)}",
                advice="Lower tensor_parallel, or give the fleet more GPUs.",
            )
        if spec.gpus > len(self._free):
            raise NoRoom(f"server {spec.name} needs {spec.gpus} GPUs, and {len(self._free)} are free")
        gpus, self._free = self._free[: spec.gpus], self._free[spec.gpus :]
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))} if self._gpus else {}
        try:
            process = SupervisedServer(spec, folder=self._folder, environment=visible)
        except BaseException:
            self._free += gpus
            raise
        try:
            event = await run_in_daemon(process.await_ready)
        except ServerFailed:
            self._free += gpus
            raise
        except BaseException:  # the caller may have been cancelled: then the end is awaited by `close`
            process.ask_to_end()
            leaving = asyncio.create_task(self._end_process(process, gpus))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            raise
        server = Server(spec, base_url=event.address, key=process.key)
        self._running[server] = process, asyncio.create_task(self._await_loss(server, process, gpus))
        return server

    async def drop(self, server: Server) -> None:
        process, watch = self._running.pop(server, (None, None))
        if process is not None and watch is not None:
            process.ask_to_end()
            await asyncio.shield(watch)

    def room(self) -> Mapping[str, float]:
        return {"gpus": float(len(self._free))}

    async def close(self) -> None:
        for server in list(self._running):
            await self.drop(server)
        await asyncio.gather(*self._leaving)

    async def _await_loss(self, server: Server, process: SupervisedServer, gpus: list[int]) -> None:
        """Until the server is gone: then it is lost, unless it was dropped. Its GPUs are free when its last process
        has ended."""
        event = await run_in_daemon(process.next_event)
        if server in self._running:
            server.reason = event.describe(server.spec.name)
            server.lost.set()
        await self._end_process(process, gpus)
        self._running.pop(server, None)

    async def _end_process(self, process: SupervisedServer, gpus: list[int]) -> None:
        await run_in_daemon(process.end)
        self._free += gpus
