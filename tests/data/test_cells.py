"""Cells that a spreadsheet would run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.text import guard_formula, unguard_formula

TEXTS = st.text() | st.text(alphabet="='+-@\t\r\nab", max_size=8)


@given(TEXTS)
def test_every_text_comes_back(text):
    """`unguard_formula` undoes `guard_formula`, whatever the text."""
    assert unguard_formula(guard_formula(text)) == text


@given(TEXTS)
def test_no_cell_starts_like_a_formula(text):
    """Nothing a spreadsheet takes for the start of a formula is left at the start of a cell."""
    assert not re.match("[=+\\-@\t\r\n]", guard_formula(text))


@pytest.mark.parametrize("text", ["", "plain", " =1", "1-2", "'quoted'", "a=b"])
def test_other_texts_stay_as_they_are(text):
    """Text that no spreadsheet runs is not touched."""
    assert guard_formula(text) == text
