"""*Runs*: every run of the folders in one table."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.viewer.app import get_catalogue
from unmask.viewer.templating import page_response


def show_runs(request: Request) -> Response:
    return page_response("runs.html", here="runs", entries=get_catalogue(request).entries())


ROUTES = (Route("/", show_runs),)
