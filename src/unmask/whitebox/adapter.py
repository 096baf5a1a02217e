"""Low-rank adapters in PEFT's format: found, named by their content, and put onto a model they were made for."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from unmask.errors import FatalModelError, MissingError
from unmask.records import Record

WEIGHTS = "adapter_model.safetensors"
SETTINGS = "adapter_config.json"


class Adapter(Record, frozen=True):
    """An adapter folder. `hash` is over its weights and settings, so that a run says what it was made with."""

    folder: str
    hash: str


def find_adapter(path: str) -> Adapter:
    """The adapter in a folder; nothing but its bytes is read."""
    folder = Path(path).expanduser()
    missing = [name for name in (SETTINGS, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise MissingError(
            f"{folder} is no adapter: {' and '.join(missing)} not there", advice="give a folder that PEFT has written"
        )
    if importlib.util.find_spec("peft") is None:
        raise MissingError("adapters need peft", advice="pip install 'unmask[whitebox]'")
    state = hashlib.blake2b(digest_size=8)
    for name in (SETTINGS, WEIGHTS):
        state.update((folder / name).read_bytes())
    return Adapter(str(folder), state.hexdigest())


def adapted(model: Any, adapter: Adapter) -> Any:
    """The model with the adapter in it, not merged: in bfloat16 a merged one would lose what is small."""
    return _wrapped(model, adapter).get_base_model().eval().requires_grad_(False)


def merged(model: Any, adapter: Adapter) -> Any:
    """A plain model whose weights have the adapter added to them. The model given is used up."""
    try:
        return _wrapped(model, adapter).merge_and_unload(safe_merge=True).eval().requires_grad_(False)
    except ValueError as error:  # weights that are no numbers
        raise FatalModelError(f"the adapter in {adapter.folder} cannot be merged: {error}") from None


def _wrapped(model: Any, adapter: Adapter) -> Any:
    """PEFT passes over weights it finds no place for; here they are a sign that the adapter is another model's."""
    from peft import PeftModel
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(Path(adapter.folder) / WEIGHTS, framework="pt") as file:
            wanted = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        wrapped = PeftModel.from_pretrained(model, adapter.folder)
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError, TypeError, json.JSONDecodeError) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise _other_model(adapter, said) from None
    found = {name.replace(".default", ""): tuple(value.shape) for name, value in wrapped.state_dict().items()}
    strange = [name for name, shape in wanted.items() if found.get(name) != shape]
    if strange:
        raise _other_model(adapter, f"no place for {strange[0]} of shape {wanted[strange[0]]}")
    return wrapped


def _other_model(adapter: Adapter, said: str) -> FatalModelError:
    return FatalModelError(
        f"the adapter in {adapter.folder} does not fit this model: {said}",
        advice="use it with the model it was trained on; adapter_config.json names that as base_model_name_or_path",
    )
