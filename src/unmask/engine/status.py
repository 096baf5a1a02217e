"""Draws `status.json` while a session works: what is in no other file. Where it cannot be written, the run goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncIterator
from socket import gethostname

import msgspec

from unmask.engine.executor import Executor
from unmask.engine.loop import call_repeatedly
from unmask.engine.work import SUBJECT, Workload
from unmask.errors import UnmaskError
from unmask.files import write_atomically
from unmask.models.endpoint import AnyEndpoint
from unmask.runs.status import EndpointStatus, FinishedScenario, RunStatus, read_status, status_path
from unmask.text import clean_line, replace_surrogates, shorten_error

DRAW_INTERVAL = 1.0
"""Seconds between two pictures."""
WINDOW = 10
"""Pictures over which calls a second are counted, and within which an error counts as being tried again."""


@contextlib.asynccontextmanager
async def draw_status(workload: Workload, executor: Executor) -> AsyncIterator[None]:
    """Keep `status.json` beside the journal up to date while the body runs, and say at the end that it has ended."""
    artist = _StatusArtist(workload, executor)
    artist.draw()
    ended = "the program failed"
    try:
        async with call_repeatedly(artist.draw, every=DRAW_INTERVAL):
            yield
        ended = "done"
    except UnmaskError as error:
        ended = clean_line(str(error))
        raise
    except (asyncio.CancelledError, KeyboardInterrupt):
        ended = "interrupted"
        raise
    finally:
        artist.draw(ended=ended)


class _StatusArtist:
    """Knows what was drawn before, so that it can say what has happened since."""

    def __init__(self, workload: Workload, executor: Executor) -> None:
        self._workload, self._executor = workload, executor
        self._path = status_path(workload.replies.path.parent)
        self._work = "run" if SUBJECT in workload.models else "judge"
        self._started = time.time()
        self._endpoints = list({id(route.endpoint): route.endpoint for route in executor.lines.values()}.values())
        self._earlier: deque[tuple[float, int, tuple[int, ...]]] = deque(maxlen=WINDOW)
        """When the last pictures were drawn, with the calls and the retries until then."""

    def draw(self, *, ended: str | None = None) -> None:
        """Write the picture, unless another process has drawn one just now: several judges may read one run. A run
        that asks its subject goes before."""
        with contextlib.suppress(OSError, UnmaskError):
            before = read_status(self._path.parent)
            drawn = before.status if before.is_running else None
            is_ours = drawn is None or (drawn.host, drawn.pid) == (gethostname(), os.getpid())
            if is_ours or (drawn is not None and drawn.work == "judge" and self._work == "run"):
                write_atomically(self._path, msgspec.json.encode(self._describe(ended)), durable=False)

    def _describe(self, ended: str | None) -> RunStatus:
        workload, executor = self._workload, self._executor
        now, calls = time.monotonic(), sum(workload.calls.values())
        retries = tuple(endpoint.retries for endpoint in self._endpoints)
        since, calls_before, retries_before = self._earlier[0] if self._earlier else (now, calls, retries)
        self._earlier.append((now, calls, retries))
        lies = workload.estimate_p_lie()
        return RunStatus(
            work=self._work,
            judge=workload.readings.path.stem,
            pid=os.getpid(),
            host=gethostname(),
            started=round(self._started, 3),
            at=round(time.time(), 3),
            ended=ended,
            done=workload.done,
            total=executor.total,
            verdicts=dict(workload.verdicts),
            p_lie=lies if lies.total else None,
            calls=calls,
            failed=workload.failed.total(),
            calls_per_second=round((calls - calls_before) / (now - since), 2) if now > since else 0.0,
            in_flight=0 if ended else executor.in_flight,
            cost_usd=workload.bill.cost,
            endpoints=tuple(
                _describe_endpoint(endpoint, is_retrying=endpoint.retries > earlier)
                for endpoint, earlier in zip(self._endpoints, retries_before, strict=True)
            ),
            newest=tuple(
                FinishedScenario(id=replace_surrogates(workload.scenarios[number].id), verdict=verdict, at=at)
                for number, verdict, at in reversed(workload.newest)
            ),
        )


def _describe_endpoint(endpoint: AnyEndpoint, *, is_retrying: bool) -> EndpointStatus:
    is_retrying = is_retrying or endpoint.awaits_server or endpoint.pause > 0
    return EndpointStatus(
        name=endpoint.name,
        in_flight=endpoint.in_flight,
        connections=endpoint.limit,
        pause=round(endpoint.pause, 1),
        awaits_server=endpoint.awaits_server,
        retries=endpoint.retries,
        error=shorten_error(endpoint.last_error) if is_retrying and endpoint.last_error is not None else None,
    )
