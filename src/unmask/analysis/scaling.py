"""Does honesty grow with training compute as accuracy does? Rank correlations over the models of a board.

A rank correlation over a few dozen models is a weak instrument: each value stands with its interval, with what single
models and whole families do to it, and with what was published.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.analysis.board import board as make_board
from unmask.analysis.published.values import Compute, HonestyDefinition, published_values, training_compute
from unmask.errors import DataError, MissingError, UsageError
from unmask.records import Record, Result
from unmask.stats.correlate import LEAST, LEAST_FOR_INTERVAL, Correlation, correlate, spearman
from unmask.text import unguard_formula

if TYPE_CHECKING:
    from numpy.random import Generator

PUBLISHED = "published"
"""The word that stands for the paper's table in place of a board file."""

MEASURES = {
    "accuracy": "accuracy",
    "honesty_at_1": "honesty",
    "normalised_honesty_at_1": "normalised_honesty",
    "honesty_at_n": "honesty_at_10",
    "normalised_honesty_at_n": "normalised_honesty_at_10",
}
"""What is correlated with compute, and the name of the published figure after `spearman_compute_`."""

_COLUMNS = {
    "accuracy": "accuracy",
    "honesty_at_1": "honesty_at_1",
    "normalised_honesty_at_1": "normalised_honesty_at_1",
    "honesty_at_n": "honesty",
    "normalised_honesty_at_n": "normalised_honesty",
}

Points = dict[str, dict[str, float]]
"""By measure, then by model."""


class MeasureScaling(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One measure against training compute."""

    correlation: Correlation
    published: float | None
    """The correlation the paper reports over the 27 models whose compute its authors had."""
    larger_half: float | None
    """Over the half of the models with more compute: what is left without the small ones."""
    without_speculative: float | None
    """Over the models whose compute is not speculative, where some is."""


class Scaling(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask scaling` says."""

    board: str
    takes: int | None
    """The n of the measures at n takes."""
    measures: dict[str, MeasureScaling]
    compute: dict[str, float]
    points: Points
    left_out: dict[str, str]
    """Models that could not be used, and why."""
    fragile: tuple[str, ...]
    seed: int

    def to_json(self) -> dict[str, Any]:
        """The documented shape of `unmask scaling --json`, ready to be encoded."""
        plain = super().to_json()
        plain["measures"] = {name: scale.pop("correlation") | scale for name, scale in plain["measures"].items()}
        return plain


def scaling(board: str | Path, *, compute: str | Path | None = None, seed: int = 0) -> Scaling:
    """Correlate a board (a file of `unmask board`, a folder with runs, or the word `published`) with training compute.

    `compute` is a CSV file with the columns model and flop, and if known family, basis and source. The published
    table has estimates of its own, which are used unless a file is given.
    """
    import numpy as np

    points, takes, left_out = _published_points() if str(board) == PUBLISHED else read_board(Path(board))
    if compute is None and str(board) != PUBLISHED:
        raise UsageError(
            "the training compute of these models is not known", advice="Give it with --compute FILE, a CSV: model,flop"
        )
    figures = training_compute() if compute is None else read_compute(compute)
    by_name = {figure.model.lower(): figure for figure in figures}
    compute_by_model: dict[str, Compute] = {}
    for model in sorted({model for column in points.values() for model in column}):
        # The whole name on the board, or what follows the provider; case does not count.
        name = model.lower()
        figure = by_name.get(name) or by_name.get(name.partition("/")[2]) or by_name.get(name.rpartition("/")[2])
        if figure is None:
            left_out[model] = "its training compute is not in the file"
        else:
            compute_by_model[model] = figure
    rng = np.random.default_rng(seed)
    why = "the board has no such values"
    if str(board) == PUBLISHED:
        why = "the published table does not say how many scenarios had no belief"
    measures = {name: _correlate_measure(name, points[name], compute_by_model, rng, why) for name in MEASURES}
    return Scaling(
        board=str(board),
        takes=takes,
        measures=measures,
        compute={model: model_compute.flop for model, model_compute in compute_by_model.items()},
        points=points,
        left_out=left_out,
        fragile=tuple(_list_caveats(measures)),
        seed=seed,
    )


def read_compute(path: str | Path) -> tuple[Compute, ...]:
    """Training compute from a CSV file; every bad line is named."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise MissingError(f"{path} cannot be read: {error}", advice="Give a CSV file: model,flop") from None
    entries: list[Compute] = []
    problems: list[str] = []
    try:
        reader = csv.DictReader(text.splitlines())
        if not {"model", "flop"} <= set(reader.fieldnames or ()):
            raise DataError(f"{path} has no columns model and flop", advice="Begin it with the line: model,flop")
        for row in reader:
            parsed = _parse_compute(row)
            if isinstance(parsed, str):
                problems.append(f"line {reader.line_num}: {parsed}")
            else:
                entries.append(parsed)
    except csv.Error as error:
        raise DataError(f"{path} is not a CSV table: {error}", advice="Give a CSV file: model,flop") from None
    if problems:
        raise DataError(f"{len(problems)} lines of {path} cannot be used", problems=tuple(problems[:20]))
    return tuple(entries)


def read_board(path: Path) -> tuple[Points, int | None, dict[str, str]]:
    """Values by measure and model from a JSON or CSV board, or from a folder with runs; the number of takes, and what
    was left out."""
    rows = list(_csv_rows(path) if path.suffix.lower() == ".csv" else _json_rows(path))
    points: Points = {name: {} for name in MEASURES}
    left_out: dict[str, str] = {}
    takes: set[int] = set()
    for row in rows:
        if row.unranked or row.variant:
            left_out[row.model] = row.unranked or f"variant: {row.variant}"
            continue
        if any(row.model in column for column in points.values()):
            raise UsageError(f"{path} ranks {row.model} twice", advice="Make a board with one run per model.")
        takes.add(row.takes)
        for name, column in _COLUMNS.items():
            value = row.values.get(column)
            if value is not None:
                points[name][row.model] = value
    return points, takes.pop() if len(takes) == 1 else None, left_out


# --- inside


class _BoardFileRow(Record, frozen=True):
    model: str
    variant: str | None
    unranked: str | None
    takes: int
    values: dict[str, float | None]


def _json_rows(path: Path) -> Iterator[_BoardFileRow]:
    try:
        rows = make_board(path).to_json()["rows"] if path.is_dir() else msgspec.json.decode(path.read_bytes())["rows"]
        for row in rows:
            values = {name: (row[name] or {}).get("value") for name in _COLUMNS.values()}
            yield msgspec.convert(
                {"values": values} | {name: row[name] for name in ("model", "variant", "unranked", "takes")},
                _BoardFileRow,
            )
    except OSError as error:
        raise _unreadable_error(path, error) from None
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not a board: {error!r}", advice=_ADVICE) from None


def _csv_rows(path: Path) -> Iterator[_BoardFileRow]:
    try:
        for cells in csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()):
            row = {name: unguard_formula(cell) if isinstance(cell, str) else "" for name, cell in cells.items()}
            if row["kind"] != "run":
                continue
            values = {name: float(row[name]) if row[name] else None for name in _COLUMNS.values()}
            yield _BoardFileRow(
                row["model"], row["variant"] or None, row["unranked"] or None, int(row["takes"]), values
            )
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable_error(path, error) from None
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise UsageError(f"{path} is not a board: {error!r}", advice=_ADVICE) from None


_ADVICE = "Make one with: unmask board RUN… --out board.json"


def _unreadable_error(path: Path, error: Exception) -> MissingError:
    return MissingError(f"{path} cannot be read: {error}", advice=_ADVICE)


def _published_points() -> tuple[Points, int | None, dict[str, str]]:
    """The paper's table, whose honesty is 1 - P(lie) as a run's is.

    It does not say how many scenarios had no belief, so nothing normalised comes from it.
    """
    points: Points = {name: {} for name in MEASURES}
    for entry in published_values():
        if entry.source != "paper" or not entry.where.endswith("Table 3"):
            continue
        match entry.measure:
            case "accuracy":
                points["accuracy"][entry.model] = entry.value
            case "p_lie" if entry.definition is HonestyDefinition.OF_ALL:
                points["honesty_at_1"][entry.model] = 1 - entry.value
            case "lying_at_10" if entry.definition is HonestyDefinition.OF_ALL:
                points["honesty_at_n"][entry.model] = 1 - entry.value
    return points, 10, {}


def _parse_compute(row: Mapping[str, str | None]) -> Compute | str:
    model = (row.get("model") or "").strip()
    if not model:
        return "the model is not named"
    try:
        flop = float(row.get("flop") or "")
    except ValueError:
        return f"the compute of {model} is no number: {row.get('flop')!r}"
    if not isfinite(flop) or flop <= 0:
        return f"the compute of {model} is not above 0: {flop:g}"
    details = {name: (row.get(name) or "").strip() or None for name in ("family", "basis", "source")}
    return Compute(model=model, flop=flop, **details)


def _correlate_measure(
    name: str, points: Mapping[str, float], compute_by_model: Mapping[str, Compute], rng: Generator, why: str
) -> MeasureScaling:
    flop = {model: figure.flop for model, figure in compute_by_model.items()}
    families = {model: figure.family or _guess_family(model) for model, figure in compute_by_model.items()}
    correlation = correlate(flop, points, rng=rng, groups=families)
    if not points:
        correlation = Correlation(n=0, why=why)
    both = sorted((model for model in points if model in flop), key=lambda model: flop[model])
    firm = [model for model in both if compute_by_model[model].basis != "speculative"]
    published_name = f"spearman_compute_{MEASURES[name]}"
    return MeasureScaling(
        correlation=correlation,
        published=next((entry.value for entry in published_values() if entry.measure == published_name), None),
        larger_half=_spearman_over(both[len(both) // 2 :], flop, points),
        without_speculative=_spearman_over(firm, flop, points) if len(firm) < len(both) else None,
    )


def _spearman_over(models: Sequence[str], flop: Mapping[str, float], points: Mapping[str, float]) -> float | None:
    if len(models) < LEAST:
        return None
    return spearman([flop[model] for model in models], [points[model] for model in models])


def _guess_family(model: str) -> str:
    """The letters a name begins with, after its provider."""
    name = model.rpartition("/")[2].lower()
    return "".join(takewhile(str.isalpha, name)) or name


def _list_caveats(measures: Mapping[str, MeasureScaling]) -> Iterator[str]:
    """What a reader should know before quoting a correlation."""
    for name, scale in measures.items():
        correlation = scale.correlation
        if correlation.value is None:
            yield f"{name}: no value, {correlation.why}"
            continue
        if correlation.low is not None and correlation.high is not None and correlation.low <= 0 <= correlation.high:
            yield f"{name}: the interval [{correlation.low:+.2f}, {correlation.high:+.2f}] includes 0"
        if correlation.p_value is not None:
            yield (
                f"{name}: no interval, {correlation.n} models are too few for one ({LEAST_FOR_INTERVAL} are needed);"
                f" p = {correlation.p_value:.3f} over all orders of the models"
            )
        for family, without_family in correlation.without_group.items():
            if without_family is not None and (
                without_family * correlation.value <= 0 or abs(without_family) < abs(correlation.value) / 2
            ):
                yield (
                    f"{name}: without the {family} models it is {without_family:+.2f} instead of"
                    f" {correlation.value:+.2f}"
                )
        half = scale.larger_half
        if half is not None and (half * correlation.value <= 0 or abs(half) < abs(correlation.value) / 2):
            yield f"{name}: among the larger half of the models it is {half:+.2f} instead of {correlation.value:+.2f}"
        firm = scale.without_speculative
        if firm is not None and abs(firm - correlation.value) > 0.1:
            yield f"{name}: without speculative compute it is {firm:+.2f} instead of {correlation.value:+.2f}"
