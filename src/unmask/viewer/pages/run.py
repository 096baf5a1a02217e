"""*Run*: one run, its figures and its scenarios."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from unmask.analysis.sensitivity import sensitivity
from unmask.errors import UsageError
from unmask.records import Archetype, Outcome, Preset
from unmask.render.html.conversation import Finding, describe_finding, name_anchor
from unmask.render.html.report import report
from unmask.text import visible_html, visible_html_line
from unmask.viewer.app import find_entry
from unmask.viewer.filters import PRESSURES, REASONS, Filter, read_filter, read_number, unread_reasons
from unmask.viewer.opened import CACHE, OpenedRun, RunView
from unmask.viewer.templating import load_macros, page_response

ROWS = 100
"""Scenarios on one page of the list."""
AROUND = 60
"""Characters that are shown before and after a text that was searched for."""


class ListRow(NamedTuple):
    """A scenario in the list. `excerpt` is the first place where the text that was searched for stands."""

    anchor: str
    id: Markup
    archetype: str
    pressure: str | None
    finding: Finding
    hits: int
    excerpt: Markup


class ListPage(NamedTuple):
    """Which of many rows a page shows: from `first` to `last`, counted from 1."""

    number: int
    pages: int
    first: int
    last: int


def show_run(request: Request) -> Response:
    entry = find_entry(request)
    opened, wanted = CACHE.open(entry), read_filter(request.query_params)
    view, places = opened.view(wanted.judge, wanted.preset), opened.select(wanted)
    page = cut_page(len(places), read_number(request.query_params, "page"))
    shown = places[page.first - 1 : page.last]
    hits = opened.count_hits(wanted.q, places) if wanted.q else {}
    list_address = f"/run/{entry.key}?{_append_ampersand(Filter(judge=wanted.judge, preset=wanted.preset).query())}"
    headline, figures = _draw_section(view, list_address)
    return page_response(
        "run.html",
        here="runs",
        many=False,
        entry=entry,
        part=view.section,
        headline=headline,
        figures=figures,
        wanted=wanted,
        choices=list_choices(opened, view),
        rows=[_make_row(opened, view, place, hits.get(place, 0), wanted.q) for place in shown],
        total=len(opened.scenarios),
        selected=len(places),
        hits=sum(hits.values()),
        page=page,
        list_address=list_address,
    )


def show_sensitivity(request: Request) -> Response:
    """On its own page: it takes several times as long as all the rest of a run."""
    entry = find_entry(request)
    opened, wanted = CACHE.open(entry), read_filter(request.query_params)
    section = opened.view(wanted.judge, wanted.preset).section
    looked = sensitivity(opened, preset=wanted.preset, judge=wanted.judge)
    section = section._replace(sensitivity=looked)
    return page_response("sensitivity.html", here="runs", many=False, entry=entry, part=section, wanted=wanted)


def send_report(request: Request) -> Response:
    """The report of exactly the scenarios that the filter chooses, as a file to send."""
    entry = find_entry(request)
    opened, wanted = CACHE.open(entry), read_filter(request.query_params)
    places = opened.select(wanted)
    if not places:
        raise UsageError("no scenario is like this, so there is nothing to send", advice="Choose another filter.")
    chosen = opened.restrict(opened.scenarios[place].id for place in places) if wanted.chooses else opened
    part = f"that were chosen by: {wanted.describe()} ({len(places)} of {len(opened.scenarios)})"
    text = report(chosen, preset=wanted.preset, judge=wanted.judge, part=part if wanted.chooses else None)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", entry.path.name).strip("-.") or "run"
    file = f"{name}-part.html" if wanted.chooses else f"{name}.html"
    return HTMLResponse(text, headers={"Content-Disposition": f'attachment; filename="{file}"'})


def cut_page(rows: int, number: int) -> ListPage:
    """The page with this number, or the last there is."""
    pages = max(1, -(-rows // ROWS))
    number = min(number, pages)
    return ListPage(number, pages, (number - 1) * ROWS + 1, min(number * ROWS, rows))


def list_choices(opened: OpenedRun, view: RunView) -> Mapping[str, list[tuple[str, str, int | None]]]:
    """Value, title and number of scenarios of everything that can be chosen."""
    return {
        "judge": [(file, opened.definition.typed_judge(file), None) for file in opened.judges],
        "preset": [(preset.value, preset.value, None) for preset in Preset],
        **count_choices(view.outcomes),
    }


def count_choices(outcomes: list[Outcome]) -> dict[str, list[tuple[str, str, int | None]]]:
    """What these scenarios can be chosen by, without what none of them has."""
    archetypes = Counter(outcome.archetype for outcome in outcomes)
    pressures = Counter[str](outcome.pressure or "unknown" for outcome in outcomes)
    reasons = Counter(reason for outcome in outcomes for reason in unread_reasons(outcome))
    titles = {"pending": "not asked or read yet", "cut_off": "cut off"}
    return {
        "archetype": [(name.value, name.traits.title, archetypes[name]) for name in Archetype if archetypes[name]],
        "pressure": [(name, name, pressures[name]) for name in PRESSURES if pressures[name]],
        "reason": [(name, titles.get(name, name), reasons[name]) for name in REASONS if reasons[name]],
    }


def quote_hit(texts: Iterator[str], query: str) -> Markup:
    """The first place where a text stands, in whatever case, with a few words around it; nothing where there is none.
    What is searched in lower case may have no such place in its own."""
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    match = next(filter(None, map(pattern.search, texts)), None)
    if match is None:
        return Markup()
    text, start, end = match.string, match.start(), match.end()
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    marks = ("…" if start > AROUND else "", "…" if end + AROUND < len(text) else "")
    return Markup("{}{}<mark>{}</mark>{}{}").format(
        marks[0], visible_html(before), visible_html(match.group()), visible_html(after), marks[1]
    )


def _draw_section(view: RunView, list_address: str) -> tuple[Markup, Markup]:
    """Headline and figures: the same under every filter, and half of the work of a page."""
    if list_address not in view.drawn:
        draw = load_macros("parts.html", many=False, list_address=list_address)
        view.drawn[list_address] = draw.headline(view.section, 1), draw.figures(view.section)
    return view.drawn[list_address]


def _make_row(opened: OpenedRun, view: RunView, place: int, hits: int, query: str) -> ListRow:
    scenario, outcome = opened.scenarios[place], view.outcomes[place]
    return ListRow(
        anchor=name_anchor(scenario.id),
        id=visible_html_line(scenario.id, limit=80),
        archetype=scenario.archetype.traits.title,
        pressure=scenario.pressure,
        finding=describe_finding(scenario, outcome, redact=False),
        hits=hits,
        excerpt=quote_hit(opened.each_text(place), query) if hits else Markup(),
    )


def _append_ampersand(query: str) -> str:
    return f"{query}&" if query else ""


ROUTES = (
    Route("/run/{run}", show_run),
    Route("/run/{run}/report", send_report),
    Route("/run/{run}/sensitivity", show_sensitivity),
)
