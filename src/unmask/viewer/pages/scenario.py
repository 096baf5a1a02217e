"""*Scenario*: one scenario of a run in full."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from unmask.records import CHECK, PRESSURED, Outcome, Pending, Preset, Scenario, is_probe
from unmask.render import words
from unmask.render.html.conversation import (
    Finding,
    Page,
    build_conversation,
    describe_finding,
    name_anchor,
)
from unmask.render.html.shorten import LONGEST
from unmask.render.words import probe_title
from unmask.text import visible_html_line
from unmask.viewer.app import find_entry
from unmask.viewer.filters import Filter, read_filter
from unmask.viewer.opened import CACHE, OpenedRun
from unmask.viewer.pages.run import ROWS
from unmask.viewer.templating import page_response

NOT_ASKED = "–"


class JudgeRow(NamedTuple):
    """What one judge makes of a scenario under each preset. `judge` is its file name, `None` for no judge."""

    judge: str | None
    name: Markup
    findings: dict[Preset, Finding]


class ReadingRow(NamedTuple):
    """What each judge read in one take."""

    title: str
    readings: list[str]

    @property
    def differs(self) -> bool:
        """Whether two judges that have read it say different things."""
        return len(set(self.readings) - {NOT_ASKED, words.reading(Pending())}) > 1


def show_scenario(request: Request) -> Response:
    entry = find_entry(request)
    opened, wanted = CACHE.open(entry), read_filter(request.query_params)
    place = find_place(opened, request.path_params["anchor"])
    scenario, outcome = opened.scenarios[place], opened.outcome_at(place, wanted.judge, wanted.preset)
    page = make_page(full=bool(request.query_params.get("full")))
    talk = build_conversation(scenario, [(outcome, opened.replies_at(place))], page)
    every = opened.outcomes_at(place)
    return page_response(
        "scenario.html",
        here="runs",
        many=False,
        entry=entry,
        scenario=scenario,
        talk=talk,
        finding=talk.findings[0],
        outcome=outcome,
        wanted=wanted,
        steps=find_steps(opened, wanted, place),
        judges=_compare_judges(opened, scenario, every),
        readings=_compare_readings(opened, every),
        used=(opened.judge_file(wanted.judge), wanted.preset or opened.definition.preset),
        presets=list(Preset),
        rows_on_page=ROWS,
    )


def send_lines(request: Request) -> Response:
    """The journal's own lines about a scenario, as plain text: file by file, each as it stands there."""
    opened = CACHE.open(find_entry(request))
    parts = []
    for name, lines in opened.lines_at(find_place(opened, request.path_params["anchor"])):
        text = b"".join(line.rstrip(b"\n") + b"\n" for line in lines).decode("utf-8", "replace")
        parts.append(f"{name}: {len(lines)} {'line' if len(lines) == 1 else 'lines'}\n\n{text}")
    return PlainTextResponse("\n".join(parts))


def find_place(opened: OpenedRun, anchor: str) -> int:
    if anchor not in opened.places:
        raise HTTPException(404, "This run has no such scenario. The run may have been made anew.")
    return opened.places[anchor]


def make_page(*, full: bool) -> Page:
    """Every take, and of each text as much as a browser shows at ease, or all of it."""
    return Page(limit=lambda text, _: len(text) if full else LONGEST, redact=False, brief=False, whole=True)


class Steps(NamedTuple):
    """Where a scenario stands among those of the filter, and the anchors before and after it."""

    number: int | None
    total: int
    before: str | None
    after: str | None


def find_steps(opened: OpenedRun, wanted: Filter, place: int) -> Steps:
    places = opened.select(wanted)
    low, high = bisect_left(places, place), bisect_right(places, place)
    before = name_anchor(opened.scenarios[places[low - 1]].id) if low else None
    after = name_anchor(opened.scenarios[places[high]].id) if high < len(places) else None
    return Steps(high if low < high else None, len(places), before, after)


def _compare_judges(
    opened: OpenedRun, scenario: Scenario, every: dict[tuple[str | None, Preset], Outcome]
) -> list[JudgeRow]:
    return [
        JudgeRow(
            file,
            visible_html_line(opened.definition.typed_judge(file), limit=80),
            {preset: describe_finding(scenario, every[file, preset], redact=False) for preset in Preset},
        )
        for file in dict.fromkeys(file for file, _ in every)
    ]


def _compare_readings(opened: OpenedRun, every: dict[tuple[str | None, Preset], Outcome]) -> list[ReadingRow]:
    """Take by take what each judge read, where there are several judges."""
    own = opened.definition.preset
    outcomes = [outcome for (_, preset), outcome in every.items() if preset is own]
    if len(outcomes) < 2:
        return []
    rows = []
    for slot in dict.fromkeys(slot for outcome in outcomes for slot in outcome.readings):
        takes = max(len(outcome.readings.get(slot, ())) for outcome in outcomes)
        for take in range(takes):
            cells = [outcome.readings.get(slot, ()) for outcome in outcomes]
            title = {PRESSURED: "Under pressure", CHECK: "Check"}.get(slot, slot.replace("_", " ").capitalize())
            title = probe_title(slot) if is_probe(slot) else title
            numbered = f"{title}, take {take + 1}" if takes > 1 else title
            rows.append(
                ReadingRow(numbered, [words.reading(cell[take]) if take < len(cell) else NOT_ASKED for cell in cells])
            )
    return rows


ROUTES = (
    Route("/run/{run}/scenario/{anchor}", show_scenario),
    Route("/run/{run}/scenario/{anchor}/lines", send_lines),
)
