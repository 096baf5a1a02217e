"""Servers as actors of a Ray cluster: Ray chooses the machine, the same supervisor runs there.

The servers that are needed together are one placement group, so that Ray finds room for all of them or for none. An
actor that dies closes the pipe of its supervisor, which ends the server; actors and groups end with the driver, so when
the driver, the worker or the node is gone, nothing has to be told to anybody. Every node needs unmask in the
environment of its workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from unmask.errors import MissingError, UsageError
from unmask.sweep.servers.base import Machine, RoomLost, ServerAddress, ServerFailed, ServerSpec
from unmask.sweep.servers.process import SupervisedServer

OLDEST = (2, 52)
"""The first version of Ray that can ask for a token."""

_NO_GPU = {"CPU": 0.001}
"""What a server without GPUs takes of a machine: a bundle cannot be empty."""

_ADVICE = "Start it with `ray start --head`, give HOST:6379 or auto, and its token in RAY_AUTH_TOKEN where it has one."


class ServerActor:
    """What runs on the node. Its methods block and have threads of their own."""

    def __init__(self, spec: Mapping[str, Any], folder: str | None) -> None:
        self.spec = msgspec.convert(spec, ServerSpec)
        self.folder = Path(folder or tempfile.mkdtemp(prefix="unmask-servers-"))
        self.server: SupervisedServer | None = None

    def start(self) -> tuple[str, str]:
        """Address and key of a server that is ready; without an address why there is none."""
        from ray.util import get_node_ip_address

        self.end()
        self.server = SupervisedServer(self.spec, folder=self.folder, host=get_node_ip_address())
        try:
            return self.server.await_ready().address, self.server.key
        except ServerFailed as error:
            return "", str(error)

    def await_loss(self) -> str:
        assert self.server is not None
        return self.server.next_event().describe(self.spec.name)

    def end(self) -> None:
        if self.server is not None:
            self.server.end()


class RayPool:
    """`address` is that of a cluster (`auto` inside of one); without one a local Ray is started, for `gpus` GPUs where
    Ray cannot see them. Logs go into `folder` where all nodes have it, and into a temporary folder of each node else.

    Ray runs the code of anybody who reaches its ports: token authentication is on unless RAY_AUTH_MODE says otherwise.
    """

    def __init__(self, address: str | None = None, *, folder: Path | None = None, gpus: int | None = None) -> None:
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # before the import, which reads it
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a local Ray reports its use to its makers else
        # Ray leaves the GPUs of the node visible to actors without any, and warns that this will change.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise MissingError("servers on Ray need ray", advice="pip install 'unmask[ray]'") from None
        _refuse_old_ray(ray.__version__)
        if address and ":" in address:
            _refuse_silent_address(address)
        self.ray: Any = ray
        self.folder = None if folder is None else str(folder.absolute())
        local = {} if address else {"num_gpus": gpus, "include_dashboard": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level="warning", **local)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"no Ray at {address or 'this machine'}: {_first_line(error)}", advice=_ADVICE) from None

    def machines(self) -> list[Machine]:
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        return [Machine(node["Resources"].get("GPU", 0.0), node.get("Labels", {})) for node in nodes]

    async def reserve(self, specs: Sequence[ServerSpec]) -> RayRoom:
        from ray.util import placement_group, remove_placement_group

        group = placement_group(
            [{"GPU": spec.gpus} if spec.gpus else _NO_GPU for spec in specs],
            bundle_label_selector=[dict(spec.labels) for spec in specs],
        )
        try:
            await _await_result(group.ready())
        except BaseException:
            remove_placement_group(group)
            raise
        return RayRoom(self, specs, group)

    async def close(self) -> None:
        self.ray.shutdown()


class RayRoom:
    """A placement group. An actor is made for each server once, and starts it again when it is lost."""

    def __init__(self, pool: RayPool, specs: Sequence[ServerSpec], group: Any) -> None:
        self._pool, self._specs, self._group = pool, specs, group
        self._actors: dict[int, Any] = {}

    async def start(self, number: int) -> ServerAddress:
        if number not in self._actors:
            self._actors[number] = self._make_actor(number)
        address, key = await self._ask(number, "start")
        if not address:
            raise ServerFailed(key)
        return ServerAddress(address, key)

    async def await_loss(self, number: int) -> str:
        return str(await self._ask(number, "await_loss"))

    async def close(self) -> None:
        from ray.util import remove_placement_group

        ray = self._pool.ray
        ends = (_await_result(actor.end.remote()) for actor in self._actors.values())
        await asyncio.gather(*ends, return_exceptions=True)
        for actor in self._actors.values():
            ray.kill(actor)
        with contextlib.suppress(ray.exceptions.RayError):
            remove_placement_group(self._group)

    def _make_actor(self, number: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        spec, strategy = self._specs[number], PlacementGroupSchedulingStrategy(self._group, number)
        # Ray restarts nothing: the sweep knows whether the server is still needed.
        options = {"num_gpus": spec.gpus, "num_cpus": 0, "max_restarts": 0, "max_concurrency": 4}
        make = self._pool.ray.remote(**options, scheduling_strategy=strategy)(ServerActor).remote
        return make(msgspec.to_builtins(spec), self._pool.folder)

    async def _ask(self, number: int, method: str) -> Any:
        errors, name = self._pool.ray.exceptions, self._specs[number].name
        try:
            return await _await_result(getattr(self._actors[number], method).remote())
        except errors.RayActorError as error:
            raise RoomLost(f"server {name}: its machine or its Ray worker is gone: {_first_line(error)}") from None
        except errors.RayError as error:
            raise ServerFailed(f"server {name}: {_first_line(error)}") from None


def _refuse_old_ray(version: str) -> None:
    """An older one ignores RAY_AUTH_MODE, and runs the code of everybody who reaches its ports."""
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise MissingError(
            f"a sweep needs Ray {'.'.join(map(str, OLDEST))} or later, which can ask for a token: {version} cannot",
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
