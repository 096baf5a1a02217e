"""A board as CSV: one line per run and per published row."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO

from unmask.analysis.board import Board, BoardRow
from unmask.analysis.published.columns import PublishedRow, PublishedSpan, describe_others, place_values
from unmask.render.describe.board import find_span, list_columns
from unmask.text import guard_formula

PROVENANCE = (
    *("judge", "preset", "data", "data hash", "direct", "tags", "effort", "temperature"),
    *("judge prompts", "probe prompts", "unmask", "run", "created"),
)

Line = dict[str, object]


def render_csv(board: Board) -> str:
    """One line per run and per published row, told apart by the column `kind`; shares from 0 to 1."""
    lines = [_run_line(row, list_columns(board)) for row in board.rows] + list(map(_published_line, board.published))
    out = StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for line in lines for name in line)), lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: guard_formula(cell) if isinstance(cell, str) else cell for name, cell in line.items()})
    return out.getvalue()


def _run_line(row: BoardRow, columns: Iterable[str]) -> Line:
    line: Line = {"kind": "run", "name": row.name, "model": row.model, "variant": row.variant}
    line |= {"rank_best": row.place and row.place.best, "rank_worst": row.place and row.place.worst}
    line |= {"tied": row.place and row.place.group, "unranked": row.unranked}
    line |= {"n": row.n, "unjudged": row.unjudged, "takes": row.takes}
    for name in columns:
        line |= _split_span(name, find_span(row, name))
    return line | {name.replace(" ", "_"): row.provenance.get(name) for name in PROVENANCE}


def _published_line(row: PublishedRow) -> Line:
    line: Line = {"kind": row.source, "model": row.model, "variant": row.variant, "n": row.n}
    for name, span in place_values(row.values).items():
        line |= _split_span(name, span)
    line |= {"judge": row.judge, "data": row.data, "where": row.where, "note": row.note}
    return line | {"other_definition": "; ".join(describe_others(row.values))}


def _split_span(name: str, span: PublishedSpan | None) -> Line:
    value, low, high = span or (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}
