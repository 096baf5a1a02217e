"""Writing many answers at once: rows join a running batch when there is room and leave it when they are done.

Every row has its own temperature, limit and source of randomness, so what it says does not depend on who it is
written beside, but for the rounding of the arithmetic.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Any

import torch
from transformers import DynamicCache

from unmask.errors import FatalModelError
from unmask.records import Record
from unmask.whitebox.slots import Slots, prepare

PATIENCE = 8
"""Steps between two joinings of a batch that is already at work: reading prompts stops everybody else."""
HEADROOM = 128
"""Tokens a row is given room for when it joins, beyond its prompt; more is found when it is needed."""
STEP = 64
"""Widths are multiples of this, so that memory is not taken anew for every token."""


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


class Room(Record, frozen=True):
    """How much is done at once: rows of a batch, tokens kept over all rows, tokens read in one go."""

    rows: int
    tokens: int
    reading: int


class Writer:
    """A model with the rows it is writing. Belongs to one thread."""

    def __init__(self, model: Any, *, stops: Iterable[int], room: Room) -> None:
        prepare(model)
        self.model, self.room = model, room
        self.stops = frozenset(stops)
        self.waiting: deque[Row] = deque()
        self.rows: list[Row] = []
        self._slots = Slots()
        self._since = 0
        self._layers = _layer_kinds(model.config)

    @property
    def busy(self) -> bool:
        return bool(self.rows or self.waiting)

    def add(self, rows: Iterable[Row]) -> None:
        self.waiting.extend(rows)

    def step(self) -> list[Row]:
        """Write one token of every row, after letting waiting rows in; returns the rows that are finished."""
        with torch.inference_mode():
            self._leave([row for row in self.rows if row.dropped])
            self._since += 1
            if not self.rows or self._since >= PATIENCE:
                self._join()
            if not self.rows:
                return []
            self._make_room()
            self._draw(self._logits())
            done = [row for row in self.rows if row.end is not None]
            self._leave(done)
            return done

    def clear(self) -> None:
        """Give up every row and the memory of rows; the model stays."""
        self.rows = []
        self.waiting.clear()
        self._slots.free()

    def free(self) -> None:
        """Give up all memory, the model's too."""
        self.clear()
        self.model = None

    # --- joining and leaving --------------------------------------------------------------------------------

    def _join(self) -> None:
        """Take in waiting rows, in order, as many as there is room for. Rows with the same prompt have it read once."""
        coming: list[Row] = []
        while self.waiting:
            row = self.waiting[0]
            if not row.dropped:
                if not self._fits([*self.rows, *coming, row]):
                    break
                coming.append(row)
            self.waiting.popleft()
        self._since = 0
        prompts: dict[tuple[int, ...], list[Row]] = {}
        for row in coming:
            prompts.setdefault(tuple(row.tokens[:-1]), []).append(row)
        for chunk in _chunks(sorted(prompts, key=len), self.room.reading):
            self._read([(prompt, prompts[prompt]) for prompt in chunk])

    def _fits(self, rows: list[Row]) -> bool:
        if len(rows) == 1:  # a row that is larger than all the room is still written, by itself
            return True
        width = max(row.length + min(row.manner.limit - len(row.written), HEADROOM) for row in rows)
        return len(rows) <= self.room.rows and len(rows) * _rounded(width) <= self.room.tokens

    def _read(self, prompts: list[tuple[tuple[int, ...], list[Row]]]) -> None:
        """Work through prompts, all but the last token of each: that one is the row's first step.

        Shorter prompts are filled up on the right, where no token of theirs looks.
        """
        longest = max(1, *(len(prompt) for prompt, _ in prompts))
        filled = [[*prompt, *[0] * (longest - len(prompt))] for prompt, _ in prompts]
        ids = torch.tensor(filled, device=self.model.device)
        cache = DynamicCache()
        places = torch.arange(longest, device=ids.device).expand_as(ids)
        self.model(input_ids=ids, position_ids=places, past_key_values=cache, use_cache=True, logits_to_keep=1)
        layers = [(layer.keys, layer.values) for layer in cache.layers]
        joining = [row for _, rows in prompts for row in rows]
        rows = len(self.rows) + len(joining)
        width = max(row.length + min(row.manner.limit - len(row.written), HEADROOM) for row in (*self.rows, *joining))
        self._slots.reserve(_power(rows, self.room.rows), _rounded(width), layers)
        for source, (prompt, sharing) in enumerate(prompts):
            for row in sharing:
                self._slots.put(len(self.rows), layers, source, len(prompt))
                self.rows.append(row)

    def _leave(self, gone: list[Row]) -> None:
        """Take rows out; the last row moves into each gap, so that those at work stay next to one another."""
        for row in gone:
            place, last = self.rows.index(row), len(self.rows) - 1
            if place != last:
                self._slots.move(last, place, self.rows[last].length - 1)
                self.rows[place] = self.rows[last]
            self.rows.pop()

    def _make_room(self) -> None:
        """Widen the rows if the longest needs it. Where that is more than there is room for, the rows that came last
        wait again, with what they have written."""
        while len(self.rows) > 1 and len(self.rows) * self._width() > self.room.tokens:
            youngest = self.rows[-1]
            self._leave([youngest])
            self.waiting.appendleft(youngest)
        self._slots.grow(len(self.rows), self._width())

    def _width(self) -> int:
        return _rounded(max(row.length for row in self.rows))

    # --- one token ------------------------------------------------------------------------------------------

    def _logits(self) -> Any:
        """Scores of the next token of every row, as float32."""
        device = self.model.device
        ids = torch.tensor([[row.last] for row in self.rows], device=device)
        at = torch.tensor([row.length - 1 for row in self.rows], device=device)
        width = self._width()
        self._slots.aim(at, width=width)
        found = self.model(
            input_ids=ids,
            position_ids=at[:, None],
            attention_mask=self._masks(at, width),
            past_key_values=self._slots,
            use_cache=True,
        )
        return found.logits[:, -1].float()

    def _masks(self, at: Any, width: int) -> Any:
        kinds = {kind: _mask(at, width, window=window, dtype=self.model.dtype) for kind, window in self._layers.items()}
        return kinds if len(kinds) > 1 else next(iter(kinds.values()))

    def _draw(self, logits: Any) -> None:
        """Choose the next token of every row, and see which rows are finished."""
        tokens = _chosen(logits, self.rows)
        for place, (row, token) in enumerate(zip(self.rows, tokens, strict=True)):
            if token < 0:
                raise FatalModelError(
                    "the model's scores are not numbers",
                    advice="its weights are damaged, or overflow in this precision",
                )
            if row.choices is not None:
                row.odds, row.end = _odds(logits[place], row.choices), End.SCORED
            elif token in self.stops:
                row.end = End.STOPPED
            else:
                row.written.append(token)
            if row.end is None and len(row.written) >= row.manner.limit:
                row.end = End.LIMIT


def _chosen(logits: Any, rows: Sequence[Row]) -> list[int]:
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


def _odds(logits: Any, choices: tuple[tuple[int, ...], ...]) -> list[float] | None:
    """How likely each choice is among the choices; `None` if none of them has a token."""
    scores = [torch.logsumexp(logits[list(ids)].double(), dim=0).item() if ids else float("-inf") for ids in choices]
    if max(scores) == float("-inf"):
        return None
    found: list[float] = torch.tensor(scores, dtype=torch.float64).softmax(dim=0).tolist()
    return found


# --- shapes -----------------------------------------------------------------------------------------------


def _rounded(width: int) -> int:
    return -(-width // STEP) * STEP


def _power(rows: int, most: int) -> int:
    """Rows to allocate: doubled each time, so that a growing batch is not copied at every joining."""
    return max(rows, min(most, 1 << (rows - 1).bit_length()))


def _chunks(prompts: Sequence[tuple[int, ...]], budget: int) -> Iterator[list[tuple[int, ...]]]:
    """Prompts, sorted by length, in groups that are read together; little of a group is filling."""
    group: list[tuple[int, ...]] = []
    real = 0
    for prompt in prompts:
        padded = (len(group) + 1) * len(prompt)
        if group and (padded > budget or padded > 1.25 * (real + len(prompt)) + 256):
            yield group
            group, real = [], 0
        group.append(prompt)
        real += len(prompt)
    if group:
        yield group


def _layer_kinds(config: Any) -> dict[str, int | None]:
    """Kinds of attention the model's layers have, with the window of each."""
    text = config.get_text_config()
    window = getattr(text, "sliding_window", None)
    kinds = dict.fromkeys(getattr(text, "layer_types", None) or ())
    if not kinds:
        return {"full_attention": window}
    return {kind: window if kind == "sliding_attention" else None for kind in kinds}


def _mask(at: Any, width: int, *, window: int | None, dtype: Any) -> Any:
    """What each row's new token sees: its own row up to itself, or the last `window` places of that."""
    places = torch.arange(width, device=at.device)
    seen = places <= at[:, None]
    if window is not None:
        seen &= places > at[:, None] - window
    hidden = torch.zeros(seen.shape, dtype=dtype, device=at.device).masked_fill_(~seen, torch.finfo(dtype).min)
    return hidden[:, None, None]
