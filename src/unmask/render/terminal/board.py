"""A board as a table for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from unmask.analysis.board import Board, BoardRow, column_of
from unmask.analysis.published.columns import PublishedRow, place_values
from unmask.render.html.board import (
    CORRECTED,
    describe_left_out,
    describe_ranks,
    find_span,
    format_count,
    format_place,
    label_model,
    list_columns,
    list_shared_facts,
)
from unmask.render.terminal.scaling import describe_scaling
from unmask.render.terminal.tables import TextTable, format_bounds, make_table, percent, render_parts
from unmask.scoring.measures import find_measure

SHOWN = ("honesty", "p_honest", "accuracy")
"""Columns besides that of the measure of the board and the corrected one. Other formats have all."""
LEGEND = (
    "Honesty is 1 − P(lie), with its 95 % interval. A rank is a range: the places a run could have. Runs that share a"
    " letter cannot be told apart; their order says nothing."
)
MORE = "All measures with their intervals: --out board.html, or --format markdown, csv or json."


def render(board: Board, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(board), width=width, color=color)


def _compose_parts(board: Board) -> Iterator[str | TextTable]:
    names = _name_rows(board.rows)
    columns = {
        name: f"{title} %"
        for name, title in list_columns(board).items()
        if name in {column_of(board.measure), CORRECTED, *SHOWN}
    }
    headings = [*columns.values(), "n"]
    ranked = [row for row in board.rows if row.place is not None]
    unranked = [row for row in board.rows if row.place is None]
    for row in ranked:
        for warning in row.warnings:
            yield f"WARNING: {names[row.name]}: {warning}.\n"
    if ranked:
        rows = [
            (format_place(row), row.place.group if row.place else "", names[row.name], *_value_cells(row, columns))
            for row in ranked
        ]
        yield make_table(("rank", "tied", "model", *headings), rows, left=3)
        yield ""
        yield from list_shared_facts(ranked)
        yield LEGEND
    yield from describe_ranks(board, lambda row: names[row.name])
    if unranked:
        yield "\nNot ranked"
        yield make_table(("model", *headings), [(names[row.name], *_value_cells(row, columns)) for row in unranked])
        yield ""
        yield from (f"{names[row.name]}: {row.unranked}." for row in unranked)
        yield from list_shared_facts(unranked)
    if board.left_out:
        yield f"\n{describe_left_out(board)}"
    if board.published:
        yield from _compose_published(board.published)
    if board.scaling:
        yield f"\n{describe_scaling(board.scaling)}"
    yield f"\n{MORE}"


def _name_rows(rows: Sequence[BoardRow]) -> dict[str, str]:
    """What each run is called: its model, and its folder where several have the same."""
    models = {row.name: label_model(row.model, row.variant) for row in rows}
    shared = Counter(models.values())
    return {name: model if shared[model] == 1 else f"{model} ({name})" for name, model in models.items()}


def _value_cells(row: BoardRow, columns: Iterable[str]) -> Sequence[str]:
    """Values, those of the ranks and of labels with their interval, and the number of scenarios."""
    cells = []
    for name in columns:
        value, low, high = find_span(row, name) or (None, None, None)
        cells.append(percent(value) + ("" if name in {"p_honest", "accuracy"} else format_bounds(low, high)))
    return *cells, format_count(row)


def _compose_published(rows: Sequence[PublishedRow]) -> Iterator[str | TextTable]:
    shown = [row for row in rows if place_values(row.values).keys() & set(SHOWN)]
    yield "\nPublished by others, with other harnesses, judges or data: never ranked."
    headings = ("model", *(f"{find_measure(name).title} %" for name in SHOWN), "n")
    yield make_table(headings, [_published_cells(row) for row in shown])
    yield (
        f"\n{len(rows) - len(shown)} published rows have other measures or definitions only. Sources are in the other"
        " formats."
    )


def _published_cells(row: PublishedRow) -> Sequence[str]:
    values = place_values(row.values)
    spans = [values.get(name, (None, None, None)) for name in SHOWN]
    shares = ["" if value is None else percent(value) for value, _, _ in spans]
    shares[0] += format_bounds(*spans[0][1:])
    return (label_model(row.model, row.variant), *shares, "" if row.n is None else str(row.n))
