"""Paragraphs and tables as text for a terminal, without colour where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from unmask.text import strip_controls

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


NARROWEST = 12
"""Characters that a column of texts keeps, however narrow the terminal."""


def render_parts(parts: Iterable[str | Text | Table], *, width: int | None = None, color: bool = False) -> str:
    """`parts` one below the other. Text is wrapped to `width`, or to this terminal's, and made safe where it is a plain
    string; tables take what they need: numbers are never cut."""
    from io import StringIO
    from shutil import get_terminal_size

    from rich.console import Console
    from rich.text import Text

    columns = width or get_terminal_size().columns
    # Somewhere to print that is no terminal: nothing is marked up, guessed or cut.
    console = Console(
        file=StringIO(),
        # Tables take what they need, 80 columns as a rule: a terminal breaks a longer line, rich would cut numbers off.
        width=max(columns, 200),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            shown = Text(strip_controls(part)) if isinstance(part, str) else part
            # no_wrap marks the command to copy, which must stay in one piece.
            unbroken = isinstance(shown, Text) and bool(shown.no_wrap)
            wrapped = isinstance(shown, Text) and not unbroken
            console.print(shown, width=columns if wrapped else None, crop=False, soft_wrap=unbroken)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def make_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 1,
    styles: Sequence[str | None] = (),
    width: int | None = None,
    wrapped: int = 0,
) -> Table:
    """A table without lines; the first `left` columns are text, the others numbers. What it says is made safe. `styles`
    has one style for each row, where there are any. With `width`, texts of the column `wrapped` take more lines where
    the table would be wider."""
    from rich.table import Table
    from rich.text import Text

    heads = [strip_controls(heading) for heading in headings]
    cells = [[" ".join(strip_controls(cell).split()) for cell in row] for row in rows]
    if width is not None:
        widths = [
            max(len(part) for row in (heads, *cells) for part in row[place].split("\n")) for place in range(len(heads))
        ]
        room = max(NARROWEST, width - sum(widths) - 2 * len(widths) + 2 + widths[wrapped])
        for row in cells:
            row[wrapped] = break_name(row[wrapped], room)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for place, heading in enumerate(heads):
        table.add_column(heading, justify="left" if place < left else "right", no_wrap=True)
    for place, row in enumerate(cells):
        table.add_row(*map(Text, row), style=styles[place] if styles else None)
    return table


def break_name(name: str, room: int) -> str:
    """The name on several lines of at most `room` characters, broken at spaces and after underscores and hyphens."""
    lines = [""]
    for piece in re.findall(r"[^\s_-]*[\s_-]?", name):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > room:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines).rstrip()


def quote_lines(text: str, width: int) -> list[str]:
    """A quoted text behind a bar, so that it cannot pass for ours, its words wrapped."""
    lines = [part for line in strip_controls(text).split("\n") for part in wrap(line, max(20, width - 4)) or [""]]
    return [f"  | {line}".rstrip() for line in lines]


def percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f}"


def format_bounds(low: float | None, high: float | None) -> str:
    """` [36.2, 42.3]`, or nothing where there is no interval."""
    return "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"


def format_signed(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:+.1f}"


def format_p_value(p: float | None) -> str:
    if p is None:
        return "n/a"
    return f"{p:.3f}" if p >= 0.0005 else "<0.001"


def format_money(usd: float | None) -> str:
    if usd is None:
        return "unknown"
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:,.2f}"
