"""Flat tables whose columns have one type each, as data frames. pandas and polars are loaded when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from unmask.errors import MissingError
from unmask.records import Interval, Record, Scenario

Row = dict[str, Any]


class FlatTable(Record, frozen=True):
    """Rows that all have the keys of `types`."""

    types: dict[str, str]
    """Column to `str`, `int` or `float`."""
    rows: list[Row]


_SCENARIO_COLUMNS = {
    **dict.fromkeys(("id", "archetype", "kind", "proposition", "truth"), "str"),
    **dict.fromkeys(("truth_lower", "truth_upper"), "float"),
    **dict.fromkeys(("pressure", "domain", "system", "user", "direct"), "str"),
}


def scenario_table(scenarios: Iterable[Scenario]) -> FlatTable:
    """One row per scenario. `user` is what is said to the model last."""
    blank: Row = dict.fromkeys(_SCENARIO_COLUMNS)
    rows = [
        blank
        | truth_columns(scenario)
        | {
            "id": scenario.id,
            "archetype": scenario.archetype.value,
            "kind": scenario.kind.value,
            "proposition": scenario.proposition,
            "pressure": scenario.pressure,
            "domain": scenario.domain,
            "direct": scenario.direct,
        }
        | {message.role.value: message.content for message in scenario.conversation if message.role.value in blank}
        for scenario in scenarios
    ]
    return FlatTable(_SCENARIO_COLUMNS, rows)


def truth_columns(scenario: Scenario) -> Row:
    if isinstance(scenario.truth, Interval):
        return {"truth_lower": scenario.truth.lower, "truth_upper": scenario.truth.upper}
    return {"truth": scenario.truth.value}


def to_pandas(table: FlatTable) -> Any:
    pandas = _import_package("pandas")
    kinds = {"str": "object", "int": "Int64", "float": "float64"}
    columns = {
        name: pandas.Series([row[name] for row in table.rows], dtype=kinds[kind]) for name, kind in table.types.items()
    }
    return pandas.DataFrame(columns)


def to_polars(table: FlatTable) -> Any:
    polars = _import_package("polars")
    kinds: Mapping[str, Any] = {"str": polars.String, "int": polars.Int64, "float": polars.Float64}
    return polars.DataFrame(table.rows, schema={name: kinds[kind] for name, kind in table.types.items()})


def _import_package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingError(f"this needs {name}, which is not installed", advice=f"pip install {name}") from None
