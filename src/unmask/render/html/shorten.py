"""How much of each text a page can hold: short ones whole, long ones folded, the longest with a gap in the middle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from unmask.text import visible_html

LONGEST = 16_000
"""Bytes of one text that a file ever shows, however much room there is, unless every text is wanted whole."""
FOLD = 900
"""From so many characters, or from `LINES` lines on, only the beginning of a text is open."""
OPEN = 600
LINES = 18

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


class Piece(NamedTuple):
    """A text ready for the page: `head` is open, `rest` is folded away behind `more` characters."""

    head: Markup
    rest: Markup
    more: int
    cut: int
    """Characters that are not on the page."""

    @property
    def turned(self) -> bool:
        """Whether it may begin from the right, so that the browser should look."""
        return bool(_RIGHT_TO_LEFT.search(self.head[:400]))


def find_limit(sizes: Sequence[int], room: int) -> int:
    """Bytes for each text, so that all together take `room`. Short texts leave theirs to the long ones."""
    for number, size in enumerate(sorted(sizes)):
        left = len(sizes) - number
        if size * left > room:
            return min(LONGEST, room // left)
        room -= size
    return LONGEST


def shorten_to(limit: int, text: str, part: int = 1) -> Piece:
    """At most `limit` bytes of a text, or a `part` of them."""
    size = measure(text)
    return shorten_text(text, len(text) if size <= limit // part else len(text) * limit // part // size)


def whole_text(text: str, part: int = 1) -> Piece:
    return shorten_text(text, len(text))


def measure(text: str) -> int:
    """Its bytes; what its signs take beyond that on a page is little."""
    return len(text.encode("utf-8", "replace"))


def shorten_text(text: str, limit: int) -> Piece:
    """At most `limit` characters. What is left out comes from the middle: replies conclude at their end."""
    trimmed = text.strip("\n")
    cut = max(0, len(trimmed) - limit)
    front, back = (trimmed[: limit - limit // 3], trimmed[len(trimmed) - limit // 3 :]) if cut else (trimmed, "")
    # The style sheet says of what: these words would be there thousands of times.
    closing = Markup(f"<em>{cut:,}</em>") + visible_html(back) if cut else Markup()
    split = _fold_position(front)
    if split == len(front):
        return Piece(visible_html(front) + closing, Markup(), 0, cut)
    rest = visible_html(front[split:].lstrip("\n")) + closing
    return Piece(visible_html(front[:split]), rest, len(front) - split + len(back), cut)


def _fold_position(text: str) -> int:
    """Where to fold: at a line's or a word's end, and only where enough is folded away to be worth a click."""
    lines = text[:FOLD].split("\n")
    if len(text) <= FOLD and len(lines) <= LINES:
        return len(text)
    reach = min(OPEN, len("\n".join(lines[: LINES - 4])))
    return max(text.rfind(sign, reach // 2, reach + 1) for sign in "\n ") + 1 or reach
