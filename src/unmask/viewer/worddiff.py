"""The words in which two replies differ."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from markupsafe import Markup

from unmask.render.html.shorten import LONGEST, Piece, shorten_text
from unmask.text import visible_html

MOST_WORDS = 3_000
"""Words of one reply that are compared. Longer replies stand beside each other without marks."""
MOST_MEETINGS = 300_000
"""Pairs of equal words in two replies: the work of a comparison grows with them."""


class WordDifference(NamedTuple):
    """Two texts with marks on the words that only one of them has. `why` says why there are no marks."""

    left: Piece
    right: Piece
    removed: int
    added: int
    why: str | None = None


def compare_words(left: str, right: str) -> WordDifference:
    """`removed` and `added` count the words that only the first and only the second text has."""
    a, b = _split_words(left), _split_words(right)
    words_a, words_b = [word.strip() for word in a], [word.strip() for word in b]
    if words_a == words_b:
        return _without_marks(left, right, "The two replies are the same, word for word.")
    start = _count_equal(words_a, words_b)
    end = _count_equal(words_a[start:][::-1], words_b[start:][::-1])
    middle_a, middle_b = words_a[start : len(a) - end], words_b[start : len(b) - end]
    often = Counter(middle_b)
    meetings = sum(often[word] for word in middle_a)
    if max(len(middle_a), len(middle_b)) > MOST_WORDS or meetings > MOST_MEETINGS:
        return _without_marks(left, right, "The replies are too long to be compared word by word.")
    sides: tuple[list[Markup], list[Markup]] = ([_escape_words(a[:start])], [_escape_words(b[:start])])
    removed = added = 0
    for kind, low_a, high_a, low_b, high_b in SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_opcodes():
        part_a, part_b = a[start + low_a : start + high_a], b[start + low_b : start + high_b]
        if kind == "equal":
            marked_a, marked_b = _escape_words(part_a), _escape_words(part_b)
        else:
            removed, added = removed + len(part_a), added + len(part_b)
            marked_a, marked_b = _wrap_words("del", part_a), _wrap_words("ins", part_b)
        sides[0].append(marked_a)
        sides[1].append(marked_b)
    marked = [
        Piece(Markup().join([*side, _escape_words(every[len(every) - end :])]), Markup(), 0, 0)
        for side, every in zip(sides, (a, b), strict=True)
    ]
    return WordDifference(marked[0], marked[1], removed, added)


def _split_words(text: str) -> list[str]:
    """Words, each with the space behind it."""
    return re.findall(r"\S+\s*", text.strip())


def _count_equal(a: list[str], b: list[str]) -> int:
    """How many words two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _without_marks(left: str, right: str, why: str) -> WordDifference:
    return WordDifference(shorten_text(left, LONGEST), shorten_text(right, LONGEST), 0, 0, why)


def _escape_words(words: list[str]) -> Markup:
    return visible_html("".join(words))


def _wrap_words(tag: str, words: list[str]) -> Markup:
    """These words in an element; the space behind the last one stands after it."""
    text = "".join(words)
    marked = text.rstrip()
    return Markup(f"<{tag}>{visible_html(marked)}</{tag}>{text[len(marked) :]}") if marked else Markup()
