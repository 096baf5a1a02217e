"""One HTML page: a file that needs nothing else, under a policy that names its own style and script, or a page that the
viewer serves with the same templates, style and script.

The policy of a file allows this page's style and script by their hashes and nothing else: even if a text of a model got
through as markup, the browser would neither run, load nor restyle anything for it.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from unmask import __version__
from unmask.records import Verdict
from unmask.render import words
from unmask.render.blocks import to_html
from unmask.render.colours import VERDICTS, style_variables
from unmask.render.html import charts
from unmask.render.html.conversation import name_anchor
from unmask.text import strip_controls, visible_html, visible_html_line

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, style: str = "", code: str = "page.js", /, **values: Any) -> str:
    """The page `template` as a file. `style` names a style sheet to add to that of all pages, `code` the script."""
    styles, script = read_styles() + (read_asset(style) if style else ""), read_asset(code)
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:;"
        f" style-src '{_policy_hash(styles)}'; script-src '{_policy_hash(script)}'"
    )
    page = open_templates("unmask.render.html").get_template(template)
    # Both files are ours, and neither holds anything that would end its element.
    return page.render(served=None, styles=Markup(styles), script=Markup(script), policy=policy, **values)


@cache
def open_templates(*packages: str) -> Environment:
    """The templates of these packages, compiled once: a page that has to fit is made several times. All of them know
    words, charts and verdicts."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=kept_together(words.percent),
        bounds=kept_together(words.span),
        count=words.count,
        money=words.money,
        shown=visible_html,
        line=lambda text, limit=400: visible_html_line(text, limit=limit),
        safe_line=strip_controls,
    )
    environment.globals.update(
        verdicts=VERDICTS,
        names=words.NAMES,
        words=words,
        charts=charts,
        version=__version__,
        Verdict=Verdict,
        Markup=Markup,
        name_anchor=name_anchor,
        blocks=lambda described, level, name: Markup(to_html(described, level=level, name=name, draw=True)),
    )
    return environment


def kept_together(wording: Any) -> Any:
    """The same words, a number and its sign in one piece."""
    return lambda *numbers: wording(*numbers).replace(" %", "\N{NO-BREAK SPACE}%")


def read_styles() -> str:
    """The style sheet, with the colours of verdicts in both themes."""
    light, dark = style_variables(dark=False), style_variables(dark=True)
    colours = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return colours + read_asset("page.css")


def read_asset(name: str) -> str:
    return (files("unmask.render.html") / "templates" / name).read_text(encoding="utf-8")


def _policy_hash(text: str) -> str:
    """As browsers compute it: over the content of the element, byte for byte."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
