"""What the judge of `pick` is trained on: replies with their labels, each with all that is needed to ask about it.
The labels were given by language models.

`training.jsonl` holds replies written for this and replies of the two embedded models to scenarios of `core` with odd
numbers. To them come the replies of the tuning half, but none to a scenario of which the test half has a reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.judges.labelled import Labelled, labelled, scenarios
from unmask.judges import choose, letters, pick
from unmask.records import (
    DIRECT,
    PRESSURED,
    Archetype,
    Interval,
    Kind,
    Letter,
    Message,
    Record,
    Sampling,
    Scenario,
)

FILE = Path(__file__).with_name("training.jsonl")
COLD = Sampling(temperature=0.0, max_tokens=1000)


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


class Figured(Record, frozen=True, kw_only=True, tag="interval"):
    """A reply to be read as a figure."""

    proposition: str
    unit: str | None = None
    asked: str
    direct: bool = False
    """Whether it answers a neutral question, and not a request under pressure."""
    text: str
    label: Interval
    by: str
    scenario: str | None = None


Item = Picked | Figured


class Lesson(Record, frozen=True):
    """One question to the judge, and the answer it is to learn."""

    messages: tuple[Message, ...]
    answer: str


def written() -> tuple[Item, ...]:
    return tuple(msgspec.json.decode(line, type=Item) for line in FILE.read_bytes().splitlines())


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


def item_of(one: Labelled, scenario: Scenario) -> Item | None:
    """A labelled reply as training material. A relative change is none: only one reply has it."""
    if one.label.letter is not None:
        return Picked(
            a=scenario.statements[0],
            b=scenario.statements[1],
            asked=pick.asked_text(scenario, one.slot),
            text=choose.prepare_reply(scenario, one.slot, one.text),
            label=one.label.letter,
            by=one.made_by,
            scenario=_number(one.scenario),
        )
    if one.label.interval is None:
        return None
    return Figured(
        proposition=scenario.proposition,
        unit=scenario.unit,
        asked=pick.asked_text(scenario, one.slot),
        direct=one.slot == DIRECT,
        text=one.text,
        label=one.label.interval,
        by=one.made_by,
        scenario=_number(one.scenario),
    )


def items() -> tuple[Item, ...]:
    """Everything that is trained on."""
    known = scenarios()
    kept, _ = apart()
    return (*written(), *(item for one in kept if (item := item_of(one, known[one.scenario])) is not None))


def lessons(item: Item) -> Iterator[Lesson]:
    """Both orders of a choice; the object with its bounds for a figure."""
    if isinstance(item, Figured):
        yield Lesson(_figure_request(item), _object(item.label))
        return
    for method, order in pick.ORDERS.items():
        messages = pick.build_messages(method, (item.a, item.b), asked=item.asked, reply=item.text)
        yield Lesson(messages, pick.OPTIONS[order.index(item.label)])


def _figure_request(item: Figured) -> tuple[Message, ...]:
    scenario = Scenario(
        id="training",
        archetype=Archetype.STATISTICS,
        kind=Kind.NUMERIC,
        proposition=item.proposition,
        unit=item.unit,
        truth=Interval(),
        conversation=(Message("user", item.asked),),
        direct=item.asked,
    )
    slot = DIRECT if item.direct else PRESSURED
    return letters.request_figure(scenario, slot, (item.text,), sampling=COLD).messages


def _object(label: Interval) -> str:
    """As the judge is to write it: short reasons, then the bounds."""
    lower, upper = (_plain(bound) for bound in (label.lower, label.upper))
    said = "The reply gives no figure." if lower is None and upper is None else "The reply gives this figure."
    found = {"reason": said, "lower": lower, "upper": upper, "relative_lower": None, "relative_upper": None}
    return msgspec.json.encode(found).decode().replace('":', '": ').replace(',"', ', "')


def _plain(bound: float | None) -> float | int | None:
    return int(bound) if bound is not None and float(bound).is_integer() else bound
