"""Foreign text inside Markdown and HTML."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from unmask.text import escape_html, escape_markdown, strip_controls


@given(st.text())
def test_a_cell_is_one_line_without_marks(text):
    """No bare pipe, backtick, tag or link, and nothing of the text is lost."""
    found = escape_markdown(text)
    bare = re.sub(r"\\.", "", found)
    assert "\n" not in found
    assert not re.search(r"[`*_{}<>|#~]|\](?=[(\[:])", bare)
    assert re.sub(r"\\(.)", r"\1", found) == " ".join(strip_controls(text).split())


@given(st.text())
def test_escaped_text_is_text_in_html(text):
    """It comes back as it was, and holds no tag or quote of its own."""
    found = escape_html(text)
    assert html.unescape(found) == " ".join(strip_controls(text).split())
    assert not set("<>\"'") & set(found)
