"""One model behind several servers of a fleet.

Requests go to the server with the fewest under way. A server that is lost is taken out and its requests go to the
others; while none is there and one is expected, they wait, and no try is counted. Servers of our own that vanish are
no wrong address: only when none is left and none is expected the run ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from unmask.errors import FatalModelError, TransientModelError
from unmask.fleet.base import Server
from unmask.models.base import Capabilities, Model
from unmask.models.endpoint import AnyEndpoint, Endpoint, GatedModel, Limits
from unmask.models.keys import Key
from unmask.models.providers import PROVIDERS, provider_of
from unmask.records import Completion, Request


def open_served_model(name: str, *, base_url: str, key: str, timeout: float = 1800.0) -> Model:
    """The model of a server of our own. Its key is that of the server, whatever the environment says."""
    provider = PROVIDERS[provider_of(name) or ""]
    source = Key(key, "the fleet") if key else None
    target = provider.build_target(
        name, url=base_url, path=provider.api.chat_path, key=source, variables=("the fleet's key",)
    )
    return provider.api.open(target, model=name.partition("/")[2], timeout=timeout, max_n=provider.max_n)


class OwnServerModel:
    """The model of one server of ours. A connection that is refused there says that the server is gone or busy, never
    that its address is wrong."""

    def __init__(self, model: Model) -> None:
        self.name, self.endpoint, self._model = model.name, model.endpoint, model

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    async def complete(self, request: Request) -> Completion:
        try:
            return await self._model.complete(request)
        except TransientModelError as error:
            error.unreachable = False
            raise

    async def close(self) -> None:
        await self._model.close()


class SpreadMember:
    """One server in use."""

    def __init__(self, server: Server, model: OwnServerModel, gate: Endpoint) -> None:
        self.server, self.model, self.gate = server, model, gate
        self.is_lost = False
        self.reserved = 0
        """Requests that were sent by a call whose coroutine has not begun."""
        self.calls: set[asyncio.Task[Any]] = set()
        """Tasks whose request is at this server."""
        self.is_empty = asyncio.Event()
        """Set when the last of them has left a lost server."""
        self.watch: asyncio.Task[None] | None = None

    def count_free(self) -> int:
        free = self.gate.free(self.model)
        return free if self.gate.has_refused(self.model) else max(0, free - self.reserved)


class SpreadModel(GatedModel):
    """A model whose servers come and go. `name` is as for any model, `vllm/NAME`; `expected` says how many servers
    there are or will be. Whoever places them calls `add` for each that is ready, also for one that replaces a lost one,
    and `give_up` for each that will not come (back).

    It is its own gate: what `Endpoint` is to a model with one address, with an `Endpoint` of its own for each server.
    Belongs to one event loop.
    """

    def __init__(self, name: str, *, expected: int = 1, limits: Limits | None = None, timeout: float = 1800.0) -> None:
        self.name = name
        self.endpoint = f"fleet:{name}"
        self.limits = limits or Limits()
        self.expected = expected
        self.last_error: str | None = None
        self._timeout = timeout
        self._capabilities = open_served_model(name, base_url="http://127.0.0.1:9/v1", key="").capabilities
        self._members: list[SpreadMember] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        """Replaced at every change of the servers, so that whoever waits looks again."""
        self._stopped: set[object] = set()
        self._waiting: dict[asyncio.Task[Any], object] = {}
        """Tasks that wait for a server, with their users."""
        self._past = {"retries": 0, "throttles": 0}
        """What servers counted that are gone."""

    @property
    def gate(self) -> AnyEndpoint:
        return self

    # --- what the one who places servers says ---------------------------------------------------------------------

    def add(self, server: Server) -> None:
        """Use this server from now on, until it is lost."""
        model = OwnServerModel(
            open_served_model(self.name, base_url=server.base_url, key=server.key, timeout=self._timeout)
        )
        member = SpreadMember(server, model, Endpoint(model.endpoint, self.limits, on_free=self._tell_free))
        member.gate.vouch(model)  # its supervisor has had an answer
        member.watch = asyncio.create_task(self._take_out_when_lost(member))
        self._members.append(member)
        self._tell_changed()

    def give_up(self, reason: str) -> None:
        """One server less will be there."""
        self.expected -= 1
        self.last_error = reason
        self._tell_changed()

    def remove(self, server: Server) -> None:
        """Use this server no more: its requests go to the others. For one that is about to be dropped."""
        for member in [member for member in self._members if member.server is server]:
            assert member.watch is not None
            member.watch.cancel()
            self._take_out(member)

    async def _take_out_when_lost(self, member: SpreadMember) -> None:
        await member.server.lost.wait()
        self.last_error = member.server.reason
        self._take_out(member)

    def _take_out(self, member: SpreadMember) -> None:
        member.is_lost = True
        self._members.remove(member)
        for name in self._past:
            self._past[name] += getattr(member.gate, name)
        for task in member.calls:
            task.cancel()  # `_send_to_member` takes that back and goes elsewhere
        leaving = asyncio.create_task(self._close_member(member))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        self._tell_changed()

    async def _close_member(self, member: SpreadMember) -> None:
        if member.calls:
            await member.is_empty.wait()
        await member.gate.close()
        await member.model.close()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        self._tell_free()

    def _tell_free(self) -> None:
        if self.on_free is not None:
            self.on_free()

    # --- a model --------------------------------------------------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        """What all servers can do: one that has refused `n` speaks for the others."""
        most = min((member.model.capabilities.max_n for member in self._members), default=self._capabilities.max_n)
        if most < self._capabilities.max_n:
            self._capabilities = msgspec.structs.replace(self._capabilities, max_n=most)
        return self._capabilities

    async def complete(self, request: Request) -> Completion:
        return await self.send(self, request)

    async def close(self) -> None:
        """Release connections. Called once, after the last request of the last run."""
        for member in self._members:
            assert member.watch is not None
            member.watch.cancel()
            await member.gate.close()
            await member.model.close()
        self._members.clear()
        await asyncio.gather(*self._leaving)

    # --- a gate ---------------------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        return sum(member.gate.in_flight for member in self._members)

    @property
    def limit(self) -> int:
        return sum(member.gate.limit for member in self._members)

    @property
    def pause(self) -> float:
        return min((member.gate.pause for member in self._members), default=0.0)

    @property
    def retries(self) -> int:
        return self._past["retries"] + sum(member.gate.retries for member in self._members)

    @property
    def throttles(self) -> int:
        return self._past["throttles"] + sum(member.gate.throttles for member in self._members)

    @property
    def awaits_server(self) -> bool:
        return not self._members and self.expected > 0

    def free(self, model: Model) -> int:
        """How many requests may start now: what all servers have free. With no server left and none expected it is one,
        so that whoever comes is told."""
        if None in self._stopped:
            return 0
        if not self._members:
            return 0 if self.expected > 0 else 1
        return sum(member.count_free() for member in self._members)

    def send(self, model: Model, request: Request, *, user: object = None) -> Coroutine[Any, Any, Completion]:
        """As `Endpoint.send`: the place is taken at the call."""
        member = self._pick_member()
        if member is not None:
            member.reserved += 1
        return self._send_to_member(member, request, user)

    def vouch(self, model: Model) -> None:
        """Nothing to do: supervisors have had answers of all servers."""

    def stop(self, user: object = None) -> None:
        """Send nothing more of this user, or of anybody."""
        self._stopped.add(user)
        for member in self._members:
            member.gate.stop(user)
        for task, owner in self._waiting.items():
            if user is None or owner is user:
                task.cancel()

    def _pick_member(self) -> SpreadMember | None:
        """The server with the fewest requests under way, one with room before one without. One that has refused the key
        or the model has room for everybody: all servers run the same command, and who asks gets its reason."""
        return min(
            self._members,
            key=lambda member: (member.count_free() <= 0, member.gate.in_flight + member.reserved),
            default=None,
        )

    async def _send_to_member(self, member: SpreadMember | None, request: Request, user: object) -> Completion:
        task = asyncio.current_task()
        assert task is not None
        if member is not None:
            member.reserved -= 1
        while True:
            if member is None or member.is_lost:
                member = await self._await_member(task, user)
            asked_to_stop = task.cancelling()
            member.calls.add(task)
            try:
                return await member.gate.send(member.model, request, user=user)
            except asyncio.CancelledError:
                if not member.is_lost or task.uncancel() > asked_to_stop:
                    raise
            except (TransientModelError, FatalModelError):
                if not member.is_lost:
                    raise
            finally:
                member.calls.discard(task)
                if member.is_lost and not member.calls:
                    member.is_empty.set()

    async def _await_member(self, task: asyncio.Task[Any], user: object) -> SpreadMember:
        """The next server to ask. Waits while none is there and one is expected."""
        while True:
            if None in self._stopped or user in self._stopped:
                raise asyncio.CancelledError
            if (member := self._pick_member()) is not None:
                return member
            if self.expected <= 0:
                reason = f": {self.last_error}" if self.last_error else ""
                raise FatalModelError(
                    f"no server of {self.name} is left{reason}",
                    advice="What was answered is kept. Mend what the log names, then run the same command again.",
                )
            self._waiting[task] = user
            try:
                await self._changed.wait()
            finally:
                self._waiting.pop(task, None)
