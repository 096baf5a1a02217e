"""The sets that ship inside the package, found by looking: a new file in `scenarios/` is a new name."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

_SUFFIX = ".jsonl"


def bundled_sets() -> dict[str, Traversable]:
    """Name → file, sorted by name. Works from a wheel and from a zip as well."""
    folder = files("unmask.data").joinpath("scenarios")
    entries = sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []
    return {file.name.removesuffix(_SUFFIX): file for file in entries if file.name.endswith(_SUFFIX)}
