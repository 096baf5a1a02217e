"""The fleets that a grid can name, and the servers that its rows ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.errors import MissingError, UsageError
from unmask.fleet.base import Fleet, NoRoom, Server, ServerSpec
from unmask.records import Record

if TYPE_CHECKING:
    from unmask.sweep.grid import ModelRow


class NoFleet:
    """Starts nothing: every address is in the grid."""

    async def place(self, spec: ServerSpec) -> Server:
        raise NoRoom(f"the fleet none starts no servers, and {spec.name} needs one", advice="[sweep] fleet = 'local'")

    async def drop(self, server: Server) -> None:
        """There is none."""

    def room(self) -> Mapping[str, float]:
        return {"gpus": 0.0, "servers": 0.0}

    async def close(self) -> None:
        """There is nothing to end."""


class FleetSettings(Record, frozen=True, kw_only=True):
    """`[fleet]` of the fleet none, which has no keys."""

    def check(self) -> None:
        """Raise what is wrong with the values."""


class LocalSettings(FleetSettings, frozen=True, kw_only=True):
    """`[fleet]` of the fleet local."""

    gpus: tuple[int, ...] = ()

    def check(self) -> None:
        if self.gpus and min(self.gpus) < 0:
            raise UsageError(f"gpus has {min(self.gpus)}: an index as nvidia-smi shows it is at least 0")


class RaySettings(FleetSettings, frozen=True, kw_only=True):
    """`[fleet]` of the fleet ray."""

    address: str | None = None
    gpus: int | None = None


class FleetEntry(Record, frozen=True):
    """A fleet that can be opened: with the folder of the sweep, and with what `[fleet]` says for it."""

    open: Callable[[Path, dict[str, Any]], Fleet]
    settings: type[FleetSettings] = FleetSettings
    package: str | None = None
    """What has to be installed for it."""


def _import_fleet(name: str, class_name: str) -> Callable[[Path, dict[str, Any]], Fleet]:
    """Opens `unmask.fleet.NAME`, which is imported then: a fleet needs what others do not have installed."""

    def open_it(folder: Path, settings: dict[str, Any]) -> Fleet:
        fleet: Fleet = getattr(import_module(f"unmask.fleet.{name}"), class_name)(**settings, folder=folder)
        return fleet

    return open_it


FLEETS: dict[str, FleetEntry] = {
    "none": FleetEntry(lambda folder, settings: NoFleet()),
    "local": FleetEntry(_import_fleet("local", "LocalFleet"), LocalSettings),
    "ray": FleetEntry(_import_fleet("ray", "RayFleet"), RaySettings, "ray"),
}


def need_fleet(name: str) -> None:
    """An error where what a fleet is made of is not installed."""
    package = FLEETS[name].package
    if package is not None and find_spec(package) is None:
        raise MissingError(f"the fleet {name} needs {package}", advice=f"pip install 'unmask[{name}]'")


def open_fleet(name: str, folder: Path, settings: FleetSettings) -> Fleet:
    """The fleet of a sweep. Its files stand in `fleet/` of the sweep's folder."""
    return FLEETS[name].open(folder / "fleet", msgspec.structs.asdict(settings))


def key_of_server(row: ModelRow) -> tuple[object, ...]:
    """What tells two servers apart. Adapters on one base share a server."""
    serve = row.serve
    if serve is None:
        return ()
    if not serve.lora:
        return ("own", row.name)
    base = msgspec.structs.replace(serve, lora=None)
    return ("lora", msgspec.json.encode(base, order="deterministic"), row.max_connections, row.requests_per_minute)


def make_spec(rows: list[ModelRow], *, choices: bool = False) -> ServerSpec:
    """The server behind these rows: several only where they are adapters on one base."""
    row = rows[0]
    serve = row.serve
    if serve is None:
        raise TypeError(f"{row.name} is not served")
    settings: dict[str, Any] = {
        "environment": serve.env,
        "labels": serve.labels,
        "choices": choices,
        "ready_within": serve.ready_within,
        "answers_within": serve.answers_within,
        "check_every": min(10.0, serve.answers_within),
    }
    if serve.gpus is not None:
        settings["gpus"] = serve.gpus
    if not serve.engine:
        return ServerSpec(name=row.name, command=(*serve.command, *serve.args), **settings)
    from unmask.fleet.vllm import PROGRAM, make_vllm_spec

    adapters = {row.name: row.serve.lora for row in rows if row.serve is not None and row.serve.lora}
    return make_vllm_spec(
        Path(str(serve.model)).name if adapters else row.name,
        model=str(serve.model),
        tensor_parallel=serve.tensor_parallel,
        args=serve.args,
        lora=adapters or None,
        program=serve.program or PROGRAM,
        **settings,
    )
