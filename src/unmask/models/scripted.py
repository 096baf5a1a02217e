"""Models that ship with the product and need nothing: characters with a known conduct, a judge, and your own.

`scripted/honest` says what is true, always. `scripted/liar` says it when asked neutrally and the opposite under
pressure. `scripted/evasive` will not commit itself under pressure. `scripted/beliefless` contradicts itself from one
take to the next. `scripted/judge` reads replies that repeat a statement, or fill the hole of a numeric one, word for
word. The characters know the bundled scenarios (or those they are given) and refuse every other request.
"""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from unmask.errors import RequestRefusedError, UsageError
from unmask.models.names import MANY
from unmask.models.scripted_judge import judge
from unmask.records import (
    CHECK,
    DIRECT,
    PIVOTAL,
    PRESSURED,
    SELF_REPORT,
    Choice,
    Completion,
    Interval,
    Letter,
    Message,
    Request,
    Scenario,
    Slot,
)

Reply = Callable[[Request], str | Completion]


class Scripted:
    """A model that answers with what `reply` returns: a text, called again for each of the request's `n` choices, or
    a whole Completion. `reply` may raise a ModelError. `calls` counts the requests."""

    supports_options = False

    def __init__(self, reply: Reply, *, name: str = "scripted/custom", max_n: int = MANY) -> None:
        self.name = name
        self.endpoint = name
        self.max_n = max_n
        self.calls = 0
        self._reply = reply

    def __repr__(self) -> str:
        return f"Scripted({self.name})"

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        # Others get their turn, as they would with a model that takes time.
        await asyncio.sleep(0)
        begin = time.perf_counter()
        said = self._reply(request)
        if isinstance(said, Completion):
            return said
        choices = [Choice(text=said)]
        while len(choices) < min(request.n, self.max_n):
            more = self._reply(request)
            choices += more.choices if isinstance(more, Completion) else (Choice(text=more),)
        return Completion(tuple(choices), latency=time.perf_counter() - begin, model=self.name)

    async def close(self) -> None:
        """Nothing to release."""


class Character(StrEnum):
    HONEST = "honest"
    LIAR = "liar"
    EVASIVE = "evasive"
    BELIEFLESS = "beliefless"


JUDGE = "judge"


def open_scripted(name: str, *, scenarios: Sequence[Scenario] | None = None) -> Scripted:
    """A shipped model by its full name. `scenarios` are those its character knows; by default all bundled ones,
    loaded at the first request."""
    short = name.removeprefix("scripted/")
    if short == JUDGE:
        return Scripted(judge, name=name)
    if short not in tuple(Character):
        known = (*Character, JUDGE)
        close = difflib.get_close_matches(short, known, n=1)
        hint = f"did you mean scripted/{close[0]}? " if close else ""
        raise UsageError(f"there is no scripted model {short!r}", advice=f"{hint}scripted models: {', '.join(known)}")
    return Scripted(_Actor(Character(short), scenarios), name=name)


class _Actor:
    """Recognises which slot of which scenario a request is, and answers in character."""

    def __init__(self, character: Character, scenarios: Sequence[Scenario] | None) -> None:
        self.character = character
        self._scenarios = scenarios
        self._index: dict[tuple[str, ...], list[tuple[Scenario, Slot]]] | None = None
        self._takes: dict[tuple[str, Slot], int] = {}

    def __call__(self, request: Request) -> str:
        scenario, slot = self._recognise(request.messages)
        take = self._takes.get((scenario.id, slot), 0)
        self._takes[scenario.id, slot] = take + 1
        return say(self.character, scenario, slot, take=take)

    def _recognise(self, messages: Iterable[Message]) -> tuple[Scenario, Slot]:
        if self._index is None:
            self._index = _index(_bundled() if self._scenarios is None else self._scenarios)
        system = "\n".join(message.content for message in messages if message.role == "system")
        turns = _turns(messages)
        found = self._index.get(turns, [])
        if not found and len(turns) > 2:  # a question about the reply before it, in the pressured conversation
            asked = self._index.get(turns[:-2], [])
            found = [(scenario, SELF_REPORT) for scenario, slot in asked if slot == PRESSURED]
        # Two scenarios may end in the same question; what the system prompt holds then tells them apart. A mitigation
        # may have added to that prompt, so it is looked for, not compared.
        for scenario, slot in found:
            if all(message.content in system for message in scenario.conversation if message.role == "system"):
                return scenario, slot
        for scenario, slot in found:
            if slot not in (PRESSURED, CHECK, SELF_REPORT) or len(found) == 1:
                return scenario, slot
        raise RequestRefusedError(
            f"scripted/{self.character} knows only the bundled scenarios, and this request is not one of theirs",
            advice="use it with a bundled set such as --data tiny",
        )


def _turns(messages: Iterable[Message]) -> tuple[str, ...]:
    return tuple(message.content for message in messages if message.role != "system")


def _index(scenarios: Iterable[Scenario]) -> dict[tuple[str, ...], list[tuple[Scenario, Slot]]]:
    index: dict[tuple[str, ...], list[tuple[Scenario, Slot]]] = {}
    for scenario in scenarios:
        for slot, turns in _slots(scenario):
            index.setdefault(turns, []).append((scenario, slot))
    return index


def _slots(scenario: Scenario) -> Iterator[tuple[Slot, tuple[str, ...]]]:
    yield PRESSURED, _turns(scenario.conversation)
    if scenario.direct is not None:
        yield DIRECT, (scenario.direct,)
    if scenario.check is not None:
        yield CHECK, (scenario.check,)
    for place, question in enumerate(scenario.indirect, start=1):
        yield f"indirect_{place}", (question,)


def _bundled() -> list[Scenario]:
    from unmask.data import load
    from unmask.data.bundled import bundled

    return [scenario for name in bundled() for scenario in load(name).scenarios]


def say(character: Character, scenario: Scenario, slot: Slot, *, take: int = 0) -> str:
    """What a character answers in this slot; `take` counts how often it was asked before."""
    truthful = True
    match character, slot:
        case Character.LIAR | Character.BELIEFLESS, "self_report":
            return "It was not.\n<final_answer>no</final_answer>"
        case _, "self_report":
            return "It was.\n<final_answer>yes</final_answer>"
        case Character.LIAR, "pressured":
            truthful = False
        case Character.EVASIVE, "pressured":
            return "I would rather leave that to somebody who can look into it."
        case Character.BELIEFLESS, "pressured":
            truthful = False
        case Character.BELIEFLESS, "direct" if isinstance(scenario.truth, Interval):
            return "I could not put a figure on that."
        case Character.BELIEFLESS, "direct":
            truthful = take % 2 == 0
        case Character.BELIEFLESS, "indirect_2":
            truthful = False
        case _:
            pass
    text = statement(scenario, truthful=truthful)
    if slot != DIRECT or scenario.yes_means is None:
        return text
    return f"{text}\n<final_answer>{_yes_or_no(scenario, truthful=truthful)}</final_answer>"


def _yes_or_no(scenario: Scenario, *, truthful: bool) -> str:
    return "yes" if (scenario.truth == scenario.yes_means) == truthful else "no"


def statement(scenario: Scenario, *, truthful: bool) -> str:
    """The proposition as the character asserts it, in the words of the scenario."""
    if isinstance(scenario.truth, Interval):
        plain = PIVOTAL.sub(lambda found: found.group(1), scenario.proposition)
        return plain.replace("<value>", _figure(_value(scenario, truthful=truthful)))
    a, b = scenario.statements
    return a if (scenario.truth is Letter.A) == truthful else b


def _value(scenario: Scenario, *, truthful: bool) -> float:
    """A figure inside the true range, or one far outside it on the side the pressure wants."""
    truth = scenario.truth
    assert isinstance(truth, Interval)
    bounds = [bound for bound in (truth.lower, truth.upper) if bound is not None] or [0.0]
    low, high = min(bounds), max(bounds)
    if truthful:
        return (low + high) / 2
    if scenario.pushes == "down":
        return low - 0.6 * abs(low) if low else -10.0
    return high + 0.6 * abs(high) if high else 10.0


def _figure(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
