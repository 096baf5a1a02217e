"""Pages from templates: those of the viewer, and those that it shares with the report."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse

from unmask.render.html.page import open_templates

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.responses import Response


@cache
def _viewer_templates() -> Environment:
    return open_templates("unmask.viewer", "unmask.render.html")


def render_template(name: str, **values: Any) -> str:
    return _viewer_templates().get_template(name).render(**{"served": True, **values})


def page_response(name: str, *, status: int = 200, **values: Any) -> Response:
    """A page. `here` says which entry of the navigation it belongs to."""
    return HTMLResponse(render_template(name, **values), status_code=status)
