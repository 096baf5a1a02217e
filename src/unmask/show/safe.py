"""Text from models and data, made safe for a terminal."""

from __future__ import annotations

import re

# Colours and cursor movement go as a whole. Of longer sequences (titles, links) only the control characters go: their
# text stays visible, so that a reply cannot use them to hide what it says.
_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
# Control characters but for tab and newline; marks that reorder what follows, or hide it; lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NEWLINE = re.compile("\r\n?|[\u0085\u2028\u2029\x0b\x0c]")


def safe(text: str) -> str:
    """`text` without anything that moves the cursor, colours, reorders or hides; every line break becomes a newline."""
    return _UNSAFE.sub("", _SEQUENCE.sub("", _NEWLINE.sub("\n", text)))
