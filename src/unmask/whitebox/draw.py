"""From the scores of the next token to the token: each row by its own temperature and its own draw."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import torch

from unmask.records import Record


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


def chosen(logits: Any, rows: Sequence[Row]) -> list[int]:
    """A token for each row: the likeliest at temperature 0, otherwise where the row's own draw falls. -1: no number."""
    device = logits.device
    heat = torch.tensor([row.manner.temperature for row in rows], device=device)
    best = logits.argmax(dim=-1)
    sound = torch.isfinite(logits.amax(dim=-1))
    if any(row.manner.temperature > 0 for row in rows):
        shares = (logits / heat.clamp_min(1e-4)[:, None]).softmax(dim=-1)
        for place, row in enumerate(rows):
            if row.manner.top_p < 1:
                shares[place] = _nucleus(shares[place], row.manner.top_p)
        # Doubles: the running sum of a large vocabulary would lose the rare words in single precision.
        sums = shares.double().cumsum(dim=-1)
        draws = torch.tensor([[row.draws.random()] for row in rows], dtype=torch.float64, device=device)
        drawn = torch.searchsorted(sums, draws * sums[:, -1:], right=True)[:, 0]
        best = torch.where(heat > 0, drawn.clamp_max(logits.shape[-1] - 1), best)
    found: list[int] = torch.where(sound, best, -1).tolist()
    return found


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
