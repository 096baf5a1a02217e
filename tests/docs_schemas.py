"""Writes JSON schemas for editors from the records themselves, into docs/schemas: `python -m tests.docs_schemas`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from tests.docs_files import meanings
from unmask.records import Scenario
from unmask.sweep import grid
from unmask.sweep.grid import DataRow, LocalTable, MatrixTable, ModelRow, OptionsTable, RayTable, SweepTable

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"
GridFile = msgspec.defstruct(
    "GridFile",
    [
        ("data", list[DataRow]),
        ("subject", list[ModelRow]),
        ("judge", list[ModelRow]),
        ("sweep", SweepTable, msgspec.UNSET),
        ("local", LocalTable, msgspec.UNSET),
        ("ray", RayTable, msgspec.UNSET),
        ("options", OptionsTable, msgspec.UNSET),
        ("matrix", MatrixTable, msgspec.UNSET),
    ],
    forbid_unknown_fields=True,
)
"""A grid as it is written: `grid.Grid` is what becomes of it."""
RECORDS = (Scenario, *(value for value in vars(grid).values() if isinstance(value, type)), GridFile)


def schemas() -> dict[str, str]:
    """What each file holds, by its name."""
    trees = {
        "scenario.json": ("A scenario: a line of a data file.", msgspec.json.schema(Scenario)),
        "grid.json": ("A grid of unmask sweep.", _let_editors_write(msgspec.json.schema(GridFile))),
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: json.dumps(head | {"title": title} | _explain(tree), indent=2, ensure_ascii=False) + "\n"
        for name, (title, tree) in trees.items()
    }


def _let_editors_write(tree: dict[str, Any]) -> dict[str, Any]:
    """One value without its brackets, and `for`, which is gone once a grid is read."""
    parts = tree["$defs"]
    for record in (DataRow, MatrixTable):
        fields = parts[record.__name__]["properties"]
        for name in grid._LISTS & fields.keys():
            fields[name]["anyOf"] = [{"type": "array", "items": fields[name]["items"]}, fields[name].pop("items")]
            del fields[name]["type"]
    subject = msgspec.json.decode(msgspec.json.encode(parts[ModelRow.__name__]))
    axis = {"type": "array", "minItems": 1}
    subject["properties"]["for"] = {"type": "object", "additionalProperties": axis}
    subject["properties"].pop("temperature")  # that of the subjects is in [matrix]
    parts["Subject"] = subject | {"title": "Subject"}
    table = parts["GridFile"]["properties"]
    table["subject"]["items"] = {"$ref": "#/$defs/Subject"}
    for name in ("data", "subject", "judge"):
        table[name]["minItems"] = 1
    return tree


def _explain(tree: dict[str, Any]) -> dict[str, Any]:
    """With the sentence below each field, which an editor shows."""
    for record in RECORDS:
        for part in {record.__name__, "Subject"} if record is ModelRow else {record.__name__}:
            fields = tree["$defs"].get(part, {}).get("properties", {})
            for name, meaning in (meanings(record) if fields and record is not GridFile else {}).items():
                if name in fields:
                    fields[name]["description"] = meaning
    return tree


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in schemas().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
