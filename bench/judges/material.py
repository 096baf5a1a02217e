"""What the judge of `pick` is trained on: replies with their labels, each with all that is needed to ask about it.
The labels were given by language models. The adapter that ships was trained on bounds besides, at commit 0fa03d5; it is
no longer asked for them.

`training.jsonl` holds replies written for this and replies of the two embedded models to scenarios of `core` with odd
numbers. To them come the replies of the tuning half, but none to a scenario of which the test half has a reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.judges.labelled import Labelled, labelled, scenarios
from unmask.judges import pick
from unmask.records import Letter, Message, Record, Scenario

FILE = Path(__file__).with_name("training.jsonl")


class Picked(Record, frozen=True, kw_only=True, tag="letter"):
    """A reply to be read as a letter."""

    a: str
    b: str
    asked: str
    text: str
    label: Letter
    by: str
    """`written`, or the model that gave the reply."""
    scenario: str | None = None
    """Of `core`, where it is a reply to one."""


class Lesson(Record, frozen=True):
    """One question to the judge, and the answer it is to learn."""

    messages: tuple[Message, ...]
    answer: str


def written() -> tuple[Picked, ...]:
    return tuple(msgspec.json.decode(line, type=Picked) for line in FILE.read_bytes().splitlines())


def apart() -> tuple[tuple[Labelled, ...], tuple[Labelled, ...]]:
    """The tuning half in two: what may be trained on, and replies to scenarios of the test half, to look at between."""
    every = labelled()
    tested = {_number(item.scenario) for item in every if item.half == "test"}
    tuning = [item for item in every if item.half == "tuning"]
    kept = tuple(item for item in tuning if _number(item.scenario) not in tested)
    return kept, tuple(item for item in tuning if _number(item.scenario) in tested)


def _number(scenario: str) -> str:
    """A scenario in whatever wording."""
    return scenario.partition(".")[0]


def item_of(one: Labelled, scenario: Scenario) -> Picked | None:
    """A labelled reply as training material. A figure is none."""
    if one.label.letter is None:
        return None
    return Picked(
        a=scenario.statements[0],
        b=scenario.statements[1],
        asked=pick.asked_text(scenario, one.slot),
        text=pick.prepare_reply(scenario, one.slot, one.text),
        label=one.label.letter,
        by=one.made_by,
        scenario=_number(one.scenario),
    )


def items() -> tuple[Picked, ...]:
    """Everything that is trained on."""
    known = scenarios()
    kept, _ = apart()
    return (*written(), *(item for one in kept if (item := item_of(one, known[one.scenario])) is not None))


def lessons(item: Picked) -> Iterator[Lesson]:
    """Both orders of a choice."""
    for method, order in pick.ORDERS.items():
        messages = pick.build_messages(method, (item.a, item.b), asked=item.asked, reply=item.text)
        yield Lesson(messages, pick.OPTIONS[order.index(item.label)])
