"""Run folders below a folder: of a sweep, or however people sort theirs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

DEEPEST = 4
"""Levels below a given folder that are searched: sweeps keep their runs in `runs/`, and people sort theirs by month."""


def find_runs(folder: Path, depth: int = DEEPEST) -> Iterator[Path]:
    """The folder itself where it is a run, else all runs below it, by name; not in links and hidden folders."""
    if (folder / "run.json").is_file():
        yield folder
        return
    if depth == 0:
        return
    try:
        below = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:  # a folder that is deleted while we look, or that is not ours to read
        return
    for path in below:
        if not os.path.basename(path).startswith("."):
            yield from find_runs(Path(path), depth - 1)


def expand_runs(paths: Iterable[str | Path]) -> list[str]:
    """Every path that is no run as the runs below it. One without any stays, and whoever opens it says what it is."""
    return [str(run) for path in paths for run in (list(find_runs(Path(path))) or [Path(path)])]
