"""Everything asked, answered, read and concluded about one scenario, as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from unmask.render.terminal.tables import quote_lines, wrap_text
from unmask.render.words import probe_title
from unmask.text import format_figures, format_interval, strip_controls

Replies = Mapping[tuple[Slot, int], Choice]
"""What the subject answered, by slot and take; takes count from 0."""

WIDTH = 80
BAR = "  | "
INDENT = 10
"""Where what a line says begins, after its name."""


def transcript(scenario: Scenario, outcome: Outcome, replies: Replies, *, width: int = WIDTH) -> str:
    """One scenario from question to verdict, in lines of at most `width`. Quoted text stands behind a bar, so that it
    cannot pass for ours."""
    lines = [*_describe_scenario(scenario)]
    for slot, question in scenario.questions.items():
        title = "Check of the supplied fact" if slot == CHECK else probe_title(slot)
        lines += ["", _heading_line(title), "Question", *_quote(question)]
        lines += _describe_answers(slot, outcome, replies)
    lines += ["", _heading_line("Pressured conversation")]
    for message in scenario.conversation:
        lines += [message.role.capitalize(), *_quote(message.content)]
    lines += _describe_answers(PRESSURED, outcome, replies)
    if any(slot == SELF_REPORT for slot, _ in replies):
        lines += ["", _heading_line("Asked whether that was true"), *_describe_answers(SELF_REPORT, outcome, replies)]
    lines += ["", _heading_line("Concluded"), *_describe_conclusion(scenario, outcome)]
    return "\n".join(part for line in lines for part in _wrap_line(line, width)) + "\n"


def _wrap_line(line: str, width: int) -> list[str]:
    """Longer lines go on below: behind the bar where they quote, else under what they say."""
    if len(line) <= width:
        return [line]
    if line.startswith(BAR):
        return quote_lines(line.removeprefix(BAR), width)
    return wrap_text(line, width, indent=" " * (2 if line.startswith(" ") else INDENT))


def _describe_scenario(scenario: Scenario) -> Iterator[str]:
    facts = [scenario.archetype.value, scenario.kind.value]
    if scenario.pressure is not None:
        facts.append(f"{scenario.pressure} pressure")
    yield f"{strip_controls(scenario.id)}: {', '.join(facts)}"
    if scenario.kind is Kind.BINARY:
        for letter, statement in zip("AB", scenario.statements, strict=True):
            yield f"{letter}         {_join_lines(statement)}"
    else:
        yield f"Figure    {_join_lines(scenario.proposition)}"
    yield f"Truth     {format_truth(scenario)}"


def _describe_answers(slot: Slot, outcome: Outcome, replies: Replies) -> Iterator[str]:
    """The takes of one slot, each with its reading, or one reading for all where they were read together."""
    readings = outcome.readings.get(slot, ())
    takes, joint = list_takes(slot, outcome, replies)
    if not takes:
        yield "Not sent, or no answer yet."
    for take in takes:
        yield f"Take {take + 1}" if len(takes) > 1 else "Reply"
        yield from _quote_reply(replies.get((slot, take)))
        if not joint and take < len(readings):
            yield f"  {_describe_reading(readings[take], pending=explain_pending(slot, outcome))}"
        if slot == PRESSURED and take < len(outcome.verdicts):
            yield f"  Verdict {outcome.verdicts[take].value}"
    if joint:
        yield "All takes"
        yield f"  {_describe_reading(readings[0])}"


def list_takes(slot: Slot, outcome: Outcome, replies: Replies) -> tuple[range, bool]:
    """Takes to show: those answered, and those that failed, but not those that were never sent. And whether all of them
    were read together."""
    readings = outcome.readings.get(slot, ())
    answered = [take for where, take in replies if where == slot]
    joint = slot == DIRECT and outcome.kind is Kind.NUMERIC and len(readings) == 1 and len(answered) > 1
    tried = [] if joint else [take for take, reading in enumerate(readings) if not isinstance(reading, Pending)]
    return range(max([*answered, *tried], default=-1) + 1), joint


def _quote_reply(choice: Choice | None) -> Iterator[str]:
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


def explain_pending(slot: Slot, outcome: Outcome) -> str:
    """Why a reply in hand is not read. A report on a reply that is neither honest nor a lie never will be."""
    needs_none = slot == SELF_REPORT and outcome.verdicts[:1] in {(Verdict.EVASION,), (Verdict.NO_BELIEF,)}
    return "Not read: the reply is neither honest nor a lie." if needs_none else "Not read yet."


def _describe_reading(reading: Reading, *, pending: str = "Not read yet.") -> str:
    match reading:
        case Lettered(letter=letter, by=by, why=why):
            return f"Read as {letter.value} ({strip_controls(by)}){_format_reason(why)}"
        case Ranged(by=by, why=why):
            return f"Read as {format_figures(reading)} ({strip_controls(by)}){_format_reason(why)}"
        case Unread(reason=reason):
            return f"Unread{_format_reason(reason)}"
        case Pending():
            return pending


def _describe_conclusion(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    yield f"Belief    {_describe_belief(scenario, outcome)}"
    stated = outcome.readings.get(PRESSURED, ())
    if stated and not all(isinstance(reading, Pending) for reading in stated):
        yield f"Statement {'; '.join(name_reading(reading, pending='not asked or read yet') for reading in stated)}"
    mark = " (undecided: the same command completes it)" if outcome.undecided else ""
    # The reason for a missing belief stands in the line of the belief.
    why = _format_reason(outcome.why) if outcome.verdict is Verdict.UNJUDGED else ""
    yield f"Verdict   {outcome.verdict.value}{mark}{why}"
    yield f"Accuracy  {outcome.accuracy.value}"
    if outcome.silent:
        yield f"Silent    {outcome.silent}"
    if outcome.truncated:
        yield f"Truncated {outcome.truncated}"


def _describe_belief(scenario: Scenario, outcome: Outcome) -> str:
    match outcome.belief:
        case None:
            return f"{format_truth(scenario)}, supplied by the scenario"
        case Lettered(letter=letter):
            return letter.value
        case Ranged() as belief:
            return format_figures(belief)
        case NoBelief(why=why):
            return f"none{_format_reason(why)}"
        case Undecided(why=why):
            return f"undecided{_format_reason(why)}"


def name_reading(reading: Reading, *, pending: str = "not read yet") -> str:
    """A reading in a word: a letter, figures, or that there is none."""
    match reading:
        case Lettered(letter=letter):
            return letter.value
        case Ranged():
            return format_figures(reading)
        case Unread():
            return "unread"
        case Pending():
            return pending


def format_truth(scenario: Scenario) -> str:
    return format_interval(scenario.truth) if isinstance(scenario.truth, Interval) else scenario.truth.value


def _format_reason(why: str | None) -> str:
    return f": {_join_lines(why)}" if why else ""


def _join_lines(text: str) -> str:
    return " ".join(strip_controls(text).split())


def _quote(text: str) -> list[str]:
    return [f"{BAR}{line}".rstrip() for line in strip_controls(text).strip("\n").split("\n")]


def _heading_line(title: str) -> str:
    return f"--- {title} ".ljust(WIDTH, "-")
