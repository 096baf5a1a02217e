"""Servers of a sweep: which is placed when, what happens when one is lost, and when it is dropped."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from unmask.errors import UnmaskError
from unmask.fleet.base import Fleet, NoRoom, Server, ServerFailed, ServerSpec
from unmask.models.limiter import Limits
from unmask.models.local.catalogue import is_trained_judge
from unmask.sweep.fleets import key_of_server, make_spec
from unmask.sweep.grid import ModelRow
from unmask.sweep.schedule import ServerJob, pick_next

if TYPE_CHECKING:
    from unmask.fleet.spread import SpreadModel

MOST_REPLACEMENTS = 3
"""Times that a server which was lost is placed again."""
ROOM_INTERVAL = 5.0
"""Seconds between two looks for room by somebody who needs it and whom nobody tells."""


class PlacedServers:
    """The servers behind one subject, one judge, or all adapters on one base. They stay while somebody uses them."""

    def __init__(
        self, rows: Sequence[ModelRow], spec: ServerSpec, *, limits: Limits, timeout: float, users: int
    ) -> None:
        from unmask.fleet.spread import SpreadModel

        serve = rows[0].serve
        self.spec = spec
        self.replicas = 1 if serve is None else serve.replicas
        self.models = {
            row.name: SpreadModel(row.model, expected=self.replicas, limits=limits, timeout=timeout) for row in rows
        }
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.unused = asyncio.Event()
        self.refusal: NoRoom | None = None
        """Why the fleet had no room for them, the last time it was asked."""
        self._users = users

    async def get_model(self, name: str) -> SpreadModel:
        """The model of one row, once a server is ready. Raises why there is none."""
        await asyncio.shield(self.ready)
        return self.models[name]

    def release(self) -> None:
        """One user less. The last one lets the servers go."""
        self._users -= 1
        if self._users <= 0:
            self.unused.set()

    def fail(self, error: UnmaskError) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # nobody need wait for it

    def give_up(self, reason: str) -> None:
        for model in self.models.values():
            model.give_up(reason)


class Placement:
    """Places servers in a fleet and drops them again. Belongs to the loop of the sweep."""

    def __init__(self, fleet: Fleet, *, tell: Callable[[str], None]) -> None:
        self._fleet, self._tell = fleet, tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._subjects_gone = asyncio.Event()
        self._freed = asyncio.Event()
        """Set whenever a server was dropped."""
        self._waiting: set[str] = set()
        """Servers of which was said that they wait for room."""

    async def close(self) -> None:
        """End all that is under way, and all servers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fleet.close()

    def plan_judge(self, row: ModelRow, *, limits: Limits, timeout: float, users: int, at_once: bool) -> PlacedServers:
        """Servers of a judge: placed at once, or when all subjects are gone."""
        servers = PlacedServers(
            [row],
            make_spec([row], choices=is_trained_judge(row.model)),
            limits=limits,
            timeout=timeout,
            users=users,
        )

        async def serve() -> None:
            if not at_once:
                await self._subjects_gone.wait()
            while await self._keep_servers_up(servers) is False:
                self._tell_waiting(servers.spec, servers.refusal)
                await self._await_room()

        self._start_task(serve())
        return servers

    def plan_subjects(
        self,
        rows: Sequence[ModelRow],
        *,
        limits: Callable[[ModelRow], Limits],
        timeout: float,
        seconds: Mapping[str, float],
        users: Mapping[str, int],
    ) -> dict[str, PlacedServers]:
        """Servers of all subjects that need one, by subject. They are placed as there is room for them."""
        groups: dict[tuple[object, ...], dict[str, ModelRow]] = {}
        for row in rows:
            if row.serve is not None:
                groups.setdefault(key_of_server(row), {})[row.name] = row
        by_row: dict[str, PlacedServers] = {}
        jobs: dict[str, tuple[ServerJob, PlacedServers]] = {}
        for members in groups.values():
            group = list(members.values())
            servers = PlacedServers(
                group,
                make_spec(group),
                limits=limits(group[0]),
                timeout=timeout,
                users=sum(users[row.name] for row in group),
            )
            by_row |= dict.fromkeys(members, servers)
            expected = sum(seconds[row.name] for row in group) / servers.replicas
            job = ServerJob(name=group[0].name, gpus=servers.spec.gpus * servers.replicas, seconds=expected)
            jobs[job.name] = job, servers
        self._start_task(self._place_subjects(jobs))
        return by_row

    def _start_task(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _place_subjects(self, waiting: dict[str, tuple[ServerJob, PlacedServers]]) -> None:
        """Place whatever fits, the longest work first, whenever something was freed: while the last units of one server
        end, the next one loads."""
        running: dict[asyncio.Task[bool], tuple[ServerJob, PlacedServers]] = {}
        refused: set[str] = set()
        await _let_servers_take_room()  # judges that are placed at once
        try:
            while waiting or running:
                candidates = [job for name, (job, _) in waiting.items() if name not in refused]
                job = pick_next(candidates, self._fleet.room())
                if job is not None:
                    entry = waiting.pop(job.name)
                    running[asyncio.create_task(self._keep_servers_up(entry[1]))] = entry
                    await _let_servers_take_room()
                    continue
                if not running:
                    for refused_job, servers in waiting.values():
                        servers.fail(
                            NoRoom(
                                f"server {servers.spec.name} needs {refused_job.gpus} GPUs, and no more become free"
                                + (f": {servers.refusal}" if servers.refusal is not None else ""),
                                advice="Give the fleet more GPUs, or let fewer judges be kept.",
                            )
                        )
                    return
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                refused.clear()
                for task in ended:
                    entry = running.pop(task)
                    if not task.cancelled() and task.exception() is None and task.result() is False:
                        waiting[entry[0].name] = entry
                        refused.add(entry[0].name)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._subjects_gone.set()

    async def _keep_servers_up(self, servers: PlacedServers) -> bool:
        """Keep servers up until nobody uses them. False where there was no room for the first one. All replicas are
        placed at once: they load side by side, and nobody else gets the GPUs that were counted for them."""
        placing = [asyncio.create_task(self._fleet.place(servers.spec)) for _ in range(servers.replicas - 1)]
        try:
            first = await self._fleet.place(servers.spec)
        except BaseException as error:
            await self._take_back(placing)
            if isinstance(error, NoRoom):
                servers.refusal = error
                return False
            if isinstance(error, UnmaskError):
                servers.fail(error)
                return True
            raise
        keepers = [asyncio.create_task(self._keep_up(servers, first))]
        keepers += [asyncio.create_task(self._keep_up(servers, None, placing=task)) for task in placing]
        try:
            await servers.unused.wait()
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
            for model in servers.models.values():
                await model.close()
            self._freed.set()
        return True

    async def _take_back(self, placing: list[asyncio.Task[Server]]) -> None:
        for task in placing:
            task.cancel()
        for server in await asyncio.gather(*placing, return_exceptions=True):
            if isinstance(server, Server):
                await self._fleet.drop(server)

    async def _keep_up(
        self, servers: PlacedServers, server: Server | None, *, placing: asyncio.Task[Server] | None = None
    ) -> None:
        """One server, placed again when it is lost. Each loss but one by the end of its walltime counts."""
        losses = 0
        try:
            while True:
                if server is None:
                    try:
                        begun, placing = placing, None
                        server = await self._place_with_patience(servers.spec, begun)
                    except UnmaskError as error:
                        losses += 1
                        if losses > MOST_REPLACEMENTS or not isinstance(error, ServerFailed):
                            servers.give_up(str(error))
                            return
                        self._tell(f"{servers.spec.name} did not come back, try {losses} of {MOST_REPLACEMENTS}")
                        continue
                for model in servers.models.values():
                    model.add(server)
                if not servers.ready.done():
                    servers.ready.set_result(None)
                await server.lost.wait()
                reason, ended = server.reason or "it has ended", server.deadline
                lost, server = server, None
                await self._fleet.drop(lost)
                self._freed.set()
                losses += not (ended is not None and time.time() >= ended - 60)
                if losses > MOST_REPLACEMENTS:
                    servers.give_up(f"{servers.spec.name} was lost {losses} times: {reason}")
                    return
                self._tell(f"{servers.spec.name} was lost and is placed again: {reason}")
        finally:
            if server is not None:
                for model in servers.models.values():
                    model.remove(server)
                with contextlib.suppress(UnmaskError):
                    await self._fleet.drop(server)

    async def _place_with_patience(self, spec: ServerSpec, placing: asyncio.Task[Server] | None) -> Server:
        """A server once there is room for it. `placing` is one that is under way already."""
        while True:
            try:
                return await (placing or self._fleet.place(spec))
            except NoRoom as error:
                placing = None
                self._tell_waiting(spec, error)
                await self._await_room()

    def _tell_waiting(self, spec: ServerSpec, reason: NoRoom | None) -> None:
        """Once for each server: nobody should wonder for hours why nothing happens."""
        if spec.name not in self._waiting:
            self._waiting.add(spec.name)
            self._tell(f"{spec.name} waits for room: {reason}")

    async def _await_room(self) -> None:
        self._freed.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._freed.wait(), ROOM_INTERVAL)


async def _let_servers_take_room() -> None:
    """What was begun just now takes its GPUs: the first server in the next turn of the loop, its replicas in the one
    after that."""
    for _ in range(2):
        await asyncio.sleep(0)
