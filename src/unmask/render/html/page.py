"""One HTML file that needs nothing else: template, styles and script put together under a policy that names them.

The policy allows this page's own style and script by their hashes and nothing besides: even if a text of a model got
through as markup, the browser would neither run, load nor restyle anything for it.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from unmask.render.colours import style_variables
from unmask.render.words import money as format_money
from unmask.text import strip_controls, visible_html

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, style: str = "", code: str = "report.js", /, **values: Any) -> str:
    """The page `template`, with `styles`, `script` and `policy` next to the given values. `style` names a style sheet
    to add to that of the report, `code` the script."""
    light, dark = style_variables(dark=False), style_variables(dark=True)
    colours = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    styles, script = colours + _read_template("report.css"), _read_template(code)
    styles += _read_template(style) if style else ""
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:;"
        f" style-src '{_policy_hash(styles)}'; script-src '{_policy_hash(script)}'"
    )
    page = open_templates("unmask.render.html").get_template(template)
    # Both files are ours, and neither holds anything that would end its element.
    return page.render(styles=Markup(styles), script=Markup(script), policy=policy, **values)


@cache
def open_templates(*packages: str) -> Environment:
    """The templates of these packages, compiled once: a page that has to fit is made several times."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=percent, bounds=format_bounds, count=format_count, money=format_money, points=format_points
    )
    environment.filters.update(shown=visible_html, safe_line=strip_controls)
    return environment


def percent(share: float | None) -> str:
    """`34.2 %`, kept in one piece."""
    return "n/a" if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def format_bounds(low: float | None, high: float | None) -> str:
    """`31.3 to 37.2 %`."""
    if low is None or high is None:
        return "n/a"
    return f"{100 * low:.1f} to {100 * high:.1f}\N{NO-BREAK SPACE}%"


def format_points(share: float) -> str:
    """`+7.5` percentage points, with a real minus sign."""
    return f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}")


def format_count(number: float | None) -> str:
    return "unknown" if number is None else f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def _read_template(name: str) -> str:
    return (files("unmask.render.html") / "templates" / name).read_text(encoding="utf-8")


def _policy_hash(text: str) -> str:
    """As browsers compute it: over the content of the element, byte for byte."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
