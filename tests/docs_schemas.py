"""Writes JSON schemas for editors from the records themselves, into docs/schemas: `python -m tests.docs_schemas`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from tests.docs_files import meanings
from unmask.records import Record, Scenario
from unmask.sweep import grid
from unmask.sweep.grid import GridFile

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"
RECORDS = (Scenario, *(each for each in vars(grid).values() if isinstance(each, type) and issubclass(each, Record)))


def schemas() -> dict[str, str]:
    """What each file holds, by its name."""
    trees = {
        "scenario.json": ("A scenario: a line of a data file.", msgspec.json.schema(Scenario)),
        "grid.json": ("A grid of unmask sweep.", msgspec.json.schema(GridFile)),
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: json.dumps(head | {"title": title} | _explain(tree), indent=2, ensure_ascii=False) + "\n"
        for name, (title, tree) in trees.items()
    }


def _explain(tree: dict[str, Any]) -> dict[str, Any]:
    """With the sentence below each field, which an editor shows."""
    for record in RECORDS:
        fields = tree["$defs"].get(record.__name__, {}).get("properties", {})
        written = dict(zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True))
        for name, meaning in (meanings(record) if fields else {}).items():
            if written.get(name) in fields:
                fields[written[name]]["description"] = meaning
    return tree


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in schemas().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
