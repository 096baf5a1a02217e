"""What a set of scenarios consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from unmask.data.stats import UNSAID, Push, Stats, Stratum
from unmask.render.blocks import Block, Table, Text

WAYS = {
    "yes/up": (Push.YES, Push.UP),
    "no/down": (Push.NO, Push.DOWN),
    "other": (Push.ANY, Push.UNSAID),
}
RUNG_WAYS = (Push.YES, Push.NO, Push.UP, Push.DOWN)
PRESSURES = {"situational": "sit.", "explicit": "expl."}
LEGEND = (
    "truth A, truth B: which statement is true. sit., expl.: situational and explicit pressure. yes/up, no/down:"
    " the pressure asks for yes or a higher number, for no or a lower one; other: for any other number, or the data"
    " does not say."
)


def describe_stats(stats: Stats) -> Iterator[Block]:
    """From the widest view to the closest. Only ladders have a table by rung."""
    yield balance_table(stats)
    if any(cell.rung is not None for cell in stats.cells):
        yield rung_table(stats)
    yield Text(LEGEND)


def balance_table(stats: Stats) -> Table:
    """A row for each archetype and one for all: size, truth, pressure, and where each pressure pushes."""
    rows = [
        (archetype.value, *_count_columns([cell for cell in stats.cells if cell.archetype is archetype]))
        for archetype in dict.fromkeys(cell.archetype for cell in stats.cells)
    ]
    columns = (f"{short} {way}" for short in PRESSURES.values() for way in WAYS)
    return Table(("archetype", "n", "truth A", "truth B", *columns), [*rows, ("all", *_count_columns(stats.cells))])


def rung_table(stats: Stats) -> Table:
    """A row for each rung: truth, and the way that the pressure pushes on its upper rungs."""
    rows = []
    for rung in sorted({cell.rung for cell in stats.cells if cell.rung is not None}):
        cells = [cell for cell in stats.cells if cell.rung == rung]
        pushed = ([cell for cell in cells if cell.push is way] for way in RUNG_WAYS)
        rows.append((str(rung), *_sizes([*_by_truth(cells), *pushed])))
    return Table(("rung", "n", "truth A", "truth B", *(way.value for way in RUNG_WAYS)), rows, texts=0)


def _count_columns(cells: Sequence[Stratum]) -> tuple[str, ...]:
    pushed = (
        [cell for cell in cells if cell.pressure == pressure and cell.push in pushes]
        for pressure in PRESSURES
        for pushes in WAYS.values()
    )
    return _sizes([*_by_truth(cells), *pushed])


def _by_truth(cells: Sequence[Stratum]) -> list[Sequence[Stratum]]:
    return [cells, *([cell for cell in cells if cell.truth == letter] for letter in "AB")]


def _sizes(groups: Iterable[Sequence[Stratum]]) -> tuple[str, ...]:
    numbers = (sum(cell.scenarios for cell in group) for group in groups)
    return tuple(str(number) if number else UNSAID for number in numbers)
