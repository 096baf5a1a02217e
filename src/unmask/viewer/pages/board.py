"""*Board*: several runs, ranked as `unmask board` ranks them."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.analysis.board import BoardEntry, measure_entry, rank_entries
from unmask.analysis.sides import short_names
from unmask.errors import UnmaskError
from unmask.render.describe.board import describe_board
from unmask.viewer.app import find_entries, get_catalogue
from unmask.viewer.cache import CACHE
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response


def show_board(request: Request) -> Response:
    chosen = find_entries(request) or get_catalogue(request).entries()
    named = dict(zip(short_names([entry.path for entry in chosen]), chosen, strict=True))
    entries, problems = [], {}
    for name, entry in named.items():
        try:
            measured = _measure_run(entry)
        except UnmaskError as error:
            problems[name] = str(error)
        else:
            entries.append(msgspec.structs.replace(measured, row=msgspec.structs.replace(measured.row, name=name)))
    published = request.query_params.get("published") == "1"
    board = rank_entries(entries, with_published=published)
    links = {name: f"/run/{entry.key}" for name, entry in named.items()}
    return page_response(
        "board.html",
        here="board",
        described=describe_board(board, links=links),
        problems=problems,
        every=get_catalogue(request).entries(),
        chosen={entry.key for entry in chosen},
        published=published,
    )


def _measure_run(entry: RunEntry) -> BoardEntry:
    return CACHE.get([entry], "board", lambda: measure_entry(entry.name, entry.open()), megabytes=0.1)


ROUTES = (Route("/board", show_board),)
