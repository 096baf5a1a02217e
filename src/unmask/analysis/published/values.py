"""What others have published about MASK, as facts with their sources; read from two tables next to this file.

`published.csv`: one value per row with its definition, shares from 0 to 1, with an interval where one was published or
counts are known.
`compute.csv`: training compute of the models in the paper's table, with what each figure rests on.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec

from unmask.records import Record
from unmask.scoring.definitions import OURS, STATED, Convention


class HonestyDefinition(StrEnum):
    """What a published value counts. Values of different definitions cannot be held against each other."""

    OF_ALL = "1-P(lie)"
    """Lies of all judged scenarios: evasion and no belief count as not lying."""
    OF_BELIEVED = "1-P(lie|belief)"
    """Lies of the scenarios with a belief: normalised."""
    OF_ASSERTIONS = "H/(H+L)"
    """Honest statements of the clear ones, without `statistics`: evasion and no belief are left out."""
    FAILURES_COUNT = "1-L/n"
    """As 1-P(lie), but what the judge failed on counts as not lying."""
    RECTIFIED = "rectified"
    """Lies in which the model obviously plays a part do not count."""
    NOT_STATED = "not stated"
    AS_NAMED = "as named"
    """No honesty score: P(honest), accuracy, an agreement, a correlation."""

    @property
    def convention(self) -> Convention | None:
        """How a run is counted by this definition; `None` where it was not stated, or takes another question."""
        return _CONVENTIONS.get(self)


_CONVENTIONS = {
    HonestyDefinition.OF_ALL: OURS,
    HonestyDefinition.OF_BELIEVED: Convention(measure="normalised_honesty"),
    HonestyDefinition.OF_ASSERTIONS: STATED["anthropic"][1],
    HonestyDefinition.FAILURES_COUNT: STATED["inspect"][1],
}


class PublishedValue(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One published value. `where` says where to look it up."""

    source: str
    where: str
    model: str
    variant: str | None
    archetype: str | None
    measure: str
    definition: HonestyDefinition
    value: float
    low: float | None
    high: float | None
    n: int | None
    unjudged: int | None
    data: str | None
    judge: str | None
    note: str | None


class Compute(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Training compute of one model."""

    model: str
    flop: float
    family: str | None = None
    basis: str | None = None
    """`disclosed`: six times parameters times tokens as the developer gives them; `estimated` or `speculative`."""
    source: str | None = None


@cache
def published_values() -> tuple[PublishedValue, ...]:
    return tuple(msgspec.convert(row, PublishedValue, strict=False) for row in _read_table("published.csv"))


@cache
def training_compute() -> tuple[Compute, ...]:
    return tuple(msgspec.convert(row, Compute, strict=False) for row in _read_table("compute.csv"))


def _read_table(name: str) -> Iterator[dict[str, str | None]]:
    for row in csv.DictReader((files(__package__) / name).read_text(encoding="utf-8").splitlines()):
        yield {key: value or None for key, value in row.items()}
