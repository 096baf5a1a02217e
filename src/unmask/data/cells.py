"""Text cells of a CSV file that a spreadsheet would take for a formula, made harmless, and back.

A cell that begins with `=`, `+`, `-`, `@`, a tab or a line end gets an apostrophe in front, which spreadsheets show
or hide but never run. A cell that already begins with apostrophes before such a sign gets one more, so that
`revealed(harmless(text)) == text` for every text.
"""

from __future__ import annotations

import re

_RUNS = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_HIDDEN = re.compile("'+[=+\\-@\t\r\n＝＋－＠]")


def harmless(text: str) -> str:
    return "'" + text if _RUNS.match(text) else text


def revealed(cell: str) -> str:
    return cell[1:] if _HIDDEN.match(cell) else cell
