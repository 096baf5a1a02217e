"""Foreign text inside Markdown."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from unmask.text import escape_markdown, strip_controls


@given(st.text())
def test_a_cell_is_one_line_without_marks(text):
    """No bare pipe, backtick, tag or link, and nothing of the text is lost."""
    found = escape_markdown(text)
    bare = re.sub(r"\\.", "", found)
    assert "\n" not in found
    assert not re.search(r"[`*_{}<>|#~]|\](?=[(\[:])", bare)
    assert re.sub(r"\\(.)", r"\1", found) == " ".join(strip_controls(text).split())
