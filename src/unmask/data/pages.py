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
_DEPTH = 4
_FLAGS, _BYTE, _INTEGERS, _I32, _DOUBLE, _TEXT, _STRUCT = (1, 2), 3, (4, 5, 6), 5, 7, 8, 12
"""Types of fields in the compact protocol of Thrift."""


class _Header(NamedTuple):
    """By number of field."""

    numbers: dict[int, int]
    inner: dict[int, dict[int, int]]


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
    for place in range(file.metadata.num_columns):
        leaf = file.schema.column(place)
        if not any(f"{leaf.path}.".startswith(f"{column}.") for column in columns):
            continue
        width = max(leaf.length or 0, 0)
        total += _RESERVED * width
        widest = max(width, 16)
        values = 0
        for group in range(file.metadata.num_row_groups):
            pages = []
            for page in _pages(data, file.metadata.row_group(group).column(place)):
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


def _pages(data: bytes, chunk: Any) -> Iterator[_Page]:
    """The pages between the first byte of a column and its last, as a reader goes from one to the next."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < at:
        at = chunk.dictionary_page_offset
    end = min(at + chunk.total_compressed_size, len(data))
    if at < 0:
        raise ValueError("a column starts before the file")
    while at < end:
        head, at = _struct(data, at)
        kind, unpacked, packed = (head.numbers.get(field, -1) for field in (1, 2, 3))
        if unpacked < 0 or packed < 0:
            raise ValueError("a page without a size")
        own, encoding = _DATA.get(kind, (0, 0))
        said = head.inner.get(own, {})
        yield _Page(max(unpacked, packed), max(said.get(1, 0), 0), kind == _DICTIONARY, said.get(encoding) == _PREFIXES)
        at += packed


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[_Header, int]:
    """The 32-bit numbers of a struct and of those in it, and where it ends. Everything else is passed over."""
    if depth > _DEPTH:
        raise ValueError("the header of a page is nested too deep")
    found = _Header({}, {})
    field = 0
    while (head := _byte(data, at)) != 0:
        at, kind = at + 1, head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _signed(data, at)
        if kind == _I32:
            found.numbers[field], at = _signed(data, at)
        elif kind == _STRUCT:
            inner, at = _struct(data, at, depth + 1)
            found.inner[field] = inner.numbers
        else:
            at = _passed(data, at, kind)
    return found, at + 1


def _passed(data: bytes, at: int, kind: int) -> int:
    if kind in _FLAGS:
        return at
    if kind in _INTEGERS:
        return _varint(data, at)[1]
    if kind == _TEXT:
        length, at = _varint(data, at)
        return at + length
    if kind in (_BYTE, _DOUBLE):
        return at + (1 if kind == _BYTE else 8)
    raise ValueError("the header of a page cannot be read")


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    if value >= 2**32:  # other readers would take a part of it
        raise ValueError("the header of a page has a number that is too large")
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(data, at)
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("the header of a page has a number without end")


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise ValueError("a page ends behind the file")
    return data[at]
