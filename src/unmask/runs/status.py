"""`status.json`: a picture of a run at work, for whoever looks on. Nothing depends on it: it may be deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from unmask.errors import UnmaskError
from unmask.files import open_plain_file
from unmask.records import Verdict
from unmask.stats.rate import Rate

STATUS_FILE = "status.json"
FRESH = 10.0
"""Seconds that a picture may be old while its run counts as running. It is drawn anew every second."""
LARGEST_STATUS = 256 * 1024
"""Bytes that are read of it: a stranger's file may be of any size."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class EndpointStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What holds a run back at one address."""

    name: str
    in_flight: Count
    """Requests on their way."""
    connections: Count
    """Requests that may be on their way at a time; what the user allowed, less what overload has taken away."""
    pause: float = 0.0
    """Seconds for which nothing is sent; the endpoint is overloaded or asked for it."""
    awaits_server: bool = False
    """Whether the server is not up and is waited for."""
    retries: Count = 0
    """Requests that were tried again since the process began."""
    error: str | None = None
    """Why a request is being tried again, in short; `None` where none is."""


class FinishedScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with nothing left to send."""

    id: str
    verdict: Verdict
    at: float


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of a run at work. Fields that a newer version adds are passed over: this file is no part of the run."""

    work: str
    """`run` where the subject is asked, `judge` where its replies are read only."""
    judge: str
    """The file name of the judge whose readings are made."""
    pid: int
    host: str
    started: float
    """Seconds since 1970."""
    at: float
    """When the picture was drawn."""
    ended: str | None = None
    """`done`, or why the work has ended before; `None` while it goes on."""
    done: Count
    """Scenarios with nothing left to send."""
    total: Count
    """All scenarios."""
    verdicts: dict[Verdict, Count]
    """Those that are done by verdict."""
    p_lie: Rate | None = None
    """Of the scenarios that are done; `None` while none is judged."""
    calls: Count
    """Requests that this process has brought to an end."""
    failed: Count = 0
    """Those of `calls` that failed."""
    calls_per_second: float
    """Over the last ten seconds."""
    in_flight: Count
    """Requests under way, those that wait to be tried again included."""
    cost_usd: float | None
    """What the run has cost, earlier sessions included; `None` where a price is not known."""
    endpoints: tuple[EndpointStatus, ...] = ()
    newest: tuple[FinishedScenario, ...] = ()
    """The scenarios that were finished last, the newest first."""


class Glimpse(NamedTuple):
    """What can be seen of a run from outside."""

    status: RunStatus | None
    """`None` where there is no picture, or one that cannot be read."""
    age: float
    """Seconds since it was drawn."""

    @property
    def is_running(self) -> bool:
        return self.status is not None and self.status.ended is None and self.age < FRESH


def status_path(folder: Path) -> Path:
    return folder / STATUS_FILE


def read_status(folder: Path) -> Glimpse:
    """Looks at the picture of a run, and at nothing else: no lock is taken or tried."""
    try:
        with open(status_path(folder), "rb", opener=open_plain_file) as file:
            age = time.time() - os.fstat(file.fileno()).st_mtime
            return Glimpse(msgspec.json.decode(file.read(LARGEST_STATUS), type=RunStatus), age)
    except (OSError, UnmaskError, ValueError, RecursionError):  # ValueError: both of msgspec and of Unicode
        return Glimpse(None, float("inf"))
