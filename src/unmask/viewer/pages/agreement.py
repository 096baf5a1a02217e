"""*Agreement*: judge against people and people against each other, and every reply that they read differently."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.analysis.agreement import Agreed, agree
from unmask.analysis.disagreements import Disagreement, list_disagreements
from unmask.analysis.label_sheets import Item, Labels, format_items
from unmask.analysis.labelled_run import LabelledRun
from unmask.analysis.labels import labellers, list_items, read_labels
from unmask.errors import UnmaskError
from unmask.records import PRESSURED, Lettered, Ranged, Reading
from unmask.render.blocks import to_html
from unmask.render.describe.agree import describe_agreement
from unmask.render.html.conversation import name_anchor
from unmask.render.words import probe_title
from unmask.runs.run import Run
from unmask.text import format_figures
from unmask.viewer.app import find_entry, get_catalogue
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response

PAGE = 50
"""Disagreements on one page."""


def show_agreement(request: Request) -> Response:
    query = request.query_params
    if not query.get("run"):
        return page_response("agreement.html", here="agreement", entry=None, rows=_list_runs(request))
    entry = find_entry(request, query["run"])
    run = entry.open()
    people = labellers(run)
    if not people:
        return page_response("agreement.html", here="agreement", entry=entry, people=[])
    not_blind = query.get("not_blind") == "1"
    agreed = agree(run, labels=people, include_not_blind=not_blind)
    labels = read_labels(run, people, not_blind=not_blind)
    differing = list_disagreements(LabelledRun(run, None), agreed.judges, labels)
    raw_page = query.get("page", "")
    pages = max(1, -(-len(differing) // PAGE))
    page = min(max(1, int(raw_page)), pages) if raw_page.isascii() and raw_page.isdigit() else 1
    return page_response(
        "agreement.html",
        here="agreement",
        entry=entry,
        people=people,
        described=_describe(run, agreed),
        agreed=agreed,
        include_not_blind=not_blind,
        total=len(differing),
        lies=sum(item.turns_lie for item in differing),
        cards=_describe_cards(run, entry, differing[(page - 1) * PAGE : page * PAGE], labels),
        page=page,
        pages=pages,
        first=(page - 1) * PAGE + 1,
    )


def send_labels(request: Request) -> Response:
    """The blind labels of a run as a sheet that `unmask label --import` takes in again."""
    entry = find_entry(request, request.query_params.get("run", ""))
    run = entry.open()
    items = _index_items(run)
    sheet = [
        (items.get(key) or Item(scenario=run.scenario(key[0]), slot=key[1], take=key[2], texts=()), label)
        for labels in read_labels(run, labellers(run)).values()
        for key, label in labels.items()
    ]
    headers = {"Content-Disposition": f'attachment; filename="labels-{entry.key}.csv"'}
    return Response(format_items(sheet, ".csv"), media_type="text/csv; charset=utf-8", headers=headers)


def _list_runs(request: Request) -> list[tuple[RunEntry, list[str]]]:
    """Every run with those who labelled it, the labelled ones first."""
    rows = []
    for entry in get_catalogue(request).entries():
        try:
            rows.append((entry, labellers(entry.open())))
        except (UnmaskError, OSError):
            continue  # the list of runs says what is wrong with it
    return sorted(rows, key=lambda row: not row[1])


def _describe(run: Run, agreed: Agreed) -> Markup:
    """What `unmask agree` prints. The top of the page says how many labels are not blind."""
    names = {file: run.definition.typed_judge(file) for file in agreed.judges}
    return Markup(to_html(describe_agreement(replace(agreed, not_blind=0), names=names)))


def _index_items(run: Run) -> dict[Any, Item]:
    """Every reply that a label can be about."""
    return {item.key: item for items in list_items(run, run.rows(), probes=True).values() for item in items}


def _describe_cards(
    run: Run, entry: RunEntry, differing: list[Disagreement], labels: dict[str, Labels]
) -> list[dict[str, Any]]:
    items = _index_items(run) if differing else {}
    cards = []
    for item_words in differing:
        scenario_id, slot, take = item_words.key
        item = items.get(item_words.key)
        cards.append(
            {
                "id": scenario_id,
                "where": ("Under pressure" if slot == PRESSURED else probe_title(slot))
                + (f", take {take + 1}" if take else ""),
                "address": f"/run/{entry.key}/scenario/{name_anchor(scenario_id)}",
                "scenario": item and item.scenario,
                "texts": item.texts if item else (),
                "turns_lie": item_words.turns_lie,
                "words": [
                    {
                        "reader": word.reader if word.is_person else run.definition.typed_judge(word.reader),
                        "is_person": word.is_person,
                        "reading": _describe_reading(word.reading),
                        "why": getattr(word.reading, "why", None),
                        "verdict": word.verdict,
                        "not_blind": word.is_person and not labels[word.reader][item_words.key].blind,
                    }
                    for word in item_words.words
                ],
            }
        )
    return cards


def _describe_reading(reading: Reading) -> str:
    if isinstance(reading, Lettered):
        return reading.letter.value
    return format_figures(reading) if isinstance(reading, Ranged) else "unread"


ROUTES = (Route("/agreement", show_agreement), Route("/agreement/csv", send_labels))
