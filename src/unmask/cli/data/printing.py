"""How the data commands print: JSON for programs, tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.data.dataset import Dataset
    from unmask.data.stats import Table


def print_table(table: Table) -> None:
    """Columns of numbers to the right under stacked words. A table wider than the terminal is not squeezed."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from unmask.text import escape_controls

    header, *rows = table
    grid = Grid(box=None)
    for place, name in enumerate(header):
        numbers = all(row[place][:1].isdigit() or row[place] == "–" for row in rows)
        title = Text(name.replace(" ", "\n") if numbers else name)
        grid.add_column(title, justify="right" if numbers else "left", vertical="bottom", no_wrap=True)
    for row in rows:
        grid.add_row(*(Text(escape_controls(cell)) for cell in row))
    needed = Console(width=10_000).measure(grid).maximum
    Console(width=max(needed, Console().width)).print(grid)


def summarise_set(dataset: Dataset) -> dict[str, Any]:
    """What identifies a set: name, size, hash and sizes of its archetypes."""
    counts = dataset.counts
    return {"name": dataset.name, "scenarios": len(dataset.scenarios), "hash": dataset.hash, "archetypes": counts}
