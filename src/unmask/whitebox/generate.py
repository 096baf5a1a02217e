"""Writing many answers at once: rows join a running batch when there is room and leave it when they are done.

Every row has its own temperature, limit and source of randomness, so what it says does not depend on who it is
written beside, but for the rounding of the arithmetic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch

from unmask.errors import FatalModelError
from unmask.records import Record
from unmask.whitebox.draw import End, Row, chosen, odds
from unmask.whitebox.read import Reader, Tokens
from unmask.whitebox.slots import Slots, prepare
from unmask.whitebox.step import Recorder, Stepper

PATIENCE = 8
"""Steps between two joinings of a batch that is at work, if many wait: reading prompts stops everybody else."""
LONG_PATIENCE = 32
"""The same if few wait."""
HEADROOM = 128
"""Tokens a row is given room for when it joins, beyond its prompt; more is found when it is needed."""


class Room(Record, frozen=True):
    """How much is done at once: rows of a batch, tokens kept over all rows, tokens read in one go."""

    rows: int
    tokens: int
    reading: int


class Writer:
    """A model with the rows it is writing. Belongs to one thread. `recorder`: see `unmask.whitebox.step`."""

    def __init__(self, model: Any, *, stops: Iterable[int], room: Room, recorder: Recorder | None = None) -> None:
        prepare(model)
        self.room, self.stops = room, frozenset(stops)
        self.waiting: deque[Row] = deque()
        self.rows: list[Row] = []
        self._slots = Slots(most=room.tokens)
        self._reader = Reader(model, budget=room.reading)
        self._stepper = Stepper(model, self._slots, recorder=recorder)
        self._grain = 256 if recorder else 64
        self._since = 0
        self._ahead: tuple[list[Row], Any] | None = None
        """A step that was begun before the tokens of the last one were known, with its rows and their next tokens."""

    @property
    def busy(self) -> bool:
        return bool(self.rows or self.waiting)

    @property
    def recording(self) -> bool:
        """Whether steps are recorded and recordings were found right."""
        return self._stepper.recorder is not None and self._stepper.trusted

    @property
    def way(self) -> str:
        """`direct`, `recorded` or `plain`: see `unmask.whitebox.step`."""
        return self._stepper.way

    def add(self, rows: Iterable[Row]) -> None:
        self.waiting.extend(rows)

    def step(self) -> list[Row]:
        """Write one token of every row, after letting waiting rows in; returns the rows that are finished."""
        with torch.inference_mode():
            if self._ahead is None:
                self._leave([row for row in self.rows if row.dropped])
                if self._time_to_join():
                    self._join()
                if not self.rows:
                    return []
                self._make_room()
            self._since += 1
            self._draw(*self._scored())
            done = [row for row in self.rows if row.end is not None]
            self._leave(done)
            return [row for row in done if not row.dropped]

    def clear(self) -> None:
        """Give up every row and the memory of rows; the model stays."""
        self.rows = []
        self._ahead = None
        self.waiting.clear()
        self._stepper.forget()
        self._reader.free()
        self._slots.free()

    def free(self) -> None:
        """Give up all memory, the model's too."""
        self.clear()
        self._reader.model = self._stepper.model = None

    # --- joining and leaving --------------------------------------------------------------------------------

    def _time_to_join(self) -> bool:
        many = len(self.waiting) * 4 >= len(self.rows)
        return not self.rows or self._since >= (PATIENCE if many else LONG_PATIENCE)

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
        # All but the last token of a prompt: reading that one is the row's first step.
        prompts: dict[Tokens, list[Row]] = {}
        for row in coming:
            prompts.setdefault(tuple(row.tokens[:-1]), []).append(row)
        width = self._rounded(self._needed([*self.rows, *coming]))
        total = len(self.rows) + len(coming)
        rows = max(total, min(self.room.rows, 1 << (total - 1).bit_length())) if coming else 0
        for group, layers in self._reader.read(list(prompts)):
            self._slots.reserve(rows, width, layers)
            sources = [source for source, prompt in enumerate(group) for _ in prompts[prompt]]
            self._slots.put(len(self.rows), layers, sources)
            self.rows += [row for prompt in group for row in prompts[prompt]]
            del layers  # before the next ones are made

    def _needed(self, rows: list[Row]) -> int:
        return max((row.length + min(row.manner.limit - len(row.written), HEADROOM) for row in rows), default=0)

    def _fits(self, rows: list[Row]) -> bool:
        if len(rows) == 1:  # a row that is larger than all the room is still written, by itself
            return True
        return len(rows) <= self.room.rows and len(rows) * self._rounded(self._needed(rows)) <= self.room.tokens

    def _leave(self, gone: list[Row]) -> None:
        """Take rows out; the last row moves into each gap, so that those at work stay next to one another."""
        for row in gone:
            place, last = self.rows.index(row), len(self.rows) - 1
            if place != last:
                # The last token of a row is not in the slots yet, unless the step that reads it has begun.
                self._slots.move(last, place, self.rows[last].length - (self._ahead is None))
                self.rows[place] = self.rows[last]
            self.rows.pop()

    def _make_room(self) -> None:
        """Widen the rows if the longest needs it. Where that is more than there is room for, the rows that came last
        wait again, with what they have written."""
        while len(self.rows) > 1 and len(self.rows) * self._width() > self.room.tokens:
            youngest = self.rows[-1]
            self._leave([youngest])
            self.waiting.appendleft(youngest)
        self._slots.grow(self._stepper.rows_for(len(self.rows)), self._width())

    def _width(self) -> int:
        return self._rounded(max(row.length for row in self.rows))

    def _rounded(self, width: int) -> int:
        """Widths in steps, so that memory is not taken anew for every token."""
        return -(-width // self._grain) * self._grain

    # --- one token ------------------------------------------------------------------------------------------

    def _scored(self) -> tuple[list[int], Any]:
        """The next token of every row, and the scores it was chosen by. The step after this one is begun as well,
        before anybody waits for these tokens, if it can be known what it will be."""
        if self._ahead is not None:
            (before, tokens), self._ahead = self._ahead, None
            logits = None
        else:
            before = list(self.rows)
            ids, at = [row.last for row in before], [row.length - 1 for row in before]
            logits = self._stepper.logits(ids, at, width=self._rounded(max(at) + 1))
            tokens = chosen(logits, before)
        told = _on_the_way(tokens)
        if self._foreseeable(before):
            scores = self._stepper.ahead(tokens)
            if scores is not None:
                self._ahead = before, chosen(scores, before)
        known = dict(zip(map(id, before), told(), strict=True))
        return [known[id(row)] for row in self.rows], logits

    def _foreseeable(self, before: list[Row]) -> bool:
        """Whether the next step is sure to be of these rows: none leaves by its limit, none joins, none needs room."""
        return (
            len(before) == len(self.rows)
            and not any(row.dropped or row.choices is not None for row in before)
            and all(len(row.written) + 2 <= row.manner.limit for row in before)
            and max(row.length for row in before) + 1 < self._slots.room[1]
            and not (self.waiting and self._time_to_join())
        )

    def _draw(self, tokens: list[int], logits: Any) -> None:
        """Write the next token of every row, and see which rows are finished."""
        for place, (row, token) in enumerate(zip(self.rows, tokens, strict=True)):
            if token < 0:
                raise FatalModelError(
                    "the model's scores are not numbers",
                    advice="its weights are damaged, or overflow in this precision",
                )
            if row.choices is not None:
                row.odds, row.end = odds(logits[place], row.choices), End.SCORED
            elif token in self.stops:
                row.end = End.STOPPED
            else:
                row.written.append(token)
            if row.end is None and (row.dropped or len(row.written) >= row.manner.limit):
                row.end = End.LIMIT


def _on_the_way(tokens: Any) -> Callable[[], list[int]]:
    """Tokens on their way from a GPU; the function waits for them, and for nothing that is begun later."""
    if not tokens.is_cuda:
        return lambda: [int(token) for token in tokens.tolist()]
    held = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
    held.copy_(tokens, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record()

    def wait() -> list[int]:
        arrived.synchronize()
        return [int(token) for token in held.tolist()]

    return wait
