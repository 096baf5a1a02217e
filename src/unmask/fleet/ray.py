"""Servers as actors of a Ray cluster: Ray chooses the machine, the same supervisor runs there.

An actor that dies closes the pipe of its supervisor, which ends the server: when the driver, the worker or the node is
gone, nothing has to be told to anybody. Ray restarts nothing (`max_restarts=0`), so that the one who placed the server
learns why it was lost. Every node needs unmask in the environment of its workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from unmask.errors import MissingError, UsageError
from unmask.fleet.base import NoRoom, Server, ServerFailed, ServerSpec
from unmask.fleet.process import SupervisedServer

SCHEDULE_WITHIN = 60.0
"""Seconds in which Ray has to find a place for an actor; then there is none at the moment."""

OLDEST = (2, 52)
"""The first version of Ray that can ask for a token."""

FREE_LOOKS = 100
"""Tenths of a second in which Ray has to notice that an actor has given its GPUs back."""

_ADVICE = "Start it with `ray start --head`, give HOST:6379 or auto, and its token in RAY_AUTH_TOKEN where it has one."


class ServerActor:
    """What runs on the node. Its methods block and have threads of their own."""

    def __init__(self, spec: Mapping[str, Any], folder: str | None) -> None:
        self.spec = msgspec.convert(spec, ServerSpec)
        self.folder = Path(folder or tempfile.mkdtemp(prefix="unmask-fleet-"))
        self.process: SupervisedServer | None = None

    def start(self) -> None:
        """Returns once the actor has a place."""
        from ray.util import get_node_ip_address

        self.process = SupervisedServer(self.spec, folder=self.folder, host=get_node_ip_address())

    def await_ready(self) -> dict[str, str]:
        assert self.process is not None
        try:
            event = self.process.await_ready()
        except ServerFailed as error:
            return {"failed": str(error)}
        return {"address": event.address, "key": self.process.key}

    def await_loss(self) -> str:
        assert self.process is not None
        return self.process.next_event().describe(self.spec.name)

    def end(self) -> None:
        if self.process is not None:
            self.process.end()


class RayFleet:
    """`address` is that of a cluster (`auto` inside of one); without one a local Ray is started, for `gpus` GPUs where
    Ray cannot see them. Logs go into `folder` where all nodes have it, and into a temporary folder of each node else.

    Ray runs code of whoever reaches its ports: token authentication is on unless RAY_AUTH_MODE says otherwise.
    """

    def __init__(self, address: str | None = None, *, folder: Path | None = None, gpus: int | None = None) -> None:
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # before the import, which reads it
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a local Ray reports its use to its makers else
        # Ray leaves the GPUs of the node visible to actors without any, and warns that this will change.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise MissingError("fleet ray needs Ray", advice="Type: pip install 'unmask[ray]'") from None
        _refuse_old_ray(ray.__version__)
        if address and ":" in address:
            _refuse_silent_address(address)
        self._ray: Any = ray
        self._folder = folder
        local = {} if address else {"num_gpus": gpus, "include_dashboard": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level="warning", **local)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"no Ray at {address or 'this machine'}: {_first_line(error)}", advice=_ADVICE) from None
        self._running: dict[Server, tuple[Any, asyncio.Task[None]]] = {}
        self._placing = 0
        """GPUs of servers that are not ready."""

    async def place(self, spec: ServerSpec) -> Server:
        self._refuse_impossible(spec)
        if spec.gpus > (free := self.room()["gpus"]):
            raise NoRoom(f"server {spec.name} needs {spec.gpus} GPUs, and {free:g} are free")
        self._placing += spec.gpus
        try:
            return await self._start_actor(spec)
        finally:
            self._placing -= spec.gpus

    async def _start_actor(self, spec: ServerSpec) -> Server:
        options: dict[str, Any] = {
            **{"num_gpus": spec.gpus, "num_cpus": 0, "max_restarts": 0, "max_concurrency": 4},
            **({"label_selector": dict(spec.labels)} if spec.labels else {}),
        }
        actor = self._ray.remote(**options)(ServerActor).remote(
            msgspec.to_builtins(spec), None if self._folder is None else str(self._folder.absolute())
        )
        try:
            try:
                await asyncio.wait_for(_await_result(actor.start.remote()), SCHEDULE_WITHIN)
            except TimeoutError:
                wanted = "".join(f", {name}={value}" for name, value in spec.labels.items())
                raise NoRoom(f"Ray has no place for server {spec.name} ({spec.gpus} GPUs{wanted})") from None
            event = await _await_result(actor.await_ready.remote())
        except BaseException as error:
            self._ray.kill(actor)  # its supervisor ends the server
            if isinstance(error, self._ray.exceptions.RayError):
                raise ServerFailed(f"server {spec.name}: {_first_line(error)}") from None
            raise
        if "failed" in event:
            self._ray.kill(actor)
            raise ServerFailed(event["failed"])
        server = Server(spec, base_url=event["address"], key=event["key"])
        self._running[server] = actor, asyncio.create_task(self._await_loss(server, actor))
        return server

    async def drop(self, server: Server) -> None:
        actor, watch = self._running.pop(server, (None, None))
        if actor is None or watch is None:
            return
        watch.cancel()
        with contextlib.suppress(self._ray.exceptions.RayError):  # the actor is gone, and the server with it
            await _await_result(actor.end.remote())
        taken = self._count_free()
        self._ray.kill(actor)
        for _ in range(FREE_LOOKS if server.spec.gpus else 0):
            if self._count_free() > taken:
                break
            await asyncio.sleep(0.1)

    def room(self) -> Mapping[str, float]:
        """What Ray has free, less what it does not know to be taken yet."""
        ours = self._placing + sum(server.spec.gpus for server in self._running)
        total = sum(node["Resources"].get("GPU", 0.0) for node in self._ray.nodes() if node["Alive"])
        return {"gpus": max(0.0, min(self._count_free(), total - ours))}

    def _count_free(self) -> float:
        return float(self._ray.available_resources().get("GPU", 0.0))

    async def close(self) -> None:
        for server in list(self._running):
            await self.drop(server)
        self._ray.shutdown()

    async def _await_loss(self, server: Server, actor: Any) -> None:
        try:
            server.reason = await _await_result(actor.await_loss.remote())
        except self._ray.exceptions.RayError as error:
            server.reason = f"server {server.spec.name}: its machine or its Ray worker is gone: {_first_line(error)}"
        self._running.pop(server, None)
        server.lost.set()
        self._ray.kill(actor)

    def _refuse_impossible(self, spec: ServerSpec) -> None:
        most = max((node["Resources"].get("GPU", 0.0) for node in self._ray.nodes() if node["Alive"]), default=0.0)
        if spec.gpus > most:
            raise UsageError(
                f"server {spec.name} needs {spec.gpus} GPUs on one machine, and the largest has {most:g}",
                advice="Lower tensor_parallel, or add a machine with more GPUs.",
            )


def _refuse_old_ray(version: str) -> None:
    """An older one passes over RAY_AUTH_MODE, and runs the code of everybody who reaches its ports."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or tuple(map(int, found.groups())) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MissingError(
            f"fleet ray needs Ray {oldest} or later, which can ask for a token; {version} is installed and cannot",
            advice="Type: pip install --upgrade 'unmask[ray]', on every node of the cluster",
        )


def _refuse_silent_address(address: str) -> None:
    """Ray itself goes on trying for minutes, and then ends the process."""
    host, _, port = address.rpartition(":")
    if "/" in address or not port.isdecimal():
        raise UsageError(f"{address} is no address of a Ray cluster", advice=_ADVICE)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
    except OSError as error:
        raise UsageError(f"no Ray at {address}: {error.strerror or error}", advice=_ADVICE) from None


async def _await_result(reference: Any) -> Any:
    return await asyncio.wrap_future(reference.future())


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
