"""Which slot of an engine answers a question that costs its prompt: the one that has just worked through most of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from unmask.models.daemon import DaemonPool

SHARED_CHARACTERS = 100
"""Characters two questions must begin with in common for the second to be worth waiting for the slot of the first."""


class Lane(NamedTuple):
    """A slot of the engine and the one thread that asks it, so that questions reach it in the order they came."""

    slot: int
    thread: DaemonPool


class Lanes:
    """A lane per slot. Used from one event loop at a time."""

    def __init__(self, slots: int) -> None:
        self._lanes = [Lane(slot, DaemonPool(1, name="lane")) for slot in range(slots)]
        self._begun: list[str | None] = [None] * slots
        self._waiting = [0] * slots

    @contextmanager
    def take_lane(self, question: str) -> Iterator[Lane]:
        """The lane for this question, until its answer is there. Instructions that all questions share are no part of
        it: every slot knows those."""
        beginning = question[:SHARED_CHARACTERS]
        if beginning in self._begun:
            slot = self._begun.index(beginning)
        else:
            slot = min(range(len(self._lanes)), key=self._waiting.__getitem__)
            self._begun[slot] = beginning
        self._waiting[slot] += 1
        try:
            yield self._lanes[slot]
        finally:
            self._waiting[slot] -= 1

    def close(self) -> None:
        """Waits for what is being answered; what has not begun never does."""
        for lane in self._lanes:
            lane.thread.drop()
        for lane in self._lanes:
            lane.thread.join()
