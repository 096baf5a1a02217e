"""Low-rank adapters, as PEFT folders or GGUF files: found, named by their content, and put onto their model."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unmask.errors import FatalModelError, MissingError
from unmask.records import Record

WEIGHTS = "adapter_model.safetensors"
SETTINGS = "adapter_config.json"
LINEAR_PARTS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
"""The linear maps of a decoder layer that a GGUF adapter may change."""


class Adapter(Record, frozen=True):
    """A PEFT folder, or a GGUF file. `hash` is over weights and settings, so that a run says what it was made with."""

    path: str
    hash: str


def find_adapter(path: str) -> Adapter:
    """The adapter in a folder or a GGUF file; nothing but its bytes is read."""
    folder = Path(path).expanduser()
    if importlib.util.find_spec("peft") is None:
        raise MissingError("adapters need peft", advice="pip install 'unmask[whitebox]'")
    if folder.suffix.lower() == ".gguf" and folder.is_file():
        return Adapter(str(folder), hashlib.blake2b(folder.read_bytes(), digest_size=8).hexdigest())
    missing = [name for name in (SETTINGS, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise MissingError(
            f"{folder} is no adapter: {' and '.join(missing)} not there", advice="Give a folder that PEFT has written"
        )
    state = hashlib.blake2b(digest_size=8)
    for name in (SETTINGS, WEIGHTS):
        state.update((folder / name).read_bytes())
    return Adapter(str(folder), state.hexdigest())


def apply_adapter(model: Any, adapter: Adapter) -> Any:
    """The model with the adapter in it, not merged: in bfloat16 a merged one would lose what is small."""
    return wrap_model(model, adapter).get_base_model().eval().requires_grad_(False)


def switch_adapter(model: Any, *, active: bool) -> None:
    """Put an adapter that lies on a model to work, or let the model answer as if it had none."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.enable_adapters(active)


def wrap_model(model: Any, adapter: Adapter) -> Any:
    """The PEFT model with the adapter on it. PEFT passes over weights it finds no place for; here they are a sign that
    the adapter is another model's."""
    if adapter.path.lower().endswith(".gguf"):
        return _wrap_gguf(model, adapter)
    from peft import PeftModel
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(Path(adapter.path) / WEIGHTS, framework="pt") as file:
            wanted = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        wrapped = PeftModel.from_pretrained(model, adapter.path)
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise _misfit_error(adapter, str(error).strip() or type(error).__name__) from None
    shapes = {name.replace(".default", ""): tuple(value.shape) for name, value in wrapped.state_dict().items()}
    unplaced = [name for name, shape in wanted.items() if shapes.get(name) != shape]
    if unplaced:
        raise _misfit_error(adapter, f"no place for {unplaced[0]} of shape {wanted[unplaced[0]]}")
    return wrapped


def _wrap_gguf(model: Any, adapter: Adapter) -> Any:
    """A GGUF file names matrices as llama.cpp does: `blk.3.attn_q.weight.lora_a` and `…lora_b`."""
    import torch
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict

    config = model.config.get_text_config()
    heads = {
        "self_attn.q_proj": config.num_attention_heads,
        "self_attn.k_proj": getattr(config, "num_key_value_heads", 1),
    }
    alpha, matrices = _read_gguf(adapter, layers=config.num_hidden_layers, heads=heads)
    linear = {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    for name, (first, second) in matrices.items():
        shape = (first.shape[1], second.shape[0])
        if name not in linear or shape != (linear[name].in_features, linear[name].out_features):
            raise _misfit_error(adapter, f"no place for {name}, {shape[0]} to {shape[1]}")
    ranks = {first.shape[0] for first, _ in matrices.values()}
    if len(ranks) != 1:
        raise _misfit_error(adapter, f"matrices of rank {', '.join(map(str, sorted(ranks))) or 'none'}")
    (rank,) = ranks
    settings = LoraConfig(r=rank, lora_alpha=alpha or rank, target_modules=list(matrices))
    wrapped = get_peft_model(model, settings, autocast_adapter_dtype=False)
    state = {}
    for name, (first, second) in matrices.items():
        state[f"base_model.model.{name}.lora_A.weight"] = torch.tensor(first)
        state[f"base_model.model.{name}.lora_B.weight"] = torch.tensor(second)
    set_peft_model_state_dict(wrapped, state)
    return wrapped


def _read_gguf(adapter: Adapter, *, layers: int, heads: Mapping[str, int]) -> tuple[float, dict[str, tuple[Any, Any]]]:
    """Alpha, and the two matrices of each linear map, under the name that transformers has for the map."""
    import gguf

    try:
        reader = gguf.GGUFReader(adapter.path)
        architecture, alpha = (
            reader.get_field(key).contents() for key in ("general.architecture", "adapter.lora.alpha")
        )
        kind = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
        tensors = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
    except Exception as error:  # whatever a damaged file makes of its reader
        raise _misfit_error(adapter, str(error).strip() or type(error).__name__) from None
    names = gguf.get_tensor_name_map(kind, layers)
    matrices = {}
    for layer in range(layers):
        for part in LINEAR_PARTS:
            name = f"model.layers.{layer}.{part}"
            pair = [tensors.pop(f"{names.get_name(name)}.weight.lora_{side}", None) for side in "ab"]
            if pair[0] is None or pair[1] is None:
                continue
            if architecture == "llama" and part in heads:
                if pair[1].shape[0] % (2 * heads[part]):
                    raise _misfit_error(adapter, f"{name} has {pair[1].shape[0]} rows for {heads[part]} heads")
                pair[1] = _sort_rows(pair[1], heads[part])
            matrices[name] = (pair[0], pair[1])
    if tensors:
        raise _misfit_error(adapter, f"no place for {next(iter(tensors))}")
    return float(alpha), matrices


def _sort_rows(matrix: Any, heads: int) -> Any:
    """GGUF files of the kind `llama` have the rows of each head's two halves by turns; here one half follows the
    other."""
    return matrix.reshape(heads, matrix.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(matrix.shape)


def _misfit_error(adapter: Adapter, reason: str) -> FatalModelError:
    return FatalModelError(
        f"the adapter in {adapter.path} does not fit this model: {reason.splitlines()[0][:300]}",
        advice="Use it with the model it was trained on; adapter_config.json names that as base_model_name_or_path",
    )
