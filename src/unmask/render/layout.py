"""Lines and tables that fit a terminal. Text is clean before it comes here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

NARROWEST, WORD = 10, 14
"""Columns that a column of words has at least, however narrow the terminal; and the longest word for which it has
more."""
GAP = 2
"""Columns between two columns of a table."""
NAME_MARKS = "/_-"
"""Signs after which a long name may be broken."""


class Shown(NamedTuple):
    """A cell: what it says, and the interval behind it."""

    main: str
    span: str = ""

    @property
    def line(self) -> str:
        return f"{self.main} {self.span}" if self.span else self.main


class Laid(NamedTuple):
    """A table that fits: its headings and cells may have several lines."""

    headings: list[str]
    rows: list[list[str]]
    places: list[int]
    """Which columns of the whole table these are."""
    least: list[int]
    """Columns that each has."""


def lay_out_table(headings: Sequence[str], rows: Sequence[Sequence[Shown]], texts: int, width: int) -> Iterator[Laid]:
    """The table, or several below each other with the columns of words repeated. Where it is too wide, headings of
    numbers are folded first, then intervals go below their values, then columns go into a table of their own. Numbers
    are never cut."""
    heads, sign = list(headings), " "
    if not _fits(heads, rows, 0, width):
        bodies = _widths([""] * len(heads), _join(rows, sign))
        heads = [head if n < texts else _fold(head, bodies[n]) for n, head in enumerate(heads)]
        if not _fits(heads, rows, texts, width):
            sign = "\n"
    cells = _join(rows, sign)
    least = _least_widths(heads, cells, texts)
    repeated = texts if texts < len(least) else 1
    natural = _widths(heads, cells)
    for places in _group_columns(least, repeated, width):
        rooms = _share_room([natural[n] for n in places], [least[n] for n in places], width)
        folded = [n < texts for n in places]
        yield Laid(
            _fold_row([heads[n] for n in places], rooms, folded) if heads else [],
            [_fold_row([row[n] for n in places], rooms, folded) for row in cells],
            places,
            rooms,
        )


def _share_room(natural: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Columns for each: what it wants, less where that is too wide, the widest first."""
    rooms = list(natural)
    while sum(rooms) + GAP * (len(rooms) - 1) > width and rooms != list(least):
        widest = max((n for n, room in enumerate(rooms) if room > least[n]), key=lambda n: rooms[n])
        rooms[widest] -= 1
    return rooms


def _fold_row(row: Sequence[str], rooms: Sequence[int], folded: Sequence[bool]) -> list[str]:
    return [
        "\n".join(wrap_text(cell, room, marks=NAME_MARKS)) if fold else cell
        for cell, room, fold in zip(row, rooms, folded, strict=True)
    ]


def _fits(heads: Sequence[str], rows: Sequence[Sequence[Shown]], folded: int, width: int) -> bool:
    """Whether it has room with these headings where the first so many columns may be folded."""
    least = _least_widths(heads, _join(rows, " "), folded)
    return sum(least) + GAP * (len(least) - 1) <= width


def _least_widths(heads: Sequence[str], rows: Sequence[Sequence[str]], folded: int) -> list[int]:
    """What each column needs where the words of the first so many may be folded."""
    single = [[" ".join(cell.split()).replace(" ", "\n") for cell in row] for row in (heads, *rows) if row]
    longest = [room if room <= WORD else NARROWEST for room in _widths([], single)]
    everything = _widths(heads, rows)
    return [min(room, max(NARROWEST, longest[n])) if n < folded else room for n, room in enumerate(everything)]


def _join(rows: Sequence[Sequence[Shown]], sign: str) -> list[list[str]]:
    return [[sign.join(filter(None, cell)) for cell in row] for row in rows]


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    columns = zip(*([heads] if heads else []), *rows, strict=True)
    return [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]


def _fold(heading: str, room: int) -> str:
    """In several lines, but no word in two."""
    longest = max(map(len, re.split(rf"(?<=[{NAME_MARKS}])|\s", heading)))
    return "\n".join(wrap_text(heading, max(room, longest), marks=NAME_MARKS))


def _group_columns(least: Sequence[int], repeated: int, width: int) -> Iterator[list[int]]:
    first = list(range(repeated))
    used = sum(least[n] + GAP for n in first)
    group: list[int] = []
    for n in range(repeated, len(least)):
        if group and used + sum(least[place] + GAP for place in (*group, n)) - GAP > width:
            yield first + group
            group = []
        group.append(n)
    yield first + group


def wrap_text(text: str, room: int, *, indent: str = "", marks: str = "") -> list[str]:
    """One line of text as lines of at most `room` columns of a terminal: broken at spaces and after `marks`, but not
    before a percent sign, and a word without room for it wherever it has to be. `indent` is put before all lines but
    the first; spaces in front of the text are put before all."""
    from rich.cells import cell_len, chop_cells

    if cell_len(text) <= room:
        return [text]
    before = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], before
    for piece in re.findall(
        rf"\s+|[^\s{marks}]+[{marks}]*|[{marks}]+" if marks else r"\s+|\S+(?: %\S*)?", text[len(before) :]
    ):
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


def quote_lines(text: str, width: int, *, bar: str = "  | ") -> list[str]:
    """Lines of a text behind a bar, its words wrapped."""
    room = max(20, width - len(bar))
    return [f"{bar}{part}".rstrip() for line in text.split("\n") for part in wrap_text(line, room)]
