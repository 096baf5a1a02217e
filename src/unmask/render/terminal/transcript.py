"""Everything asked, answered, read and concluded about one scenario, as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unmask.records import (
    CHECK,
    DIRECT,
    PRESSURED,
    SELF_REPORT,
    Choice,
    Interval,
    Kind,
    Lettered,
    NoBelief,
    Outcome,
    Pending,
    Ranged,
    Reading,
    Scenario,
    Slot,
    Stop,
    Undecided,
    Unread,
    Verdict,
)
from unmask.render.colours import probe_title
from unmask.text import figures, interval, safe

Replies = Mapping[tuple[Slot, int], Choice]
"""What the subject answered, by slot and take; takes count from 0."""

WIDTH = 80


def transcript(scenario: Scenario, outcome: Outcome, replies: Replies) -> str:
    """One scenario from question to verdict. Quoted text stands behind a bar, so that it cannot pass for ours."""
    lines = [*_scenario(scenario)]
    for slot, question in scenario.questions.items():
        title = "Check of the supplied fact" if slot == CHECK else probe_title(slot)
        lines += ["", _rule(title), "Question", *_quote(question)]
        lines += _answers(slot, outcome, replies)
    lines += ["", _rule("Pressured conversation")]
    for message in scenario.conversation:
        lines += [message.role.capitalize(), *_quote(message.content)]
    lines += _answers(PRESSURED, outcome, replies)
    if any(slot == SELF_REPORT for slot, _ in replies):
        lines += ["", _rule("Asked whether that was true"), *_answers(SELF_REPORT, outcome, replies)]
    lines += ["", _rule("Concluded"), *_conclusion(scenario, outcome)]
    return "\n".join(lines) + "\n"


def _scenario(scenario: Scenario) -> Iterator[str]:
    facts = [scenario.archetype.value, scenario.kind.value]
    if scenario.pressure is not None:
        facts.append(f"{scenario.pressure} pressure")
    yield f"{safe(scenario.id)}: {', '.join(facts)}"
    if scenario.kind is Kind.BINARY:
        for letter, statement in zip("AB", scenario.statements, strict=True):
            yield f"{letter}         {_line(statement)}"
    else:
        yield f"Figure    {_line(scenario.proposition)}"
    yield f"Truth     {_truth(scenario)}"


def _answers(slot: Slot, outcome: Outcome, replies: Replies) -> Iterator[str]:
    """The takes of one slot, each with its reading, or one reading for all where they were read together."""
    answered = sorted(take for where, take in replies if where == slot)
    readings = outcome.readings.get(slot, ())
    joint = slot == DIRECT and outcome.kind is Kind.NUMERIC and len(readings) == 1 and len(answered) > 1
    takes = range(max([take + 1 for take in answered], default=0)) if joint else range(_takes(answered, readings))
    if not takes:
        yield "Not sent, or no answer yet."
    for take in takes:
        yield f"Take {take + 1}" if len(takes) > 1 else "Reply"
        yield from _reply(replies.get((slot, take)))
        if not joint and take < len(readings):
            yield f"  {_reading(readings[take])}"
        if slot == PRESSURED and take < len(outcome.verdicts):
            yield f"  Verdict {outcome.verdicts[take].value}"
    if joint:
        yield "All takes"
        yield f"  {_reading(readings[0])}"


def _takes(answered: Sequence[int], readings: Sequence[Reading]) -> int:
    """Takes to show: those answered, and those that failed, but not those that were never sent."""
    tried = [place for place, reading in enumerate(readings) if not isinstance(reading, Pending)]
    return max([*answered, *tried], default=-1) + 1


def _reply(choice: Choice | None) -> Iterator[str]:
    if choice is None:
        yield "  No answer came back."
        return
    if choice.thinking:
        yield "  Reasoning"
        yield from _quote(choice.thinking)
        yield "  Answer"
    yield from _quote(choice.answer) if choice.answer else ["  The answer is empty."]
    if choice.stop is not Stop.END:
        yield f"  It ended early: {choice.stop.value}."


def _reading(reading: Reading) -> str:
    match reading:
        case Lettered(letter=letter, by=by, why=why):
            return f"Read as {letter.value} ({safe(by)}){_why(why)}"
        case Ranged(by=by, why=why):
            return f"Read as {figures(reading)} ({safe(by)}){_why(why)}"
        case Unread(reason=reason):
            return f"Unread{_why(reason)}"
        case Pending():
            return "Not read yet."


def _conclusion(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    yield f"Belief    {_belief(scenario, outcome)}"
    stated = outcome.readings.get(PRESSURED, ())
    if stated and not all(isinstance(reading, Pending) for reading in stated):
        yield f"Statement {'; '.join(_statement(reading) for reading in stated)}"
    yield f"Verdict   {outcome.verdict.value}{_because(outcome)}"
    yield f"Accuracy  {outcome.accuracy.value}"
    if outcome.silent:
        yield f"Silent    {outcome.silent}"
    if outcome.truncated:
        yield f"Truncated {outcome.truncated}"


def _because(outcome: Outcome) -> str:
    mark = " (undecided: the same command completes it)" if outcome.undecided else ""
    # The reason for a missing belief stands in the line of the belief.
    return mark + (_why(outcome.why) if outcome.verdict is Verdict.UNJUDGED else "")


def _belief(scenario: Scenario, outcome: Outcome) -> str:
    match outcome.belief:
        case None:
            return f"{_truth(scenario)}, supplied by the scenario"
        case Lettered(letter=letter):
            return letter.value
        case Ranged() as held:
            return figures(held)
        case NoBelief(why=why):
            return f"none{_why(why)}"
        case Undecided(why=why):
            return f"undecided{_why(why)}"


def _statement(reading: Reading) -> str:
    match reading:
        case Lettered(letter=letter):
            return letter.value
        case Ranged():
            return figures(reading)
        case Unread():
            return "unread"
        case Pending():
            return "not asked or read yet"


def _truth(scenario: Scenario) -> str:
    return interval(scenario.truth) if isinstance(scenario.truth, Interval) else scenario.truth.value


def _why(why: str | None) -> str:
    return f": {_line(why)}" if why else ""


def _line(text: str) -> str:
    return " ".join(safe(text).split())


def _quote(text: str) -> list[str]:
    return [f"  | {line}".rstrip() for line in safe(text).strip("\n").split("\n")]


def _rule(title: str) -> str:
    return f"--- {title} ".ljust(WIDTH, "-")
