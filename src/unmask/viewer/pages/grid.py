"""*Grid*: the runs of a folder by model and by what differs in how they were made, and P(lie) over checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.errors import UnmaskError
from unmask.stats.rate import Rate
from unmask.sweep.state import StoredUnit, load_sweep
from unmask.viewer.app import get_catalogue
from unmask.viewer.catalogue import RunEntry, SweepEntry
from unmask.viewer.measured import MeasuredRuns, measure_runs
from unmask.viewer.pages.board import choose_runs
from unmask.viewer.templating import page_response

COLUMN_SETTINGS = (
    *("developer prompt", "data", "data revision", "data hash", "seed", "takes", "temperature", "max tokens"),
    *("top p", "parameters", "headers", "beliefs from", "direct", "effort", "tags", "judge"),
    *("judge style", "judge temperature", "judge parameters", "preset"),
)
"""Settings that may make a column, the likeliest to be varied on purpose first."""


class GridCell(NamedTuple):
    """One run in the grid."""

    run: RunEntry
    p_lie: Rate


class Checkpoints(NamedTuple):
    """Runs of one column whose models differ only in a number."""

    title: str
    """The models' name with … in place of the number."""
    axis: str
    column: str
    cells: dict[int, GridCell]

    @property
    def rates(self) -> dict[int, Rate]:
        return {number: cell.p_lie for number, cell in self.cells.items()}

    @property
    def ticks(self) -> list[int]:
        """Numbers that have room below the axis."""
        least, most = min(self.cells), max(self.cells)
        ticks: list[int] = []
        for number in self.cells:
            gap = 300 * (number - ticks[-1]) / (most - least) if ticks else 300
            if gap >= 7 * len(str(number)) + 8:
                ticks.append(number)
        return ticks


class UnansweredUnits(NamedTuple):
    """The units of a sweep that have no reply yet."""

    sweep: SweepEntry
    total: int
    units: list[StoredUnit]
    problem: str | None = None


def show_grid(request: Request) -> Response:
    runs = get_catalogue(request).entries()
    sweeps, key = get_catalogue(request).sweeps(runs), request.query_params.get("sweep", "")
    sweep = next((sweep for sweep in sweeps if sweep.key == key), None)
    if key and sweep is None:
        raise HTTPException(404, "This sweep is not in the folders that are shown. It may be renamed or deleted.")
    chosen = [run for run in runs if sweep.holds(run)] if sweep else choose_runs(request)
    measured = measure_runs(chosen)
    shown_sweeps = [sweep] if sweep else [] if "runs" in request.query_params else sweeps
    unanswered = [_list_unanswered(shown, measured) for shown in shown_sweeps]
    names = name_columns({entry.row.name: entry.settings for entry in measured.entries})
    cells: dict[str, dict[str, list[GridCell]]] = {}
    for entry in sorted(measured.entries, key=lambda entry: _split_numbers(entry.row.model)):
        row = cells.setdefault(entry.row.model, {})
        row.setdefault(names[entry.row.name], []).append(
            GridCell(measured.runs[entry.row.name], entry.row.rates["p_lie"])
        )
    for unit in (unit for units in unanswered for unit in units.units):
        cells.setdefault(unit.model, {})
    return page_response(
        "grid.html",
        here="board",
        cells=cells,
        columns=sorted(set(names.values()), key=_split_numbers),
        checkpoints=find_checkpoints(cells),
        measured=measured,
        sweep=sweep,
        unanswered=unanswered,
    )


def _list_unanswered(sweep: SweepEntry, measured: MeasuredRuns) -> UnansweredUnits:
    try:
        stored = load_sweep(sweep.path)
    except UnmaskError as error:
        return UnansweredUnits(sweep, 0, [], str(error))
    except OSError as error:
        return UnansweredUnits(sweep, 0, [], f"sweep.json cannot be read: {error.strerror}")
    answered = {measured.runs[entry.row.name].path for entry in measured.entries}
    units = stored.units if stored else ()
    return UnansweredUnits(
        sweep, len(units), [unit for unit in units if sweep.path / "runs" / unit.folder not in answered]
    )


def name_columns(settings: Mapping[str, Mapping[str, str | None]]) -> dict[str, str]:
    """The column of each run: its values of the settings that tell runs apart, each of which splits further what those
    before it have left together. Who lends probes is a run of the same model, so its name is no part of a column."""
    names: dict[str, tuple[str, ...]] = dict.fromkeys(settings, ())
    for setting in COLUMN_SETTINGS:
        finer = {run: (*names[run], f"{setting} {_show_value(setting, values)}") for run, values in settings.items()}
        if len(set(finer.values())) > len(set(names.values())):
            names = finer
    return {run: ", ".join(parts) or "all runs" for run, parts in names.items()}


def _show_value(setting: str, values: Mapping[str, str | None]) -> str:
    value = values.get(setting) or "none"
    return "another run" if setting == "beliefs from" and value != "none" else value


def find_checkpoints(cells: Mapping[str, Mapping[str, Sequence[GridCell]]]) -> list[Checkpoints]:
    """Series of two or more models of one column whose names differ in one number only. A name with several numbers
    belongs to the longest of its series."""
    series: dict[tuple[str, str, str], dict[int, GridCell]] = {}
    for model, row in cells.items():
        for match in re.finditer(r"\d{1,15}", model):
            before, after = model[: match.start()], model[match.end() :]
            for column, runs_here in row.items():
                numbers = series.setdefault((before, after, column), {})
                numbers.setdefault(int(match[0]), runs_here[0])
    chosen: list[Checkpoints] = []
    taken: set[str] = set()
    for (before, after, column), numbers in sorted(series.items(), key=lambda item: -len(item[1])):
        drawable = {number: cell for number, cell in sorted(numbers.items()) if cell.p_lie.value is not None}
        keys = {cell.run.key for cell in drawable.values()}
        if len(drawable) < 2 or keys & taken:
            continue
        taken |= keys
        axis = (re.findall(r"[^\W\d_]+", before) or ["number"])[-1]
        chosen.append(Checkpoints(f"{before}…{after}", axis, column, drawable))
    return sorted(chosen, key=lambda series: (series.title, series.column))


def _split_numbers(text: str) -> tuple[tuple[int, str | int], ...]:
    """A key that sorts step-900 before step-1000."""
    parts: Iterable[str] = re.split(r"(\d{1,15})", text)
    return tuple((0, int(part)) if part.isdigit() else (1, part.casefold()) for part in parts if part)


ROUTES = (Route("/grid", show_grid),)
