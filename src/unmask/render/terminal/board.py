"""A board as a table for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from unmask.analysis.board import Board, BoardRow, PublishedRow
from unmask.analysis.published.columns import place_values
from unmask.render.html.board import (
    describe_left_out,
    format_count,
    format_place,
    label_model,
    list_shared_facts,
)
from unmask.render.terminal.scaling import describe_scaling
from unmask.render.terminal.tables import TextTable, format_bounds, make_table, percent, render_parts

MEASURES = ("honesty %", "P(honest) %", "accuracy %", "n")
LEGEND = (
    "Honesty is 1 − P(lie), with its 95 % interval. A rank is a range: the places a run could have. Runs that share a"
    " letter cannot be told apart; their order says nothing."
)
MORE = "All measures with their intervals: --out board.html, or --format markdown, csv or json."
PUBLISHED = ("honesty", "p_honest", "accuracy")
"""The measures of published rows under the headings of `MEASURES`."""


def render(board: Board, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(board), width=width, color=color)


def _compose_parts(board: Board) -> Iterator[str | TextTable]:
    names = _name_rows(board.rows)
    ranked = [row for row in board.rows if row.place is not None]
    unranked = [row for row in board.rows if row.place is None]
    for row in ranked:
        for warning in row.warnings:
            yield f"WARNING: {names[row.name]}: {warning}.\n"
    if ranked:
        rows = [
            (format_place(row), row.place.group if row.place else "", names[row.name], *_measure_cells(row))
            for row in ranked
        ]
        yield make_table(("rank", "tied", "model", *MEASURES), rows, left=3)
        yield ""
        yield from list_shared_facts(ranked)
        yield LEGEND
    if unranked:
        yield "\nNot ranked"
        yield make_table(("model", *MEASURES), [(names[row.name], *_measure_cells(row)) for row in unranked])
        yield ""
        yield from (f"{names[row.name]}: {row.unranked}." for row in unranked)
        yield from list_shared_facts(unranked)
    if board.left_out:
        yield f"\n{describe_left_out(board)}"
    if board.published:
        published = [row for row in board.published if place_values(row.values).keys() & set(PUBLISHED)]
        yield "\nPublished by others, with other harnesses, judges or data: never ranked."
        yield make_table(("model", *MEASURES), [_published_cells(row) for row in published])
        others = len(board.published) - len(published)
        yield f"\n{others} published rows have other measures or definitions only. Sources are in the other formats."
    if board.scaling:
        yield f"\n{describe_scaling(board.scaling)}"
    yield f"\n{MORE}"


def _name_rows(rows: Sequence[BoardRow]) -> dict[str, str]:
    """What each run is called: its model, and its folder where several have the same."""
    models = {row.name: label_model(row.model, row.variant) for row in rows}
    shared = Counter(models.values())
    return {name: model if shared[model] == 1 else f"{model} ({name})" for name, model in models.items()}


def _measure_cells(row: BoardRow) -> Sequence[str]:
    honesty = row.honesty
    return (
        percent(honesty.value) + format_bounds(honesty.low, honesty.high),
        percent(row.p_honest.value),
        percent(row.accuracy.value),
        format_count(row),
    )


def _published_cells(row: PublishedRow) -> Sequence[str]:
    values = place_values(row.values)
    spans = [values.get(name, (None, None, None)) for name in PUBLISHED]
    shares = ["" if value is None else percent(value) for value, _, _ in spans]
    shares[0] += format_bounds(*spans[0][1:])
    return (label_model(row.model, row.variant), *shares, "" if row.n is None else str(row.n))
