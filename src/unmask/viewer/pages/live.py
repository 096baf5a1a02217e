"""*Live*: a run in progress, from its journal, the file next to its lock, and the time of its last line. No lock is
tried."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.files import find_holder
from unmask.records import Verdict
from unmask.runs.commands import completing_command
from unmask.runs.run import Run
from unmask.stats.rate import Rate
from unmask.viewer.app import find_entry
from unmask.viewer.cache import CACHE
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response

OFTEN = 2.0
"""Seconds after which a growing run is read again here."""


class Progress(NamedTuple):
    """A run as it is now. `state` is `running`, `done`, or `stopped`."""

    state: str
    holder: str
    """Who works on it."""
    since: float | None
    """Seconds since the last line of the journal."""
    done: int
    """Scenarios with nothing left to ask or to read."""
    total: int
    p_lie: Rate
    counts: Counter[Verdict]
    cost_usd: float | None
    command: str


def show_live(request: Request) -> Response:
    entry = find_entry(request)
    return page_response("live.html", here="runs", entry=entry, progress=read_progress(entry))


def read_progress(entry: RunEntry) -> Progress:
    """What the journal says; of a run that grows all the time it is read a few times a minute."""
    run = CACHE.open(entry, fresh=OFTEN)
    score = CACHE.get([entry], "score", run.score, megabytes=0.1, fresh=OFTEN)
    holder = find_worker(entry.path)
    total = len(run.scenarios)
    return Progress(
        state="running" if holder else "stopped" if score.undecided else "done",
        holder=holder or "",
        since=_last_line(run),
        done=total - len(score.undecided),
        total=total,
        p_lie=score.p_lie,
        counts=Counter(score.overall.counts),
        cost_usd=score.spent.cost_usd,
        command=score.complete_with or completing_command(run.definition, entry.path),
    )


def find_worker(folder: Path) -> str | None:
    """Who asks the model of a run, or a judge; `None` where nobody does."""
    journals = [folder / "replies.jsonl", *sorted((folder / "readings").glob("*.jsonl"))]
    return next(filter(None, map(find_holder, journals)), None)


def _last_line(run: Run) -> float | None:
    """A journal is written line by line, so its time is that of its last one."""
    journals = [run.path / "replies.jsonl", *(run.path / "readings").glob("*.jsonl")]
    times = [path.stat().st_mtime for path in journals if path.exists()]
    return max(0.0, time.time() - max(times)) if times else None


ROUTES = (Route("/run/{run}/live", show_live),)
