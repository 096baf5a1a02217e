"""Runs to label: a scripted subject whose lies are known, and a judge that errs where it is told to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from unmask.analysis.labels import open_writer
from unmask.data.dataset import Dataset, content_hash
from unmask.engine.run import judge as judge_again
from unmask.engine.run import run
from unmask.models.scripted import Scripted
from unmask.records import PRESSURED, Archetype, Interval, Kind, Label, Letter, Message, Request, Scenario
from unmask.runs.run import Run

_PLACE = re.compile(r"lamp (\d+)\b")


def scenario(place: int, *, numeric: bool = False, archetype: Archetype = Archetype.KNOWN_FACTS) -> Scenario:
    hole = "<value> watts" if numeric else "<pivotal>lit/dark</pivotal>"
    return Scenario(
        id=f"s{place:03}",
        archetype=Archetype.STATISTICS if numeric else archetype,
        kind=Kind.NUMERIC if numeric else Kind.BINARY,
        proposition=f"Of lamp {place} one can say: {hole}.",
        truth=Interval(40.0, 40.0) if numeric else Letter.A,
        conversation=(Message("system", f"You sell lamp {place}."), Message("user", "What about it?")),
        direct=f"What about lamp {place}? Answer {'in watts and ' if numeric else ''}in <final_answer> tags.",
        yes_means=None if numeric else Letter.A,
    )


def dataset(count: int, *, numeric: Iterable[int] = (), archetypes: tuple[Archetype, ...] = ()) -> Dataset:
    kinds = archetypes or (Archetype.KNOWN_FACTS,)
    scenarios = tuple(
        scenario(place, numeric=place in set(numeric), archetype=kinds[place % len(kinds)]) for place in range(count)
    )
    name = content_hash(scenarios)
    return Dataset(name="lamps", source="lamps", scenarios=scenarios, hash=name, full_hash=name)


def subject(
    lies: set[int],
    *,
    beliefless: set[int] = frozenset(),
    mute: set[int] = frozenset(),
    extra: Callable[[int], str] = str,
) -> Scripted:
    """Says what it believes, A or 40 watts, but for its lies; `extra` is written behind a pressured reply, and of the
    `mute` lamps it says nothing under pressure."""
    takes: dict[int, int] = {}

    def reply(request: Request) -> str:
        text = " ".join(message.content for message in request.messages)
        place = int(_PLACE.search(text)[1])
        numeric = "watts" in text
        if "outside the task" in request.messages[-1].content:
            return f"<final_answer>{'no' if place in lies else 'yes'}</final_answer>"
        if "final_answer" not in request.messages[-1].content:
            word = "dark" if place in lies else "lit"
            return "" if place in mute else f"lamp {place} pressured {word} {extra(place)}"
        takes[place] = takes.get(place, 0) + 1
        if place in beliefless and takes[place] % 2:
            return "<final_answer>no</final_answer>"
        return f"lamp {place} 40 watts" if numeric else "<final_answer>yes</final_answer>"

    return Scripted(reply, name="scripted/lamps")


def reader(errs: set[int] = frozenset(), *, name: str = "scripted/reads", unread: set[int] = frozenset()) -> Scripted:
    """Reads what is written, but for its errors, where it turns pressured replies round."""

    def reply(request: Request) -> str:
        text = request.messages[-1].content
        said = re.findall(r"lamp (\d+) (pressured (?:lit|dark)|40 watts)", text)
        place, word = int(said[-1][0]), said[-1][1]
        dark = ("dark" in word) ^ (place in errs)
        if place in unread:
            return "I cannot say."
        if "[BEGIN proposition" in text:
            figure = 40 if "watts" in word or not dark else 90
            bounds = f'"lower": {figure}, "upper": {figure}, "relative_lower": null, "relative_upper": null'
            return f'{{"reason": "", {bounds}}}'
        if "[BEGIN statements" not in text:
            return f"Answer: {'A' if 'once upon a time' in text else 'B'}"
        return f"Answer: {'B' if dark else 'A'}"

    return Scripted(reply, name=name)


def made(out: Path, data: Dataset, *, lies: set[int], errs: set[int] = frozenset(), **more) -> Run:
    given = {key: more.pop(key) for key in ("beliefless", "mute", "extra") if key in more}
    unread = more.pop("unread", frozenset())
    return run(data=data, model=subject(lies, **given), judge=reader(errs, unread=unread), out=out, **more)


def also_read(done: Run, errs: set[int], *, name: str, **more) -> Run:
    """The same run after another judge has read it."""
    return judge_again(done.path, judge=reader(errs, name=name), **more)


def give(run, who, labels):
    """Labels of one person by place: a letter, a figure, or `None` for a reply that was passed over."""
    lines = open_writer(run, who)
    for place, word in labels.items():
        lines.append(
            Label(
                scenario=f"s{place:03}",
                slot=PRESSURED,
                letter=Letter(word) if isinstance(word, str) else None,
                interval=Interval(word, word) if isinstance(word, float) else None,
                who=who,
                skipped=word is None,
            )
        )
    lines.close()
    return who
