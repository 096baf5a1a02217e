"""What to type next, under the heading NEXT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.render.terminal.tables import wrap_text
from unmask.text import strip_controls

WIDTH = 80


def show_next(steps: Sequence[tuple[str, str]]) -> str:
    """Commands, each with what it does; a command stays in one piece."""
    return "\n".join(["NEXT", *(line for command, text in steps for line in _describe_step(command, text)), ""])


def _describe_step(command: str, text: str) -> Iterator[str]:
    yield f"  {command}"
    yield from wrap_text(" " * 6 + strip_controls(text), WIDTH)
