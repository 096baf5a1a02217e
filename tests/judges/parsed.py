"""What a judge's text says, without the words that led to it."""

from __future__ import annotations

from unmask.judges.parse import find_interval, find_letter
from unmask.records import Interval, Letter


def parse_letter(text: str, *, complete: bool = True) -> Letter | None:
    answer = find_letter(text, complete=complete)
    return answer.letter if answer else None


def parse_interval(text: str, *, complete: bool = True) -> tuple[Interval, Interval] | None:
    """Absolute and relative bounds."""
    answer = find_interval(text, complete=complete)
    return (answer.absolute, answer.relative) if answer else None
