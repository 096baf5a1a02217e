"""*Live*: a run in progress, from its files. A page that stays open is looked after once a second; no lock is tried."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from unmask.errors import UnmaskError
from unmask.records import Verdict
from unmask.render.html.conversation import name_anchor
from unmask.runs.commands import judge_command, run_command
from unmask.runs.folder import Folder
from unmask.runs.status import RunStatus, read_status
from unmask.stats.rate import Rate
from unmask.viewer.app import find_entry
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response, render_template

LOOK_INTERVAL = 2.0
"""Seconds between two looks at the files of a run that a page shows."""
STOP_INTERVAL = 0.2
"""Seconds between two looks whether the server wants to end."""
MOST_STREAMS = 64
"""Pages that are kept up to date at a time. A hidden tab lets its place go."""


class Sight(NamedTuple):
    """A run as it can be seen now. `state` is `running`, `stopped`, `ended`, `unseen` (no picture) or `gone`."""

    state: str
    status: RunStatus | None = None
    command: str | None = None
    """What continues the run."""

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(self.status.verdicts if self.status else {})

    @property
    def p_lie(self) -> Rate | None:
        return self.status.p_lie if self.status else None


def show_live(request: Request) -> Response:
    entry = find_entry(request)
    return page_response("live.html", here="runs", entry=entry, sight=look_at_run(entry), name_anchor=name_anchor)


async def send_events(request: Request) -> Response:
    """The parts of the page as server-sent events, whenever the picture of the run has changed."""
    entry = await run_in_threadpool(find_entry, request)
    state = request.app.state
    state.streams = getattr(state, "streams", 0)
    if state.streams >= MOST_STREAMS:
        return PlainTextResponse("Too many pages are kept up to date. Close some.", status_code=503)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")

    async def stream() -> AsyncIterator[str]:
        state.streams += 1
        try:
            async for event in _watch(entry, request):
                yield event
        finally:
            state.streams -= 1

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _watch(entry: RunEntry, request: Request) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    before: tuple[str, float | None] | None = None
    while not request.app.state.is_stopping():
        sight = await run_in_threadpool(look_at_run, entry)
        if (shown := (sight.state, sight.status.at if sight.status else None)) != before:
            before = shown
            page = await run_in_threadpool(
                render_template, "live_parts.html", entry=entry, sight=sight, name_anchor=name_anchor
            )
            yield f"data: {json.dumps(page)}\n\n"
        if sight.state in {"ended", "gone"}:
            yield "event: end\ndata: \n\n"
            return
        for _ in range(round(LOOK_INTERVAL / STOP_INTERVAL)):
            if request.app.state.is_stopping():
                return
            await asyncio.sleep(STOP_INTERVAL)


def look_at_run(entry: RunEntry) -> Sight:
    """What the files of the run say. Only `status.json` is read, and run.json where nothing works on the run."""
    seen = read_status(entry.path)
    if seen.is_running:
        return Sight("running", seen.status)
    if seen.status is not None and seen.status.ended == "done":
        return Sight("ended", seen.status)
    if not (entry.path / "run.json").is_file():
        return Sight("gone")
    command = None
    with contextlib.suppress(UnmaskError):
        definition = Folder(entry.path).definition()
        if seen.status is not None and seen.status.work == "judge":
            command = judge_command(definition, entry.path, judge=seen.status.judge)
        else:
            command = run_command(definition, entry.path)
    state = "unseen" if seen.status is None else "ended" if seen.status.ended else "stopped"
    return Sight(state, seen.status, command)


ROUTES = (Route("/run/{run}/live", show_live), Route("/run/{run}/events", send_events))
