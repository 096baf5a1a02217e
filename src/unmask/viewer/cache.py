"""What was made of run folders, kept in memory until a file of them changes: to read and score a run takes a second, to
look at what was made of it milliseconds."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from unmask.runs.folder import Journal
from unmask.runs.run import Run
from unmask.viewer.catalogue import RunEntry

T = TypeVar("T")

ROOM = 250
"""Megabytes that everything kept may weigh."""
FRESH = 10.0
"""Seconds for which pages go on with what was read of a run whose journals grow."""

Stamp = tuple[tuple[str, int, int, int], ...]


class FrozenRun(Run):
    """A run as its files were when it was opened, whatever becomes of them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._opened = Journal(self.folder, self.definition.judges)
        self.judges = [file for file in self.definition.judges if self.has_readings(file)]
        """The judges that have begun to read, by the names of their files."""
        for judge in self.judges:
            self._opened.judged(judge)

    @property
    def _journal(self) -> Journal:
        return self._opened


class _Kept(NamedTuple):
    value: Any
    stamps: list[Stamp]
    made: float
    megabytes: float

    def fits(self, now: list[Stamp], fresh: float) -> bool:
        """Whether the files are as they were, or only their journals have grown a moment ago."""
        if self.stamps == now:
            return True
        same_run = [stamp[:2] for stamp in self.stamps] == [stamp[:2] for stamp in now]
        return same_run and time.monotonic() - self.made < fresh


class Cache:
    """What was used longest ago goes first. One thing is made at a time; others wait for it."""

    def __init__(self, room: float = ROOM) -> None:
        self._room = room
        self._lock = RLock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def get(
        self,
        entries: Sequence[RunEntry],
        what: Hashable,
        make: Callable[[], T],
        *,
        megabytes: float,
        fresh: float | None = None,
    ) -> T:
        """What is known under this name of these folders; made where it is not there. The system's error means that a
        folder is gone."""
        key = (tuple(entry.key for entry in entries), what)
        with self._lock:
            now = [read_stamp(entry.path) for entry in entries]
            kept = self._kept.get(key)
            if kept is None or not kept.fits(now, FRESH if fresh is None else fresh):
                kept = _Kept(make(), now, time.monotonic(), megabytes)
                self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(one.megabytes for one in self._kept.values()) > self._room:
                self._kept.popitem(last=False)
        value: T = kept.value
        return value

    def open(self, entry: RunEntry, *, fresh: float | None = None) -> FrozenRun:
        """The run with everything its journal says."""
        size = sum(size for _, _, size, _ in read_stamp(entry.path)) / 1e6
        return self.get([entry], "run", lambda: FrozenRun(entry.path), megabytes=8 * size, fresh=fresh)


CACHE = Cache()


def read_stamp(folder: Path) -> Stamp:
    """Names, places, sizes and times of the files that a run is made of, those that never grow first."""
    names = ("run.json", "scenarios.jsonl", "replies.jsonl")
    stamps = []
    for file in [*(folder / name for name in names), *sorted((folder / "readings").glob("*.jsonl"))]:
        if file.name == "run.json" or file.exists():
            now = os.stat(file)
            stamps.append((file.name, now.st_ino, now.st_size, now.st_mtime_ns))
    return tuple(stamps)
