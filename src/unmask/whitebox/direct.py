"""A step of models of the Llama family, without transformers in between: matrix products and little else.

What is computed is the same; it is held against transformers' own pass before it is used (`unmask.whitebox.step`), and
models of another make, or with hooks in them, go through transformers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

from unmask.whitebox.slots import Slots

Asked = tuple[Any, Any, Any]
FAMILY = ("llama", "mistral", "qwen2", "qwen3")
_TURNS = ("default", "linear", "llama3", "yarn")


class Direct:
    """The pass itself. Weights of products with the same input are moved next to each other in memory; the model goes
    on using them where they are now."""

    def __init__(self, model: Any, slots: Slots, *, windows: dict[str, int | None]) -> None:
        self.model, self.slots = model, slots
        self._parts = parts_for(model)
        self._layers = [Layer(layer, self._parts) for layer in model.model.layers]
        kinds = getattr(model.config, "layer_types", None) or [next(iter(windows))] * len(self._layers)
        self._windows = windows
        self._kinds = list(kinds)
        if model.device.type == "cuda":
            torch.cuda.empty_cache()  # the places where the weights were

    def __call__(self, ids: Any, at: Any) -> Any:
        """Scores of the next token, as float32. Row r reads the token `ids[r]` at its place `at[r]`."""
        backbone, parts = self.model.model, self._parts
        hidden = backbone.embed_tokens(ids)
        turn = backbone.rotary_emb(hidden, at[:, None])
        firsts = {
            kind: torch.zeros_like(at) if window is None else (at - window + 1).clamp_min(0)
            for kind, window in self._windows.items()
        }
        added = None
        for place, layer in enumerate(self._layers):
            slots, first = (self.slots.keys[place], self.slots.values[place]), firsts[self._kinds[place]]

            def attend(asked: Asked, scale: float, slots: Any = slots, first: Any = first) -> Any:
                return parts.attended(parts.placed(asked, turn, at, slots), slots, first, at, scale)

            hidden, added = layer(hidden, added, attend)
        last, _ = parts.add_norm(added, hidden, backbone.norm.weight, backbone.norm.variance_epsilon)
        return self.model.lm_head(last).float()


def parts_for(model: Any) -> Any:
    gpu = model.device.type == "cuda"
    return importlib.import_module("unmask.whitebox.kernels" if gpu else "unmask.whitebox.parts")


def known(model: Any) -> bool:
    """Whether the layers of a model are those that are written down here."""
    turns = getattr(model.config, "rope_parameters", None) or {}
    return getattr(model.config, "model_type", None) in FAMILY and turns.get("rope_type", "default") in _TURNS


def direct(model: Any, slots: Slots, *, windows: dict[str, int | None]) -> Direct | None:
    """The direct pass of a model, or `None` if it is not one that is known here."""
    if not known(model) or _has_hooks(model):
        return None
    try:
        return Direct(model, slots, windows=windows)
    except (AttributeError, ImportError, KeyError, NotImplementedError):  # no Triton, or a model of another build
        return None


def _has_hooks(model: Any) -> bool:
    return any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


class Layer:
    """One layer. `added` is what the last one would have added to `hidden`: the sum is taken with the norm. With `bare`
    an adapter that lies on it is passed by."""

    def __init__(self, layer: Any, parts: Any, *, bare: bool = False) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        if not isinstance(mlp.act_fn, nn.SiLU) and type(mlp.act_fn).__name__ != "SiLUActivation":
            raise NotImplementedError(f"activation {mlp.act_fn}")
        self._parts, self._attention = parts, attention
        self._before, self._between = layer.input_layernorm, layer.post_attention_layernorm

        def own(one: Any) -> Any:
            return getattr(one, "base_layer", one) if bare else one

        self._asked = _Together(own(attention.q_proj), own(attention.k_proj), own(attention.v_proj))
        self._opened = _Together(own(mlp.gate_proj), own(mlp.up_proj))
        self._joined, self._closed = own(attention.o_proj), own(mlp.down_proj)
        self._head_norms: Any = (attention.q_norm, attention.k_norm) if hasattr(attention, "q_norm") else None

    def __call__(self, hidden: Any, added: Any, attend: Callable[[Asked, float], Any]) -> tuple[Any, Any]:
        """`attend` is given queries, keys and values of each token, `[token, head, size]`, and their scale."""
        parts, attention = self._parts, self._attention
        before, eps = self._before, self._before.variance_epsilon
        if added is None:
            normed = parts.norm(hidden, before.weight, eps)
        else:
            normed, hidden = parts.add_norm(added, hidden, before.weight, eps)
        query, key, value = (part.view(len(part), -1, attention.head_dim) for part in self._asked(normed))
        if self._head_norms is not None:
            query, key = (
                parts.norm(part, own.weight, own.variance_epsilon)
                for part, own in zip((query, key), self._head_norms, strict=True)
            )
        written = self._joined(attend((query, key, value), attention.scaling))
        normed, hidden = parts.add_norm(written, hidden, self._between.weight, self._between.variance_epsilon)
        return hidden, self._closed(parts.gated(*self._opened(normed)))


class _Together:
    """Linear maps of one input as one product. Maps that are more than that, like adapted ones, are left alone."""

    def __init__(self, *maps: Any) -> None:
        self._maps, self._weight, self._bias = maps, None, None
        self._sizes = [one.out_features for one in maps]
        if any(type(one) is not nn.Linear for one in maps) or len({one.bias is None for one in maps}) > 1:
            return
        with torch.no_grad():
            self._weight = _side_by_side([one.weight for one in maps])
            self._bias = None if maps[0].bias is None else _side_by_side([one.bias for one in maps])

    def __call__(self, x: Any) -> tuple[Any, ...]:
        if self._weight is None:
            return tuple(one(x) for one in self._maps)
        found: tuple[Any, ...] = linear(x, self._weight, self._bias).split(self._sizes, dim=-1)
        return found


def _side_by_side(weights: list[Any]) -> Any:
    together = torch.cat([weight.data for weight in weights])
    for weight, part in zip(weights, together.split([len(weight) for weight in weights]), strict=True):
        weight.data = part
    return together
