"""What lies between the matrix products of a step, in plain torch: the meaning of `unmask.whitebox.kernels`."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention, silu


def norm(x: Any, weight: Any, eps: float) -> Any:
    """x of any shape, scaled to a mean square of one along its last dimension."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def add_norm(x: Any, residual: Any, weight: Any, eps: float) -> tuple[Any, Any]:
    """The norm of x + residual, and that sum itself."""
    total = x + residual
    return norm(total, weight, eps), total


def gated(gate: Any, up: Any) -> Any:
    """silu(gate) · up."""
    return silu(gate) * up


def placed(asked: tuple[Any, Any, Any], turn: tuple[Any, Any], at: Any, slots: tuple[Any, Any]) -> Any:
    """Turns queries and keys by their place, and puts keys and values into their slots at `at`. Returns the queries."""
    (query, key, value), (keys, values) = asked, slots
    rows = torch.arange(query.shape[0], device=at.device)
    keys[rows, :, at] = _turned(key, *turn)
    values[rows, :, at] = value
    return _turned(query, *turn)


def spread(asked: tuple[Any, Any, Any], turn: tuple[Any, Any], rows: int) -> tuple[Any, Any, Any]:
    """The same for whole texts, `rows` of them one after another: turned, and as attention wants them,
    `[row, head, token, size]`."""
    query, key, value = asked
    turned = _turned(query, *turn), _turned(key, *turn), value
    query, key, value = (one.view(rows, -1, *one.shape[1:]).transpose(1, 2) for one in turned)
    return query, key, value


def attended(query: Any, slots: tuple[Any, Any], first: Any, at: Any, scale: float) -> Any:
    """What each row's new token sees of its slots, from `first` to `at`. Heads in a row."""
    (rows, heads, size), (keys, values) = query.shape, slots
    shared = keys.shape[1]
    places = torch.arange(keys.shape[2], device=at.device)
    seen = (places <= at[:, None]) & (places >= first[:, None])
    grouped = query.reshape(rows, shared, heads // shared, size)
    mask = seen[:, None, None].expand(rows, shared, heads // shared, len(places))
    found = scaled_dot_product_attention(grouped, keys[:rows], values[:rows], attn_mask=mask, scale=scale)
    return found.reshape(rows, heads * size)


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    other = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos.reshape(len(x), 1, -1) + other * sin.reshape(len(x), 1, -1)
