"""The web app: its pages put together behind one door."""

from __future__ import annotations

import logging
from collections.abc import Collection
from importlib import import_module
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from unmask.errors import UnmaskError
from unmask.render.html.page import read_asset, read_styles
from unmask.viewer.access import Access
from unmask.viewer.catalogue import Catalogue, RunEntry
from unmask.viewer.templating import page_response

PAGES = ("runs", "run", "label", "agreement", "live", "board")
"""Files of `viewer/pages/`, each with its `ROUTES`."""
SHARED = ("page.css", "page.js", "label.css", "label.js")
"""Styles and scripts that pages have in their files where they are sent."""
STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def build_app(
    catalogue: Catalogue,
    *,
    token: str,
    hosts: Collection[str],
    cookie: str,
) -> ASGIApp:
    """Pages are made by plain functions in threads: reading a journal must not keep others waiting."""
    routes: list[BaseRoute] = [Route("/static/{name}", _send_static)]
    for name in PAGES:
        routes += import_module(f"unmask.viewer.pages.{name}").ROUTES
    handlers = {
        HTTPException: _show_http_problem,
        UnmaskError: _show_problem,
        OSError: _show_file_problem,
        Exception: _show_defect,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.catalogue = catalogue
    app.state.label_sessions = {}
    return Access(app, token=token, hosts=hosts, cookie=cookie)


def get_catalogue(request: Request) -> Catalogue:
    catalogue: Catalogue = request.app.state.catalogue
    return catalogue


def find_entry(request: Request, key: str | None = None) -> RunEntry:
    """The run that an address names, by `key` or by its own `{run}`; a page that says so where there is none."""
    entry = get_catalogue(request).find(key if key is not None else request.path_params["run"])
    if entry is None:
        raise HTTPException(404, "This run is not in the folders that the viewer shows. It may be renamed or deleted.")
    return entry


def find_entries(request: Request, name: str = "runs") -> list[RunEntry]:
    """The runs of `runs=KEY,KEY`, or of `runs=KEY&runs=KEY` as a form sends it, each once."""
    keys = ",".join(request.query_params.getlist(name)).split(",")
    return [find_entry(request, key) for key in dict.fromkeys(filter(None, keys))]


def _send_static(request: Request) -> Response:
    """A style or a script of ours, by its name in the package."""
    name = request.path_params["name"]
    if name in SHARED:
        text = read_styles() if name == "page.css" else read_asset(name)
        return Response(text, media_type=STATIC[name[name.rindex(".") :]])
    entries = {entry.name: entry for entry in (files("unmask.viewer") / "static").iterdir()}
    if name not in entries:
        raise HTTPException(404, "The viewer has no such file.")
    return Response(entries[name].read_bytes(), media_type=STATIC[name[name.rindex(".") :]])


def _show_http_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "The viewer has no such page." if error.detail == "Not Found" else error.detail
    return page_response("problem.html", status=error.status_code, text=text, advice="Go back to the list of runs.")


def _show_problem(_: Request, error: Exception) -> Response:
    """What the command line would have said of this folder: a page is no place for a traceback."""
    assert isinstance(error, UnmaskError)
    return page_response("problem.html", status=409, text=str(error), advice=error.advice or "")


def _show_file_problem(_: Request, error: Exception) -> Response:
    """A run folder that is renamed or deleted while it is read."""
    assert isinstance(error, OSError)
    text = f"A file cannot be read: {error.strerror or error}."
    advice = "The run may be renamed or deleted. Reload the page, or go back to the list of runs."
    return page_response("problem.html", status=409, text=text, advice=advice)


def _show_defect(_: Request, error: Exception) -> Response:
    """A mistake of the program: its traceback goes to the terminal."""
    logging.getLogger(__name__).error("a page failed", exc_info=error)
    text = f"The viewer made a mistake ({type(error).__name__})."
    advice = "The terminal in which unmask view runs shows more. Nothing was written."
    return page_response("problem.html", status=500, text=text, advice=advice)
