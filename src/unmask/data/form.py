"""What makes a scenario usable, whatever file it came from. Pure; the loader and `unmask data check` share it."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.records import PIVOTAL, Interval, Kind, Letter, Record, Scenario
from unmask.text import escape_line


class Fault(Record, frozen=True):
    """Why a row cannot be used. `code` is one word of a closed list, for programs; `message` is for people."""

    code: str
    message: str


class Problem(Record, frozen=True):
    """A fault with the row it belongs to. `where` names file and row, and is empty for scenarios made in memory."""

    id: str
    code: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        place = f" ({escape_line(self.where)})" if self.where and self.where != self.id else ""
        return f"{escape_line(self.id)}: {self.message}{place}"


def find_faults(scenario: Scenario) -> tuple[Fault, ...]:
    """Everything that makes this scenario unusable; empty for a good one."""
    return *_proposition_faults(scenario), *_prompt_faults(scenario)


def _proposition_faults(scenario: Scenario) -> Iterator[Fault]:
    """What is wrong with the id, the proposition and its truth."""
    if not scenario.id.strip():
        yield Fault("empty", "the id is empty")
    text = scenario.proposition
    if not text.strip():
        yield Fault("empty", "the proposition is empty")
    elif scenario.kind is Kind.NUMERIC:
        if "<value>" not in text:
            yield Fault("pivotal", "a numeric proposition needs <value> where the figure belongs")
    else:
        yield from _pivotal_faults(text)
    match scenario.kind, scenario.truth:
        case Kind.BINARY, Letter.A | Letter.B:
            return
        case Kind.BINARY, _:
            yield Fault("truth", "the truth of a binary proposition is A or B")
        case Kind.NUMERIC, Interval() as truth if not truth.empty:
            return
        case _:
            yield Fault("truth", "the truth of a numeric proposition is [lower, upper] with at least one number")


def _pivotal_faults(text: str) -> Iterator[Fault]:
    tags = text.count("<pivotal>"), text.count("</pivotal>")
    # Looked for only once: many opening tags cost their square.
    pivotals = PIVOTAL.findall(text) if tags == (1, 1) else []
    if len(pivotals) != 1:
        yield Fault("pivotal", f"the proposition needs exactly one <pivotal>…</pivotal>, it has {max(tags)}")
        return
    sides = [side.strip() for side in pivotals[0].split("/")]
    if len(sides) == 1:
        yield Fault("pivotal", "the pivotal has no slash, so there are not two sides")
    elif len(sides) > 2:
        yield Fault("pivotal", f"the pivotal has {len(sides) - 1} slashes, so the two sides are unclear")
    elif sides[0] == sides[1]:
        yield Fault("pivotal", "both sides of the pivotal are the same")


def _prompt_faults(scenario: Scenario) -> Iterator[Fault]:
    """What is wrong with the conversation and the probes."""
    scripted = scenario.archetype.traits.has_scripted_answer
    wanted = ", ".join(("system", "user", "assistant", "user") if scripted else ("system", "user"))
    roles = ", ".join(message.role for message in scenario.conversation)
    if roles != wanted:
        yield Fault("conversation", f"the conversation is {roles or 'empty'}, not {wanted}")
    for message in scenario.conversation:
        if not message.content.strip():
            yield Fault("empty", f"a {message.role} message is empty")
    if scenario.direct is None and scenario.asks_belief:
        yield Fault("empty", "there is no direct probe, so no belief can be found")
    for name in ("direct", "check"):
        text = getattr(scenario, name)
        if text is not None and not text.strip():
            yield Fault("empty", f"`{name}` is empty")
    if any(not text.strip() for text in scenario.indirect):
        yield Fault("empty", "an indirect probe is empty")
    if scenario.yes_means not in (None, Letter.A, Letter.B):
        yield Fault("schema", f"`yes_means` is {scenario.yes_means}, not A or B")
