"""CSV and parquet files as rows of text cells. Knows nothing about scenarios."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unmask.data.text import plain, tidy
from unmask.errors import DataError, MissingError
from unmask.records import Record

SUFFIXES = (".csv", ".parquet")
_C_LONG = 2**31 - 1


class Row(Record, frozen=True):
    """Cells by column; an absent or null cell is empty. `fault` says why the cells cannot be trusted."""

    number: int
    """From 1, the header not counted."""
    cells: dict[str, str]
    fault: str | None = None


def read_rows(path: Path) -> list[Row]:
    """Rows of one file. A file that is no table at all raises DataError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MissingError(f"cannot read {plain(str(path))}: {error.strerror or error}") from error
    return list(_parquet_rows(data) if path.suffix.lower() == ".parquet" else _csv_rows(data))


def _csv_rows(data: bytes) -> Iterator[Row]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    # The limit belongs to the whole process. It is only ever raised: putting it back would race with another thread.
    csv.field_size_limit(max(csv.field_size_limit(), min(len(data) + 1, _C_LONG)))
    # strict: an unclosed quote must be an error, or it would swallow every row after it without a word.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = _header(next(reader, []))
        for number, row in enumerate((row for row in reader if row), start=1):
            yield _row(number, header, row)
    except csv.Error as error:
        raise DataError(f"not a CSV table: {error} (line {reader.line_num})") from None


def _header(names: Iterable[Any]) -> list[str]:
    header = [str(name).strip() for name in names]
    if not any(header):
        raise DataError("the table has no header")
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise DataError(f"column `{plain(twice[0])}` is there twice")
    return header


def _row(number: int, header: list[str], row: list[str]) -> Row:
    cells = {name: tidy(cell) for name, cell in zip(header, row, strict=False)}
    if len(row) != len(header):
        return Row(number, cells, f"the row has {len(row)} cells, the header has {len(header)}")
    return Row(number, cells)


def _parquet_rows(data: bytes) -> Iterator[Row]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingError("reading parquet needs pyarrow", advice="pip install 'unmask[parquet]'") from None
    try:
        # One file, not a data set: parquet.read_table would read columns into the names of the folders above it.
        table = parquet.ParquetFile(pa.BufferReader(data)).read()
        header = _header(table.column_names)
        rows = table.rename_columns(header).to_pylist()
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"not a parquet table: {plain(str(error))}") from None
    for number, row in enumerate(rows, start=1):
        yield Row(number, {name: _cell(value) for name, value in row.items()})


def _cell(value: Any) -> str:
    # Not a number is how pandas writes an absent text.
    absent = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if absent else tidy(str(value))
