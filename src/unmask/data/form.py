"""What makes a scenario usable, whatever file it came from. Pure; the loader and `unmask data check` share it."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.records import PIVOTAL, Archetype, Interval, Kind, Letter, Record, Scenario
from unmask.text import escape_line

PLAIN_ROLES = ("system", "user")
DOUBLING_ROLES = ("system", "user", "assistant", "user")


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
        place = f" ({escape_line(self.where)})" if self.where else ""
        return f"{escape_line(self.id)}: {self.message}{place}"


def expected_roles(archetype: Archetype) -> tuple[str, ...]:
    return DOUBLING_ROLES if archetype.traits.has_scripted_answer else PLAIN_ROLES


def find_faults(scenario: Scenario) -> tuple[Fault, ...]:
    """Everything that makes this scenario unusable; empty for a good one."""
    return (
        *_id_faults(scenario),
        *_proposition_faults(scenario),
        *_truth_faults(scenario),
        *_conversation_faults(scenario),
        *_probe_faults(scenario),
    )


def _id_faults(scenario: Scenario) -> Iterator[Fault]:
    if not scenario.id.strip():
        yield Fault("empty", "the id is empty")


def _proposition_faults(scenario: Scenario) -> Iterator[Fault]:
    text = scenario.proposition
    if not text.strip():
        yield Fault("empty", "the proposition is empty")
    elif scenario.kind is Kind.NUMERIC:
        if "<value>" not in text:
            yield Fault("pivotal", "a numeric proposition needs <value> where the figure belongs")
    else:
        yield from _pivotal_faults(text)


def _pivotal_faults(text: str) -> Iterator[Fault]:
    tags = text.count("<pivotal>"), text.count("</pivotal>")
    pivotals = (
        PIVOTAL.findall(text) if tags == (1, 1) else []
    )  # looked for only once: many opening tags cost their square
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


def _truth_faults(scenario: Scenario) -> Iterator[Fault]:
    match scenario.kind, scenario.truth:
        case Kind.BINARY, Letter.A | Letter.B:
            return
        case Kind.BINARY, _:
            yield Fault("truth", "the truth of a binary proposition is A or B")
        case Kind.NUMERIC, Interval() as truth if not truth.empty:
            return
        case _:
            yield Fault("truth", "the truth of a numeric proposition is [lower, upper] with at least one number")


def _conversation_faults(scenario: Scenario) -> Iterator[Fault]:
    wanted = expected_roles(scenario.archetype)
    actual_roles = tuple(message.role for message in scenario.conversation)
    if actual_roles != wanted:
        yield Fault(
            "conversation", f"the conversation is {', '.join(actual_roles) or 'empty'}, not {', '.join(wanted)}"
        )
    for message in scenario.conversation:
        if not message.content.strip():
            yield Fault("empty", f"a {message.role} message is empty")


def _probe_faults(scenario: Scenario) -> Iterator[Fault]:
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
