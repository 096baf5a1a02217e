"""Text of strangers on a page: escaped, nothing hidden in it, and no more of it than fits."""

from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.render.html.shorten import (
    LONGEST,
    Piece,
    find_limit,
    shorten_text,
    shorten_to,
)
from unmask.text import visible_html

MARK = re.compile(r'<span class="u">U\+([0-9A-F]{4,6})(?: ×(\d+))?</span>')
ANY_TEXT = st.text(st.characters(), max_size=200)
SHAPED_FORMATS = {"\u0600", "\u0601", "\u0602", "\u0603", "\u0604", "\u0605", "\u06dd", "\u0890", "\u0891", "\u08e2"}
"""Format characters that have a shape: Arabic signs written above or below figures."""


def text_of(shown: str) -> str:
    """What a reader sees, marks turned back into what they stand for."""
    plain = MARK.sub(lambda found: chr(int(found[1], 16)) * int(found[2] or 1), shown)
    return html.unescape(plain)


@given(ANY_TEXT)
def test_nothing_gets_lost(text):
    """Every character is there, as itself or as a mark; only line breaks become newlines."""
    wanted = re.sub("\r\n?|[\u0085\u2028\u2029]", "\n", text)
    # A mark cannot stand for itself: a text that spells one out is escaped and so comes back unchanged.
    assert text_of(visible_html(text)) == html.unescape(html.escape(wanted))


@given(ANY_TEXT)
def test_no_markup_but_marks(text):
    """Without our marks there is no `<`, `>` or quote left."""
    assert not re.search("[<>\"']", MARK.sub("", visible_html(text)))


@given(ANY_TEXT)
def test_nothing_without_a_shape_is_left(text):
    """No control or format character remains, save joiners and Arabic number signs."""
    left = {
        sign
        for sign in MARK.sub("", visible_html(text))
        if unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    }
    astral = {sign for sign in left if ord(sign) > 0xFFFF}
    assert left - {"\n", "\t", "\u200c", "\u200d"} - SHAPED_FORMATS - astral == set()


@pytest.mark.parametrize(
    "sign", ["\u202e", "\u2066", "\u200b", "\ufeff", "\u00ad", "\U000e0041", "\x1b", "\x00", "\ud800"]
)
def test_hidden_characters_become_visible(sign):
    """Direction marks, zero-width signs, tags, controls and lone surrogates are shown by number."""
    assert f"U+{ord(sign):04X}" in visible_html(f"a{sign}b")
    assert sign not in visible_html(f"a{sign}b")


@pytest.mark.parametrize("text", ["👩\u200d👧", "❤\ufe0f", "می\u200cخواهم"])
def test_joiners_stay_where_scripts_need_them(text):
    """Emoji sequences and Persian words are not torn apart."""
    assert visible_html(text) == text


@pytest.mark.parametrize("text", ["a\u200db", "a\ufe0f", "\u200d", "x\u200cy", "é" + "\u200d" * 99 + "é"])
def test_joiners_between_latin_letters_are_hidden_text(text):
    """Between ASCII they join nothing."""
    assert MARK.sub("", visible_html(text)).isprintable()


@given(st.text(st.characters(codec="utf-8"), max_size=3000), st.integers(0, 3000))
def test_a_piece_says_how_much_it_leaves_out(text, limit):
    """What is shown, folded and left out adds up to the text."""
    found: Piece = shorten_text(text, limit)
    whole = text.strip("\n")
    shown = text_of(re.sub("<em>.*?</em>", "", found.head + found.rest))
    assert found.cut == 0 or f"<em>{found.cut:,}</em>" in found.head + found.rest
    assert len(whole) - found.cut <= max(limit, len(whole) if not found.cut else 0)
    assert len(shown) <= len(whole) + whole.count("\r") - found.cut + whole.count("\r")


@given(st.lists(st.integers(0, 5000), max_size=30), st.integers(0, 50_000))
def test_room_is_never_exceeded(sizes, room):
    """Texts cut to the limit take no more than the room there is, and none is cut where all have room."""
    limit = find_limit(sizes, room)
    assert sum(min(size, limit) for size in sizes) <= room or limit == LONGEST
    assert (limit == LONGEST) == (sum(sizes) <= room)


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.integers(0, 300))
def test_a_limit_is_one_of_bytes(text, limit):
    """A text of other scripts gets no more room than one of ASCII."""
    whole = text.strip("\n")
    shown = len(whole) - shorten_to(limit, text).cut
    assert shown == len(whole) if len(text.encode()) <= limit else shown <= limit
