"""*Label*: one reply at a time, blind to model and judge.

The files are the state: a session keeps only which replies it shows, and of several labels for a reply the last counts.
It is made again by choosing the same runs and the same name.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unmask.analysis.label_session import (
    SIZE,
    Replies,
    count_people,
    draw_replies,
    find_name,
    store_labels,
)
from unmask.analysis.labels import find_misfit
from unmask.errors import RunLockedError, UnmaskError, UsageError
from unmask.records import Interval, Label, Letter
from unmask.render.html.label import describe_page, join_labels
from unmask.runs.folder import Folder
from unmask.runs.run import Run
from unmask.viewer.app import find_entry, get_catalogue
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response

T = TypeVar("T")
MOST = 100
"""Sessions that are kept. One that is forgotten is made again like any other."""


class LabelSession(NamedTuple):
    who: str
    replies: Replies


class LabelStart(msgspec.Struct, forbid_unknown_fields=True):
    """What the starting page sends. `runs` are keys of the catalogue."""

    runs: list[str]
    who: str
    size: int = SIZE
    in_all: bool = False
    sample_seed: int = 0
    probes: bool = False


class LabelAnswer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a person says of a reply. `place` is that of the reply in the session, from 0."""

    place: int
    letter: Letter | None = None
    interval: Interval | None = None
    relative: Interval | None = None
    note: str = ""
    skipped: bool = False
    taken_back: bool = False

    def label(self, **fields: Any) -> Label:
        said = {name: getattr(self, name) for name in ("letter", "interval", "relative", "skipped", "taken_back")}
        return Label(**said, note=self.note.strip() or None, at=round(time.time(), 3), **fields)


def show_start(request: Request) -> Response:
    """Which runs, under which name."""
    rows: list[tuple[RunEntry, Run, dict[str, int]]] = []
    for entry in get_catalogue(request).entries():
        try:
            run = entry.open()
            rows.append((entry, run, count_people([run])))
        except (UnmaskError, OSError):
            continue  # the list of runs says what is wrong with it
    query = request.query_params
    people = sorted({name for _, _, own in rows for name in own})
    chosen = {entry.key for entry, _, _ in rows} if query.get("every") or len(rows) == 1 else {*query.getlist("run")}
    return page_response("label_start.html", here="label", rows=rows, people=people, query=query, chosen=chosen)


def start_session(request: Request, start: LabelStart) -> Response:
    if not start.runs:
        raise UsageError("no run is chosen", advice="Tick at least one.")
    runs = [find_entry(request, key).open() for key in dict.fromkeys(start.runs)]
    who = find_name(start.who, count_people(runs))
    replies = draw_replies(
        runs, size=start.size, in_all=start.in_all, sample_seed=start.sample_seed, probes=start.probes
    )
    sessions = request.app.state.label_sessions
    name = secrets.token_urlsafe(12)
    sessions[name] = LabelSession(who, replies)
    while len(sessions) > MOST:
        del sessions[next(iter(sessions))]
    return JSONResponse({"session": name})


def show_session(request: Request) -> Response:
    who, replies = _find_session(request, "Every label that was given in it is on disk.")
    try:
        labelled = join_labels(replies, who, skips=True)
    except (UnmaskError, OSError) as error:
        raise HTTPException(409, _explain_blind(error)) from None
    ways = {"send": request.url.path, "stop": "/label"}
    return page_response("label_session.html", here="label", **describe_page(labelled, who, **ways))


def take_answer(request: Request, answer: LabelAnswer) -> Response:
    """Store what a person says. It is on disk when this answers."""
    who, replies = _find_session(request, "This label was not stored.")
    if not 0 <= answer.place < len(replies):
        raise HTTPException(400, "The session has no such reply.")
    run, item = replies[answer.place]
    label = answer.label(scenario=item.scenario.id, slot=item.slot, take=item.take, digest=item.digest, who=who)
    if misfit := find_misfit(label, item.scenario.kind):
        raise HTTPException(400, f"This label was not stored: {misfit}.")
    try:
        if Folder(run.path).definition().id != run.definition.id:  # writing would make a folder that was renamed anew
            raise UsageError(f"{run.path} is another run now")
        store_labels(run, [label])
    except (UnmaskError, OSError) as error:
        raise HTTPException(409, _explain_blind(error)) from None
    return JSONResponse({})


def _find_session(request: Request, kept: str) -> LabelSession:
    session: LabelSession | None = request.app.state.label_sessions.get(request.path_params["session"])
    if session is None:
        raise HTTPException(
            404,
            "This labelling session is over: the viewer was started anew, or the session is old."
            f" {kept} Choose Label, the same runs and the same name to go on.",
        )
    return session


def _explain_blind(error: UnmaskError | OSError) -> str:
    """What a person may know of an error while labelling: not which run it is about. The terminal gets all of it."""
    print(f"unmask view: {error}", file=sys.stderr, flush=True)
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(error, RunLockedError):
        why = "another program is writing labels under your name. Wait until it has finished, then give it again"
    elif isinstance(cause, OSError) and cause.strerror and not isinstance(cause, FileNotFoundError):
        why = f"{cause.strerror}. Mend that, then give it again"
    else:
        why = "its run was changed, moved or damaged. The terminal of the viewer says more; go on with s"
    return f"This label was not stored: {why}."


def _take_json(kind: type[T], answer: Callable[[Request, T], Response]) -> Callable[[Request], Awaitable[Response]]:
    """A handler of a POST: its body is of this kind, and the answer is made in a thread."""

    async def handle(request: Request) -> Response:
        try:
            content = msgspec.json.decode(await request.body(), type=kind)
            return await run_in_threadpool(answer, request, content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            status, problem = 400, {"problem": f"This cannot be read: {error}. Nothing was stored."}
        except HTTPException as error:
            status, problem = error.status_code, {"problem": error.detail}
        except UnmaskError as error:
            status, problem = 409, {"problem": str(error), "advice": error.advice or ""}
        return JSONResponse(problem, status_code=status)

    return handle


ROUTES = (
    Route("/label", show_start),
    Route("/label", _take_json(LabelStart, start_session), methods=["POST"]),
    Route("/label/{session}", show_session),
    Route("/label/{session}", _take_json(LabelAnswer, take_answer), methods=["POST"]),
)
