"""The runs that the viewer may show: found under the folders it was given, known to the browser by a digest.

No path ever comes from the browser. A page names a run by its key, and a key that is not in the catalogue is no page.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from unmask.analysis.sides import short_names
from unmask.errors import UsageError
from unmask.runs.folder import find_runs
from unmask.runs.run import Run
from unmask.text import replace_surrogates

MOST = 5_000
"""Runs in one catalogue; the list says so where there are more."""


class RunEntry(NamedTuple):
    """A run folder. `name` is what people call it: its path below the folder that was given,
    or the short name of a unit."""

    key: str
    path: Path
    name: str

    def open(self) -> Run:
        """The run as its files are now; `JournalError` or `UsageError` where they cannot be read."""
        return Run(self.path)


class Catalogue:
    """Looks into its folders anew each time, so that a run that begins is seen and one that was deleted is gone."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [Path(os.path.abspath(folder)) for folder in folders]
        for folder in self._folders:
            if not folder.is_dir():
                raise UsageError(f"there is no folder {folder}", advice="Name a folder that holds runs.")

        self._by_key: dict[str, RunEntry] = {}
        """What the last look showed."""

    @property
    def folders(self) -> list[Path]:
        return list(self._folders)

    def entries(self) -> list[RunEntry]:
        """Every run, each once, by name. Of several folders a name begins with that of its folder."""
        seen: dict[str, RunEntry] = {}
        for folder in self._folders:
            start = folder.parent if len(self._folders) > 1 else folder
            for path in islice(find_runs(folder), MOST - len(seen)):
                name = path.name if path == folder else path.relative_to(start).as_posix()
                entry = RunEntry(make_key(path), path, replace_surrogates(name))
                seen.setdefault(entry.key, entry)
        self._by_key = _shorten_units(seen)
        return sorted(self._by_key.values(), key=lambda entry: entry.name)

    def find(self, key: str) -> RunEntry | None:
        """The run with this key. All folders are searched only where the last look did not show it."""
        entry = self._by_key.get(key)
        if entry is None or not (entry.path / "run.json").is_file():
            entry = next((entry for entry in self.entries() if entry.key == key), None)
        return entry


def _shorten_units(entries: dict[str, RunEntry]) -> dict[str, RunEntry]:
    """Where all runs are units of a sweep they are called by their short names, as elsewhere."""
    names = short_names([entry.path for entry in entries.values()])
    if not all(entry.path.name.startswith(f"{name}-") for entry, name in zip(entries.values(), names, strict=True)):
        return entries
    return {key: entry._replace(name=name) for (key, entry), name in zip(entries.items(), names, strict=True)}


def make_key(path: Path) -> str:
    """A run's key in addresses: the same as long as its folder stays where it is."""
    return hashlib.blake2b(os.fsencode(path), digest_size=6).hexdigest()
