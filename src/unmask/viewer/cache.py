"""What was made of run folders, kept in memory until a file of them changes.

To read and score a run takes a second, to look at what was made of it milliseconds. A run that grows all the time is
read again at most so often that reading takes a fifth of the time.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import RLock
from typing import NamedTuple, TypeVar

from unmask.errors import UnmaskError, UsageError
from unmask.runs.folder import Journal
from unmask.runs.run import Run
from unmask.viewer.catalogue import RunEntry

T = TypeVar("T")

ROOM = 250
"""Megabytes that everything kept may weigh."""
QUIET = 4.0
"""How many times as long as it took to read a growing run the pages go on with what was read."""

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


class _Look(NamedTuple):
    """The state of a folder that pages go by, and how long it takes to read it."""

    stamp: Stamp
    at: float
    seconds: float


class _Kept(NamedTuple):
    value: object
    megabytes: float


class Cache:
    """Values by the state of their folders. Of one folder one is made at a time; others wait for it."""

    def __init__(self, room: float = ROOM) -> None:
        self._room = room
        self._guard = RLock()
        self._kept: OrderedDict[tuple[tuple[str, Stamp], ...], dict[Hashable, _Kept]] = OrderedDict()
        self._looks: dict[str, _Look] = {}
        self._locks: dict[str, RLock] = {}

    def get(self, entries: Sequence[RunEntry], what: Hashable, make: Callable[[], T], *, megabytes: float) -> T:
        """What is known under this name of these folders as they are now; made where it is not there. An error of ours
        is kept like a value. One that the system raises means that a folder is gone."""
        with ExitStack() as stack:
            for key in sorted(entry.key for entry in entries):
                with self._guard:
                    lock = self._locks.setdefault(key, RLock())
                stack.enter_context(lock)
            try:
                state = tuple((entry.key, self._look(entry)) for entry in entries)
                kept = self._find(state, what)
                if kept is None:
                    kept = self._make(entries, make, megabytes)
                    self._keep(state, what, kept)
            except OSError as error:
                raise UsageError(
                    f"{entries[0].name} cannot be read: {error.strerror or error}",
                    advice="It may be renamed or deleted. Go back to the list of runs.",
                ) from error
        if isinstance(kept.value, UnmaskError):
            raise kept.value
        return kept.value  # type: ignore[return-value]

    def open(self, entry: RunEntry) -> FrozenRun:
        """The run with everything its journal says."""
        return self.get([entry], "run", lambda: FrozenRun(entry.path), megabytes=8 * _weigh(entry.path))

    def _look(self, entry: RunEntry) -> Stamp:
        """The state of the folder, or of a growing one the state that was read a moment ago."""
        now, last = read_stamp(entry.path), self._looks.get(entry.key)
        if last is not None and last.stamp == now:
            return now
        if last is not None and last.stamp[:2] == now[:2] and time.monotonic() - last.at < QUIET * last.seconds:
            return last.stamp
        self._looks[entry.key] = _Look(now, time.monotonic(), 0.0)
        return now

    def _make(self, entries: Sequence[RunEntry], make: Callable[[], object], megabytes: float) -> _Kept:
        begun = time.monotonic()
        try:
            value = make()
        except UnmaskError as error:
            value = error.with_traceback(None)
        now = time.monotonic()
        for entry in entries:
            if look := self._looks.get(entry.key):
                self._looks[entry.key] = look._replace(at=now, seconds=max(look.seconds, now - begun))
        return _Kept(value, megabytes)

    def _find(self, state: tuple[tuple[str, Stamp], ...], what: Hashable) -> _Kept | None:
        with self._guard:
            if state not in self._kept:
                return None
            self._kept.move_to_end(state)
            return self._kept[state].get(what)

    def _keep(self, state: tuple[tuple[str, Stamp], ...], what: Hashable, value: _Kept) -> None:
        """Older states of the same folders go, then what was used longest ago."""
        with self._guard:
            keys = [key for key, _ in state]
            for old in [old for old in self._kept if old != state and [key for key, _ in old] == keys]:
                del self._kept[old]
            self._kept.setdefault(state, {})[what] = value
            self._kept.move_to_end(state)
            while len(self._kept) > 1 and self._weight() > self._room:
                self._kept.popitem(last=False)

    def _weight(self) -> float:
        return sum(one.megabytes for same in self._kept.values() for one in same.values())


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


def _weigh(folder: Path) -> float:
    """Megabytes of its files."""
    return sum(size for _, _, size, _ in read_stamp(folder)) / 1e6
