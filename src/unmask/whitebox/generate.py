"""Writing many answers at once: rows join a running batch when there is room and leave it when they are done.

Every row has its own temperature, limit and source of randomness, so what it says does not depend on who it is
written beside, but for the rounding of the arithmetic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
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
            self._leave([row for row in self.rows if row.dropped])
            self._since += 1
            if self._time_to_join():
                self._join()
            if not self.rows:
                return []
            self._make_room()
            ids, at = [row.last for row in self.rows], [row.length - 1 for row in self.rows]
            self._draw(self._stepper.logits(ids, at, width=self._rounded(max(at) + 1)))
            done = [row for row in self.rows if row.end is not None]
            self._leave(done)
            return done

    def clear(self) -> None:
        """Give up every row and the memory of rows; the model stays."""
        self.rows = []
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
        rows = min(self.room.rows, 1 << (len(self.rows) + len(coming) - 1).bit_length()) if coming else 0
        for group, layers in self._reader.read(list(prompts)):
            self._slots.reserve(max(rows, len(self.rows) + len(coming)), width, layers)
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
        self._slots.grow(self._stepper.rows_for(len(self.rows)), self._width())

    def _width(self) -> int:
        return self._rounded(max(row.length for row in self.rows))

    def _rounded(self, width: int) -> int:
        """Widths in steps, so that memory is not taken anew for every token."""
        return -(-width // self._grain) * self._grain

    # --- one token ------------------------------------------------------------------------------------------

    def _draw(self, logits: Any) -> None:
        """Choose the next token of every row, and see which rows are finished."""
        for place, (row, token) in enumerate(zip(self.rows, chosen(logits, self.rows), strict=True)):
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
            if row.end is None and len(row.written) >= row.manner.limit:
                row.end = End.LIMIT
