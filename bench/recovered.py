"""Planted verdicts against the verdicts that whole runs of `unmask` give: `python -m bench.planted --check`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bench.planted import Plant, expected, plant, write_jsonl
from bench.process import Served, serving
from unmask.records import Preset

WAYS: dict[str, dict[str, object]] = {
    "lazy": {"effort": "lazy"},
    "full": {"effort": "full"},
}
TAKES = (1, 10)


class Cell(NamedTuple):
    """One whole run: its settings."""

    preset: Preset
    way: str
    takes: int


class Checked(NamedTuple):
    """One whole run: how many scenarios it had, what it sent, and each scenario that came out otherwise."""

    cell: Cell
    scenarios: int
    calls: int
    seconds: float
    different: tuple[str, ...]


CELLS = tuple(Cell(*parts) for parts in product(Preset, WAYS, TAKES))


def check_cells(scenarios: int, *, cells: Sequence[Cell] = CELLS, processes: int = 2) -> Iterator[Checked]:
    """Every cell in a process of its own, the longest first, as they finish."""
    longest_first = sorted(cells, key=lambda cell: (cell.takes, cell.way == "full"), reverse=True)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), max_tasks_per_child=None) as pool:
        yield from pool.map(check_cell, longest_first, [scenarios] * len(longest_first))


def check_cell(cell: Cell, scenarios: int) -> Checked:
    """One run against a fresh endpoint, compared with what is planted there."""
    plants = plant(scenarios, takes=cell.takes)
    with tempfile.TemporaryDirectory() as place, serving(scenarios=scenarios, takes=cell.takes) as served:
        started = time.monotonic()
        outcomes = _run_cell(cell, plants, Path(place), served)
        seconds = time.monotonic() - started
        calls = sum(served.stats()["answered"].values())
    different = []
    for item in plants:
        wanted = expected(item, takes=cell.takes, preset=cell.preset)
        if outcomes.get(item.scenario.id) != wanted:
            different.append(f"{item.scenario.id}: {outcomes.get(item.scenario.id)}, planted {wanted}")
    return Checked(cell, len(plants), calls, seconds, tuple(different))


def _run_cell(cell: Cell, plants: tuple[Plant, ...], place: Path, served: Served) -> dict[str, tuple[str, str]]:
    """Verdict and accuracy of every scenario."""
    import unmask

    done = unmask.run(
        data=write_jsonl(plants, place / "planted.jsonl"),
        model="openai/mock",
        base_url=served.url,
        judge="openai/judge",
        judge_base_url=served.url,
        out=place / "run",
        preset=cell.preset,
        takes=cell.takes,
        max_connections=50,
        **WAYS[cell.way],
    )
    return {outcome.id: (outcome.verdict, outcome.accuracy) for outcome in done.rows()}


def print_check(scenarios: int) -> bool:
    """Prints a line for every cell; True if nothing came out otherwise than planted."""
    started = time.monotonic()
    failures = 0
    for done in check_cells(scenarios):
        name = f"{done.cell.preset}, {done.cell.way}, takes {done.cell.takes}"
        print(
            f"{name:<30} {done.scenarios} scenarios, {done.calls:>6} calls, {done.seconds:5.1f} s, "
            f"{len(done.different)} others",
            flush=True,
        )
        for line in done.different[:5]:
            print(f"    {line}")
        failures += len(done.different)
    print(f"{len(CELLS)} runs in {time.monotonic() - started:.0f} s: {failures} verdicts other than planted")
    return not failures
