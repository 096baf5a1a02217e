"""What layers hold while a model without its adapter reads whole texts, where nothing has to go back through it.

The same products as in `unmask.whitebox.direct`, and as little else. A pass through transformers needs five times as
many launches, and waits for the processor to make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention

from unmask.whitebox.direct import Asked, Layer, known, parts_for
from unmask.whitebox.step import layer_windows


class Frozen:
    """Reads texts with the layers of a model; `wanted` are those whose activations are asked for."""

    def __init__(self, model: Any, wanted: Sequence[int]) -> None:
        self._backbone, self._parts, self._wanted = model.model, parts_for(model), frozenset(wanted)
        self._layers = [Layer(layer, self._parts, bare=True) for layer in model.model.layers]
        self.longest = min((window for window in layer_windows(model.config).values() if window), default=None)
        """Texts that are longer would not be seen whole."""

    def __call__(self, ids: Any, at: Any) -> dict[int, Any]:
        """Activations of each layer, `[token, size]`, at the tokens `at` of all texts in a row."""
        rows, length = ids.shape
        hidden = self._backbone.embed_tokens(ids.flatten())
        places = torch.arange(length, device=ids.device)[None]
        turn = tuple(
            one.expand(rows, -1, -1).reshape(rows * length, -1) for one in self._backbone.rotary_emb(hidden, places)
        )

        def attend(asked: Asked, scale: float) -> Any:
            query, key, value = self._parts.spread(asked, turn, rows)
            groups = query.shape[1] != key.shape[1]
            seen = scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=groups)
            return seen.transpose(1, 2).reshape(rows * length, -1)

        found: dict[int, Any] = {}
        added = None
        for number, layer in enumerate(self._layers):
            hidden, added = layer(hidden, added, attend)
            if number in self._wanted:
                found[number] = hidden.index_select(0, at) + added.index_select(0, at)
        return found


def frozen(model: Any, wanted: Sequence[int]) -> Frozen | None:
    """`None` if the model is not one that is known here, or its kernels cannot be made."""
    if not known(model):
        return None
    try:
        return Frozen(model, wanted)
    except (AttributeError, ImportError, KeyError, NotImplementedError):
        return None


def fuse_norms(model: Any) -> None:
    """Let norms that are nothing but torch's own be torch's own: one launch, where transformers needs six."""
    for module in model.modules():
        eps = getattr(module, "variance_epsilon", None)
        if eps is None or not type(module).__name__.endswith("RMSNorm"):
            continue
        sample = torch.randn(4, len(module.weight), device=module.weight.device, dtype=module.weight.dtype)
        meant = module(sample).float()

        def forward(x: Any, weight: Any = module.weight, eps: float = eps) -> Any:
            return rms_norm(x, weight.shape, weight, eps)

        if (forward(sample).float() - meant).abs().max() <= 0.01 * meant.abs().max():
            module.forward = forward
