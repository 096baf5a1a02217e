"""How much of each text a page can hold: short ones whole, long ones folded, the longest with a gap in the middle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from unmask.text import visible_html

LONGEST = 16_000
"""Characters of one text that are ever shown, however much room there is."""
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


class Share(NamedTuple):
    """What a text asks for: its bytes on the page, and how much it matters against others."""

    size: int
    weight: float


def measure_share(text: str, weight: float) -> Share:
    """Measured on its beginning; what is longer is cut anyhow."""
    start = text[:LONGEST]
    folding = 80 if len(start) > FOLD else 0
    return Share(len(visible_html(start).encode("utf-8")) + folding, weight)


def find_level(shares: Sequence[Share], room: int) -> float:
    """Bytes for each text of weight 1, so that all together take `room`. Short texts leave theirs to the long ones."""
    if sum(text_share.size for text_share in shares) <= room:
        return float("inf")
    low, high = 0.0, float(room)
    for _ in range(40):
        middle = (low + high) / 2
        taken = sum(min(text_share.size, text_share.weight * middle) for text_share in shares)
        low, high = (middle, high) if taken <= room else (low, middle)
    return low


def count_fitting(text: str, room: float) -> int:
    """Characters of `text` that fit into `room` bytes of the page."""
    start = text[:LONGEST]
    if room == float("inf"):
        return len(start)
    size = measure_share(text, 1).size
    return len(start) if size <= room else min(len(start), int(len(start) * room / size))


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
