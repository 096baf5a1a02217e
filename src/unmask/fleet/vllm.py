"""What `serve = { engine = "vllm", … }` starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unmask.errors import UsageError
from unmask.fleet.base import ServerSpec

PROGRAM = ("vllm", "serve")

_OURS = {
    "--host": "the fleet chooses the address",
    "--port": "the fleet chooses a free port",
    "--api-key": "the fleet makes a key for each server, and a command line is no place for one",
    "--served-model-name": "the name of the subject or judge is used",
    "--model": "write it as model",
    "--tensor-parallel-size": "write it as tensor_parallel",
    "-tp": "write it as tensor_parallel",
    "--enable-lora": "write the adapters as lora",
    "--lora-modules": "write the adapters as lora",
}


def make_vllm_spec(
    name: str,
    *,
    model: str,
    tensor_parallel: int = 1,
    args: Sequence[str] = (),
    lora: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
    **settings: Any,
) -> ServerSpec:
    """A vLLM server for `model`, a folder or a name on the hub, that calls it `name`. `lora` has adapters of it by the
    name under which each is served. `program` is what starts vLLM where that is not the command `vllm serve`.
    `settings` are further fields of the spec."""
    for argument in args:
        flag = argument.partition("=")[0]
        if flag in _OURS:
            raise UsageError(f"{flag} cannot be an argument of server {name}: {_OURS[flag]}")
    if tensor_parallel < 1:
        raise UsageError(f"tensor_parallel of server {name} is {tensor_parallel}; it is at least 1")
    # Only `vllm serve` takes the model by its place.
    chosen = (model,) if tuple(program) == PROGRAM else ("--model", model)
    command = [*program, *chosen, "--host", "{host}", "--port", "{port}", "--served-model-name", "{name}"]
    if tensor_parallel > 1:  # processes, not Ray: its placement groups collide with those of a fleet
        command += ["--tensor-parallel-size", str(tensor_parallel), "--distributed-executor-backend", "mp"]
    if lora:
        command += ["--enable-lora", "--lora-modules", *(f"{adapter}={path}" for adapter, path in lora.items())]
    return ServerSpec(name=name, command=(*command, *args), **{"gpus": tensor_parallel, **settings})
