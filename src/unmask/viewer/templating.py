"""Pages from templates: those of the viewer, and the parts that it shares with the report."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.responses import HTMLResponse

from unmask import __version__
from unmask.records import Verdict
from unmask.render.colours import VERDICTS
from unmask.render.html import charts
from unmask.render.html.conversation import name_anchor
from unmask.render.html.page import open_templates
from unmask.render.words import NAMES

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.responses import Response


@cache
def _viewer_templates() -> Environment:
    """Every template knows verdicts with their names, charts and the version."""
    environment = open_templates("unmask.viewer", "unmask.render.html")
    environment.globals.update(
        verdicts=VERDICTS, names=NAMES, charts=charts, version=__version__, Verdict=Verdict, Markup=Markup
    )
    environment.globals["name_anchor"] = name_anchor
    return environment


def render_template(name: str, **values: Any) -> str:
    return _viewer_templates().get_template(name).render(**values)


def load_macros(name: str, **values: Any) -> Any:
    """The macros of a template as functions that make HTML; they see these values."""
    return _viewer_templates().get_template(name).make_module(values)


def page_response(name: str, *, status: int = 200, **values: Any) -> Response:
    """A page. `here` says which entry of the navigation it belongs to."""
    return HTMLResponse(render_template(name, **values), status_code=status)
