"""What a pool is: GPUs, here or on a cluster, on which the servers of a sweep run.

A sweep reserves room for the servers that are needed together, starts them in it, and starts one again that was lost.
Who starts the process, and on which machine, is the pool's affair: `local` and `ray` differ only there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from unmask.errors import UnmaskError
from unmask.records import Record


class ServerSpec(Record, frozen=True, kw_only=True):
    """A server to be started.

    `command` has `{host}`, `{port}` and `{name}` to be filled in; it serves the OpenAI protocol under `name`.
    """

    name: str
    command: tuple[str, ...]
    folder: str | None = None
    """Where it is started, if the machine has that folder."""
    environment: Mapping[str, str] = {}
    gpus: int = 0
    labels: Mapping[str, str] = {}
    ready_within: float = 900.0
    """Seconds from start to the first answer."""
    answers_within: float = 120.0
    """Seconds after which a server that gives no answer to one token's worth of a question counts as lost."""
    check_every: float = 10.0
    """Seconds between two such questions."""


class ServerAddress(NamedTuple):
    """Where a server that is ready is asked."""

    base_url: str
    key: str


class ServerFailed(UnmaskError):
    """The server did not become ready. The message has the last lines of its log."""

    exit_code = 4


class RoomLost(UnmaskError):
    """The machine or the process that held the room is gone, and the servers in it with it."""

    exit_code = 4


class Room(Protocol):
    """GPUs for the servers that are needed together."""

    async def start(self, number: int) -> ServerAddress:
        """Start the server of this number, or start it again, and wait until it answers. Raises `ServerFailed` or
        `RoomLost`."""
        ...

    async def await_loss(self, number: int) -> str:
        """Why a server that was ready is gone, with the last lines of its log. Raises `RoomLost`."""
        ...

    async def close(self) -> None:
        """End the servers with everything they started, and give the GPUs back. Raises nothing where they are gone."""
        ...


class Machine(NamedTuple):
    """What one machine could hold if nothing ran on it."""

    gpus: float
    labels: Mapping[str, str] = {}


class Pool(Protocol):
    """All methods belong to the loop of the sweep."""

    def machines(self) -> list[Machine]: ...

    async def reserve(self, specs: Sequence[ServerSpec]) -> Room:
        """Wait until there is room for all of these servers at once."""
        ...

    async def close(self) -> None:
        """Leave the cluster. All rooms are closed before."""
        ...


def fit(specs: Sequence[ServerSpec], machines: Sequence[Machine]) -> bool:
    """Whether the machines could hold all of these servers, each on one of them."""
    if not specs:
        return True
    first, *rest = sorted(specs, key=lambda spec: -spec.gpus)
    return any(
        machine.gpus >= first.gpus
        and _has_labels(machine, first)
        and machine not in machines[:place]
        and fit(rest, [*machines[:place], machine._replace(gpus=machine.gpus - first.gpus), *machines[place + 1 :]])
        for place, machine in enumerate(machines)
    )


def _has_labels(machine: Machine, spec: ServerSpec) -> bool:
    """Ray knows operators, as in `!name` and `in(a, b)`: only Ray can tell what they mean."""
    return all(machine.labels.get(name) == value or "(" in value or "!" in value for name, value in spec.labels.items())
