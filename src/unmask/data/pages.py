"""What a parquet file unpacks to, told from the headers of its pages. Nothing is unpacked to find out.

A page can be a thousandth of what is in it, and a value written once can be the value of every row. The sizes in the
footer are only what the writer says; those before each page are the ones that a reader reserves memory by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

MOST = 100_000
"""Pages that are looked at. One has some 20,000 rows of a column."""

_DICTIONARY = 2
_DATA = {0: (5, 2), 3: (8, 4)}
"""By type of a page, the field of its own header and there the one that names the encoding."""
_PREFIXES = 7
"""The encoding that repeats the beginning of the value before."""
_RESERVED = 1024
"""Values of a fixed width that a reader makes room for at once, also where all of them are absent."""
_DEPTH = 12
_FOOTER = 16 * 2**20
_FLAGS, _BYTE, _INTEGERS, _DOUBLE, _TEXT, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
"""Types of fields in the compact protocol of Thrift."""
_GROUPS, _COLUMNS, _CHUNK, _PACKED, _FIRST, _WORDS = 4, 1, 3, 7, 9, 11
"""Fields of the footer: the groups of rows, their columns, where those are and how long. What pyarrow says of a column
cannot be asked for: it ends the process where the footer of a stranger contradicts itself."""


class Sizes(NamedTuple):
    """`total`: bytes of all pages, and of what is reserved beside them. `row`: what one more row can come to, beyond
    what the pages hold once. `lists`: the same for all values of columns whose rows hold more than one."""

    total: int
    row: int
    lists: int


class _Page(NamedTuple):
    size: int
    values: int
    dictionary: bool
    prefixes: bool


def sizes(file: Any, data: bytes, *, columns: frozenset[str]) -> Sizes:
    """Of these columns of an opened file, whose bytes are `data`. Headers that cannot be read raise ValueError."""
    total = row = lists = looked = 0
    groups = _groups(data, columns=file.metadata.num_columns)
    for place in range(file.metadata.num_columns):
        leaf = file.schema.column(place)
        if not any(f"{leaf.path}.".startswith(f"{column}.") for column in columns):
            continue
        width = max(leaf.length or 0, 0)
        total += _RESERVED * width
        widest = max(width, 16)
        values = 0
        for chunks in groups:
            pages = []
            for page in _pages(data, chunks[place]):
                looked += 1
                if looked > MOST:
                    raise ValueError(f"it has more than {MOST} pages")
                pages.append(page)
            held = sum(page.size for page in pages)
            total += held
            values += sum(page.values for page in pages)
            repeated = held if any(page.prefixes for page in pages) else 0
            widest = max([widest, repeated, *(page.size for page in pages if page.dictionary)])
        row += widest
        if leaf.max_repetition_level:
            lists += widest * values
    return Sizes(total, row, lists)


def _groups(data: bytes, *, columns: int) -> list[list[dict[int, Any]]]:
    """Of each group of rows, what the footer says of each of so many columns."""
    length = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != b"PAR1" or not 0 < length <= min(_FOOTER, len(data) - 8):
        raise ValueError("its footer cannot be read")
    footer, _ = _struct(data, len(data) - 8 - length)
    try:
        found = [[column[_CHUNK] for column in group[_COLUMNS]] for group in footer.get(_GROUPS, [])]
    except (KeyError, TypeError):
        raise ValueError("its footer leaves out a column") from None
    if any(len(chunks) != columns or not all(isinstance(one, dict) for one in chunks) for chunks in found):
        raise ValueError("its footer has other columns than its schema")
    return found


def _pages(data: bytes, chunk: dict[int, Any]) -> Iterator[_Page]:
    """The pages between the first byte of a column and its last, as a reader goes from one to the next."""
    at, words, length = (_number(chunk, field) for field in (_FIRST, _WORDS, _PACKED))
    if 0 < words < at:
        at = words
    if at < 0 or length < 0:
        raise ValueError("a column starts before the file, or ends before it starts")
    end = min(at + length, len(data))
    while at < end:
        head, at = _struct(data, at)
        kind, unpacked, packed = (_number(head, field, -1) for field in (1, 2, 3))
        if not (0 <= unpacked < 2**31 and 0 <= packed < 2**31):
            raise ValueError("a page without a size")
        own, encoding = _DATA.get(kind, (0, 0))
        said = head.get(own)
        said = said if isinstance(said, dict) else {}
        values, coded = _number(said, 1), _number(said, encoding, -1)
        yield _Page(max(unpacked, packed), max(values, 0), kind == _DICTIONARY, coded == _PREFIXES)
        at += packed


def _number(fields: dict[int, Any], field: int, default: int = 0) -> int:
    value = fields.get(field, default)
    return value if isinstance(value, int) else default


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a struct by their number, and where it ends. Texts and fractions are passed over."""
    if depth > _DEPTH:
        raise ValueError("its headers are nested too deep")
    found: dict[int, Any] = {}
    field = 0
    while (head := _byte(data, at)) != 0:
        at, kind = at + 1, head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _signed(data, at)
        found[field], at = (None, at) if kind in _FLAGS else _value(data, at, kind, depth)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _signed(data, at)
    if kind == _TEXT:
        length, at = _varint(data, at)
        return None, at + length
    if kind in (_BYTE, _DOUBLE, *_FLAGS):
        return None, at + (8 if kind == _DOUBLE else 1)
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind not in _LISTS or depth > _DEPTH:
        raise ValueError("its headers cannot be read")
    head, at = _byte(data, at), at + 1
    count = head >> 4
    if count == 15:
        count, at = _varint(data, at)
    items = []
    for _ in range(count):  # each takes a byte at least, so it ends where the data do
        item, at = _value(data, at, head & 15, depth + 1)
        items.append(item)
    return items, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    if value >= 2**64:  # other readers would take a part of it
        raise ValueError("its headers have a number that is too large")
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(data, at)
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("its headers have a number without end")


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise ValueError("a page ends behind the file")
    return data[at]
