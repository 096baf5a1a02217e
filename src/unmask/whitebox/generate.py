"""Writing many answers at once: rows join a running batch when there is room and leave it when they are done.

Every row has its own temperature, limit and source of randomness, so what it says does not depend on who it is
written in the same batch, but for the rounding of the arithmetic. `unmask.whitebox.forward` has the passes themselves.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Any

import torch

from unmask.errors import FatalModelError
from unmask.records import Record
from unmask.whitebox.forward import (
    PromptReader,
    Recorder,
    RowCache,
    Stepper,
    Tokens,
    fuse_norms,
    use_grouped_attention,
)

PATIENCE = 8
"""Steps between two joinings of a batch that is at work, if many wait: reading prompts stops everybody else."""
LONG_PATIENCE = 32
"""The same if few wait."""
HEADROOM = 128
"""Tokens a row is given room for when it joins, beyond its prompt; more is allocated when it is needed."""
BLOCK = 512
"""Tokens that a draw looks at together."""


class Manner(Record, frozen=True):
    """How a row is written. `limit` is in tokens; every row has a random generator of its own, made from `seed`."""

    limit: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: str = "0"


class End(Enum):
    """Why a row is finished."""

    STOPPED = auto()
    LIMIT = auto()
    SCORED = auto()


class AnswerRow:
    """One answer that is being written. With `choices` (token ids of each option) only the first token's probabilities
    are wanted."""

    def __init__(
        self, prompt: Sequence[int], manner: Manner, *, choices: tuple[tuple[int, ...], ...] | None = None
    ) -> None:
        self.prompt, self.manner, self.choices = list(prompt), manner, choices
        self.written: list[int] = []
        self.probabilities: list[float] | None = None
        self.end: End | None = None
        self.dropped = False
        """Set from outside when nobody waits for the answer any more."""
        self.draws = random.Random(manner.seed)

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.written)


class Room(Record, frozen=True):
    """How much is done at once: rows of a batch, tokens kept over all rows, tokens read in one go."""

    rows: int
    tokens: int
    reading: int


class Writer:
    """A model with the rows it is writing. One thread owns it. `recorder` records steps, see `Stepper`."""

    def __init__(self, model: Any, *, stops: Iterable[int], room: Room, recorder: Recorder | None = None) -> None:
        use_grouped_attention(model)
        fuse_norms(model)
        self.room, self.stops = room, frozenset(stops)
        self.waiting: deque[AnswerRow] = deque()
        self.rows: list[AnswerRow] = []
        self._cache = RowCache(max_tokens=room.tokens)
        self._reader = PromptReader(model, budget=room.reading)
        self._stepper = Stepper(model, self._cache, recorder=recorder)
        self._grain = 256 if recorder else 64
        self._since = 0
        self._ahead: tuple[list[AnswerRow], Any] | None = None
        """A step that was begun before the tokens of the last one were known, with its rows and their next tokens."""

    @property
    def busy(self) -> bool:
        return bool(self.rows or self.waiting)

    @property
    def recording(self) -> bool:
        """Whether steps are recorded, and the first recording gave what the plain pass gave."""
        return self._stepper.recorder is not None and self._stepper.trusted

    def add(self, rows: Iterable[AnswerRow]) -> None:
        self.waiting.extend(rows)

    def step(self) -> list[AnswerRow]:
        """Write one token of every row, after letting waiting rows in; returns the rows that are finished."""
        with torch.inference_mode():
            if self._ahead is None:
                self._remove_rows([row for row in self.rows if row.dropped])
                if self._is_time_to_join():
                    self._join_waiting()
                if not self.rows:
                    return []
                self._make_room()
            self._since += 1
            self._write(*self._score_rows())
            finished = [row for row in self.rows if row.end is not None]
            self._remove_rows(finished)
            return [row for row in finished if not row.dropped]

    def clear(self) -> None:
        """Give up every row and the memory of rows; the model stays."""
        self.rows = []
        self._ahead = None
        self.waiting.clear()
        self._stepper.drop_recordings()
        self._reader.free()
        self._cache.free()

    def free(self) -> None:
        """Give up all memory, the model's too."""
        self.clear()
        self._reader.model = self._stepper.model = None

    # --- joining and leaving --------------------------------------------------------------------------------

    def _is_time_to_join(self) -> bool:
        many = len(self.waiting) * 4 >= len(self.rows)
        return not self.rows or self._since >= (PATIENCE if many else LONG_PATIENCE)

    def _join_waiting(self) -> None:
        """Take in waiting rows, in order, as many as there is room for. Rows with the same prompt have it read once."""
        coming: list[AnswerRow] = []
        while self.waiting:
            row = self.waiting[0]
            if not row.dropped:
                batch = [*self.rows, *coming, row]
                tokens = len(batch) * self._round_width(self._width_needed(batch))
                # A row that is larger than all the room is still written, by itself.
                if len(batch) > 1 and (len(batch) > self.room.rows or tokens > self.room.tokens):
                    break
                coming.append(row)
            self.waiting.popleft()
        self._since = 0
        # All but the last token of a prompt: reading that one is the row's first step.
        prompts: dict[Tokens, list[AnswerRow]] = {}
        for row in coming:
            prompts.setdefault(tuple([*row.prompt, *row.written][:-1]), []).append(row)
        width = self._round_width(self._width_needed([*self.rows, *coming]))
        total = len(self.rows) + len(coming)
        rows = max(total, min(self.room.rows, 1 << (total - 1).bit_length())) if coming else 0
        for group, layers in self._reader.read(list(prompts)):
            self._cache.reserve(rows, width, layers)
            sources = [source for source, prompt in enumerate(group) for _ in prompts[prompt]]
            self._cache.put(len(self.rows), layers, sources)
            self.rows += [row for prompt in group for row in prompts[prompt]]
            del layers  # before the next ones are made

    def _width_needed(self, rows: list[AnswerRow]) -> int:
        return max((row.length + min(row.manner.limit - len(row.written), HEADROOM) for row in rows), default=0)

    def _remove_rows(self, gone: list[AnswerRow]) -> None:
        """Take rows out; the last row moves into each gap, so that those at work stay next to one another."""
        for row in gone:
            place, last = self.rows.index(row), len(self.rows) - 1
            if place != last:
                # The last token of a row is not in the cache yet, unless the step that reads it has begun.
                self._cache.move(last, place, self.rows[last].length - (self._ahead is None))
                self.rows[place] = self.rows[last]
            self.rows.pop()

    def _make_room(self) -> None:
        """Widen the rows if the longest needs it. Where that is more than there is room for, the rows that came last
        wait again, with what they have written."""
        while len(self.rows) > 1 and len(self.rows) * self._width() > self.room.tokens:
            youngest = self.rows[-1]
            self._remove_rows([youngest])
            self.waiting.appendleft(youngest)
        self._cache.grow(self._stepper.rows_for(len(self.rows)), self._width())

    def _width(self) -> int:
        return self._round_width(max(row.length for row in self.rows))

    def _round_width(self, width: int) -> int:
        """Widths in steps, so that memory is not taken anew for every token."""
        return -(-width // self._grain) * self._grain

    # --- one token ------------------------------------------------------------------------------------------

    def _score_rows(self) -> tuple[list[int], Any]:
        """The next token of every row, and the scores it was chosen by. The step after this one is begun as well,
        before anybody waits for these tokens, if it can be known what it will be."""
        if self._ahead is not None:
            (before, tokens), self._ahead = self._ahead, None
            logits = None
        else:
            before = list(self.rows)
            ids, at = [(row.written or row.prompt)[-1] for row in before], [row.length - 1 for row in before]
            logits = self._stepper.logits(ids, at, width=self._round_width(max(at) + 1))
            tokens = choose_tokens(logits, before)
        fetch = _start_copy(tokens)
        if self._can_step_ahead(before):
            scores = self._stepper.logits_ahead(tokens)
            if scores is not None:
                self._ahead = before, choose_tokens(scores, before)
        next_token = dict(zip(map(id, before), fetch(), strict=True))
        return [next_token[id(row)] for row in self.rows], logits

    def _can_step_ahead(self, before: list[AnswerRow]) -> bool:
        """Whether the next step is sure to be of these rows: none leaves by its limit, none joins, none needs room."""
        return (
            len(before) == len(self.rows)
            and not any(row.dropped or row.choices is not None for row in before)
            and all(len(row.written) + 2 <= row.manner.limit for row in before)
            and max(row.length for row in before) + 1 < self._cache.room[1]
            and not (self.waiting and self._is_time_to_join())
        )

    def _write(self, tokens: list[int], logits: Any) -> None:
        """Write the next token of every row, and see which rows are finished."""
        for place, (row, token) in enumerate(zip(self.rows, tokens, strict=True)):
            if token < 0:
                raise FatalModelError(
                    "the model's scores are not numbers",
                    advice="Its weights are damaged, or overflow in this precision.",
                )
            if row.choices is not None:
                row.probabilities = option_probabilities(logits[place], row.choices)
                row.end = End.SCORED
            elif token in self.stops:
                row.end = End.STOPPED
            else:
                row.written.append(token)
            if row.end is None and (row.dropped or len(row.written) >= row.manner.limit):
                row.end = End.LIMIT


def _start_copy(tokens: Any) -> Callable[[], list[int]]:
    """Copy tokens from a GPU. The returned function waits for them, and for nothing that is begun later."""
    if not tokens.is_cuda:
        return lambda: [int(token) for token in tokens.tolist()]
    copied = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
    copied.copy_(tokens, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record()

    def wait() -> list[int]:
        arrived.synchronize()
        return [int(token) for token in copied.tolist()]

    return wait


# --- from scores to tokens ----------------------------------------------------------------------------------


def choose_tokens(logits: Any, rows: Sequence[AnswerRow]) -> Any:
    """A token for each row, as a tensor on the model's device that nobody has waited for yet: the likeliest at
    temperature 0, otherwise where the row's own draw falls. -1: no number."""
    top, best = logits.max(dim=-1)
    temperatures = [row.manner.temperature for row in rows]
    if any(temperature > 0 for temperature in temperatures):
        settings = [temperatures, [row.draws.random() for row in rows]]
        gpu = logits.device.type == "cuda"
        temperature, draws = torch.tensor(settings, dtype=torch.float64, pin_memory=gpu).to(
            logits.device, non_blocking=gpu
        )
        shares = torch.softmax(logits / temperature.float().clamp_min(1e-4)[:, None], dim=-1)
        for place, row in enumerate(rows):
            if row.manner.top_p < 1:  # only the likeliest tokens that together reach `top_p` can be drawn
                ordered, tokens = shares[place].sort(descending=True)
                ordered[ordered.cumsum(dim=-1) - ordered >= row.manner.top_p] = 0
                shares[place].scatter_(0, tokens, ordered)
        best = torch.where(temperature > 0, _draw_tokens(shares, draws), best)
    return torch.where(torch.isfinite(top), best, -1)


def _draw_tokens(shares: Any, draws: Any) -> Any:
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


def option_probabilities(logits: Any, choices: tuple[tuple[int, ...], ...]) -> list[float] | None:
    """The probability of each choice among the choices; `None` if none of them has a token."""
    scores = [torch.logsumexp(logits[list(ids)].double(), dim=0).item() if ids else float("-inf") for ids in choices]
    if max(scores) == float("-inf"):
        return None
    shares: list[float] = torch.tensor(scores, dtype=torch.float64).softmax(dim=0).tolist()
    return shares
