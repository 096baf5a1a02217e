"""The servers that rows of a grid ask for, and the command behind `serve = { engine = "vllm", … }`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from unmask.errors import UsageError
from unmask.sweep.grid import ModelRow, ServeTable
from unmask.sweep.servers.base import ServerSpec

PROGRAM = ("vllm", "serve")

_OURS = {
    **dict.fromkeys(("--host", "--port"), "the sweep chooses the address"),
    **dict.fromkeys(("--tensor-parallel-size", "-tp"), "write it as tensor_parallel"),
    **dict.fromkeys(("--data-parallel-size", "-dp"), "write it as data_parallel"),
    **dict.fromkeys(("--enable-lora", "--lora-modules"), "write the adapters as lora"),
    "--api-key": "the sweep makes a key for each server, and a command line is no place for one",
    "--served-model-name": "the name of the subject or judge is used",
    "--model": "write it as model",
}


def key_of_server(row: ModelRow) -> tuple[object, ...]:
    """What tells two servers apart. Adapters on one base share a server."""
    if row.serve is None or not row.serve.lora:
        return (row.name,)
    base = msgspec.structs.replace(row.serve, lora=None)
    return (msgspec.json.encode(base, order="deterministic"), row.max_connections, row.requests_per_minute)


def make_spec(rows: Sequence[ModelRow], folder: Path) -> ServerSpec:
    """The server behind these rows of a grid in this folder: several only where they are adapters on one base."""
    row, serve = rows[0], rows[0].serve
    assert serve is not None
    name, command, gpus = row.name, (*serve.command, *serve.args), 0
    if serve.engine:
        adapters = {row.name: row.serve.lora for row in rows if row.serve is not None and row.serve.lora}
        name = Path(str(serve.model)).name if adapters else row.name
        command = _make_vllm_command(name, serve, adapters)
        gpus = serve.tensor_parallel * serve.data_parallel
    return ServerSpec(
        name=name,
        command=command,
        folder=str(folder.absolute()),
        environment=serve.env,
        gpus=gpus if serve.gpus is None else serve.gpus,
        labels=serve.labels,
        ready_within=serve.ready_within,
        answers_within=serve.answers_within,
        check_every=min(10.0, serve.answers_within),
    )


def _make_vllm_command(name: str, serve: ServeTable, adapters: Mapping[str, str]) -> tuple[str, ...]:
    for argument in serve.args:
        flag = argument.partition("=")[0]
        if flag in _OURS:
            raise UsageError(f"{flag} cannot be an argument of server {name}: {_OURS[flag]}")
    program, weights = serve.program or PROGRAM, os.path.expanduser(str(serve.model))
    # Only `vllm serve` takes the model by its place.
    command = [*program, *((weights,) if program == PROGRAM else ("--model", weights))]
    command += ["--host", "{host}", "--port", "{port}", "--served-model-name", "{name}"]
    if serve.tensor_parallel > 1:  # processes, not Ray: its placement groups collide with those of a sweep
        command += ["--tensor-parallel-size", str(serve.tensor_parallel), "--distributed-executor-backend", "mp"]
    if serve.data_parallel > 1:
        command += ["--data-parallel-size", str(serve.data_parallel)]
    if adapters:
        modules = (f"{adapter}={os.path.expanduser(path)}" for adapter, path in adapters.items())
        command += ["--enable-lora", "--lora-modules", *modules]
    return (*command, *serve.args)
