"""When the servers of a sweep are started, started again and ended.

Servers that are needed together are a group. Groups are asked for in their order, one at a time, each for all of its
GPUs at once: two units never hold half of what each needs. Judges that are kept come first, because everybody waits for
them; when one has lost its machine, all others wait for room again, behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from unmask.errors import FatalModelError, TransientModelError, UnmaskError, UsageError
from unmask.models.base import Capabilities, Model
from unmask.models.keys import Key
from unmask.models.providers import row_of
from unmask.records import Completion, Request
from unmask.sweep.grid import ModelRow
from unmask.sweep.servers.base import Pool, Room, RoomLost, ServerAddress, ServerFailed, ServerSpec, fit
from unmask.sweep.specs import key_of_server, make_spec

MOST_LOSSES = 3
"""Times that a server which was lost is started again."""
ROOM_INTERVAL = 10.0
"""Seconds that a group waits for room before you are told, or others give theirs."""
Timeout = Callable[[ModelRow], float]
NOWHERE = ServerAddress("http://127.0.0.1:9/v1", "")
"""Only to see what a model can do."""


class ServedModel:
    """A model whose server comes and goes: a request waits while there is none, and one whose server is lost is asked
    again of the next. Belongs to one event loop."""

    def __init__(self, name: str, *, timeout: float) -> None:
        self.name = name
        self.endpoint = f"served:{name}"
        self._timeout = timeout
        self._model: Model | None = None
        self._capabilities = self._open(NOWHERE).capabilities
        self._asking: set[asyncio.Task[Completion]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._error: str | None = None
        self._changed = asyncio.Event()
        """Set while there is a server, or once there will be none."""

    def _open(self, address: ServerAddress) -> Model:
        """Its key is that of the server, whatever the environment says."""
        provider, key = row_of(self.name), Key(address.key, "the sweep") if address.key else None
        assert provider is not None
        target = provider.target(self.name, url=address.base_url, key=key, variables=("the sweep's key",))
        return provider.chat(target, timeout=self._timeout, max_n=provider.max_n)

    def use(self, address: ServerAddress) -> None:
        """A server is ready."""
        self._model = self._open(address)
        self._changed.set()

    def lose(self) -> None:
        """It is gone: what was asked of it is given up, and asked of the next one."""
        model, self._model = self._model, None
        self._changed.clear()
        for asking in self._asking:
            asking.cancel()
        if model is not None:
            closing = asyncio.create_task(model.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def fail(self, reason: str) -> None:
        """None will come."""
        self.lose()
        self._error = reason
        self._changed.set()

    @property
    def awaits_server(self) -> bool:
        return self._model is None and self._error is None

    @property
    def capabilities(self) -> Capabilities:
        """Also those of the next server: one that has refused `n` speaks for the others."""
        if self._model is not None and self._model.capabilities.max_n < self._capabilities.max_n:
            self._capabilities = self._model.capabilities
        return self._capabilities

    async def complete(self, request: Request) -> Completion:
        task = asyncio.current_task()
        while True:
            await self._changed.wait()
            if self._error is not None:
                raise FatalModelError(
                    f"no server of {self.name} is left: {self._error}",
                    advice="What was answered is kept. Mend what the log names, then run the same command again.",
                )
            if (model := self._model) is None:
                continue
            asking = asyncio.create_task(model.complete(request))
            self._asking.add(asking)
            try:
                return await asking
            except asyncio.CancelledError:
                if self._model is model or task is None or task.cancelling():
                    raise  # the one that asked has given up
            except TransientModelError as error:
                error.unreachable = False  # the server is gone or busy; its address is right
                raise
            finally:
                self._asking.discard(asking)

    async def close(self) -> None:
        self.lose()
        await asyncio.gather(*self._closing)


class Group:
    """Servers that are needed together. They stay while somebody uses them."""

    def __init__(
        self,
        servers: Sequence[Sequence[ModelRow]],
        folder: Path,
        *,
        timeout: Timeout,
        is_kept: bool,
        place: int = 0,
    ) -> None:
        self.specs = tuple(make_spec(rows, folder) for rows in servers)
        self.models_of = tuple(
            {row.name: ServedModel(row.model, timeout=timeout(row)) for row in rows} for rows in servers
        )
        self.models = {name: model for models in self.models_of for name, model in models.items()}
        self.is_kept, self.place = is_kept, place
        """Whether a judge stays to the end of its work, and the place of the first judge that its users need."""
        self.users = 0
        self.losses = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        """What serves it."""

    @property
    def title(self) -> str:
        return " and ".join(spec.name for spec in self.specs)

    def is_next_to(self, group: Group) -> bool:
        """Whether it has its room for as long as this group needs its own. The work of an earlier judge ends before."""
        return self.is_kept and (group.is_kept or self.place >= group.place)

    async def get_model(self, name: str) -> ServedModel:
        """The model of one row, once all servers are ready. Raises why they are not."""
        await asyncio.shield(self.ready)
        return self.models[name]

    def release(self) -> None:
        """One user less. The last one lets the servers go."""
        self.users -= 1
        if self.users <= 0 and self.task is not None:
            self.task.cancel()

    def fail(self, error: Exception) -> None:
        if not isinstance(error, UnmaskError):
            error = ServerFailed(f"{self.title}: {type(error).__name__}: {error}")
        for model in self.models.values():
            model.fail(str(error))
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # nobody need wait for it

    def count_loss(self, reason: str) -> None:
        """Raises when it was lost too often."""
        self.losses += 1
        if self.losses > MOST_LOSSES:
            raise ServerFailed(f"{self.title} was lost {self.losses} times: {reason}")


def group_servers(
    subjects: Sequence[ModelRow], judges: Sequence[ModelRow], folder: Path, *, timeout: Timeout
) -> tuple[list[Group], Callable[[ModelRow, int], list[Group]]]:
    """All groups in their order, and what a subject needs where it is read by the judge of a place: the server of the
    subject, for the first judge alone, and that of the judge. The first judge is kept unless its row says otherwise;
    then it comes and goes with the subjects, each of which has it for itself."""
    alone: dict[int, Group] = {}
    with_judge: list[ModelRow] = []
    for place, judge in enumerate(judges):
        if judge.serve is not None:
            is_kept = judge.serve.keep if judge.serve.keep is not None else place == 0
            if place == 0 and not is_kept:
                with_judge = [judge]
            else:
                alone[place] = Group([[judge]], folder, timeout=timeout, is_kept=is_kept, place=place)
    members: dict[tuple[object, ...], dict[str, ModelRow]] = {}
    for row in subjects:
        if row.serve is not None or with_judge:
            members.setdefault(key_of_server(row) if row.serve is not None else (), {})[row.name] = row
    together = {}
    for key, rows in members.items():
        served = [[row for row in rows.values() if row.serve is not None], with_judge]
        together[key] = Group(list(filter(None, served)), folder, timeout=timeout, is_kept=False)
    of_subject = {row.name: together[key] for key, rows in members.items() for row in rows.values()}
    kept = [group for group in alone.values() if group.is_kept]
    later = [group for group in alone.values() if not group.is_kept]

    def find_groups(subject: ModelRow, place: int) -> list[Group]:
        own = of_subject.get(subject.name) if place == 0 else None
        return [group for group in (alone.get(place), own) if group is not None]

    return [*kept, *together.values(), *later], find_groups


class Placement:
    """Asks a pool for room for groups, and keeps their servers up. Belongs to the loop of the sweep."""

    def __init__(self, pool: Pool, groups: Sequence[Group], *, tell: Callable[[str], None]) -> None:
        self._pool, self._tell = pool, tell
        self._groups = [group for group in groups if group.users]
        self._queue: list[tuple[Group, asyncio.Event]] = []
        """Groups that wait for room. The first of them asks for it."""
        self._serving: set[Group] = set()
        """Those that have it."""
        self._told: set[Group] = set()
        self._closing: set[asyncio.Future[None]] = set()

    def start(self) -> None:
        """Raises what no machine could ever hold."""
        self._refuse_impossible()
        for group in self._groups:
            group.task = asyncio.create_task(self._serve(group))

    async def close(self) -> None:
        """End all servers."""
        tasks = [group.task for group in self._groups if group.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._closing, return_exceptions=True)
        await asyncio.gather(*(model.close() for group in self._groups for model in group.models.values()))
        await self._pool.close()

    def _refuse_impossible(self) -> None:
        machines = self._pool.machines()
        problems = []
        for group in self._groups:
            together = [other for other in self._groups if other is group or other.is_next_to(group)]
            needed = [spec for other in together for spec in other.specs]
            if not fit(needed, machines):
                each = ", ".join(f"{spec.name} {_describe_needs(spec)}" for spec in needed)
                problems.append(f"needed at the same time: {each}")
        if problems:
            has = ", ".join(f"{machine.gpus:g}" for machine in machines)
            raise UsageError(
                f"some servers can never have room: the machines have {has} GPUs",
                problems=dict.fromkeys(problems),
                advice="Nothing was started. Lower tensor_parallel or gpus of a server, or give the sweep more GPUs.",
            )

    async def _serve(self, group: Group) -> None:
        """Keep the servers of a group up until nobody uses them. It waits for room again when its machine is lost."""
        try:
            while True:
                room = await self._get_room(group)
                try:
                    await self._keep_all_up(group, room)
                except RoomLost as error:
                    group.count_loss(str(error))
                    self._tell(f"{group.title} was lost and is started again where there is room: {error}")
                finally:
                    await self._leave_room(group, room)
                if group.is_kept:  # everybody waits for it
                    await self._restart([other for other in self._groups if not other.is_kept])
        except Exception as error:
            group.fail(error)

    async def _get_room(self, group: Group) -> Room:
        """Room for all of its servers at once, when its turn has come: judges that are kept go before the others."""
        turn = asyncio.Event()
        self._queue.append((group, turn))
        self._queue[1:] = sorted(self._queue[1:], key=lambda entry: not entry[0].is_kept)
        try:
            self._queue[0][1].set()
            await turn.wait()
            room = await self._reserve(group)
        finally:
            self._queue.remove((group, turn))
            if self._queue:
                self._queue[0][1].set()
        self._serving.add(group)
        return room

    async def _reserve(self, group: Group) -> Room:
        reserving = asyncio.ensure_future(self._pool.reserve(group.specs))
        try:
            while not (await asyncio.wait({reserving}, timeout=ROOM_INTERVAL))[0]:
                await self._make_room(group)
            return reserving.result()
        except asyncio.CancelledError:
            reserving.cancel()
            await asyncio.wait({reserving})
            if not reserving.cancelled() and reserving.exception() is None:
                await reserving.result().close()
            raise

    async def _make_room(self, group: Group) -> None:
        """Only judges that end after this group may be there: one of them may be in the only place for it, and not in
        its own only one. They make room once."""
        is_alone = all(other.is_kept for other in self._serving)
        if group in self._told or not (is_alone or group.is_kept):  # that subjects wait for each other is no news
            return
        self._told.add(group)
        self._tell(f"{group.title} waits for room")
        if not group.is_kept:
            await self._restart([other for other in self._serving if other.is_next_to(group)])

    async def _restart(self, groups: Sequence[Group]) -> None:
        """Let these groups leave their room, or the queue, and wait for room again."""
        tasks = {group: group.task for group in groups if group.task is not None and not group.task.done()}
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        for group in tasks:
            if group.users > 0:
                group.task = asyncio.create_task(self._serve(group))

    async def _leave_room(self, group: Group, room: Room) -> None:
        for model in group.models.values():
            model.lose()
        closing = asyncio.ensure_future(room.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)
        self._serving.discard(group)

    async def _keep_all_up(self, group: Group, room: Room) -> None:
        keepers = [asyncio.create_task(self._keep_up(group, room, number)) for number in range(len(group.specs))]
        try:
            await asyncio.gather(*keepers)
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

    async def _keep_up(self, group: Group, room: Room, number: int) -> None:
        """One server, started again when it is lost. Raises when it does not come up, or was lost too often."""
        name, models = group.specs[number].name, group.models_of[number].values()
        while True:
            try:
                address = await room.start(number)
            except ServerFailed as error:
                if not group.ready.done():
                    raise
                group.count_loss(str(error))
                self._tell(f"{name} did not come back, try {group.losses} of {MOST_LOSSES}")
                continue
            for model in models:
                model.use(address)
            if not group.ready.done() and not any(model.awaits_server for model in group.models.values()):
                group.ready.set_result(None)
            reason = await room.await_loss(number)
            for model in models:
                model.lose()
            group.count_loss(reason)
            self._tell(f"{name} was lost and is started again: {reason}")


def _describe_needs(spec: ServerSpec) -> str:
    labels = "".join(f" with {name}={value}" for name, value in spec.labels.items())
    return f"({spec.gpus} GPUs{labels})"
