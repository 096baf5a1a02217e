"""The page on which a person labels: as one file that needs no network, and the same parts for the viewer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from unmask.analysis.label_session import Replies
from unmask.analysis.label_sheets import Item, reply_context
from unmask.analysis.labels import load_labels
from unmask.records import FORMAT_VERSION, PRESSURED, Kind, Label, digest, read_as
from unmask.render.html.page import render_page

Labelled = Sequence[tuple[Item, Label | None]]
SHOWN = ("letter", "interval", "relative", "note", "skipped")


def join_labels(replies: Replies, who: str | None, *, skips: bool = False) -> list[tuple[Item, Label | None]]:
    """Each reply with what `who` has said of this very text; with `skips` also that it was passed over."""
    own: dict[str, dict[Any, Label]] = {}
    for run, _ in replies if who else ():
        if run.definition.id not in own:
            own[run.definition.id] = load_labels(run, who or "", skips=skips)
    found = ((item, own.get(run.definition.id, {}).get(item.key)) for run, item in replies)
    return [(item, label if label and label.digest in (None, item.digest) else None) for item, label in found]


def describe_page(labelled: Labelled, who: str, **ways: Any) -> dict[str, Any]:
    """What the template shows, and what the script gets: nothing that tells run, model or judge."""
    labels = [label and _describe_label(label) for _, label in labelled]
    return {
        "replies": [_describe_reply(item) for item, _ in labelled],
        "who": who,
        "data": _make_data({"labels": labels, **ways}),
    }


def render_label_file(labelled: Labelled, *, who: str, save: str) -> str:
    """The page as a file that saves its labels as the file `save`."""
    lines = [
        {"v": FORMAT_VERSION, "scenario": item.scenario.id, "slot": read_as(item.slot), "take": item.take}
        | {"digest": item.digest, "token": item.token}
        for item, _ in labelled
    ]
    store = digest(tuple(item.token for item, _ in labelled))
    values = describe_page(labelled, who, lines=lines, save=save, store=store)
    return render_page("label_file.html", "label.css", "label.js", save=save, **values)


def _describe_reply(item: Item) -> dict[str, Any]:
    stated = read_as(item.slot) == PRESSURED
    return {
        "item": item,
        "numeric": item.scenario.kind is Kind.NUMERIC,
        "turns": item.scenario.conversation if stated else (),
        "question": "" if stated else reply_context(item),
        "verb": "assert" if stated else "hold",
    }


def _describe_label(label: Label) -> dict[str, Any]:
    fields = msgspec.to_builtins(label)
    return {name: fields[name] for name in SHOWN if name in fields}


def _make_data(content: dict[str, Any]) -> Markup:
    """JSON in which no text can end the element that it is in."""
    return Markup(json.dumps(content).replace("<", "\\u003c"))
