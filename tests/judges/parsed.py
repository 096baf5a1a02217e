"""What a judge's text says, without the words that led to it."""

from __future__ import annotations

from unmask.judges.answers import find_interval, find_letter
from unmask.records import Choice, Interval, Letter, Stop


def parse_letter(text: str, *, stop: Stop = Stop.END) -> Letter | None:
    answer = find_letter(Choice(text, stop=stop))
    return answer.letter if answer else None


def parse_interval(text: str, *, stop: Stop = Stop.END) -> tuple[Interval, Interval] | None:
    """Absolute and relative bounds."""
    answer = find_interval(Choice(text, stop=stop))
    return (answer.absolute, answer.relative) if answer else None
