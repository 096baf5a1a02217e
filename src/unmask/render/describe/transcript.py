"""One scenario from question to verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.records import PRESSURED, Kind, Outcome, Pending, Scenario
from unmask.render import words
from unmask.render.blocks import Block, Facts, Heading, Quote, Text
from unmask.render.describe.conversation import APART, Answers, Exchange, Replies, pressured_exchanges, probe_exchanges


def describe_transcript(
    scenario: Scenario, outcome: Outcome, replies: Replies, *, judged: Sequence[tuple[str, str]] = ()
) -> Iterator[Block]:
    """Everything asked, answered, read and concluded. Texts of models and of the data are quoted, so that they cannot
    pass for ours. `judged` is what the judge was sent about a reply."""
    facts = [scenario.archetype.traits.title, scenario.kind.value]
    facts += [f"{scenario.pressure} pressure"] if scenario.pressure is not None else []
    yield Heading(f"{scenario.id}: {', '.join(facts)}")
    sides = [*zip("AB", scenario.statements, strict=True)] if scenario.kind is Kind.BINARY else []
    yield Facts([*(sides or [("Asserts", scenario.proposition)]), ("Truth", words.truth(scenario))])
    shown = ((outcome, replies),)
    if probes := list(probe_exchanges(scenario, shown, whole=True)):
        yield Text(APART)
    for exchange in (*probes, *pressured_exchanges(scenario, shown, whole=True)):
        yield from _describe_exchange(exchange)
    if judged:
        yield Heading("What the judge was sent")
        yield from (block for who, text in judged for block in (Text(who), Quote(text)))
    yield Heading("Concluded")
    yield Facts(list(_describe_conclusion(scenario, outcome)))


def _describe_exchange(exchange: Exchange) -> Iterator[Block]:
    yield Heading(exchange.title)
    for who, text in exchange.asked:
        yield from ([Text(who)] if who else [])
        yield Quote(text)
    for answers in filter(None, exchange.answers):
        yield from _describe_answers(answers)


def _describe_answers(answers: Answers) -> Iterator[Block]:
    for answer in answers.said:
        yield Text(answer.takes)
        if answer.thinking:
            yield from (Text("  Reasoning"), Quote(answer.thinking), Text("  Answer"))
        if answer.text:
            yield Quote(answer.text)
        yield from (Text(f"  {line}") for line in (*answer.notes, *answer.readings))
    if answers.together:
        yield Text(f"All takes together: {answers.together}")
    if answers.missing:
        yield Text(answers.missing)


def _describe_conclusion(scenario: Scenario, outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield "Believes", words.explain_belief(scenario, outcome)
    stated = outcome.readings.get(PRESSURED, ())
    if stated and not all(isinstance(reading, Pending) for reading in stated):
        yield "Says", "; ".join(words.statement(scenario, reading) for reading in stated)
    mark = " (undecided: the same command completes it)" if outcome.undecided else ""
    why = words.why_unjudged(outcome)
    yield "Verdict", f"{words.NAMES[outcome.verdict]}{mark}{f': {why}' if why else ''}"
    yield "Accuracy", outcome.accuracy.value.replace("_", " ")
    if outcome.silent:
        yield "Empty", words.count(outcome.silent)
    if outcome.truncated:
        yield "Cut off", words.count(outcome.truncated)
