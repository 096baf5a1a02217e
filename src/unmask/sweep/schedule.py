"""Which server is placed next. Pure: it knows no clock and no fleet, so that `bench/sweep` can simulate it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from unmask.records import Record


class ServerJob(Record, frozen=True, kw_only=True):
    """All work that waits for one server: of its subject, over all data and treatments."""

    name: str
    gpus: int
    seconds: float
    """Expected, without the time that the server takes to load."""


def pick_next(waiting: Iterable[ServerJob], room: Mapping[str, float]) -> ServerJob | None:
    """The server to place now, or none: nothing waits, or nothing fits.

    The longest comes first, so that the last ones to end are short. One that needs several GPUs counts for more, by the
    root of their number: what is free in small pieces is seldom one large piece later. What does not fit is passed
    over. Measured against seven other orders with `bench/sweep --simulate`.
    """
    fitting = [job for job in waiting if job.gpus <= room.get("gpus", 0.0)]
    if not fitting or room.get("servers", inf) < 1:
        return None
    return max(fitting, key=lambda job: (job.seconds * max(job.gpus, 1) ** 0.5, job.name))
