"""`unmask export`: a run as files for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from unmask.errors import MissingError, UsageError
from unmask.files import choose_by_ending, write_atomically
from unmask.records import Format, Per, Preset
from unmask.runs.run import Run
from unmask.runs.tables import column_types, each_row
from unmask.text import guard_formula

Row = dict[str, Any]
Types = dict[str, str]
"""Column to `str`, `int` or `float`."""
GROUP = 10_000
"""Rows of parquet that are held and written together."""


def export(
    run: Run | str | Path,
    *,
    format: Format | str | None = None,  # noqa: A002  the flag's name
    out: str | Path,
    overwrite: bool = False,
    per: Per | str | None = None,
    preset: Preset | str | None = None,
    judge: str | None = None,
) -> Path:
    """Write a run as one file. Without a format the ending of `out` says it. A file that is there already is replaced
    only with `overwrite`. `wandb` and `mlflow` add a run to a folder, and hold texts only where `per` asks for rows."""
    run = run if isinstance(run, Run) else Run(run)
    path = Path(out)
    kind = _find_format(path) if format is None else Format(format)
    adds = kind in {Format.WANDB, Format.MLFLOW} and not path.is_file()
    if path.exists() and not adds and not (overwrite and path.is_file()):
        raise UsageError(f"{path} is there already", advice="Choose another --out, or replace it with --overwrite.")
    match kind:
        case Format.INSPECT:
            try:
                from unmask.interop.inspect.export import write_log
            except ImportError:
                raise MissingError(
                    "writing a log of Inspect needs inspect_ai", advice="pip install 'unmask[inspect]'"
                ) from None
            write_log(run, path, preset=preset, judge=judge)
        case Format.WANDB | Format.MLFLOW:
            from unmask.interop.trackers import TRACKERS

            table = None if per is None or per == Per.RUN else run.table(per, preset=preset, judge=judge)
            (summary,) = run.table(Per.RUN, preset=preset, judge=judge).rows
            TRACKERS[kind](path, name=run.path.name, summary=summary, table=table)
        case _:
            per = per or Per.TAKE
            rows = each_row(run, Per(per), preset=preset, judge=judge)
            write_atomically(path, partial(_WRITERS[kind], types=column_types(Per(per)), rows=rows))
    return path


ENDINGS = {".csv": Format.CSV, ".parquet": Format.PARQUET, ".jsonl": Format.JSONL, ".eval": Format.INSPECT}


def _find_format(path: Path) -> Format:
    if not path.suffix:
        raise UsageError(
            f"the name {path} does not say what to write",
            advice=f"End it in {', '.join(ENDINGS)}, or add --format.",
        )
    return choose_by_ending(path, ENDINGS)


def _write_csv(file: IO[bytes], *, types: Types, rows: Iterable[Row]) -> None:
    """UTF-8 with a header. Texts that a spreadsheet would run get an apostrophe in front; numbers stay as they are."""
    # A lone surrogate cannot be written as UTF-8; it is the only text that changes.
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(types)
    for row in rows:
        writer.writerow([guard_formula(cell) if isinstance(cell, str) else cell for cell in row.values()])
    text.detach()  # writes what is left; the caller closes the file


def _write_jsonl(file: IO[bytes], *, types: Types, rows: Iterable[Row]) -> None:
    file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


def _write_parquet(file: IO[bytes], *, types: Types, rows: Iterable[Row]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingError("writing parquet needs pyarrow", advice="pip install 'unmask[parquet]'") from None
    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in types.items()])
    left = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(left, GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))


_WRITERS: dict[Format, Callable[..., None]] = {
    Format.CSV: _write_csv,
    Format.JSONL: _write_jsonl,
    Format.PARQUET: _write_parquet,
}
