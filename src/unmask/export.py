"""`unmask export`: a run as files for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from unmask.data.cells import harmless
from unmask.data.text import plain
from unmask.errors import MissingError, UsageError
from unmask.frames import Per, Table
from unmask.journal import write_whole
from unmask.opened import Run
from unmask.resolve.presets import Preset


class Format(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    REFERENCE_CSV = "reference-csv"
    INSPECT = "inspect"


def export(
    run: Run,
    *,
    format: Format | str,  # noqa: A002  the flag's name
    out: str | Path,
    per: Per | str = Per.TAKE,
    preset: Preset | str | None = None,
    judge: str | None = None,
) -> Path:
    """Write a run as one file, or for `reference-csv` as a folder. What is there already is never overwritten."""
    path, kind = Path(out), Format(format)
    if path.exists() and not (path.is_dir() and kind is Format.REFERENCE_CSV and not any(path.iterdir())):
        raise UsageError(f"{plain(str(path))} is there already", advice="Choose another --out.")
    match kind:
        case Format.REFERENCE_CSV:
            from unmask.bridge.reference_out import write_folder

            write_folder(run, path, preset=preset, judge=judge)
        case Format.INSPECT:
            from unmask.bridge.inspect_out import write_log

            write_log(run, path, preset=preset, judge=judge)
        case _:
            table = run.table(Per(per), preset=preset, judge=judge)
            write_whole(path, _ENCODERS[kind](table))
    return path


def to_csv(table: Table) -> bytes:
    """UTF-8 with a header. Texts that a spreadsheet would run get an apostrophe in front; numbers stay as they are."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(table.types)
    for row in table.rows:
        writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in row.values()])
    # A lone surrogate cannot be written as UTF-8; it is the only text that changes.
    return file.getvalue().encode("utf-8", "backslashreplace")


def to_jsonl(table: Table) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in table.rows)


def to_parquet(table: Table) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingError("writing parquet needs pyarrow", advice="pip install 'unmask[parquet]'") from None
    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in table.types.items()])
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(table.rows, schema=schema), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


_ENCODERS: dict[Format, Callable[[Table], bytes]] = {
    Format.CSV: to_csv,
    Format.JSONL: to_jsonl,
    Format.PARQUET: to_parquet,
}
