"""The servers that rows of a grid ask for, and the command behind `serve = { engine = "vllm", … }`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from unmask.errors import UsageError
from unmask.models.local.catalogue import is_trained_judge
from unmask.sweep.grid import ModelRow, find_checkpoint, find_program
from unmask.sweep.servers.base import ServerSpec

PROGRAM = ("vllm", "serve")

_OURS = {
    "--host": "the sweep chooses the address",
    "--port": "the sweep chooses a free port",
    "--api-key": "the sweep makes a key for each server, and a command line is no place for one",
    "--served-model-name": "the name of the subject or judge is used",
    "--model": "write it as model",
    "--tensor-parallel-size": "write it as tensor_parallel",
    "-tp": "write it as tensor_parallel",
    "--data-parallel-size": "write it as data_parallel",
    "-dp": "write it as data_parallel",
    "--enable-lora": "write the adapters as lora",
    "--lora-modules": "write the adapters as lora",
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
    adapters = {row.name: row.serve.lora for row in rows if row.serve is not None and row.serve.lora}
    name, command, gpus = row.name, (*find_program(serve.command, folder), *serve.args), 0
    if serve.engine:
        name = Path(str(serve.model)).name if adapters else row.name
        command = make_vllm_command(
            name,
            model=find_checkpoint(str(serve.model), folder),
            tensor_parallel=serve.tensor_parallel,
            data_parallel=serve.data_parallel,
            args=serve.args,
            lora={adapter: find_checkpoint(path, folder) for adapter, path in adapters.items()},
            program=find_program(serve.program, folder) or PROGRAM,
        )
        gpus = serve.tensor_parallel * serve.data_parallel
    return ServerSpec(
        name=name,
        command=command,
        environment=serve.env,
        gpus=gpus if serve.gpus is None else serve.gpus,
        labels=serve.labels,
        choices=is_trained_judge(row.model),
        ready_within=serve.ready_within,
        answers_within=serve.answers_within,
        check_every=min(10.0, serve.answers_within),
    )


def make_vllm_command(
    name: str,
    *,
    model: str,
    tensor_parallel: int = 1,
    data_parallel: int = 1,
    args: Sequence[str] = (),
    lora: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
) -> tuple[str, ...]:
    """What starts vLLM for `model`, a folder or a name on the hub. `lora` has adapters of it by the name under which
    each is served. `program` is what starts vLLM where that is not the command `vllm serve`."""
    for argument in args:
        flag = argument.partition("=")[0]
        if flag in _OURS:
            raise UsageError(f"{flag} cannot be an argument of server {name}: {_OURS[flag]}")
    # Only `vllm serve` takes the model by its place.
    chosen = (model,) if tuple(program) == PROGRAM else ("--model", model)
    command = [*program, *chosen, "--host", "{host}", "--port", "{port}", "--served-model-name", "{name}"]
    if tensor_parallel > 1:  # processes, not Ray: its placement groups collide with those of a sweep
        command += ["--tensor-parallel-size", str(tensor_parallel), "--distributed-executor-backend", "mp"]
    if data_parallel > 1:
        command += ["--data-parallel-size", str(data_parallel)]
    if lora:
        command += ["--enable-lora", "--lora-modules", *(f"{adapter}={path}" for adapter, path in lora.items())]
    return (*command, *args)
