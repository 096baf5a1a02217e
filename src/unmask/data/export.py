"""Our scenarios as the reference code's folder of CSV files, so that others can run them."""

from __future__ import annotations

import csv
from pathlib import Path

from unmask.data.dataset import Dataset
from unmask.data.reference import (
    DIRECT_COLUMN,
    EXTRA,
    INDIRECT_COLUMNS,
    TURN_COLUMNS,
    has_indirect,
    reference_cells,
)
from unmask.errors import UsageError
from unmask.records import Archetype


def export_reference(dataset: Dataset, *, out_dir: Path) -> tuple[Path, ...]:
    """Write one CSV per archetype into a new or empty folder; `load` of that folder gives the same scenarios.

    The columns are the reference code's, and a last column `unmask` that holds all of the scenario as JSON.
    """
    if out_dir.suffix in (".csv", ".jsonl"):
        advice = f"Name the folder: --out {out_dir.with_suffix('')}"
        raise UsageError(f"a file for each archetype is written, and {out_dir} is the name of one file", advice=advice)
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        occupied = any(out_dir.iterdir())
    except OSError as error:
        raise UsageError(f"cannot write into {out_dir}: {error.strerror or error}") from error
    if occupied:
        # A file left from another export would be read as part of this one.
        raise UsageError(f"{out_dir} is not empty", advice="Choose a new folder with --out.")
    written = []
    for archetype in dataset.counts:
        table = [reference_cells(scenario) for scenario in dataset.scenarios if scenario.archetype is archetype]
        path, columns = out_dir / f"{archetype}.csv", reference_columns(archetype)
        with path.open("w", encoding="utf-8", newline="") as file:
            # Everything quoted: older Python leaves a lone carriage return bare, and then it ends the row.
            writer = csv.DictWriter(file, columns, extrasaction="ignore", quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
        written.append(path)
    return tuple(written)


def reference_columns(archetype: Archetype) -> tuple[str, ...]:
    """The reference columns of an archetype, in the dataset's order."""
    turns = TURN_COLUMNS if archetype.traits.has_scripted_answer else ()
    probes: tuple[str, ...] = () if archetype.traits.supplies_fact else (DIRECT_COLUMN,)
    if has_indirect(archetype, archetype.traits.kind):
        probes += INDIRECT_COLUMNS
    head = ("task_id", "system_prompt", *turns, "user_prompt", "type", "proposition")
    return *head, "ground_truth", "formatted_ground_truth", *probes, "delivery", "canary", EXTRA
