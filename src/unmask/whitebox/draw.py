"""From the scores of the next token to the token: each row by its own temperature and its own draw."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import torch

from unmask.records import Record

BLOCK = 512
"""Tokens that a draw looks at together."""


class Manner(Record, frozen=True):
    """How a row is written. `limit` is in tokens; `seed` and what it seeds are the row's own."""

    limit: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: str = "0"


class End(Enum):
    """Why a row is finished."""

    STOPPED = auto()
    LIMIT = auto()
    SCORED = auto()


class Row:
    """One answer in the making. With `choices` (token ids of each option) only the first token's odds are wanted."""

    def __init__(
        self, prompt: Sequence[int], manner: Manner, *, choices: tuple[tuple[int, ...], ...] | None = None
    ) -> None:
        self.prompt, self.manner, self.choices = list(prompt), manner, choices
        self.written: list[int] = []
        self.odds: list[float] | None = None
        self.end: End | None = None
        self.dropped = False
        """Set from outside when nobody waits for the answer any more."""
        self.draws = random.Random(manner.seed)

    @property
    def tokens(self) -> list[int]:
        return self.prompt + self.written

    @property
    def last(self) -> int:
        return self.written[-1] if self.written else self.prompt[-1]

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.written)


def chosen(logits: Any, rows: Sequence[Row]) -> Any:
    """A token for each row, as a tensor on the model's device that nobody has waited for yet: the likeliest at
    temperature 0, otherwise where the row's own draw falls. -1: no number."""
    top, best = logits.max(dim=-1)
    heats = [row.manner.temperature for row in rows]
    if any(heat > 0 for heat in heats):
        told = [heats, [row.draws.random() for row in rows]]
        gpu = logits.device.type == "cuda"
        heat, draws = torch.tensor(told, dtype=torch.float64, pin_memory=gpu).to(logits.device, non_blocking=gpu)
        shares = torch.softmax(logits / heat.float().clamp_min(1e-4)[:, None], dim=-1)
        for place, row in enumerate(rows):
            if row.manner.top_p < 1:
                shares[place] = _nucleus(shares[place], row.manner.top_p)
        best = torch.where(heat > 0, _drawn(shares, draws), best)
    return torch.where(torch.isfinite(top), best, -1)


def _drawn(shares: Any, draws: Any) -> Any:
    """Where each row's draw falls, in doubles: the running sum of a large vocabulary would lose the rare words in
    single precision. First the block of tokens, then the token in it: only one block a row is summed up one by one."""
    rows, size = shares.shape
    blocks = torch.nn.functional.pad(shares, (0, -size % BLOCK)).view(rows, -1, BLOCK)
    sums = blocks.sum(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    wanted = draws[:, None] * sums[:, -1:]
    block = torch.searchsorted(sums, wanted, right=True).clamp_max(sums.shape[1] - 1)
    before = torch.where(block > 0, sums.gather(1, (block - 1).clamp_min(0)), 0.0)
    inner = blocks.gather(1, block[:, :, None].expand(-1, -1, BLOCK))[:, 0].double().cumsum(dim=-1)
    token = torch.searchsorted(inner, wanted - before, right=True).clamp_max(BLOCK - 1)
    # Where rounding points past the last token that has a share, that token is meant.
    last = inner.argmax(dim=-1, keepdim=True)
    return (block * BLOCK + torch.minimum(token, last))[:, 0]


def _nucleus(shares: Any, top_p: float) -> Any:
    """The likeliest tokens that together reach `top_p`; the rest can not be drawn."""
    ordered, places = shares.sort(descending=True)
    ordered[ordered.cumsum(dim=-1) - ordered >= top_p] = 0
    return torch.zeros_like(shares).scatter(0, places, ordered)


def odds(logits: Any, choices: tuple[tuple[int, ...], ...]) -> list[float] | None:
    """How likely each choice is among the choices; `None` if none of them has a token."""
    scores = [torch.logsumexp(logits[list(ids)].double(), dim=0).item() if ids else float("-inf") for ids in choices]
    if max(scores) == float("-inf"):
        return None
    found: list[float] = torch.tensor(scores, dtype=torch.float64).softmax(dim=0).tolist()
    return found
