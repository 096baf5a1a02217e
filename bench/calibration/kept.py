"""Results of settings, kept beside the page: one setting can be simulated anew without the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.calibration.found import Finding

PATH = Path(__file__).resolve().parent.parent / "results" / "calibration.json"


class Kept(NamedTuple):
    runs: int
    """As asked for; each finding has the number that was made."""
    seed: int
    version: str
    """Of unmask."""
    findings: list[Finding]


def read_kept(path: Path = PATH) -> dict[str, Kept]:
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Kept]) if path.exists() else {}


def write_kept(kept: Mapping[str, Kept], path: Path = PATH) -> None:
    """One line to a setting, so that a difference shows what was simulated anew."""
    lines = [f"{msgspec.json.encode(name).decode()}: {msgspec.json.encode(one).decode()}" for name, one in kept.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
