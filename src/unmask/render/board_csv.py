"""A board as CSV: one line per run and per published row."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from unmask.analysis.board import Board, BoardRow
from unmask.analysis.published.columns import COLUMNS as PUBLISHED
from unmask.analysis.published.columns import PublishedRow, describe_others, place_values
from unmask.render.describe.board import find_span, list_columns
from unmask.text import guard_formula

PROVENANCE = ("judge", "preset", "data", "data hash", "direct", "takes", "tags", "effort", "temperature")


def render_csv(board: Board) -> str:
    """One line per run and per published row, told apart by the column `kind`; shares from 0 to 1."""
    extra = (*PROVENANCE, "judge prompts", "probe prompts", "unmask", "run", "created")
    names = [
        *("kind", "name", "model", "variant", "rank_best", "rank_worst", "tied"),
        *("unranked", "n", "unjudged", "takes"),
    ]
    measures = dict.fromkeys((*list_columns(board), *(PUBLISHED if board.published else ())))
    names += [f"{measure}{part}" for measure in measures for part in ("", "_low", "_high")]
    names += [name.replace(" ", "_") for name in extra if name != "takes"]
    names += ["where", "note", "other_definition"]
    out = StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for row in board.rows:
        values = _csv_row(row, list(list_columns(board)))
        values |= {name.replace(" ", "_"): row.provenance.get(name) for name in extra if name != "takes"}
        writer.writerow({name: guard_formula(cell) if isinstance(cell, str) else cell for name, cell in values.items()})
    for published_row in board.published:
        writer.writerow(_csv_published(published_row))
    return out.getvalue()


def _csv_row(row: BoardRow, columns: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {
        "kind": "run",
        "name": row.name,
        "model": row.model,
        "variant": row.variant,
        "rank_best": row.place and row.place.best,
        "rank_worst": row.place and row.place.worst,
        "tied": row.place and row.place.group,
        "unranked": row.unranked,
        "n": row.n,
        "unjudged": row.unjudged,
        "takes": row.takes,
    }
    for name in columns:
        values |= zip(_name_ends(name), find_span(row, name) or (None, None, None), strict=True)
    return values


def _name_ends(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _csv_published(published_row: PublishedRow) -> dict[str, object]:
    columns: dict[str, object] = {
        "kind": published_row.source,
        "model": published_row.model,
        "variant": published_row.variant,
        "n": published_row.n,
        "judge": published_row.judge,
        "data": published_row.data,
        "where": published_row.where,
        "note": published_row.note,
    }
    for name, span in place_values(published_row.values).items():
        columns |= zip(_name_ends(name), span, strict=True)
    return columns | {"other_definition": "; ".join(describe_others(published_row.values))}
