"""Keys and values of the sequences being written, one row each, and attention over them without copying.

Rows have lengths of their own: the token written next goes to its own place in each row, and a mask hides what lies
beyond. So a row can come or go at any step, and no row is padded on the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, Cache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

ATTENTION = "unmask_grouped"
"""Name under which `grouped_attention` is known to transformers."""


class Slots(Cache):  # type: ignore[misc]
    """Room for rows of tokens, layer by layer. `update` is called by the model, everything else by the writer.

    `most` is how many tokens may be allocated, over all rows, unless a caller needs more than that at once.
    """

    def __init__(self, *, most: int) -> None:
        super().__init__(layers=[])
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.most = most
        self.rows = 0
        self.width = 0
        self._index: Any = None
        self._at: Any = None

    @property
    def room(self) -> tuple[int, int]:
        """Rows and tokens per row that are allocated."""
        return (self.keys[0].shape[0], self.keys[0].shape[2]) if self.keys else (0, 0)

    def reserve(self, rows: int, width: int, like: Sequence[tuple[Any, Any]]) -> None:
        """Allocate at least so much, keeping what is there. `like` gives a key and a value of each layer."""
        if self.keys:
            self.grow(rows, width)
        else:
            self.keys = [key.new_zeros((rows, key.shape[1], width, key.shape[3])) for key, _ in like]
            self.values = [value.new_zeros((rows, value.shape[1], width, value.shape[3])) for _, value in like]

    def grow(self, rows: int, width: int) -> None:
        """The same for what is there already."""
        have = self.room
        if have[0] >= rows and have[1] >= width:
            return
        wanted = max(rows, have[0]), max(width, have[1])
        if wanted[0] * wanted[1] > self.most:  # many short rows before, few long ones now
            wanted = rows, width
        for held in (self.keys, self.values):
            for layer in range(len(held)):  # one by one, so that only one is there twice
                held[layer] = _resized(held[layer], *wanted)
        if self.keys[0].is_cuda:
            torch.cuda.empty_cache()  # what they were in is too small to be used again

    def put(self, row: int, layers: Sequence[tuple[Any, Any]], sources: Sequence[int]) -> None:
        """Copy prompts into rows from `row` on: their keys and values are in the rows `sources` of `layers`. What fills
        up a shorter prompt comes along, and is never looked at."""
        whole = list(sources) == list(range(layers[0][0].shape[0]))
        for held, given in zip(
            (*self.keys, *self.values), (*(k for k, _ in layers), *(v for _, v in layers)), strict=True
        ):
            held[row : row + len(sources), :, : given.shape[2]] = given if whole else given[list(sources)]

    def move(self, source: int, target: int, length: int) -> None:
        for held in (*self.keys, *self.values):
            held[target, :, :length] = held[source, :, :length]

    def aim(self, at: Any, *, width: int) -> None:
        """The next `update` writes row r at `at[r]`, and shows the first `width` places of each row."""
        self.rows, self.width = at.shape[0], width
        self._at, self._index = at, torch.arange(at.shape[0], device=at.device)

    def free(self) -> None:
        self.keys, self.values, self._at, self._index = [], [], None, None

    # --- what the model calls -------------------------------------------------------------------------------

    def update(self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        keys, values = self.keys[layer_idx], self.values[layer_idx]
        keys[self._index, :, self._at] = key_states[:, :, 0]
        values[self._index, :, self._at] = value_states[:, :, 0]
        return keys[: self.rows, :, : self.width], values[: self.rows, :, : self.width]

    def get_seq_length(self, *args: Any, **kwargs: Any) -> int:
        return 0

    def get_mask_sizes(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        return self.width, 0


def _resized(held: Any, rows: int, width: int) -> Any:
    fresh = held.new_zeros((rows, held.shape[1], width, held.shape[3]))
    kept, seen = min(rows, held.shape[0]), min(width, held.shape[2])
    fresh[:kept, :, :seen] = held[:kept, :, :seen]
    return fresh


def grouped_attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any
) -> tuple[Any, None]:
    """Attention for one new token per row. The heads that share keys are taken as several queries of one head, so keys
    and values are read once instead of being copied for each. Everything else is left to transformers' own."""
    groups = query.shape[1] // key.shape[1]
    if query.shape[2] != 1 or groups == 1 or attention_mask is None or options.get("position_bias") is not None:
        found: tuple[Any, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return found
    rows, heads, _, size = query.shape
    grouped = query.reshape(rows, heads // groups, groups, size)
    mask = attention_mask.expand(rows, heads // groups, groups, attention_mask.shape[-1])
    written = scaled_dot_product_attention(grouped, key, value, attn_mask=mask, scale=options.get("scaling"))
    return written.reshape(rows, 1, heads, -1), None


def prepare(model: Any) -> None:
    """Let a model that uses torch's attention use `grouped_attention`; others keep their own."""
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    AttentionInterface.register(ATTENTION, grouped_attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
    model.set_attn_implementation(ATTENTION)
