"""Runs measured for the board and the grid, kept in memory for as long as their files stay as they are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from unmask.analysis.board import BoardEntry, measure_entry
from unmask.analysis.sides import short_names
from unmask.errors import UnmaskError
from unmask.viewer.catalogue import RunEntry

MOST_MEASURED = 500
"""Runs that are kept: about 100 kB each with a thousand scenarios."""

_FileStamp = tuple[str, int, int]
_measured: OrderedDict[tuple[Path, tuple[_FileStamp, ...]], BoardEntry | None] = OrderedDict()
_lock = threading.Lock()


class MeasuredRuns(NamedTuple):
    """Runs with what a board says about each, by the name that it has there."""

    runs: dict[str, RunEntry]
    entries: tuple[BoardEntry, ...]
    left_out: tuple[str, ...]
    """Names of runs without any reply."""
    problems: dict[str, str]
    """Why others cannot be shown."""


def measure_runs(runs: Sequence[RunEntry]) -> MeasuredRuns:
    """Each run is scored once as long as its files do not change; one that cannot be read keeps no other away."""
    named = dict(zip(short_names([entry.path for entry in runs]), runs, strict=True))
    entries, left_out, problems = [], [], {}
    for name, run in named.items():
        try:
            measured = _measure_run(run)
        except UnmaskError as error:
            problems[name] = str(error)
        except OSError as error:  # deleted while it is read
            problems[name] = f"it cannot be read: {error.strerror}"
        else:
            if measured is None:
                left_out.append(name)
            else:
                entries.append(msgspec.structs.replace(measured, row=msgspec.structs.replace(measured.row, name=name)))
    return MeasuredRuns(named, tuple(entries), tuple(left_out), problems)


def _measure_run(entry: RunEntry) -> BoardEntry | None:
    """`None` for a run without any reply. Two pages that want the same run wait for one another."""
    key = (entry.path, tuple(_stamp_files(entry.path)))
    with _lock:
        if key in _measured:
            _measured.move_to_end(key)
            return _measured[key]
        run = entry.open()
        has_replies = any(line.choices for line in run.folder.asked())
        _measured[key] = measure_entry(entry.name, run) if has_replies else None
        for old in [stored for stored in _measured if stored[0] == entry.path and stored != key]:
            del _measured[old]
        while len(_measured) > MOST_MEASURED:
            _measured.popitem(last=False)
        return _measured[key]


def _stamp_files(path: Path) -> Iterable[_FileStamp]:
    """What changes when a file of the run does."""
    files = [path / name for name in ("run.json", "scenarios.jsonl", "replies.jsonl")]
    for file in [*files, *sorted((path / "readings").glob("*.jsonl"))]:
        try:
            stat = file.stat()
        except FileNotFoundError:
            continue
        yield file.name, stat.st_size, stat.st_mtime_ns
