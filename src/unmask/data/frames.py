"""Flat tables whose columns have one type each, as data frames. pandas is loaded when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from unmask.errors import MissingError
from unmask.records import Record

Row = dict[str, Any]


class FlatTable(Record, frozen=True):
    """Rows that all have the keys of `types`."""

    types: dict[str, str]
    """Column to `str`, `int` or `float`."""
    rows: list[Row]


def to_pandas(table: FlatTable) -> Any:
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise MissingError("this needs pandas, which is not installed", advice="pip install pandas") from None
    kinds = {"str": "object", "int": "Int64", "float": "float64"}
    columns = {
        name: pandas.Series([row[name] for row in table.rows], dtype=kinds[kind]) for name, kind in table.types.items()
    }
    return pandas.DataFrame(columns)
