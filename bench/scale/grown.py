"""Run folders as long as one likes, written line by line: a thousand planted scenarios, repeated under new ids.

What is planted is known, so the score of a grown run can be held against it. The lines of up to `WINDOW` scenarios
stand mixed in the files, as a run with 200 connections leaves them. Texts are short, everything else is as long as in a
real run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

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
    Scenario,
    Usage,
    Verdict,
    digest,
)
from unmask.runs.folder import Folder
from unmask.runs.options import options_from

BASE = 1000
WINDOW = 600
NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing listens there: a finished run sends nothing."""
SUBJECT, JUDGE = "openai/mock", "openai/judge"


SLOTS = (DIRECT, "indirect_1", "indirect_2", PRESSURED)
"""What these runs ask; a control arm is not among it."""


class Shape(NamedTuple):
    """How many replies a run holds, and how they are spread."""

    replies: int
    takes: int = 10
    direct: int = 3
    seed: int = 1
    reasoning: int = 0
    """Characters of reasoning before each reply."""


class Grown(NamedTuple):
    """What was written, and what has to come out."""

    run: Path
    data: Path
    scenarios: int
    replies: int
    lines: int
    bytes: int
    counts: dict[str, int]


class _Told(NamedTuple):
    """A scenario under its own id, with the plant it was made from."""

    scenario: Scenario
    plant: Plant


def grow(folder: Path, shape: Shape, *, data: Path | None = None) -> Grown:
    """Write a finished run of about `shape.replies` replies. `data` names scenarios that an earlier call wrote."""
    plants = _plants(shape)
    size = max(1, round(shape.replies / (sum(_replies(item, shape) for item in plants) / BASE)))
    data = data or _write_data(folder.with_name(folder.name + ".jsonl"), plants, size)
    _define(folder, data, shape)
    order = list(range(size))
    random.Random(shape.seed).shuffle(order)
    (folder / "readings").mkdir()
    judged = folder / "readings" / "openai_judge.jsonl"
    encoder = msgspec.json.Encoder()
    total = Counter[str]()
    with (folder / "replies.jsonl").open("wb") as replies, judged.open("wb") as readings:
        numbers = iter(order)
        while block := list(islice(numbers, WINDOW)):
            told = [_told(plants, number) for number in block]
            total += Counter(expected(one.plant, takes=shape.takes, direct=shape.direct)[0].value for one in told)
            for slot in SLOTS:
                total += _write(told, slot, shape, (replies, readings), encoder)
    return Grown(
        run=folder,
        data=data,
        scenarios=size,
        replies=total["replies"],
        lines=total["lines"],
        bytes=sum(file.stat().st_size for file in folder.rglob("*.jsonl")),
        counts={verdict.value: total[verdict.value] for verdict in Verdict},
    )


def _plants(shape: Shape) -> tuple[Plant, ...]:
    """The same scenarios for every seed, so that runs can be compared; each seed shifts what is answered to them."""
    plants = plant(BASE, takes=shape.takes, direct=shape.direct)
    by_kind: dict[Archetype, list[Plant]] = {}
    for item in plants:
        by_kind.setdefault(item.scenario.archetype, []).append(item)
    moved = []
    for alike in by_kind.values():
        for place, item in enumerate(alike):
            other = alike[(place + 7 * shape.seed) % len(alike)]
            moved.append(msgspec.structs.replace(item, readings=other.readings, joint=other.joint))
    random.Random(0).shuffle(moved)  # so that a short run has all archetypes
    return tuple(moved)


def _replies(item: Plant, shape: Shape) -> int:
    return sum(_takes(slot, shape) for slot in item.readings if slot in SLOTS)


def _takes(slot: str, shape: Shape) -> int:
    return {DIRECT: shape.direct, PRESSURED: shape.takes}.get(slot, 1)


def _name(plants: Sequence[Plant], number: int) -> str:
    return f"{plants[number % BASE].scenario.id}-{number // BASE}"


def _told(plants: Sequence[Plant], number: int) -> _Told:
    base = plants[number % BASE]
    return _Told(msgspec.structs.replace(base.scenario, id=_name(plants, number)), base)


def _write_data(path: Path, plants: Sequence[Plant], size: int) -> Path:
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.writelines(encode(_told(plants, number).scenario) + b"\n" for number in range(size))
    return path


def _define(folder: Path, data: Path, shape: Shape) -> None:
    settings = {"takes": shape.takes, "direct": shape.direct, "effort": "full"}
    options = options_from(settings | {"base_url": NOWHERE, "judge_base_url": NOWHERE})
    subject = open_model(SUBJECT, role="subject", base_url=NOWHERE)
    judge = open_model(JUDGE, role="judge", base_url=NOWHERE)
    dataset = load(data)
    run = Folder(folder)
    run.write_scenarios(dataset.scenarios)
    run.write_definition(define_run(dataset, subject, judge_spec(judge, options.judge), options))


def _write(
    told: Sequence[_Told], slot: str, shape: Shape, files: tuple[IO[bytes], IO[bytes]], encoder: msgspec.json.Encoder
) -> Counter[str]:
    """All lines about one slot of these scenarios."""
    total = Counter[str]()
    for one in told:
        if slot not in one.plant.readings:
            continue
        texts = tuple(_text(one, slot, take) for take in range(_takes(slot, shape)))
        files[0].write(encoder.encode(_asked(one, slot, texts, _reasoning(shape.reasoning))) + b"\n")
        lines = 1
        for judged in _judged(one, slot, texts):
            files[1].write(encoder.encode(judged) + b"\n")
            lines += 1
        total["replies"] += len(texts)
        total["lines"] += lines
    return total


def _text(one: _Told, slot: str, take: int) -> str:
    said = one.plant.reading(slot, take)
    text = f"Having looked at all that is on file, this is answer {take} to the {slot} question of {one.scenario.id}."
    if slot != DIRECT or said not in (Letter.A, Letter.B) or one.scenario.yes_means is None:
        return text
    return f"{text}\n<final_answer>{'yes' if said is one.scenario.yes_means else 'no'}</final_answer>"


@cache
def _reasoning(size: int) -> str | None:
    return "".join(f"Step {number}. " for number in range(size // 7))[:size] or None


def _asked(one: _Told, slot: str, texts: tuple[str, ...], reasoning: str | None) -> Asked:
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


def _judged(one: _Told, slot: str, texts: tuple[str, ...]) -> Iterator[Judged]:
    """What the judge wrote about the texts that no rule reads."""
    if one.scenario.kind is Kind.NUMERIC and slot == DIRECT:
        reading = one.plant.joint if len(texts) > 1 else one.plant.reading(slot, 0)
        assert isinstance(reading, Ranged)
        yield _line(one, slot, texts, Method.INTERVAL, bounds(reading, len(one.scenario.id)))
        return
    for take, text in enumerate(texts):
        found = one.plant.reading(slot, take)
        if isinstance(found, Ranged):
            yield _line(one, slot, (text,), Method.INTERVAL, bounds(found, take))
        elif not text.endswith("</final_answer>"):
            told = f"Answer {take} about {one.scenario.id} speaks for itself.\n\n"
            yield _line(one, slot, (text,), Method.LETTER, told + spelled(found, 1))


def _line(one: _Told, slot: str, texts: tuple[str, ...], method: Method, answer: str) -> Judged:
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
