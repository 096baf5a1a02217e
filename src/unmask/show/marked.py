"""Text of others inside Markdown and HTML, so that it stays text."""

from __future__ import annotations

import html
import re

from unmask.show.safe import safe

_MARKS = re.compile(r"([\\`*_{}<>|#~]|\](?=[(\[:]))")
"""Also a bracket that ends the text of a link; others are what an interval is written in."""


def cell(text: str) -> str:
    """One line for a Markdown table or list: nothing in it is a mark, a tag or a column."""
    return _MARKS.sub(r"\\\1", " ".join(safe(text).split()))


def escaped(text: str) -> str:
    """One line for HTML, in an element or an attribute."""
    return html.escape(" ".join(safe(text).split()), quote=True)
