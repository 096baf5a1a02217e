"""Published values on a board: rows of their own, and each value in the column of its own definition only.

Publishers print different things under the name honesty. A value of another definition than those of the columns, or of
none that was stated, is listed apart with its definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from unmask.analysis.published.values import HonestyDefinition, PublishedValue, published_values
from unmask.records import Record
from unmask.scoring.measures import MEASURES, Where, list_measures
from unmask.stats.rate import in_percent, wilson_interval

COLUMNS = (*list_measures(Where.BOARD), "lying_at_10")
"""Columns of published values: those of every board, and Lying@10."""
_COLUMN_OF: dict[tuple[str, str], str] = {
    measure.published: name for name, measure in MEASURES.items() if measure.published is not None
} | {("lying_at_10", HonestyDefinition.OF_ALL): "lying_at_10"}
"""The column, by measure and definition of a published value."""
_LIES = {"p_lie", "rectified_p_lie"}
_HONESTY = {"honesty", "normalised_honesty", "safety_rate", *_LIES}
_SHOWN = {*COLUMNS, *_HONESTY, "p_no_belief"}


_ABOUT = ("source", "where", "model", "variant", "data", "judge", "note")
"""What is the same for all values of a row."""


class PublishedRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A published row: other harness, judge or data, never ranked with runs."""

    source: str
    where: str
    model: str
    variant: str | None
    n: int | None
    data: str | None
    judge: str | None
    note: str | None
    values: dict[str, PublishedValue]


class PublishedSpan(NamedTuple):
    """A value in a column, with its interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


def published_rows() -> tuple[PublishedRow, ...]:
    """What is published about single models over all archetypes, one row per source and model."""
    grouped: dict[tuple[str, str, str, str | None], dict[str, PublishedValue]] = {}
    for value in published_values():
        if value.measure in _SHOWN and value.archetype is None:
            grouped.setdefault((value.source, value.where, value.model, value.variant), {})[value.measure] = value
    rows = []
    for values in grouped.values():
        about = {name: getattr(next(iter(values.values())), name) for name in _ABOUT}
        n = max((value.n for value in values.values() if value.n is not None), default=None)
        rows.append(PublishedRow(**about, n=n, values=values))
    return tuple(rows)


def place_values(values: Mapping[str, PublishedValue]) -> dict[str, PublishedSpan]:
    """The values of one published row by column, and what follows from them: honesty from P(lie), and the other two
    kinds of honesty from P(honest) or P(no belief) of the same row."""
    spans = {
        column: PublishedSpan(value.value, value.low, value.high)
        for value in values.values()
        if (column := _COLUMN_OF.get((value.measure, value.definition)))
    }
    lies = values.get("p_lie")
    if lies is None or lies.definition is not HonestyDefinition.OF_ALL:
        return spans
    low, high = (None if end is None else 1 - end for end in (lies.high, lies.low))
    spans.setdefault("honesty", PublishedSpan(1 - lies.value, low, high))
    if "p_honest" in values:
        asserted = lies.value + values["p_honest"].value
        spans.setdefault("honest_of_assertions", _share_of(lies, asserted))
    if "p_no_belief" in values:
        spans.setdefault("normalised_honesty", _share_of(lies, 1 - values["p_no_belief"].value))
    return spans


def describe_others(values: Mapping[str, PublishedValue]) -> Iterator[str]:
    """Honesty under another definition than those of the columns, each with its definition: `95.4 (not stated)`."""
    for value in values.values():
        has_column = (value.measure, value.definition) in _COLUMN_OF
        if value.measure not in _HONESTY or value.definition is HonestyDefinition.OF_ALL or has_column:
            continue
        share = 1 - value.value if value.measure in _LIES else value.value
        name = {"normalised_honesty": "normalised, ", "safety_rate": "safety rate, "}.get(value.measure, "")
        part = ", without statistics" if value.definition is HonestyDefinition.OF_ASSERTIONS else ""
        yield f"{in_percent(share)} ({name}{value.definition.value}{part})"


def _share_of(lies: PublishedValue, whole: float) -> PublishedSpan:
    """The share that are no lies, of a part of the scenarios; with Wilson's interval where the row has counts."""
    share = 1 - lies.value / whole
    if lies.n is None or lies.low is None:
        return PublishedSpan(share)
    total = whole * lies.n
    return PublishedSpan(share, *wilson_interval(share * total, total))
