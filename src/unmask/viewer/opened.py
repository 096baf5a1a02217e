"""Runs that pages have read, kept in memory until their files change: opening one takes seconds, a look milliseconds.

What is kept is bounded. A run whose files have grown is read again. One that grows all the time is read again at most
so often that reading takes a fifth of the time.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import NamedTuple, TypeVar

from markupsafe import Markup

from unmask.errors import UsageError
from unmask.records import Choice, Outcome, Preset, Slot
from unmask.render.html.conversation import name_anchor, show_proposition
from unmask.render.html.report import RunSection, build_section
from unmask.runs.folder import Journal
from unmask.runs.run import Run
from unmask.text import replace_surrogates
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.filters import Filter

K = TypeVar("K")
V = TypeVar("V")

MOST_RUNS = 8
"""Runs that are kept, the one that was looked at last among them."""
MOST_VIEWS = 4
"""Pairs of judge and preset that are kept of one run."""
MOST_SELECTIONS = 8
"""Filters whose scenarios are kept of one run: whoever goes from scenario to scenario stays in one of them."""
MOST_CHARACTERS = 200_000_000
"""Texts of one run that are kept for searching. Those of a longer run are read anew for each search."""
QUIET = 4.0
"""How many times as long as it took to read a growing run the pages go on with what was read."""

Stamp = tuple[tuple[str, int, int, int], ...]


class RunView(NamedTuple):
    """A run under one judge and preset: its section of a report, without sensitivity, and every outcome, in the order
    of the run's scenarios. `drawn` holds the parts of pages that were made of them."""

    section: RunSection
    outcomes: list[Outcome]
    drawn: dict[str, tuple[Markup, Markup]]


class OpenedRun(Run):
    """A run as its files were when it was opened. Several threads may ask it; it reads for one after another."""

    def __init__(self, entry: RunEntry, stamp: Stamp) -> None:
        super().__init__(entry.path)
        self.entry = entry
        self.stamp = stamp
        self._lock = RLock()
        self._views: OrderedDict[tuple[str | None, Preset | None], RunView] = OrderedDict()
        self._selections: OrderedDict[Filter, list[int]] = OrderedDict()
        self._opened = Journal(self.folder, self.definition.judges)
        self.judges = [file for file in self.definition.judges if self._has_readings(file)]
        """The judges that have begun to read, by the names of their files."""
        for judge in self.judges:
            self._opened.judged(judge)

    @property
    def _journal(self) -> Journal:
        """As it was when the run was opened, whatever became of the files."""
        return self._opened

    @cached_property
    def places(self) -> dict[str, int]:
        """Where in `scenarios` each one stands, by the anchor that addresses name it with."""
        return {name_anchor(scenario.id): place for place, scenario in enumerate(self.scenarios)}

    def view(self, judge: str | None = None, preset: Preset | None = None) -> RunView:
        """The run under a judge and a preset; its own where none is named."""
        key = self.judge_file(judge), preset or self.definition.preset
        with self._lock:
            if key not in self._views:
                self._views[key] = self._make_view(*key)
            return use_entry(self._views, key, MOST_VIEWS)

    def _make_view(self, judge: str | None, preset: Preset) -> RunView:
        name = replace_surrogates(self.entry.name)
        section = build_section("r1", name, self, preset=preset, judge=judge, shown=0, with_sensitivity=False)
        return RunView(section, self.rows(preset=preset, judge=judge), {})

    def select(self, wanted: Filter) -> list[int]:
        """The places of the scenarios that a filter asks for."""
        key = wanted._replace(judge=self.judge_file(wanted.judge))
        with self._lock:
            if key not in self._selections:
                outcomes = self.view(wanted.judge, wanted.preset).outcomes
                places = [place for place, outcome in enumerate(outcomes) if wanted.admits(outcome)]
                hits = self.count_hits(wanted.q, places) if wanted.q else {}
                self._selections[key] = [place for place in places if not wanted.q or hits[place]]
            return use_entry(self._selections, key, MOST_SELECTIONS)

    def count_hits(self, query: str, places: list[int]) -> dict[int, int]:
        """How often a text stands in the questions, prompts and replies of these scenarios, in either case."""
        lowered = query.lower()
        with self._lock:
            lowered_texts = self._lowered_texts
            return {
                place: (lowered_texts[place] if lowered_texts else self._lower_texts(place)).count(lowered)
                for place in places
            }

    @cached_property
    def _lowered_texts(self) -> list[str] | None:
        """All texts of each scenario in lower case; `None` where they are too long to be kept."""
        texts, room = [], MOST_CHARACTERS
        for place in range(len(self.scenarios)):
            texts.append(self._lower_texts(place))
            room -= len(texts[-1])
            if room < 0:
                return None
        return texts

    def _lower_texts(self, place: int) -> str:
        return "\0".join(self.each_text(place)).lower()

    def each_text(self, place: int) -> Iterator[str]:
        """The texts of a scenario that are searched: its name, its proposition, what is asked, what was answered."""
        scenario = self.scenarios[place]
        yield scenario.id
        yield show_proposition(scenario)
        yield from (message.content for message in scenario.conversation)
        yield from scenario.questions.values()
        for choice in self.replies_at(place).values():
            yield from filter(None, (choice.text, choice.reasoning))

    def replies_at(self, place: int) -> dict[tuple[Slot, int], Choice]:
        with self._lock:
            return self.replies(self.scenarios[place].id)

    def outcome_at(self, place: int, judge: str | None = None, preset: Preset | None = None) -> Outcome:
        """What a scenario shows, with the words of the judges."""
        with self._lock:
            return self.outcome(self.scenarios[place].id, preset=preset, judge=judge)

    def outcomes_at(self, place: int) -> dict[tuple[str | None, Preset], Outcome]:
        """What a scenario shows by each judge under each preset."""
        with self._lock:
            return {
                (judge, preset): self.outcome_at(place, judge, preset)
                for judge in list[str | None](self.judges) or [None]
                for preset in Preset
            }

    def lines_at(self, place: int) -> list[tuple[str, list[bytes]]]:
        """The journal's own lines about a scenario, by the names of the files they stand in."""
        with self._lock:
            return [
                (path.relative_to(self.path).as_posix(), lines)
                for path, lines in self._journal.read_texts(self.scenarios[place].id)
            ]


class _Slot:
    """The place of one run in the cache. Its lock is held while the run is opened."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.opened: OpenedRun | None = None
        self.seconds = 0.0
        self.made_at = 0.0


class RunCache:
    """The runs that were looked at last. A run that is put out of the cache is released once no page uses it."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._slots: OrderedDict[Path, _Slot] = OrderedDict()

    def open(self, entry: RunEntry) -> OpenedRun:
        """The run as its files are now, or were moments ago; `UsageError` where they cannot be read."""
        with self._lock:
            slot = self._slots.setdefault(entry.path, _Slot())
            use_entry(self._slots, entry.path, MOST_RUNS)
        with slot.lock:
            try:
                return self._reopen_changed(slot, entry)
            except BaseException as error:
                with self._lock:
                    if self._slots.get(entry.path) is slot:
                        del self._slots[entry.path]
                if isinstance(error, OSError):
                    raise UsageError(
                        f"{entry.name} cannot be read: {error.strerror}", advice="Was it moved or deleted? Try again."
                    ) from error
                raise

    def _reopen_changed(self, slot: _Slot, entry: RunEntry) -> OpenedRun:
        stamp = read_stamp(entry.path)
        if slot.opened is not None:
            age = time.monotonic() - slot.made_at
            growing = slot.opened.stamp[0] == stamp[0] and age < QUIET * slot.seconds
            if slot.opened.stamp == stamp or growing:
                return slot.opened
        begun = time.monotonic()
        slot.opened = None  # the old one goes before the new one is made
        slot.opened = OpenedRun(entry, stamp)
        slot.opened.view()
        slot.made_at = time.monotonic()
        slot.seconds = slot.made_at - begun
        return slot.opened


CACHE = RunCache()


def read_stamp(folder: Path) -> Stamp:
    """Names, sizes and times of the files that a run is made of, `run.json` first."""
    readings = sorted((folder / "readings").glob("*.jsonl"))
    files = [folder / "run.json", folder / "scenarios.jsonl", folder / "replies.jsonl", *readings]
    stamps = []
    for file in files:
        if file.name == "run.json" or file.exists():
            now = os.stat(file)
            stamps.append((file.name, now.st_ino, now.st_size, now.st_mtime_ns))
    return tuple(stamps)


def use_entry(entries: OrderedDict[K, V], key: K, most: int) -> V:
    """The entry, as the last one used; of more than `most` entries, those used longest ago go."""
    entries.move_to_end(key)
    while len(entries) > most:
        entries.popitem(last=False)
    return entries[key]
