"""Text of models and data for a web page: escaped, and with nothing in it that hides, reorders or joins unseen.

A character without a shape of its own is replaced by its number in a mark, so that a reader sees what a model sent and
no reply can turn the direction of anything. Joiners stay where scripts and emoji need them.
"""

from __future__ import annotations

import re
from itertools import groupby

from markupsafe import Markup, escape

_NEWLINE = re.compile("\r\n?|[\u0085\u2028\u2029]")
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""Controls, formats, tags, variation selectors, fillers, surrogates and non-characters: all that has no shape."""


def visible(text: str) -> Markup:
    """`text` as HTML that shows all of it. Line breaks of every kind become newlines."""
    plain = _NEWLINE.sub("\n", text)
    pieces: list[str] = []
    done = 0
    for found in _HIDDEN.finditer(plain):
        if _joins(plain, found):
            continue
        pieces += [str(escape(plain[done : found.start()])), _marks(found.group())]
        done = found.end()
    return Markup("".join([*pieces, str(escape(plain[done:]))]))


def visible_line(text: str, *, limit: int = 300) -> Markup:
    """One line of at most `limit` characters."""
    plain = " ".join(text.split())
    return visible(plain if len(plain) <= limit else f"{plain[: limit - 1]}…")


def _joins(text: str, found: re.Match[str]) -> bool:
    """Whether a single joiner or selector stands where a script or an emoji needs it: after a sign that is not ASCII,
    and a joiner also before one."""
    if len(found.group()) > 1 or found.group() not in _JOINERS:
        return False
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    if found.group() in "\ufe0e\ufe0f":
        return _shaped(before)
    return (_shaped(before) or before == "\ufe0f") and _shaped(after)


def _shaped(sign: str) -> bool:
    return sign > "\x7f" and not _HIDDEN.match(sign)


def _marks(run: str) -> str:
    """Each character once with its count, so that thousands of them stay one mark."""
    counted = ((sign, sum(1 for _ in same)) for sign, same in groupby(run))
    return "".join(
        f'<span class="u">U+{ord(sign):04X}{f" ×{count}" if count > 1 else ""}</span>' for sign, count in counted
    )
