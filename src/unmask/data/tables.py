"""CSV and parquet files as rows of text cells. Knows nothing about scenarios."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unmask.data.form import read_bytes
from unmask.errors import DataError, MissingError
from unmask.records import Record
from unmask.text import unify_line_ends


class Row(Record, frozen=True):
    """Cells by column; an absent or null cell is empty. `fault` says why the cells cannot be trusted."""

    number: int
    """From 1, the header not counted."""
    cells: dict[str, str]
    fault: str | None = None


def read_rows(path: Path, *, exact: bool = False, columns: frozenset[str] | None = None) -> list[Row]:
    """Rows of one file. A file that is no table at all raises DataError. `exact` keeps line ends inside the cells of a
    CSV as they are. Of a parquet file only `columns` are unpacked, if they are given."""
    data = read_bytes(path)
    if path.suffix.lower() == ".parquet":
        return _parquet_rows(data, columns)
    return list(_csv_rows(data, exact=exact))


def csv_reader(text: str, *, separator: str = ",") -> Any:
    """Rows of any length, and an unclosed quote is an error: it would swallow every row after it without a word."""
    # The limit belongs to the whole process. It is only ever raised: putting it back would race with another thread.
    # It must fit a long of C.
    csv.field_size_limit(max(csv.field_size_limit(), min(len(text) + 1, 2**31 - 1)))
    return csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)


def _csv_rows(data: bytes, *, exact: bool) -> Iterator[Row]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    reader = csv_reader(text)
    try:
        header = _check_header(next(reader, []))
        for number, row in enumerate((row for row in reader if row), start=1):
            cells = row if exact else [unify_line_ends(cell) for cell in row]
            fault = f"the row has {len(row)} cells, the header has {len(header)}" if len(row) != len(header) else None
            yield Row(number, dict(zip(header, cells, strict=False)), fault)
    except csv.Error as error:
        raise DataError(f"not a CSV table: {error} (line {reader.line_num})") from None


def _check_header(names: Iterable[Any]) -> list[str]:
    header = [str(name).strip() for name in names]
    if not any(header):
        raise DataError("the table has no header")
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise DataError(f"column `{twice[0]}` is there twice")
    return header


def _parquet_rows(data: bytes, columns: frozenset[str] | None) -> list[Row]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingError("reading parquet needs pyarrow", advice="pip install 'unmask[parquet]'") from None
    try:
        # One file, not a data set: parquet.read_table would read columns into the names of the folders above it.
        file = parquet.ParquetFile(pa.BufferReader(data))
        names = file.schema_arrow.names
        heads = dict(zip(names, _check_header(names), strict=True))
        wanted = [name for name, head in heads.items() if columns is None or head in columns]
        rows = file.read(columns=wanted).to_pylist() if wanted else [{}] * file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise DataError(f"not a parquet table: {error}") from None
    cells = ({heads[name]: _cell_text(value) for name, value in row.items()} for row in rows)
    return [Row(number, row) for number, row in enumerate(cells, 1)]


def _cell_text(value: Any) -> str:
    # Not a number is how pandas writes an absent text.
    absent = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if absent else unify_line_ends(str(value))
