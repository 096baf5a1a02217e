"""Low-rank adapters, as PEFT folders or GGUF files: found, named by their content, and put onto their model."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from unmask.errors import FatalModelError, MissingError
from unmask.records import Record

WEIGHTS = "adapter_model.safetensors"
SETTINGS = "adapter_config.json"
GGUF_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""The linear maps of a decoder layer, as llama.cpp and as transformers name them."""
_GGUF_NAME = re.compile(rf"blk\.(\d+)\.({'|'.join(GGUF_PARTS)})\.weight\.lora_([ab])")


class Adapter(Record, frozen=True):
    """A PEFT folder, or a GGUF file. `hash` is over weights and settings, so that a run says what it was made with."""

    path: str
    hash: str


def find_adapter(path: str) -> Adapter:
    """The adapter in a folder or a GGUF file; nothing but its bytes is read."""
    folder = Path(path).expanduser()
    files = [folder] if folder.suffix.lower() == ".gguf" else [folder / name for name in (SETTINGS, WEIGHTS)]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise MissingError(
            f"{folder} is no adapter: {' and '.join(missing)} not there", advice="Give a folder that PEFT has written"
        )
    state = hashlib.blake2b(digest_size=8)
    for file in files:
        state.update(file.read_bytes())
    return Adapter(str(folder), state.hexdigest())


def switch_adapter(model: Any, *, active: bool) -> None:
    """Put an adapter that lies on a model to work, or let the model answer as if it had none."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.enable_adapters(active)


def wrap_model(model: Any, adapter: Adapter) -> Any:
    """The PEFT model with the adapter on it. PEFT passes over weights it finds no place for; here they are a sign that
    the adapter is another model's."""
    wrap = _wrap_gguf if adapter.path.lower().endswith(".gguf") else _wrap_folder
    try:
        wrapped, wanted = wrap(model, adapter.path)
        shapes = {name.replace(".default", ""): tuple(value.shape) for name, value in wrapped.state_dict().items()}
        for name, shape in wanted.items():
            if shapes.get(name) != shape:
                raise ValueError(f"no place for {name} of shape {shape}")
    except Exception as error:  # whatever a damaged file makes of its reader
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise FatalModelError(
            f"the adapter in {adapter.path} does not fit this model: {reason}",
            advice="Use it with the model it was trained on; adapter_config.json names that as base_model_name_or_path",
        ) from None
    return wrapped


def _wrap_folder(model: Any, path: str) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """The PEFT model, and the shape of every weight in the folder."""
    from peft import PeftModel
    from safetensors import safe_open

    with safe_open(Path(path) / WEIGHTS, framework="pt") as file:
        wanted = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return PeftModel.from_pretrained(model, path), wanted


def _wrap_gguf(model: Any, path: str) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """The same from a GGUF file, which names matrices as llama.cpp does: `blk.3.attn_q.weight.lora_a`."""
    import gguf
    import torch
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict

    reader, config = gguf.GGUFReader(path), model.config.get_text_config()
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    architecture, alpha = (reader.get_field(key).contents() for key in ("general.architecture", "adapter.lora.alpha"))
    weights, targets, rank = {}, set[str](), 0
    for tensor in reader.tensors:
        found = _GGUF_NAME.fullmatch(tensor.name)
        if found is None:
            raise ValueError(f"no place for {tensor.name}")
        layer, part, side = found.groups()
        matrix = gguf.dequantize(tensor.data, tensor.tensor_type)
        if side == "b" and architecture == "llama" and part in heads:
            matrix = _sort_rows(matrix, heads[part])
        name = f"model.layers.{layer}.{GGUF_PARTS[part]}"
        weights[f"base_model.model.{name}.lora_{side.upper()}.weight"] = torch.tensor(matrix)
        targets.add(name)
        rank = min(matrix.shape)
    settings = LoraConfig(r=rank, lora_alpha=alpha or rank, target_modules=sorted(targets))
    wrapped = get_peft_model(model, settings, autocast_adapter_dtype=False)
    wanted = {name: tuple(weight.shape) for name, weight in weights.items()}
    set_peft_model_state_dict(wrapped, weights)
    return wrapped, wanted


def _sort_rows(matrix: Any, heads: int) -> Any:
    """GGUF files of the kind `llama` have the rows of each head's two halves by turns; here one half follows the
    other."""
    return matrix.reshape(heads, matrix.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(matrix.shape)
