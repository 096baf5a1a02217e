"""Which model is this? A hash of samples of its weights, the same on a GPU in bfloat16 as on a CPU in float32."""

from __future__ import annotations

import hashlib
from typing import Any

SAMPLES = 64
"""Values taken from each weight. Training changes nearly all of them, so a few of each are enough to tell."""


def model_hash(model: Any) -> str:
    """Names the weights. An adapter that lies on them is not part of them."""
    import torch

    bare = model.get_base_model() if hasattr(model, "get_base_model") else model
    state = hashlib.blake2b(digest_size=8)
    for name, weight in sorted(_own(bare)):
        flat = weight.detach().reshape(-1)
        places = torch.linspace(0, flat.numel() - 1, min(SAMPLES, flat.numel()), dtype=torch.float64).round().long()
        taken = flat[places.to(flat.device)].to(torch.bfloat16).cpu().view(torch.int16).tolist()
        state.update(f"{name} {tuple(weight.shape)} {taken}\n".encode())
    return state.hexdigest()


def template_hash(chat: Any) -> str:
    """Names the chat template: the same weights behave differently behind another."""
    said = str(getattr(chat.tokenizer, "chat_template", None) or "")
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()


def _own(model: Any) -> list[tuple[str, Any]]:
    """Parameters under the names they have without PEFT, which puts a layer around those it adapts."""
    named = model.named_parameters()
    return [(name.replace(".base_layer", ""), weight) for name, weight in named if ".lora_" not in name]
