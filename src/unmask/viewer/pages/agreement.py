"""*Agreement*: judge against people and people against each other, and every reply that they read differently."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.analysis.agreement import Agreed, agree
from unmask.analysis.disagreements import Disagreement, list_disagreements
from unmask.analysis.label_sheets import Item, Key
from unmask.analysis.labelled_run import LabelledRun
from unmask.analysis.labels import list_items, sort_labels
from unmask.errors import UnmaskError
from unmask.render import words
from unmask.render.blocks import to_html
from unmask.render.describe.agree import describe_agreement
from unmask.runs.run import Run
from unmask.viewer.app import find_entries, get_catalogue
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import page_response

MOST = 200
"""Disagreements that are listed."""


class OpenedEntry(NamedTuple):
    entry: RunEntry
    run: Run


class OpenDisagreement(NamedTuple):
    """A reply of a run that readers read differently."""

    entry: RunEntry
    run: Run
    found: Disagreement


def show_agreement(request: Request) -> Response:
    chosen = [OpenedEntry(entry, entry.open()) for entry in find_entries(request, "run")]
    if not chosen:
        return page_response("agreement.html", here="agreement", entries=[], rows=_list_runs(request))
    labelled = [one for one in chosen if one.run.folder.labellers()]
    shown: dict[str, Any] = {"here": "agreement", "entries": [one.entry for one in chosen], "labelled": len(labelled)}
    if not labelled:
        return page_response("agreement.html", **shown)
    agreed = agree([one.run for one in labelled])
    differing = _list_differences(labelled, agreed)
    cards = differing[:MOST]
    return page_response(
        "agreement.html",
        **shown,
        described=_describe(labelled[0].run, agreed),
        agreed=agreed,
        total=len(differing),
        lies=sum(card.found.turns_lie for card in differing),
        cards=cards,
        items={card.run.definition.id: _index_items(card.run) for card in cards},
        words=words,
    )


def _list_runs(request: Request) -> list[tuple[RunEntry, list[str]]]:
    """Every run with those who labelled it, the labelled ones first."""
    rows = []
    for entry in get_catalogue(request).entries():
        try:
            rows.append((entry, entry.open().folder.labellers()))
        except (UnmaskError, OSError):
            continue  # the list of runs says what is wrong with it
    return sorted(rows, key=lambda row: not row[1])


def _describe(run: Run, agreed: Agreed) -> Markup:
    """What `unmask agree` prints."""
    names = {file: run.definition.typed_judge(file) for file in agreed.judges}
    return Markup(to_html(describe_agreement(agreed, names=names)))


def _list_differences(labelled: list[OpenedEntry], agreed: Agreed) -> list[OpenDisagreement]:
    """First those that one reader calls a lie and another does not."""
    differing = []
    for entry, run in labelled:
        labels, _ = sort_labels(run, run.folder.labellers())
        found = list_disagreements(LabelledRun(run, None), agreed.judges, labels)
        differing += [OpenDisagreement(entry, run, one) for one in found]
    return sorted(differing, key=lambda one: not one.found.turns_lie)


def _index_items(run: Run) -> dict[Key, Item]:
    """Every reply that a label can be about."""
    return {item.key: item for items in list_items(run, run.rows(), probes=True).values() for item in items}


ROUTES = (Route("/agreement", show_agreement),)
