"""Paragraphs and tables as text for a terminal, without colour where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from unmask.text import strip_controls

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


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
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, styles: Sequence[str | None] = ()
) -> Table:
    """A table without lines; the first `left` columns are text, the others numbers. What it says is made safe. `styles`
    has one style for each row, where there are any."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(strip_controls(heading), justify="left" if place < left else "right", no_wrap=True)
    for place, row in enumerate(rows):
        style = styles[place] if styles else None
        table.add_row(*(Text(" ".join(strip_controls(cell).split())) for cell in row), style=style)
    return table


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
