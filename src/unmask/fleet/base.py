"""What a fleet is: something that starts model servers where there is room, and ends them.

A sweep asks for a server with `place`, sends its requests to the address, and gives it back with `drop`. Who starts the
process, on which machine, is the fleet's affair: `none`, `local` and `ray` differ only here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from unmask.errors import UnmaskError
from unmask.records import Record


class ServerSpec(Record, frozen=True, kw_only=True):
    """A server to be placed.

    `command` is what is started, with `{host}`, `{port}` and `{name}` to be filled in; it serves the OpenAI protocol
    under `name`. `choices` asks that it answers a constrained question before it counts as ready, as a judge that
    picks needs it.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    gpus: int = 0
    labels: Mapping[str, str] = {}
    choices: bool = False
    ready_within: float = 900.0
    """Seconds from start to the first answer."""
    answers_within: float = 120.0
    """Seconds after which a server that gives no answer to one token's worth of a question counts as lost."""
    check_every: float = 10.0
    """Seconds between two such questions."""


class Server:
    """A server that is ready. `lost` is set when it has died or its machine is gone; `reason` then says what is known,
    with the last lines of its log."""

    def __init__(self, spec: ServerSpec, *, base_url: str, key: str) -> None:
        self.spec = spec
        self.base_url = base_url
        self.key = key
        self.lost = asyncio.Event()
        self.reason: str | None = None
        self.deadline: float | None = None
        """When the machine is taken away, as seconds since the epoch; `None` where nobody knows."""


class NoRoom(UnmaskError):
    """There is no place for this server now; there may be one when another was dropped."""

    exit_code = 4


class ServerFailed(UnmaskError):
    """The server did not become ready. The message has the last lines of its log."""

    exit_code = 4


class Fleet(Protocol):
    """One way to place servers. All methods belong to the loop of the sweep."""

    async def place(self, spec: ServerSpec) -> Server:
        """Start a server and wait until it answers; raises `NoRoom` or `ServerFailed`."""
        ...

    async def drop(self, server: Server) -> None:
        """End a server with everything it started. Never raises for one that is gone already."""
        ...

    def room(self) -> Mapping[str, float]:
        """What is free: `gpus`, and where it is limited, `servers`."""
        ...

    async def close(self) -> None:
        """End all servers that are left."""
        ...
