"""*Board*: several runs in the order of their honesty, as `unmask board` ranks them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.analysis.board import Board, BoardEntry, BoardRow, measure_entry, rank_entries
from unmask.analysis.sides import short_names
from unmask.errors import UnmaskError
from unmask.render.blocks import to_html
from unmask.render.describe import board as drawn
from unmask.render.describe.several import label_model
from unmask.viewer.app import find_entry, get_catalogue
from unmask.viewer.cache import CACHE
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response


class BoardTable(NamedTuple):
    """Ranked rows, or those that are not. `measures` are columns with a value and an interval, and their headings."""

    rows: Sequence[BoardRow]
    measures: dict[str, str]
    facts: Sequence[str]
    """Columns of what differs in how the runs were made."""
    shared: Sequence[str]
    """What is the same for all, in words."""


def show_board(request: Request) -> Response:
    chosen = choose_runs(request)
    named = dict(zip(short_names([entry.path for entry in chosen]), chosen, strict=True))
    entries, left_out, problems = [], [], {}
    for name, entry in named.items():
        try:
            measured = _measure_run(entry)
        except UnmaskError as error:
            problems[name] = str(error)
            continue
        if measured is None:
            left_out.append(name)
        else:
            entries.append(msgspec.structs.replace(measured, row=msgspec.structs.replace(measured.row, name=name)))
    published = request.query_params.get("published") == "1"
    board = rank_entries(entries, left_out=left_out, with_published=published)
    sort, order = request.query_params.get("sort", ""), request.query_params.get("order", "")
    groups = {
        "ranked": [row for row in board.rows if row.place is not None],
        "unranked": [row for row in board.rows if row.place is None],
    }
    others = Markup(to_html([drawn.make_published_table(board.published)]))
    return page_response(
        "board.html",
        here="board",
        board=board,
        tables={name: _make_table(board, rows, sort, order) for name, rows in groups.items()},
        remarks=list(drawn.describe_ranks(board, {row.name: row.name for row in board.rows})),
        runs=named,
        problems=problems,
        every=get_catalogue(request).entries(),
        chosen={entry.key for entry in chosen},
        published=others if published else None,
        sort=sort,
        order=order,
        address=partial(_make_address, request),
        drawn=drawn,
    )


def choose_runs(request: Request) -> list[RunEntry]:
    """The runs of `runs=KEY,KEY` (or `runs=KEY&runs=KEY`, as a form sends it); all where it names none."""
    keys = dict.fromkeys(key for text in request.query_params.getlist("runs") for key in text.split(",") if key)
    return [find_entry(request, key) for key in keys] or get_catalogue(request).entries()


def _measure_run(entry: RunEntry) -> BoardEntry | None:
    """`None` for a run without any reply."""

    def measure() -> BoardEntry | None:
        run = entry.open()
        has_replies = any(line.choices for line in run.folder.asked())
        return measure_entry(entry.name, run) if has_replies else None

    return CACHE.get([entry], "board", measure, megabytes=0.1)


def _make_table(board: Board, rows: Sequence[BoardRow], sort: str, order: str) -> BoardTable:
    measures = drawn.list_columns(board, rows)
    facts = [name for name in drawn.FACTS if len({drawn.tell_fact(row, name) for row in rows}) > 1]
    if sort in {"model", "n", *measures}:
        valued = [row for row in rows if _sort_key(row, sort) is not None]
        unvalued = [row for row in rows if _sort_key(row, sort) is None]
        valued.sort(key=lambda row: _sort_key(row, sort), reverse=order == "desc")  # type: ignore[arg-type,return-value]
        rows = [*valued, *unvalued]
    return BoardTable(rows, measures, facts, drawn.list_shared_facts(rows))


def _sort_key(row: BoardRow, sort: str) -> float | str | None:
    match sort:
        case "model":
            return label_model(row.model, row.variant).casefold()
        case "n":
            return row.n
    span = drawn.find_span(row, sort)
    return None if span is None else span.value


def _make_address(request: Request, **changes: str) -> str:
    """This page with other settings. An empty one is left out."""
    settings = {name: request.query_params.get(name, "") for name in ("sort", "order", "published")}
    settings["runs"] = ",".join(request.query_params.getlist("runs"))
    query = urlencode({name: text for name, text in (settings | changes).items() if text}, safe=",")
    return f"/board?{query}" if query else "/board"


ROUTES = (Route("/board", show_board),)
