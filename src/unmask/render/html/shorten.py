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
"""From so many characters on, only the beginning of a text stands open."""
OPEN = 600

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


class Piece(NamedTuple):
    """A text ready for the page: `head` stands open, `rest` is folded away behind `more` characters."""

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
    if not cut:
        split = _fold_position(trimmed)
        folded = visible_html(trimmed[split:].lstrip("\n"))
        return Piece(visible_html(trimmed[:split]), folded, len(trimmed) - split, 0)
    # Two thirds from the beginning and one from the end, in whole words where words are short.
    tail = limit // 3
    front, back = trimmed[: limit - tail], trimmed[len(trimmed) - tail :] if tail else ""
    word, start = front.rfind(" ", len(front) - 20), back.find(" ", 0, 20)
    front, back = front[:word] if word > 0 else front, back[start + 1 :] if start >= 0 else back
    cut = len(trimmed) - len(front) - len(back)
    gap = Markup(f"<em>{cut:,}</em>")  # the style sheet says of what: these words would stand there thousands of times
    split = _fold_position(front) if limit > FOLD else len(front)
    closing = gap + visible_html(back)
    if split < len(front):
        return Piece(
            visible_html(front[:split]), visible_html(front[split:]) + closing, len(front) - split + len(back), cut
        )
    return Piece(visible_html(front) + closing, Markup(), 0, cut)


def _fold_position(text: str) -> int:
    """Where to fold: at a line's or a word's end, and only where enough is folded away to be worth a click."""
    lines = text[:FOLD].split("\n")
    tall = len("\n".join(lines[:14])) if len(lines) > 18 else None
    if len(text) <= FOLD and tall is None:
        return len(text)
    reach = min(OPEN, tall if tall is not None else OPEN)
    place = max(text.rfind("\n", reach // 2, reach), text.rfind(" ", reach // 2, reach))
    return place if place > 0 else max(reach, 1)
