"""Comparing text with the files in tests/golden."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Fail unless `text` is what the file holds. `UNMASK_UPDATE_GOLDEN=1` writes the file, and fails all the same."""
    path = FOLDER / name
    if os.environ.get("UNMASK_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
        raise AssertionError(f"{path.name} was written; run again without UNMASK_UPDATE_GOLDEN")
    assert text == path.read_text(encoding="utf-8"), f"differs from tests/golden/{name}"
