"""Lines and tables that fit a terminal. Text is clean before it comes here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

NARROWEST, WORD = 10, 14
"""Columns that a column of words has at least, however narrow the terminal; and the longest word for which it has
more."""
GAP = 2
"""Columns between two columns of a table."""
NAME_MARKS = "/_-"
"""Signs after which a long name may be broken."""

Cells = Sequence[tuple[str, str]]
"""What each cell of a row says, and the interval behind it."""


def lay_out_table(
    headings: Sequence[str], rows: Sequence[Cells], texts: int, width: int
) -> Iterator[tuple[list[int], list[list[list[str]]]]]:
    """The table, or several below each other with the columns of words repeated: which columns each has, and its rows,
    the headings first, in which a cell is several padded lines. Where it is too wide, headings and words are folded,
    then intervals go below their values, then columns go into a table of their own. Numbers are never cut."""
    heads = list(headings) or [""] * len(rows[0])
    for sign in (" ", "\n"):
        cells = [[sign.join(filter(None, cell)) for cell in row] for row in rows]
        columns = [[row[n] for row in cells] for n in range(len(heads))]
        least = [_least_width(head, columns[n], is_words=n < texts) for n, head in enumerate(heads)]
        if _whole_width(least) <= width:
            break
    natural = [_width([head, *column]) for head, column in zip(heads, columns, strict=True)]
    for places in _group_columns(least, texts if texts < len(least) else 1, width):
        words = sum(n < texts for n in places)
        rooms = _share_room([natural[n] for n in places], [least[n] for n in places], words, width)
        laid = [
            [
                _fill_cell(row[n], room, is_words=n < texts, fold=n < texts or row is heads)
                for n, room in zip(places, rooms, strict=True)
            ]
            for row in (heads, *cells)
        ]
        tall = max(map(len, laid[0]))
        laid[0] = [[" " * room] * (tall - len(lines)) + lines for room, lines in zip(rooms, laid[0], strict=True)]
        yield places, laid if headings else laid[1:]


def _least_width(head: str, column: Sequence[str], *, is_words: bool) -> int:
    """What a column needs where its words, or the heading of its numbers, are folded."""
    if not is_words:
        return max(_width(column), _width(re.split(rf"(?<=[{NAME_MARKS}])|\s", head)))
    longest = _width([word for text in (head, *column) for word in re.split(rf"(?<=[{NAME_MARKS}])|\s", text)])
    indent = max(len(text) - len(text.lstrip(" ")) for text in (head, *column))
    return min(_width([head, *column]), max(NARROWEST, indent + longest if longest <= WORD else 0))


def _width(texts: Sequence[str]) -> int:
    """Of the widest line."""
    from rich.cells import cell_len

    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _whole_width(rooms: Sequence[int]) -> int:
    return sum(rooms) + GAP * (len(rooms) - 1)


def _group_columns(least: Sequence[int], repeated: int, width: int) -> Iterator[list[int]]:
    first = list(range(repeated))
    group: list[int] = []
    for n in range(repeated, len(least)):
        if group and _whole_width([least[place] for place in (*first, *group, n)]) > width:
            yield first + group
            group = []
        group.append(n)
    yield first + group


def _share_room(natural: Sequence[int], least: Sequence[int], words: int, width: int) -> list[int]:
    """Columns for each: what it wants, less where that is too wide, headings of numbers first, then the widest."""
    rooms = list(natural)
    while _whole_width(rooms) > width and rooms != list(least):
        widest = max((n for n, room in enumerate(rooms) if room > least[n]), key=lambda n: (n >= words, rooms[n]))
        rooms[widest] -= 1
    return rooms


def _fill_cell(text: str, room: int, *, is_words: bool, fold: bool) -> list[str]:
    lines = wrap_text(text, room, marks=NAME_MARKS) if fold else text.split("\n")
    padded = ((line, " " * (room - _width([line]))) for line in lines)
    return [line + space if is_words else space + line for line, space in padded]


def wrap_text(text: str, room: int, *, indent: str = "", marks: str = "") -> list[str]:
    """One line of text as lines of at most `room` columns of a terminal: broken at spaces and after `marks`, but not
    before a percent sign, and a word without room for it wherever it has to be. `indent` is put before all lines but
    the first; spaces in front of the text are put before all."""
    from rich.cells import cell_len, chop_cells

    if cell_len(text) <= room:
        return [text]
    before = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], before
    pieces = rf"\s+|[^\s{marks}]+[{marks}]*|[{marks}]+" if marks else r"\s+|\S+(?: %\S*)?"
    for piece in re.findall(pieces, text[len(before) :]):
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
