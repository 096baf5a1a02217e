"""Our scenarios as the reference code's folder of CSV files, so that others can run them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec

from unmask.data import reference
from unmask.data.dataset import Dataset
from unmask.errors import UsageError
from unmask.files import refuse_file_name
from unmask.records import Archetype, Interval, Scenario

_TYPE_OF = {kind: word for word, kind in reference.TYPES.items()}


def export_reference(dataset: Dataset, *, out_dir: Path) -> tuple[Path, ...]:
    """Write one CSV per archetype into a new or empty folder; `load` of that folder gives the same scenarios.

    The columns are the reference code's. Where they cannot say everything, a last column `unmask` holds the rest as
    JSON; readers that do not know it lose nothing they could have used.
    """
    refuse_file_name(out_dir)
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
        path = out_dir / f"{archetype}.csv"
        columns = reference_columns(archetype, extra=any(row[reference.EXTRA] for row in table))
        with path.open("w", encoding="utf-8", newline="") as file:
            # Everything quoted: older Python leaves a lone carriage return bare, and then it ends the row.
            writer = csv.DictWriter(file, columns, extrasaction="ignore", quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
        written.append(path)
    return tuple(written)


def reference_columns(archetype: Archetype, *, extra: bool) -> tuple[str, ...]:
    """The reference columns of an archetype, in the dataset's order."""
    turns = reference.TURN_COLUMNS if archetype.traits.has_scripted_answer else ()
    probes: tuple[str, ...] = () if archetype.traits.supplies_fact else (reference.DIRECT_COLUMN,)
    if reference.has_indirect(archetype, archetype.traits.kind):
        probes += reference.INDIRECT_COLUMNS
    head = ("task_id", "system_prompt", *turns, "user_prompt", "type", "proposition")
    tail = ("ground_truth", "formatted_ground_truth", *probes, "delivery", "canary")
    return head + tail + ((reference.EXTRA,) if extra else ())


def reference_cells(scenario: Scenario) -> dict[str, str]:
    """One row, every column filled in, those the archetype lacks included."""
    turns = [message.content for message in scenario.conversation]
    first, answer = (turns[1], turns[2]) if len(turns) == 4 else ("", "")
    match scenario.truth:
        case Interval(lower=lower, upper=upper):
            bounds = ["open" if bound is None else f"{bound:g}" for bound in (lower, upper)]
            truth, formatted = f"{' to '.join(bounds)} {scenario.unit or ''}".strip(), f"[{lower!r}, {upper!r}]"
        case letter:
            truth, formatted = scenario.statements["AB".index(letter)], letter.value
    row = {
        "task_id": scenario.id,
        "system_prompt": turns[0],
        "user_prompt": turns[-1],
        "type": _TYPE_OF[scenario.kind],
        "proposition": scenario.proposition,
        "ground_truth": truth,
        "formatted_ground_truth": formatted,
        reference.DIRECT_COLUMN: scenario.direct or "",
        **dict(zip(reference.INDIRECT_COLUMNS, (*scenario.indirect, "", ""), strict=False)),
        **dict(zip(reference.TURN_COLUMNS, (first, answer), strict=True)),
        "delivery": "" if scenario.delivery is None else str(scenario.delivery),
        "canary": scenario.canary or "",
    }
    beyond = _extra_fields(scenario, row)
    return row | {reference.EXTRA: msgspec.json.encode(beyond).decode() if beyond else ""}


def _extra_fields(scenario: Scenario, row: dict[str, str]) -> dict[str, Any]:
    """The fields a reader of the reference columns alone would get wrong: found by reading them."""
    parsed = reference.base_fields(row, archetype=scenario.archetype, kind=scenario.kind)
    have = parsed if isinstance(parsed, dict) else {}
    wanted = {field: msgspec.to_builtins(getattr(scenario, field)) for field in reference.OPEN_FIELDS}
    wanted["indirect"] = list(scenario.indirect)
    wanted["conversation"] = [msgspec.to_builtins(message) for message in scenario.conversation]
    # Fewer than two is fine for us, but an empty cell where the layout has a probe is a bad row unless it is said.
    fewer = reference.has_indirect(scenario.archetype, scenario.kind) and len(scenario.indirect) < 2
    return {f: wanted[f] for f in reference.OPEN_FIELDS if wanted[f] != have.get(f) or (f == "indirect" and fewer)}
