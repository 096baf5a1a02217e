"""Paragraphs and tables as text for a terminal, without colour where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from unmask.text import strip_controls

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from unmask.stats.estimate import Difference


NARROWEST = 12
"""Columns that a column of texts has at least where its words are cut, however narrow the terminal."""
HEADING = 14
"""Columns that a heading of numbers has where that lets texts stay in one line."""
NEXT_WIDTH = 80
NAME_MARKS = "_/-"
"""Signs after which a long name goes on in the next line."""


class TextTable(NamedTuple):
    """A table that takes its shape when it is printed, so that it fits the terminal."""

    headings: list[str]
    rows: list[list[str]]
    left: int
    """The first so many columns are texts, the others numbers."""
    styles: Sequence[str | None]
    """One for each row, where there are any."""


def render_parts(
    parts: Iterable[str | Text | Table | TextTable], *, width: int | None = None, color: bool = False
) -> str:
    """`parts` one below the other. Texts and tables are made to fit `width`, or this terminal, and made safe where they
    are plain strings."""
    from io import StringIO
    from shutil import get_terminal_size

    from rich.console import Console
    from rich.text import Text

    columns = width or get_terminal_size().columns
    # Somewhere to print that is no terminal: nothing is marked up, guessed or cut.
    console = Console(
        file=StringIO(),
        # A table of numbers that cannot be made narrower is longer than the terminal: rich would cut the numbers off.
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
            if isinstance(part, TextTable):
                for number, piece in enumerate(_split_table(part, columns)):
                    console.print(*[""] * bool(number), _lay_out_table(piece, columns), sep="\n", crop=False)
                continue
            shown = Text(strip_controls(part)) if isinstance(part, str) else part
            # no_wrap marks the command to copy, which must stay in one piece.
            unbroken = isinstance(shown, Text) and bool(shown.no_wrap)
            wrapped = isinstance(shown, Text) and not unbroken
            console.print(shown, width=columns if wrapped else None, crop=False, soft_wrap=unbroken)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def make_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, styles: Sequence[str | None] = ()
) -> TextTable:
    """A table without lines; the first `left` columns are text, the others numbers. What it says is made safe."""
    heads = [strip_controls(heading) for heading in headings]
    return TextTable(heads, [[_clean_cell(cell) for cell in row] for row in rows], left, styles)


def _clean_cell(cell: str) -> str:
    """One line of safe text; the spaces in front stay."""
    text = strip_controls(cell)
    indent = len(text) - len(text.lstrip(" "))
    return " " * indent + " ".join(text.split())


def _split_table(table: TextTable, width: int) -> Iterator[TextTable]:
    """The table, or several one below the other where it has too many columns: each has the columns of texts, or the
    first of them where all are texts."""
    repeated = table.left if table.left < len(table.headings) else 1
    last = len(table.headings)
    while last > repeated + 1 and not _has_room(_pick_columns(table, range(last)), width):
        last -= 1
    yield _pick_columns(table, range(last))
    if last < len(table.headings):
        yield from _split_table(_pick_columns(table, [*range(repeated), *range(last, len(table.headings))]), width)


def _pick_columns(table: TextTable, places: Sequence[int]) -> TextTable:
    rows = [[row[place] for place in places] for row in table.rows]
    left = sum(place < table.left for place in places)
    return TextTable([table.headings[place] for place in places], rows, left, table.styles)


def _has_room(table: TextTable, width: int) -> bool:
    """Whether the table fits without a word that is cut."""
    return sum(_fit_columns(table, width, cut=False)) + 2 * (len(table.headings) - 1) <= width


def _lay_out_table(table: TextTable, width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    rooms = _fit_columns(table, width)
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for place, (heading, room) in enumerate(zip(table.headings, rooms, strict=True)):
        lines = [line for part in heading.split("\n") for line in wrap_text(part, room, marks=NAME_MARKS)]
        grid.add_column(
            "\n".join(lines), justify="left" if place < table.left else "right", vertical="top", no_wrap=True
        )
    for place, row in enumerate(table.rows):
        cells = [
            Text("\n".join(wrap_text(cell, room, marks=NAME_MARKS))) for cell, room in zip(row, rooms, strict=True)
        ]
        grid.add_row(*cells, style=table.styles[place] if table.styles else None)
    return grid


def _fit_columns(table: TextTable, width: int, *, cut: bool = True) -> list[int]:
    """How wide each column may be. Where the table is too wide, the headings of numbers go on in a second line, then
    texts in further lines, then intervals below their values; at last, with `cut`, words of texts are cut. Numbers
    never are."""
    from rich.cells import cell_len

    rooms, steps = [], []
    for place, heading in enumerate(table.headings):
        cells = [row[place] for row in table.rows]
        body = max(map(cell_len, cells), default=0)
        room = max(body, *map(cell_len, heading.split("\n")))
        words = max(map(cell_len, _split_pieces(heading)), default=0)
        indents = [len(cell) - len(cell.lstrip(" ")) for cell in cells]
        pieces = [
            indent + cell_len(piece)
            for cell, indent in zip(cells, indents, strict=True)
            for piece in _split_pieces(cell.strip())
        ]
        longest = max([words, *pieces])
        rooms.append(room)
        if place < table.left:
            steps.append((room, longest, longest, min(longest, max(NARROWEST, words))))
        else:
            steps.append((min(room, max(body, words, HEADING)), max(body, words), longest, longest))
    for floors in list(zip(*steps, strict=True))[: None if cut else -1]:
        while sum(rooms) + 2 * (len(rooms) - 1) > width:
            wide = [place for place, room in enumerate(rooms) if room > floors[place]]
            if not wide:
                break
            rooms[max(wide, key=lambda place: rooms[place])] -= 1
    # Where an interval stands below its value, all of the column do.
    return [
        floors[2] if place >= table.left and room < floors[1] else room
        for place, (room, floors) in enumerate(zip(rooms, steps, strict=True))
    ]


def _split_pieces(text: str, marks: str = NAME_MARKS) -> list[str]:
    """What stays in one line where a text is broken: words, and parts of them up to one of `marks`. What stands in
    brackets is one piece, and so is a sign with its number."""
    if not marks:
        return re.findall(r"\s+|\S+", text)
    return re.findall(rf"\s+|\[[^\]\n]*\]|[{marks}]*[^\s{marks}]+[{marks}]*|[{marks}]+", text)


def wrap_text(text: str, room: int, *, marks: str = "", indent: str = "") -> list[str]:
    """One line of text as lines of at most `room` columns of a terminal: broken at spaces and after `marks`, a word
    without room for it wherever it has to be. `indent` stands before all lines but the first; spaces in front of the
    text stand before all."""
    from rich.cells import cell_len, chop_cells

    if cell_len(text) <= room:
        return [text]
    before = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], before
    for piece in _split_pieces(text[len(before) :], marks):
        if cell_len(line + piece.rstrip()) <= room:
            line += piece
            continue
        if line.strip():
            lines.append(line.rstrip())
            line = indent + before
        if not piece.isspace():
            *full, line = chop_cells(line + piece, room) or [""]
            lines += full
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def show_next(steps: Sequence[tuple[str, str]]) -> str:
    """What to type next, under the heading NEXT: commands, each with what it does. A command stays in one piece."""
    return "\n".join(["NEXT", *(line for command, text in steps for line in _describe_step(command, text)), ""])


def _describe_step(command: str, text: str) -> Iterator[str]:
    yield f"  {command}"
    yield from wrap_text(" " * 6 + strip_controls(text), NEXT_WIDTH)


def break_name(name: str, room: int) -> str:
    """The name on several lines of at most `room` columns."""
    return "\n".join(wrap_text(name, room, marks=NAME_MARKS))


def quote_lines(text: str, width: int) -> list[str]:
    """A quoted text behind a bar, so that it cannot pass for ours, its words wrapped."""
    lines = [part for line in strip_controls(text).split("\n") for part in wrap_text(line, max(20, width - 4))]
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


def format_difference(difference: Difference) -> str:
    """With its sign and its bounds, or `n/a`."""
    if difference.value is None:
        return "n/a"
    return format_signed(difference.value) + format_bounds(difference.low, difference.high)


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield "| " + " | ".join(map(markdown_cell, row)) + " |"


def markdown_cell(text: str) -> str:
    """Fit for a cell of a table: one line, and no sign that would end it."""
    return " ".join(strip_controls(text).split()).replace("|", "\\|").replace("`", "'")
