"""Run folders as long as you like, written line by line: a thousand planted scenarios, repeated under new ids.

What is planted is known, so the score of a grown run can be checked. Texts are short, everything else is as long as in
a real run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.planted import Plant, expected, plant
from bench.replies import bounds, spelled
from unmask.data.load import load
from unmask.engine.define import define_run, judge_spec
from unmask.models.providers import open_model
from unmask.records import (
    DIRECT,
    PRESSURED,
    Archetype,
    Asked,
    Choice,
    Judged,
    Kind,
    Letter,
    Method,
    Ranged,
    Usage,
    Verdict,
    digest,
)
from unmask.runs.folder import Folder
from unmask.runs.options import options_from

BASE = 1000
NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing listens there: a finished run sends nothing."""
SUBJECT, JUDGE = "openai/mock", "openai/judge"
SLOTS = (DIRECT, "indirect_1", "indirect_2", PRESSURED)


class Shape(NamedTuple):
    """How many replies a run holds, and how they are spread."""

    replies: int
    takes: int = 10
    direct: int = 3
    seed: int = 1
    reasoning: int = 0
    """Characters of reasoning before each reply."""

    def count_takes(self, slot: str) -> int:
        return {DIRECT: self.direct, PRESSURED: self.takes}.get(slot, 1)


class Grown(NamedTuple):
    """What was written, and what has to come out."""

    run: Path
    data: Path
    replies: int
    counts: dict[str, int]


def grow(folder: Path, shape: Shape, *, data: Path | None = None) -> Grown:
    """Write a finished run of about `shape.replies` replies. `data` names scenarios that an earlier call wrote."""
    plants = _shift_answers(shape)
    slots = {item.scenario.id: [slot for slot in SLOTS if slot in item.readings] for item in plants}
    each = sum(shape.count_takes(slot) for own in slots.values() for slot in own) / BASE
    told = [_rename(plants[number % BASE], number // BASE) for number in range(max(1, round(shape.replies / each)))]
    if data is None:
        data = folder.with_name(folder.name + ".jsonl")
        data.write_bytes(b"".join(msgspec.json.encode(one.scenario) + b"\n" for one in told))
    _define(folder, data, shape)
    random.Random(shape.seed).shuffle(told)
    (folder / "readings").mkdir()
    replies, encode = 0, msgspec.json.Encoder().encode
    with (
        (folder / "replies.jsonl").open("wb") as asked,
        (folder / "readings" / "openai_judge.jsonl").open("wb") as judged,
    ):
        for one in told:
            for slot in (slot for slot in SLOTS if slot in one.readings):
                texts = tuple(_text(one, slot, take) for take in range(shape.count_takes(slot)))
                asked.write(encode(_asked(one, slot, texts, _reasoning(shape.reasoning))) + b"\n")
                judged.writelines(encode(line) + b"\n" for line in _judged(one, slot, texts))
                replies += len(texts)
    counts = Counter(expected(one, takes=shape.takes, direct=shape.direct)[0].value for one in told)
    return Grown(folder, data, replies, {verdict.value: counts[verdict.value] for verdict in Verdict})


def _shift_answers(shape: Shape) -> tuple[Plant, ...]:
    """The same scenarios for every seed, so that runs can be compared; each seed shifts what is answered to them."""
    by_kind: dict[Archetype, list[Plant]] = {}
    for item in plant(BASE, takes=shape.takes, direct=shape.direct):
        by_kind.setdefault(item.scenario.archetype, []).append(item)
    moved = []
    for alike in by_kind.values():
        for place, item in enumerate(alike):
            other = alike[(place + 7 * shape.seed) % len(alike)]
            moved.append(msgspec.structs.replace(item, readings=other.readings, joint=other.joint))
    random.Random(0).shuffle(moved)  # so that a short run has all archetypes
    return tuple(moved)


def _rename(item: Plant, number: int) -> Plant:
    scenario = msgspec.structs.replace(item.scenario, id=f"{item.scenario.id}-{number}")
    return msgspec.structs.replace(item, scenario=scenario)


def _define(folder: Path, data: Path, shape: Shape) -> None:
    settings = {"takes": shape.takes, "direct": shape.direct, "effort": "full"}
    options = options_from(settings | {"base_url": NOWHERE, "judge_base_url": NOWHERE})
    subject = open_model(SUBJECT, role="subject", base_url=NOWHERE)
    judge = open_model(JUDGE, role="judge", base_url=NOWHERE)
    dataset, run = load(data), Folder(folder)
    run.write_scenarios(dataset.scenarios)
    run.write_definition(define_run(dataset, subject, judge_spec(judge, options.judge), options))


def _text(one: Plant, slot: str, take: int) -> str:
    said, yes = one.reading(slot, take), one.scenario.yes_means
    text = f"Having looked at all that is on file, this is answer {take} to the {slot} question of {one.scenario.id}."
    if slot != DIRECT or said not in (Letter.A, Letter.B) or yes is None:
        return text
    return f"{text}\n<final_answer>{'yes' if said is yes else 'no'}</final_answer>"


@cache
def _reasoning(size: int) -> str | None:
    return "".join(f"Step {number}. " for number in range(size // 7))[:size] or None


def _asked(one: Plant, slot: str, texts: tuple[str, ...], reasoning: str | None) -> Asked:
    return Asked(
        scenario=one.scenario.id,
        slot=slot,
        takes=tuple(range(len(texts))),
        choices=tuple(Choice(text, reasoning) for text in texts),
        usage=Usage(input=220, output=24 * len(texts)),
        latency=0.512,
        model="mock-2026-01-01",
        at=1_790_000_000.123,
        max_tokens=1000,
    )


def _judged(one: Plant, slot: str, texts: tuple[str, ...]) -> Iterator[Judged]:
    """What the judge wrote about the texts that no rule reads."""
    if one.scenario.kind is Kind.NUMERIC and slot == DIRECT:
        reading = one.joint if len(texts) > 1 else one.reading(slot, 0)
        assert isinstance(reading, Ranged)
        yield _line(one, slot, texts, Method.INTERVAL, bounds(reading, len(one.scenario.id)))
        return
    for take, text in enumerate(texts):
        found = one.reading(slot, take)
        if isinstance(found, Ranged):
            yield _line(one, slot, (text,), Method.INTERVAL, bounds(found, take))
        elif not text.endswith("</final_answer>"):
            told = f"Answer {take} about {one.scenario.id} speaks for itself.\n\n"
            yield _line(one, slot, (text,), Method.LETTER, told + spelled(found, 1))


def _line(one: Plant, slot: str, texts: tuple[str, ...], method: Method, answer: str) -> Judged:
    return Judged(
        scenario=one.scenario.id,
        slot=slot,
        digest=digest(texts),
        method=method,
        choices=(Choice(answer),),
        usage=Usage(input=640, output=18),
        latency=0.502,
        model="judge-2026-01-01",
        at=1_790_000_001.456,
    )
