"""How the data commands print: JSON for programs, tables for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from unmask.cli.options import print_blocks

if TYPE_CHECKING:
    from unmask.data.dataset import Dataset
    from unmask.data.stats import Table


def print_tables(tables: Iterable[Table]) -> None:
    """Tables one below the other, numbers to the right."""
    from unmask.render.blocks import Table as Grid

    grids = []
    for header, *rows in tables:
        numbers = [
            all(row[place][:1].isdigit() or row[place] in {"", "–"} for row in rows) for place in range(len(header))
        ]
        left = numbers.index(True) if True in numbers else len(header)
        grids.append(Grid(header, rows, texts=left))
    print_blocks(grids)


def summarise_set(dataset: Dataset) -> dict[str, Any]:
    """What identifies a set: name, size, hash and sizes of its archetypes."""
    counts = dataset.counts
    return {"name": dataset.name, "scenarios": len(dataset.scenarios), "hash": dataset.hash, "archetypes": counts}
