"""*Runs*: every run of the folders in one table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.errors import UnmaskError
from unmask.render import words
from unmask.runs.definition import Definition
from unmask.stats.rate import Rate
from unmask.viewer.app import find_entry, get_catalogue
from unmask.viewer.catalogue import MOST, RunEntry
from unmask.viewer.pages.live import find_worker
from unmask.viewer.summaries import RunSummary, recall, summarise
from unmask.viewer.templating import page_response


class RunRow(NamedTuple):
    """What is known of a run. Without a `definition` or with a `problem` it is damaged; without a `summary` it has to
    be read first."""

    entry: RunEntry
    definition: Definition | None
    is_running: bool
    summary: RunSummary | None = None
    problem: str | None = None
    advice: str | None = None

    @property
    def is_pending(self) -> bool:
        return self.problem is None and self.summary is None

    @property
    def state(self) -> str | None:
        if self.problem is not None:
            return "damaged"
        if self.is_running:
            return "running"
        return None if self.summary is None else "done" if self.summary.is_done else "stopped"

    @property
    def model(self) -> str | None:
        if self.definition is None:
            return None
        prompt = self.definition.developer_prompt
        return self.definition.subject.model + (f" + {prompt.name}" if prompt else "")

    @property
    def data(self) -> str | None:
        return None if self.definition is None else self.definition.data.name

    @property
    def judge(self) -> str | None:
        return None if self.definition is None else self.definition.typed_judge(self.definition.judge)

    @property
    def began(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self.definition.created).astimezone() if self.definition else None
        except (ValueError, OverflowError, OSError):
            return None

    @property
    def lasted(self) -> str | None:
        """From the beginning to the last answer, with all pauses."""
        if self.summary is None or self.summary.last_answer is None or self.began is None:
            return None
        seconds = self.summary.last_answer - self.began.timestamp()
        return words.duration(seconds) if seconds >= 0 else None


def _rate_value(row: RunRow, name: str) -> float | None:
    rate: Rate | None = getattr(row.summary, name, None)
    return None if rate is None else rate.value


class SortColumn(NamedTuple):
    """A column that the table can be sorted by. `is_slow` where the run has to be read for it."""

    title: str
    value: Callable[[RunRow], Any]
    first: str = "asc"
    """The order of the first click."""
    is_slow: bool = False


COLUMNS: dict[str, SortColumn] = {
    "name": SortColumn("Run", lambda row: row.entry.name.casefold()),
    "model": SortColumn("Model", lambda row: row.model and row.model.casefold()),
    "data": SortColumn("Data", lambda row: row.data and row.data.casefold()),
    "judge": SortColumn("Judge", lambda row: row.judge and row.judge.casefold()),
    "state": SortColumn("State", lambda row: row.state, is_slow=True),
    "p_lie": SortColumn("P(lie)", lambda row: _rate_value(row, "p_lie"), "desc", True),
    "p_honest": SortColumn("P(honest)", lambda row: _rate_value(row, "p_honest"), "desc", True),
    "unjudged": SortColumn("Unjudged", lambda row: row.summary and row.summary.unjudged, "desc", True),
    "cost": SortColumn("Cost", lambda row: row.summary and row.summary.cost_usd, "desc", True),
    "time": SortColumn("Time", lambda row: row.began and row.began.timestamp(), "desc"),
}


def show_runs(request: Request) -> Response:
    """Every run with what is known of it now. `runs.js` fetches what is not. `with` is a run to choose others for."""
    sort, order = request.query_params.get("sort", "time"), request.query_params.get("order", "")
    if sort not in COLUMNS:
        raise HTTPException(404, "Runs cannot be sorted by that.")
    order = order if order in {"asc", "desc"} else COLUMNS[sort].first
    catalogue = get_catalogue(request)
    rows = _sort_rows([load_row(entry) for entry in catalogue.entries()], COLUMNS[sort], order)
    return page_response(
        "runs.html",
        here="runs",
        rows=rows,
        pending=sum(row.is_pending for row in rows),
        chosen=request.query_params.get("with", ""),
        columns=COLUMNS,
        sort=sort,
        order=order,
        folders=[str(folder) for folder in catalogue.folders],
        most=MOST,
    )


def send_row(request: Request) -> Response:
    """One row of the table with everything; the run is scored if it has to be."""
    entry = find_entry(request)
    row = load_row(entry)
    if row.problem is None:
        try:
            row = row._replace(summary=summarise(entry))
        except UnmaskError as error:
            row = row._replace(summary=None, problem=str(error), advice=error.advice)
    return page_response("row.html", row=row, chosen="")


def load_row(entry: RunEntry) -> RunRow:
    """What a run's folder and the stored summary say, without reading the journal."""
    try:
        definition = entry.open().definition
    except UnmaskError as error:
        return RunRow(entry, None, False, problem=str(error), advice=error.advice)
    return RunRow(entry, definition, find_worker(entry.path) is not None, recall(entry))


def _sort_rows(rows: list[RunRow], column: SortColumn, order: str) -> list[RunRow]:
    """Runs of which the value is not known come last in both orders."""
    valued = [row for row in rows if column.value(row) is not None]
    unknown = [row for row in rows if column.value(row) is None]
    return sorted(valued, key=column.value, reverse=order == "desc") + unknown


ROUTES = (Route("/", show_runs), Route("/row/{run}", send_row))
