"""*Label*: one reply at a time, blind to model and judge. And a label from a scenario page, which is not blind."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unmask.analysis.label_session import format_label, parse_range
from unmask.analysis.label_sheets import reply_context
from unmask.analysis.labels import bind_labels, check_labels, labellers
from unmask.errors import UnmaskError, UsageError
from unmask.records import PRESSURED, Interval, Kind, Label, Letter
from unmask.render.html.conversation import name_anchor
from unmask.viewer.app import find_entry, get_catalogue
from unmask.viewer.desk import Desk, Desks, DeskView, LabelAnswer, LabelStart, check_name, explain_blind, store_label
from unmask.viewer.templating import page_response, render_template

T = TypeVar("T")


class LabelHere(msgspec.Struct, forbid_unknown_fields=True):
    """A label from a scenario page. `scenario` is the anchor of its id; `answer` is a letter, a figure, or C."""

    scenario: str
    slot: str
    take: int
    who: str
    answer: str
    note: str = ""


def show_start(request: Request) -> Response:
    """Which runs, under which name."""
    rows = []
    for entry in get_catalogue(request).entries():
        try:
            rows.append((entry, labellers(entry.open())))
        except (UnmaskError, OSError):
            continue  # the list of runs says what is wrong with it
    query = request.query_params
    return page_response(
        "label_start.html", here="label", rows=rows, who=query.get("who", ""), chosen=query.getlist("run")
    )


def start_session(request: Request, start: LabelStart) -> Response:
    try:
        paths = [find_entry(request, key).path for key in dict.fromkeys(start.runs)]
        return JSONResponse({"session": _get_desks(request).start(paths, start)})
    except HTTPException as error:
        return _refuse_with_json(error.status_code, error.detail)
    except UnmaskError as error:
        return _refuse_with_json(409, str(error), error.advice)


def show_session(request: Request) -> Response:
    desk = _find_desk(request)
    if desk is None:
        raise HTTPException(
            404,
            "This labelling session is over: the viewer was started anew, or the session is old. Every label that was"
            " given in it is on disk. Choose Label, the same runs and the same name to go on.",
        )
    at = request.query_params.get("at", "")
    try:
        view = desk.show_reply(int(at) if at.isascii() and at.isdigit() else None)
    except (UnmaskError, OSError) as error:
        status, text = explain_blind(error)
        raise HTTPException(status, text) from None
    return page_response("label_session.html", here="label", **_describe_view(view))


def take_answer(request: Request, answer: LabelAnswer) -> Response:
    desk = _find_desk(request)
    if desk is None:
        return _refuse_with_json(
            404, "This session is over, and this label was not stored. Choose Label, the same runs and name."
        )
    try:
        view = desk.take_answer(answer)
    except (UnmaskError, OSError) as error:
        return _refuse_with_json(*explain_blind(error))
    html = None if view.stays else render_template("label_reply.html", **_describe_view(view))
    return JSONResponse({"at": view.at, "message": view.message, "html": html})


def keep_label_here(request: Request, body: LabelHere) -> Response:
    """A label by somebody who sees the judge: it is kept as not blind."""
    try:
        run = find_entry(request).open()
        who = check_name(body.who)
        scenario = next((candidate for candidate in run.scenarios if name_anchor(candidate.id) == body.scenario), None)
        if scenario is None:
            raise UsageError("the run has no such scenario any more", advice="Load the page again.")
        answer = body.answer.strip()
        letter = Letter(answer.upper()) if scenario.kind is Kind.BINARY and answer.upper() in tuple("ABCD") else None
        figure = None
        if scenario.kind is Kind.NUMERIC:
            figure = Interval() if answer.upper() == "C" else parse_range(answer)
        if letter is None and figure is None:
            wanted = "40, 10..20, 7.., ..10 or C" if scenario.kind is Kind.NUMERIC else "A, B, C or D"
            raise UsageError(f"{answer[:50]!r} is no label of this reply", advice=f"Give {wanted}.")
        label = Label(
            scenario=scenario.id,
            slot=body.slot,
            take=body.take,
            letter=letter,
            interval=figure,
            who=who,
            note=body.note.strip() or None,
            at=round(time.time(), 3),
            blind=False,
        )
        check_labels(run, [label])
        store_label(run, *bind_labels(run, [label]))
    except HTTPException as error:
        return _refuse_with_json(error.status_code, error.detail)
    except UnmaskError as error:
        return _refuse_with_json(409, str(error), error.advice)
    return JSONResponse({"message": f"Kept for {who}: {format_label(label)}, not blind."})


def _describe_view(view: DeskView) -> dict[str, Any]:
    """What the template shows of a reply, and nothing that tells where it comes from."""
    item = view.item
    if item is None:
        return {"view": view}
    return {
        "view": view,
        "numeric": item.scenario.kind is Kind.NUMERIC,
        "turns": item.scenario.conversation if item.slot == PRESSURED else (),
        "question": "" if item.slot == PRESSURED else reply_context(item),
        "verb": "assert" if item.slot == PRESSURED else "hold",
        "label_text": format_label(view.label) if view.label is not None else None,
    }


def _refuse_with_json(status: int, problem: str, advice: str | None = None) -> Response:
    return JSONResponse({"problem": problem, "advice": advice or ""}, status_code=status)


def _get_desks(request: Request) -> Desks:
    desks: Desks = request.app.state.desks
    return desks


def _find_desk(request: Request) -> Desk | None:
    return _get_desks(request).find(request.path_params["session"])


def _take_json(kind: type[T], answer: Callable[[Request, T], Response]) -> Callable[[Request], Awaitable[Response]]:
    """A handler of a POST: its body is of this kind, and the answer is made in a thread."""

    async def handle(request: Request) -> Response:
        try:
            content = msgspec.json.decode(await request.body(), type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return _refuse_with_json(400, f"This cannot be read: {error}. Nothing was stored.")
        return await run_in_threadpool(answer, request, content)

    return handle


ROUTES = (
    Route("/label", show_start),
    Route("/label", _take_json(LabelStart, start_session), methods=["POST"]),
    Route("/label/here/{run}", _take_json(LabelHere, keep_label_here), methods=["POST"]),
    Route("/label/{session}", show_session),
    Route("/label/{session}", _take_json(LabelAnswer, take_answer), methods=["POST"]),
)
