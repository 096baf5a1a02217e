"""What lies between the matrix products of a step, as Triton kernels: one launch each, where torch needs five to ten.

Every function has a twin of the same name and meaning in `unmask.whitebox.parts`; tests hold the two together. Triton
comes with torch on Linux; without it, steps go through transformers.
"""

# mypy: disable-error-code="misc,untyped-decorator,no-untyped-def,no-untyped-call,no-any-return"
# ruff: noqa: ANN001, ANN202, PLR0917
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

PROGRAMS = 264
"""A row of heads is split along its tokens until there is this much to do at once: two programs a multiprocessor."""
BLOCK = 64


@triton.jit
def _norm(x, residual, weight, out, total, size, eps, ADD: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, WIDTH)
    inside = place < size
    here = tl.load(x + row * size + place, mask=inside, other=0.0)
    if ADD:
        here += tl.load(residual + row * size + place, mask=inside, other=0.0)
        tl.store(total + row * size + place, here, mask=inside)
    wide = here.to(tl.float32)
    scaled = wide * tl.rsqrt(tl.sum(wide * wide) / size + eps)
    scaled = scaled.to(out.dtype.element_ty) * tl.load(weight + place, mask=inside, other=0.0)
    tl.store(out + row * size + place, scaled, mask=inside)


@triton.jit
def _gated(gate, up, out, gate_row, up_row, size, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    place = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = place < size
    opened = tl.load(gate + row * gate_row + place, mask=inside, other=0.0).to(tl.float32)
    opened = (opened * tl.sigmoid(opened)).to(out.dtype.element_ty)
    tl.store(out + row * size + place, opened * tl.load(up + row * up_row + place, mask=inside, other=0.0), mask=inside)


@triton.jit
def _turned(source, cos, sin, target, HALF: tl.constexpr, WIDTH: tl.constexpr, TURN: tl.constexpr):
    place = tl.arange(0, WIDTH)
    inside = place < HALF
    low = tl.load(source + place, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(source + HALF + place, mask=inside, other=0.0).to(tl.float32)
    if TURN:
        cos_low, cos_high = tl.load(cos + place, mask=inside), tl.load(cos + HALF + place, mask=inside)
        sin_low, sin_high = tl.load(sin + place, mask=inside), tl.load(sin + HALF + place, mask=inside)
        before = low
        low = low * cos_low - high * sin_low
        high = high * cos_high + before * sin_high
    tl.store(target + place, low.to(target.dtype.element_ty), mask=inside)
    tl.store(target + HALF + place, high.to(target.dtype.element_ty), mask=inside)


@triton.jit
def _placed(
    query, key, value, cos, sin, at, out, keys, values, query_row, key_row, value_row, slot_row, slot_head,
    HEADS: tl.constexpr, SHARED: tl.constexpr, HALF: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    turn_cos, turn_sin = cos + row * 2 * HALF, sin + row * 2 * HALF
    if head < HEADS:
        target = out + (row * HEADS + head) * 2 * HALF
        _turned(query + row * query_row + head * 2 * HALF, turn_cos, turn_sin, target, HALF, WIDTH, True)
    else:
        place = tl.load(at + row) * 2 * HALF + row * slot_row
        if head < HEADS + SHARED:
            head -= HEADS
            source = key + row * key_row + head * 2 * HALF
            _turned(source, turn_cos, turn_sin, keys + place + head * slot_head, HALF, WIDTH, True)
        else:
            head -= HEADS + SHARED
            source = value + row * value_row + head * 2 * HALF
            _turned(source, turn_cos, turn_sin, values + place + head * slot_head, HALF, WIDTH, False)


@triton.jit
def _attended(
    query, keys, values, first, at, out, tops, sums, scale, slot_row, slot_head,
    SHARED: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr, WIDTH: tl.constexpr,
    QUERIES: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, head, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    begin, end = tl.load(first + row), tl.load(at + row) + 1
    share = tl.cdiv(tl.cdiv(end - begin, SPLITS), BLOCK) * BLOCK
    low = begin + split * share
    high = tl.minimum(low + share, end)
    dims, queries = tl.arange(0, WIDTH), tl.arange(0, QUERIES)
    real = (queries < GROUP)[:, None] & (dims < SIZE)[None, :]
    heads = (row * SHARED + head) * GROUP + queries
    asked = tl.load(query + heads[:, None] * SIZE + dims[None, :], mask=real, other=0.0)
    key_base = keys + row * slot_row + head * slot_head
    value_base = values + row * slot_row + head * slot_head
    top = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    held = tl.zeros([QUERIES, WIDTH], tl.float32)
    for start in range(low, high, BLOCK):
        places = start + tl.arange(0, BLOCK)
        seen = places < high
        there = seen[:, None] & (dims < SIZE)[None, :]
        where = places[:, None] * SIZE + dims[None, :]
        found = tl.load(key_base + where, mask=there, other=0.0)
        scores = tl.dot(asked, tl.trans(found), input_precision="ieee") * scale
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shares, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * fade + tl.sum(shares, 1)
        there_values = tl.load(value_base + where, mask=there, other=0.0)
        held = held * fade[:, None] + tl.dot(shares.to(there_values.dtype), there_values, input_precision="ieee")
        top = higher
    if SPLITS == 1:
        written = (held / total[:, None]).to(out.dtype.element_ty)
        tl.store(out + heads[:, None] * SIZE + dims[None, :], written, mask=real)
    else:
        parts = heads * SPLITS + split
        tl.store(out + parts[:, None] * SIZE + dims[None, :], held, mask=real)
        tl.store(tops + parts, top, mask=queries < GROUP)
        tl.store(sums + parts, total, mask=queries < GROUP)


@triton.jit
def _joined(parts, tops, sums, out, SIZE: tl.constexpr, WIDTH: tl.constexpr, SPLITS: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    split, dims = tl.arange(0, SPLITS), tl.arange(0, WIDTH)
    place = head * SPLITS + split
    top = tl.load(tops + place)
    weight = tl.exp2(top - tl.max(top))
    there = (dims < SIZE)[None, :] & (split >= 0)[:, None]
    held = tl.load(parts + place[:, None] * SIZE + dims[None, :], mask=there, other=0.0)
    found = tl.sum(held * weight[:, None], 0) / tl.sum(weight * tl.load(sums + place))
    tl.store(out + head * SIZE + dims, found.to(out.dtype.element_ty), mask=dims < SIZE)


def norm(x: Any, weight: Any, eps: float) -> Any:
    """x of any shape, scaled to a mean square of one along its last dimension."""
    x = x.contiguous()
    out = torch.empty_like(x)
    size = x.shape[-1]
    width = triton.next_power_of_2(size)
    _norm[(x.numel() // size,)](x, x, weight, out, out, size, eps, False, width, num_warps=8 if width > 1024 else 1)
    return out


def add_norm(x: Any, residual: Any, weight: Any, eps: float) -> tuple[Any, Any]:
    """The norm of x + residual, and that sum itself."""
    out, total = torch.empty_like(x), torch.empty_like(x)
    size = x.shape[-1]
    width = triton.next_power_of_2(size)
    _norm[(x.shape[0],)](
        x, residual, weight, out, total, size, eps, True, width, num_warps=8 if width > 1024 else 1
    )  # fmt: skip
    return out, total


def gated(gate: Any, up: Any) -> Any:
    """silu(gate) · up."""
    rows, size = gate.shape
    out = gate.new_empty((rows, size))
    _gated[(rows, triton.cdiv(size, 1024))](gate, up, out, gate.stride(0), up.stride(0), size, 1024, num_warps=4)
    return out


def placed(asked: tuple[Any, Any, Any], turn: tuple[Any, Any], at: Any, slots: tuple[Any, Any]) -> Any:
    """Turns queries and keys by their place, and puts keys and values into their slots at `at`. Returns the queries."""
    (query, key, value), (keys, values) = asked, slots
    (rows, heads, size), shared = query.shape, key.shape[1]
    out = query.new_empty((rows, heads, size))
    cos, sin = (one.reshape(rows, size).contiguous() for one in turn)
    _placed[(rows, heads + 2 * shared)](
        query, key, value, cos, sin, at, out, keys, values,
        query.stride(0), key.stride(0), value.stride(0), keys.stride(0), keys.stride(1),
        heads, shared, size // 2, triton.next_power_of_2(size // 2), num_warps=1,
    )  # fmt: skip
    return out


def spread(asked: tuple[Any, Any, Any], turn: tuple[Any, Any], rows: int) -> tuple[Any, Any, Any]:
    """The same for whole texts, `rows` of them one after another: turned, and as attention wants them,
    `[row, head, token, size]`."""
    query, key, value = asked
    (count, heads, size), shared = query.shape, key.shape[1]
    length = count // rows
    keys, values = (key.new_empty((rows, shared, length, size)) for _ in range(2))
    token = torch.arange(count, device=query.device)
    at = token // length * (shared * length) + token % length  # where the token's first head lies
    out = query.new_empty((count, heads, size))
    cos, sin = (one.reshape(count, size).contiguous() for one in turn)
    _placed[(count, heads + 2 * shared)](
        query, key, value, cos, sin, at, out, keys, values,
        query.stride(0), key.stride(0), value.stride(0), 0, keys.stride(1),
        heads, shared, size // 2, triton.next_power_of_2(size // 2), num_warps=1,
    )  # fmt: skip
    return out.view(rows, length, heads, size).transpose(1, 2), keys, values


def attended(query: Any, slots: tuple[Any, Any], first: Any, at: Any, scale: float) -> Any:
    """What each row's new token sees of its slots, from `first` to `at`: no others are read. Heads in a row."""
    (rows, heads, size), (keys, values) = query.shape, slots
    shared = keys.shape[1]
    most = max(1, triton.cdiv(keys.shape[2], 2 * BLOCK))  # two blocks a part at least
    splits = min(triton.next_power_of_2(triton.cdiv(PROGRAMS, rows * shared)), triton.next_power_of_2(most), 32)
    out = query.new_empty((rows, heads * size))
    parts = out if splits == 1 else query.new_empty((rows, heads, splits, size), dtype=torch.float32)
    tops, sums = (query.new_empty((rows, heads, splits), dtype=torch.float32) for _ in range(2))
    group, width = heads // shared, max(16, triton.next_power_of_2(size))
    _attended[(rows, shared, splits)](
        query, keys, values, first, at, parts, tops, sums, scale * 1.4426950408889634, keys.stride(0), keys.stride(1),
        shared, group, size, width, max(16, triton.next_power_of_2(group)), splits, BLOCK, num_warps=4, num_stages=3,
    )  # fmt: skip
    if splits > 1:
        _joined[(rows * heads,)](parts, tops, sums, out, size, width, splits, num_warps=2)
    return out
