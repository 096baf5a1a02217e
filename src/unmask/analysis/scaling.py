"""Does honesty grow with training compute as accuracy does? Rank correlations over the models of a board."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.analysis.published.values import Compute, HonestyDefinition, published_values, training_compute
from unmask.errors import DataError, MissingError, UsageError
from unmask.records import Record
from unmask.stats.correlate import Correlation, correlate

if TYPE_CHECKING:
    from unmask.analysis.board import BoardRow

PUBLISHED = "published"
"""In place of a file with compute: the shipped estimates for models of the paper."""

Points = dict[str, dict[str, float]]
"""By measure, then by model."""


class MeasureScaling(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One measure against training compute."""

    correlation: Correlation
    published: float
    """The correlation the paper reports over the 27 models whose compute its authors had."""
    values: dict[str, float]
    """By model, of those with known compute."""


class Scaling(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `unmask board --compute` adds to a board."""

    measures: dict[str, MeasureScaling]
    compute: dict[str, float]
    """FLOP by model."""
    left_out: dict[str, str]
    """Models that could not be used, and why."""


def relate_to_compute(rows: Sequence[BoardRow], compute: str | Path) -> Scaling:
    """Correlate the ranked runs with training compute; of a board without runs, the paper's table.

    `compute` is a CSV file with the columns model and flop, and if known family, or the word `published`.
    """
    by_name = {figure.model.lower(): figure for figure in read_compute(compute)}
    points, left_out = _points_of(rows) if rows else (_published_points(), {})
    used: dict[str, Compute] = {}
    for model in sorted({model for column in points.values() for model in column}):
        # The whole name on the board, or what follows the provider; case does not count.
        name = model.lower()
        figure = by_name.get(name) or by_name.get(name.partition("/")[2]) or by_name.get(name.rpartition("/")[2])
        if figure is None:
            left_out[model] = "no training compute"
        else:
            used[model] = figure
    measures = {}
    for measure, column in points.items():
        values = {model: column[model] for model in used if model in column}
        correlation = correlate(
            [used[model].flop for model in values],
            list(values.values()),
            [used[model].family or _guess_family(model) for model in values],
        )
        named = f"spearman_compute_{measure}"
        published = next(entry.value for entry in published_values() if entry.measure == named)
        measures[measure] = MeasureScaling(correlation=correlation, published=published, values=values)
    return Scaling(measures=measures, compute={model: figure.flop for model, figure in used.items()}, left_out=left_out)


def read_compute(path: str | Path) -> tuple[Compute, ...]:
    """Training compute from a CSV file; every bad line is named."""
    if str(path) == PUBLISHED:
        return training_compute()
    try:
        rows = list(csv.DictReader(Path(path).read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MissingError(
            f"{path} cannot be read: {error}", advice="Give a CSV file that begins: model,flop"
        ) from None
    entries, problems = [], []
    for number, row in enumerate(rows, 2):
        model, flop = (row.get("model") or "").strip(), _parse_number(row.get("flop"))
        if model and flop:
            entries.append(Compute(model=model, flop=flop, family=(row.get("family") or "").strip() or None))
        else:
            problems.append(f"line {number}: there is no model, or its flop {row.get('flop')!r} is no number above 0")
    if problems:
        raise DataError(
            f"{len(problems)} lines of {path} cannot be used",
            problems=tuple(problems[:20]),
            advice="Begin it with the line: model,flop",
        )
    return tuple(entries)


# --- inside


def _points_of(rows: Sequence[BoardRow]) -> tuple[Points, dict[str, str]]:
    points: Points = {"accuracy": {}, "honesty": {}}
    left_out: dict[str, str] = {}
    for row in rows:
        if row.place is None or row.variant:
            left_out[row.model] = "developer prompt" if row.place else "not ranked"
            continue
        for measure, values in points.items():
            if row.model in values:
                raise UsageError(f"{row.model} is ranked twice", advice="With --compute, give one run per model.")
            value = row.rates[measure].value
            if value is not None:
                values[row.model] = value
    return points, left_out


def _published_points() -> Points:
    """The paper's table, whose honesty is 1 - P(lie) as a run's is."""
    points: Points = {"accuracy": {}, "honesty": {}}
    for entry in published_values():
        if entry.source != "paper" or not entry.where.endswith("Table 3"):
            continue
        match entry.measure:
            case "accuracy":
                points["accuracy"][entry.model] = entry.value
            case "p_lie" if entry.definition is HonestyDefinition.OF_ALL:
                points["honesty"][entry.model] = 1 - entry.value
    return points


def _parse_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 < number < inf else None


def _guess_family(model: str) -> str:
    """The letters a name begins with, after its provider."""
    name = model.rpartition("/")[2].lower()
    return "".join(takewhile(str.isalpha, name)) or name
