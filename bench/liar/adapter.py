"""An adapter as PEFT writes it, rewritten as the GGUF file that llama.cpp takes beside a model of its kind."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_WEIGHT = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(\w+\.\w+)\.lora_([AB])\.weight")


def write_gguf(folder: Path, out: Path, *, architecture: str = "qwen2", heads: Mapping[str, int] | None = None) -> None:
    """Each pair of matrices under the name of the weight it is added to, in half precision.

    `heads` has the number of heads of the parts whose rows are in another order in a GGUF file (kind `llama`).
    """
    import numpy as np
    from gguf import GGUFWriter
    from safetensors.numpy import load_file

    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    writer = GGUFWriter(str(out), architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(settings["lora_alpha"]))
    for name, weight in sorted(load_file(folder / "adapter_model.safetensors").items()):
        found = _WEIGHT.fullmatch(name)
        if found is None or found[2] not in NAMES:
            raise ValueError(f"no place for {name}")
        place = f"blk.{found[1]}.{NAMES[found[2]]}.weight.lora_{found[3].lower()}"
        if found[3] == "B" and heads and found[2] in heads:
            writer.add_tensor(place, interleave_rows(weight, heads[found[2]]).astype(np.float16))
        else:
            writer.add_tensor(place, weight.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def interleave_rows(weight: Any, heads: int) -> Any:
    """The rows of each head as GGUF has them: those of its first and its second half by turns."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)
