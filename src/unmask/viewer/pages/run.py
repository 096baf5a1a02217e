"""*Run* and *Compare*: the page of the report, whose conversations are fetched one by one when they are opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from unmask.analysis.labels import ALL
from unmask.analysis.sensitivity import sensitivity
from unmask.errors import UsageError
from unmask.records import Outcome, Preset, Scenario
from unmask.render import words
from unmask.render.describe.conversation import Replies, quote_judge
from unmask.render.html.conversation import (
    build_conversation,
    list_other_verdicts,
    list_readers,
)
from unmask.render.html.report import page_values
from unmask.render.html.sections import PageContent, RunSection, build_content
from unmask.render.html.shorten import shorten_to
from unmask.viewer.app import find_entries, find_entry
from unmask.viewer.cache import CACHE, FrozenRun
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response, render_template

LONGEST_TEXT = 200_000
"""Bytes of one text on the page of its scenario."""
LONGEST_QUERY = 500
"""Characters of a text that is searched for."""


class RunView(NamedTuple):
    """The runs that an address names, how their verdicts are made (by the judge and the preset of each run unless
    given), and where the links of their page lead."""

    entries: list[RunEntry]
    judge: str | None
    preset: Preset | None

    @property
    def keys(self) -> list[str]:
        return [entry.key for entry in self.entries]

    @property
    def base(self) -> str:
        return "/compare" if len(self.entries) > 1 else f"/run/{self.keys[0]}"

    @property
    def query(self) -> str:
        runs = ",".join(self.keys) if len(self.entries) > 1 else None
        asked = {"runs": runs, "judge": self.judge, "preset": self.preset}
        return urlencode({name: text for name, text in asked.items() if text})

    @property
    def judges(self) -> list[tuple[str, str]]:
        """Those that have read all of these runs."""
        runs = self.open()
        shared = [file for file in runs[0].judges if all(file in run.judges for run in runs)]
        return [(file, runs[0].definition.typed_judge(file)) for file in shared]

    def open(self) -> list[FrozenRun]:
        return [CACHE.open(entry) for entry in self.entries]

    def keep(self, what: str, make: Callable[[], Any], *, megabytes: float) -> Any:
        """What was made of these runs read so, until a file of them changes."""
        return CACHE.get(self.entries, (what, self.judge, self.preset, self._labels()), make, megabytes=megabytes)

    def _labels(self) -> tuple[tuple[str, int, int], ...]:
        """Which labels there are: a reply may be labelled while nothing else of a run changes."""
        files = [file for entry in self.entries for file in sorted((entry.path / "labels").glob("*.jsonl"))]
        return tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)

    def content(self) -> PageContent:
        def make() -> PageContent:
            content = build_content(self.open(), preset=self.preset, judge=self.judge)
            if any(part.score.labelled_by for part in content.parts):
                with suppress(UsageError):  # too few labels: the page says who labelled
                    return content.correct(ALL, preset=self.preset, judge=self.judge)
            return content

        return self.keep("content", make, megabytes=5.0 * len(self.entries))  # type: ignore[no-any-return]


def show_run(request: Request) -> Response:
    return _show_page(_read_view(request))


def show_comparison(request: Request) -> Response:
    reading = _read_view(request)
    if len(reading.entries) < 2:
        with_run = f"/?with={reading.entries[0].key}" if reading.entries else "/"
        return RedirectResponse(with_run, status_code=303)
    return _show_page(reading)


def _show_page(reading: RunView) -> Response:
    def make() -> str:
        values = page_values(reading.content()) | {"served": reading, "here": "runs"}
        return render_template("report.html", **values)

    return HTMLResponse(reading.keep("page", make, megabytes=2.0 * len(reading.entries)))


def show_scenario(request: Request) -> Response:
    """One scenario in full, with what the judge was sent: by itself, or in the list, whose script fetches this page."""
    reading = _read_view(request)
    content, anchor = reading.content(), request.path_params["anchor"]
    row = next((row for row in content.rows if row.anchor == anchor), None)
    if row is None:
        raise HTTPException(404, "There is no such scenario. A run may have been made anew.")
    replies: list[Replies | None] = []
    others: list[str] = []
    judged: list[tuple[str, str]] = []
    for part, outcome in zip(content.parts, row.outcomes, strict=True):
        replies.append(None if outcome is None else part.run.replies(row.scenario.id))
        others.append("" if outcome is None else _read_otherwise(part, outcome))
        if outcome is not None and not judged:
            judged = list(quote_judge(part.run, row.scenario, outcome, part.judge_file))
    talk = build_conversation(row, replies, others, whole=True)
    return page_response(
        "scenario.html",
        here="runs",
        entry=reading.entries[0],
        row=row,
        scenario=row.scenario,
        outcome=row.outcomes[0],
        talk=talk._replace(judged=tuple(judged)),
        cut=partial(shorten_to, LONGEST_TEXT),
        **(page_values(content) | {"served": reading}),
    )


def _read_otherwise(part: RunSection, own: Outcome) -> str:
    readers = list_readers(part.run, preset=Preset(part.score.preset), judge=part.judge_file)
    read = ((name, part.run.outcome(own.id, preset=rules, judge=file)) for file, rules, name in readers)
    return list_other_verdicts(own, read)


def show_sensitivity(request: Request) -> Response:
    """On its own page: it takes several times as long as all the rest of a run."""
    reading = _read_view(request)
    part = reading.content().parts[0]
    found = reading.keep(
        "sensitivity",
        lambda: sensitivity(part.run, preset=reading.preset, judge=reading.judge),
        megabytes=0.1,
    )
    values = page_values(reading.content()) | {"served": reading}
    number = request.query_params.get("n", "1")[:3]
    return page_response(
        "sensitivity.html", here="runs", number=number, part=part._replace(sensitivity=found), **values
    )


def send_hits(request: Request) -> Response:
    """The anchors of the scenarios in which a text is, in either case: in questions, prompts, replies and ids."""
    reading = _read_view(request)
    query = request.query_params.get("q", "").strip()[:LONGEST_QUERY].lower()
    runs = reading.open()
    hits = [
        row.anchor
        for row in reading.content().rows
        if any(
            outcome is not None and query in _join_texts(run, row.scenario)
            for run, outcome in zip(runs, row.outcomes, strict=True)
        )
    ]
    return JSONResponse(hits)


def _join_texts(run: FrozenRun, scenario: Scenario) -> str:
    """The texts of a scenario that are searched, in small letters."""
    texts = [scenario.id, words.proposition(scenario), *scenario.questions.values()]
    texts += (message.content for message in scenario.conversation)
    texts += (text for choice in run.replies(scenario.id).values() for text in (choice.text, choice.reasoning) if text)
    return "\0".join(texts).lower()


# --- addresses


def _read_view(request: Request) -> RunView:
    entries = [find_entry(request)] if "run" in request.path_params else find_entries(request)
    preset = request.query_params.get("preset", "")
    if preset and preset not in list(Preset):
        raise UsageError(f"there is no preset {preset[:80]!r}", advice=f"Choose one of: {', '.join(Preset)}.")
    judge = re.sub(r"\s+", " ", request.query_params.get("judge", "")) or None
    return RunView(entries, judge, Preset(preset) if preset else None)


ROUTES = (
    Route("/run/{run}", show_run),
    Route("/run/{run}/scenario/{anchor}", show_scenario),
    Route("/run/{run}/search", send_hits),
    Route("/run/{run}/sensitivity", show_sensitivity),
    Route("/compare", show_comparison),
    Route("/compare/scenario/{anchor}", show_scenario),
    Route("/compare/search", send_hits),
)
