"""Everything asked, answered, read and concluded about one scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unmask.protocol.probes import messages
from unmask.records import (
    CHECK,
    DIRECT,
    PRESSURED,
    SELF_REPORT,
    Choice,
    Kind,
    Lettered,
    Message,
    NoBelief,
    Outcome,
    Pending,
    Ranged,
    Reading,
    Scenario,
    Slot,
    Undecided,
    Unread,
    Verdict,
)
from unmask.render import words
from unmask.render.blocks import Block, Facts, Heading, Quote, Text

Replies = Mapping[tuple[Slot, int], Choice]
"""What the subject answered, by slot and take; takes count from 0."""


def describe_transcript(scenario: Scenario, outcome: Outcome, replies: Replies) -> Iterator[Block]:
    """One scenario from question to verdict. Texts of models and of the data are quoted, so that they cannot pass for
    ours."""
    yield from _describe_scenario(scenario)
    for slot in scenario.questions:
        yield Heading("Check of the supplied fact" if slot == CHECK else words.probe_title(slot))
        yield from _quote_messages(messages(scenario, slot))
        yield from _describe_answers(slot, outcome, replies)
    yield Heading("Pressured conversation")
    yield from _quote_messages(scenario.conversation)
    yield from _describe_answers(PRESSURED, outcome, replies)
    if any(slot == SELF_REPORT for slot, _ in replies):
        yield Heading("Asked whether that was true")
        yield from _describe_answers(SELF_REPORT, outcome, replies)
    yield Heading("Concluded")
    yield Facts(list(_describe_conclusion(scenario, outcome)))


def _describe_scenario(scenario: Scenario) -> Iterator[Block]:
    facts = [scenario.archetype.traits.title, scenario.kind.value]
    facts += [f"{scenario.pressure} pressure"] if scenario.pressure is not None else []
    yield Heading(f"{scenario.id}: {', '.join(facts)}")
    sides = zip("AB", scenario.statements, strict=True) if scenario.kind is Kind.BINARY else ()
    asked = [*sides] or [("Asserts", scenario.proposition)]
    yield Facts([*asked, ("Truth", words.truth(scenario))])


def _quote_messages(turns: tuple[Message, ...]) -> Iterator[Block]:
    for message in turns:
        yield Text(message.role.capitalize())
        yield Quote(message.content)


def _describe_answers(slot: Slot, outcome: Outcome, replies: Replies) -> Iterator[Block]:
    """The takes of one slot, each with its reading, or one reading for all where they were read together."""
    readings = outcome.readings.get(slot, ())
    takes, joint = list_takes(slot, outcome, replies)
    if not takes:
        yield Text(words.no_answer(slot, outcome))
    for take in takes:
        choice = replies.get((slot, take))
        yield Text(f"Take {take + 1}" if len(takes) > 1 else "Reply")
        if choice is not None and choice.thinking:
            yield from (Text("  Reasoning"), Quote(choice.thinking), Text("  Answer"))
        if choice is not None and choice.answer:
            yield Quote(choice.answer)
        yield from (Text(f"  {note}") for note in words.answer_notes(choice))
        if not joint and take < len(readings):
            yield Text(f"  {_describe_reading(readings[take], words.not_read(slot, outcome))}")
        if slot == PRESSURED and take < len(outcome.verdicts):
            verdict = outcome.verdicts[take]
            yield Text(f"  Verdict {words.NAMES[verdict]}", verdict.value)
    if joint:
        yield from (Text("All takes"), Text(f"  {_describe_reading(readings[0])}"))


def list_takes(slot: Slot, outcome: Outcome, replies: Replies) -> tuple[range, bool]:
    """Takes to show: those answered, and those that failed, but not those that were never sent. And whether all of them
    were read together."""
    readings = outcome.readings.get(slot, ())
    answered = [take for where, take in replies if where == slot]
    joint = slot == DIRECT and outcome.kind is Kind.NUMERIC and len(readings) == 1 and len(answered) > 1
    tried = [] if joint else [take for take, reading in enumerate(readings) if not isinstance(reading, Pending)]
    return range(max([*answered, *tried], default=-1) + 1), joint


def _describe_reading(reading: Reading, pending: str = "Not read yet.") -> str:
    match reading:
        case Lettered(by=by, why=why) | Ranged(by=by, why=why):
            return f"Read as {words.reading(reading)} {words.origin(by)}{_because(why)}"
        case Unread(reason=reason):
            return f"Unread{_because(reason)}"
        case Pending():
            return pending


def _describe_conclusion(scenario: Scenario, outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield "Belief", _describe_belief(scenario, outcome)
    stated = outcome.readings.get(PRESSURED, ())
    if stated and not all(isinstance(reading, Pending) for reading in stated):
        yield "Statement", "; ".join(words.reading(reading, pending="not asked or read yet") for reading in stated)
    mark = " (undecided: the same command completes it)" if outcome.undecided else ""
    # The reason for a missing belief is in the line of the belief.
    why = _because(outcome.why) if outcome.verdict is Verdict.UNJUDGED else ""
    yield "Verdict", f"{words.NAMES[outcome.verdict]}{mark}{why}"
    yield "Accuracy", outcome.accuracy.value.replace("_", " ")
    if outcome.silent:
        yield "Empty", words.count(outcome.silent)
    if outcome.truncated:
        yield "Cut off", words.count(outcome.truncated)


def _describe_belief(scenario: Scenario, outcome: Outcome) -> str:
    match outcome.belief:
        case None:
            return f"{words.truth(scenario)}, supplied by the scenario"
        case Lettered(letter=letter):
            return letter.value
        case Ranged() as figures:
            return words.reading(figures)
        case NoBelief(why=why):
            return f"none{_because(why)}"
        case Undecided(why=why):
            return f"undecided{_because(why)}"


def _because(why: str | None) -> str:
    return f": {why}" if why else ""
