"""One model behind several servers of a fleet.

Requests go to the server with the fewest under way. A server that is lost is taken out and its requests go to the
others; while none is there and one is expected, they wait, and no try is counted. Servers of our own that vanish are
no wrong address: only when none is left and none is expected the run ends.
"""

from __future__ import annotations

import asyncio

import msgspec

from unmask.errors import FatalModelError, TransientModelError
from unmask.fleet.base import Server
from unmask.models.base import Capabilities, Model
from unmask.models.keys import Key
from unmask.models.limiter import Limits
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


class SpreadMember:
    """One server in use."""

    def __init__(self, server: Server, model: Model) -> None:
        self.server, self.model = server, model
        self.is_lost = False
        self.asking: set[asyncio.Task[Completion]] = set()
        """Requests that are at this server."""
        self.watch: asyncio.Task[None] | None = None


class SpreadModel:
    """A model whose servers come and go. `name` is as for any model, `vllm/NAME`; `expected` says how many servers
    there are or will be. Whoever places them calls `add` for each that is ready, also for one that replaces a lost one,
    and `give_up` for each that will not come (back).

    Belongs to one event loop.
    """

    def __init__(self, name: str, *, expected: int = 1, limits: Limits | None = None, timeout: float = 1800.0) -> None:
        self.name = name
        self.endpoint = f"fleet:{name}"
        self.expected = expected
        each = limits or Limits()
        self.limits = msgspec.structs.replace(each, max_connections=each.max_connections * expected)
        """Of all servers together."""
        self.last_error: str | None = None
        self._timeout = timeout
        self._capabilities = open_served_model(name, base_url="http://127.0.0.1:9/v1", key="").capabilities
        self._members: list[SpreadMember] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        """Replaced at every change of the servers, so that whoever waits looks again."""

    # --- what the one who places servers says ---------------------------------------------------------------------

    def add(self, server: Server) -> None:
        """Use this server from now on, until it is lost."""
        model = open_served_model(self.name, base_url=server.base_url, key=server.key, timeout=self._timeout)
        member = SpreadMember(server, model)
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
        leaving = asyncio.create_task(_close_member(member))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        self._tell_changed()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # --- a model --------------------------------------------------------------------------------------------------

    @property
    def awaits_server(self) -> bool:
        return not self._members and self.expected > 0

    @property
    def capabilities(self) -> Capabilities:
        """What all servers can do: one that has refused `n` speaks for the others."""
        most = min((member.model.capabilities.max_n for member in self._members), default=self._capabilities.max_n)
        if most < self._capabilities.max_n:
            self._capabilities = msgspec.structs.replace(self._capabilities, max_n=most)
        return self._capabilities

    async def complete(self, request: Request) -> Completion:
        """The answer of the server with the fewest requests. One that is lost meanwhile has not answered."""
        task = asyncio.current_task()
        while True:
            member = await self._await_member()
            asking = asyncio.create_task(member.model.complete(request))
            member.asking.add(asking)
            try:
                return await asking
            except asyncio.CancelledError:
                if not member.is_lost or task is None or task.cancelling():
                    raise
            except (TransientModelError, FatalModelError) as error:
                if not member.is_lost:
                    if isinstance(error, TransientModelError):
                        error.unreachable = False  # the server is gone or busy; its address is right
                    raise
            finally:
                member.asking.discard(asking)

    async def _await_member(self) -> SpreadMember:
        """The next server to ask. Waits while none is there and one is expected."""
        while not self._members:
            if self.expected <= 0:
                reason = f": {self.last_error}" if self.last_error else ""
                raise FatalModelError(
                    f"no server of {self.name} is left{reason}",
                    advice="What was answered is kept. Mend what the log names, then run the same command again.",
                )
            await self._changed.wait()
        return min(self._members, key=lambda member: len(member.asking))

    async def close(self) -> None:
        """Release connections. Called once, after the last request of the last run."""
        for member in self._members:
            assert member.watch is not None
            member.watch.cancel()
            await member.model.close()
        self._members.clear()
        await asyncio.gather(*self._leaving)


async def _close_member(member: SpreadMember) -> None:
    """Give up what is at a lost server: `complete` asks another."""
    for asking in (given_up := list(member.asking)):
        asking.cancel()
    await asyncio.gather(*given_up, return_exceptions=True)
    await member.model.close()
