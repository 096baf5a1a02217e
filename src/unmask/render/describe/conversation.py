"""What was asked and answered in one scenario, and how each answer was read: plain text for terminal and pages. Of
several runs the answers are side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from unmask.judges.asides import ASIDES
from unmask.judges.base import JUDGES
from unmask.protocol.probes import PROBE_SYSTEM
from unmask.records import (
    CHECK,
    CONTROL,
    DIRECT,
    PRESSURED,
    SELF_REPORT,
    Choice,
    Kind,
    Lettered,
    Outcome,
    Pending,
    Ranged,
    ReadBy,
    Reading,
    Scenario,
    Slot,
    Unread,
)
from unmask.render import words
from unmask.runs.run import Run

Replies = Mapping[tuple[Slot, int], Choice]
"""What the subject answered, by slot and take; takes count from 0."""
Shown = Sequence[tuple[Outcome, Replies] | None]
"""What each run shows in a scenario; `None` for a run without it."""

TITLES = {
    CHECK: "Was the supplied fact understood?",
    PRESSURED: "Under pressure",
    CONTROL: "Without the role",
    SELF_REPORT: "Asked whether that was true",
}
TURNS = {"system": "System", "user": "User", "assistant": "Put into its mouth"}
APART = f"Each probe is a conversation of its own, after the system turn “{PROBE_SYSTEM}”"
MANY = 3
"""Of more takes than these only the first that was read in each way is quoted."""
LONGEST_REASON = 400


class Answer(NamedTuple):
    """One answer, given in one take or, word for word, in several."""

    takes: str
    text: str
    thinking: str
    notes: Sequence[str]
    readings: Sequence[str]


class Answers(NamedTuple):
    """What one run answered in one place."""

    said: Sequence[Answer]
    together: str | None
    """The one reading of all takes, where they were read together."""
    missing: str | None


class Exchange(NamedTuple):
    """What was put to the models in one place, and what each run answered; `None` for one without this scenario."""

    title: str
    asked: Sequence[tuple[str, str]]
    answers: Sequence[Answers | None]

    @property
    def texts(self) -> Iterator[str]:
        """Everything that is quoted."""
        yield from (text for _, text in self.asked)
        for answer in (one for answers in self.answers if answers for one in answers.said):
            yield from filter(None, (answer.text, answer.thinking))


def pressured_exchanges(scenario: Scenario, shown: Shown, *, whole: bool) -> Iterator[Exchange]:
    """The pressured request, then whatever else was asked. `whole` quotes every take."""
    asked = tuple((TURNS[message.role], message.content) for message in scenario.conversation)
    yield _build_exchange(PRESSURED, asked, shown, whole=whole)
    elsewhere = {DIRECT, CHECK, PRESSURED, *scenario.probes}
    slots = (slot for part in shown if part for slot, _ in part[1] if slot not in elsewhere)
    yield from (_build_exchange(slot, (), shown, whole=whole) for slot in dict.fromkeys(slots))


def probe_exchanges(scenario: Scenario, shown: Shown, *, whole: bool) -> Iterator[Exchange]:
    """The neutral questions. One that was never put is named without its text."""
    for slot, question in scenario.questions.items():
        if slot == CHECK and not any(part and CHECK in part[0].readings for part in shown):
            continue
        exchange = _build_exchange(slot, (("", question),), shown, whole=whole)
        was_put = any(answers and answers.said for answers in exchange.answers)
        yield exchange if was_put else exchange._replace(asked=())


def _build_exchange(slot: Slot, asked: Sequence[tuple[str, str]], shown: Shown, *, whole: bool) -> Exchange:
    answers = tuple(part and _quote_run(slot, *part, whole=whole) for part in shown)
    return Exchange(TITLES.get(slot) or words.probe_title(slot), asked, answers)


def _quote_run(slot: Slot, outcome: Outcome, replies: Replies, *, whole: bool) -> Answers:
    takes, joint = _list_takes(slot, outcome, replies)
    readings = outcome.readings.get(slot, ())
    return Answers(
        said=tuple(_quote_answers(slot, takes, () if joint else readings, (outcome, replies), whole=whole)),
        together=describe_reading(readings[0], "") if joint else None,
        missing=None if takes else words.no_answer(slot, outcome),
    )


def _list_takes(slot: Slot, outcome: Outcome, replies: Replies) -> tuple[range, bool]:
    """Takes to show: those answered, and those that failed, but not those that were never sent. And whether all of them
    were read together."""
    readings = outcome.readings.get(slot, ())
    answered = [take for where, take in replies if where == slot]
    joint = slot == DIRECT and outcome.kind is Kind.NUMERIC and len(readings) == 1 and len(answered) > 1
    tried = [] if joint else [take for take, reading in enumerate(readings) if not isinstance(reading, Pending)]
    return range(max([*answered, *tried], default=-1) + 1), joint


def _quote_answers(
    slot: Slot, takes: range, readings: Sequence[Reading], shown: tuple[Outcome, Replies], *, whole: bool
) -> Iterator[Answer]:
    """Answers in the order of their first take, each with all takes that said the same, or were read alike."""
    outcome, replies = shown
    alike = len(takes) > MANY and not whole
    groups: dict[object, list[int]] = {}
    for take in takes:
        choice = replies.get((slot, take))
        reading = readings[take] if take < len(readings) else None
        verdict = outcome.verdicts[take] if slot == PRESSURED and take < len(outcome.verdicts) else None
        text = choice and (choice.text, choice.reasoning, choice.stop)
        groups.setdefault((reading_key(reading), verdict) if alike else (text, reading, verdict), []).append(take)
    for same in groups.values():
        choice = replies.get((slot, same[0]))
        yield Answer(
            takes=_name_takes(same, len(takes), alike=alike),
            text=choice.answer if choice else "",
            thinking=(choice.thinking if choice else None) or "",
            notes=words.answer_notes(choice),
            readings=tuple(_describe_take(slot, same[0], readings, outcome)),
        )


def _describe_take(slot: Slot, take: int, readings: Sequence[Reading], outcome: Outcome) -> Iterator[str]:
    if take < len(readings):
        yield describe_reading(readings[take], words.not_read(slot, outcome))
    for name, aside in ASIDES.items():
        besides = outcome.readings.get(aside.arms.get(slot, ""), ())
        if take < len(besides) and (said := words.aside(name, besides[take])):
            yield said
    if slot == PRESSURED and take < len(outcome.verdicts) and len(outcome.verdicts) > 1:
        yield f"Verdict of this take: {words.NAMES[outcome.verdicts[take]]}."


def reading_key(reading: Reading | None) -> object:
    """What two readings share that say the same."""
    match reading:
        case Lettered(letter=letter):
            return letter
        case Ranged(absolute=absolute, relative=relative):
            return absolute, relative
        case _:
            return type(reading)


def _name_takes(same: list[int], total: int, *, alike: bool) -> str:
    if total == 1:
        return "Reply"
    numbers = [str(take + 1) for take in same]
    if len(same) == 1:
        return f"Take {numbers[0]}"
    if not alike:
        return f"Takes {', '.join(numbers)}, word for word the same"
    return f"Take {numbers[0]}; read like it: {', '.join(numbers[1:])}"


# Nothing is given back: three rows of marks side by side would be divided in every way there is.
_ONLY_ANSWER = re.compile(r"[\W_]*+(?:answer|option)?[\W_]*+[a-d]?+[\W_]*+", re.IGNORECASE)


def describe_reading(reading: Reading, pending: str) -> str:
    match reading:
        case Lettered(by=by, why=why) | Ranged(by=by, why=why):
            said = "" if not why or _ONLY_ANSWER.fullmatch(why) else f": “{_shorten_reason(why)}”"
            return f"Read as {words.reading(reading)} {words.origin(by)}{said or '.'}"
        case Unread(reason=reason):
            return f"Unread: {_shorten_reason(reason)}"
        case Pending():
            return pending


def _shorten_reason(why: str) -> str:
    line = " ".join(why.split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def quote_judge(run: Run, scenario: Scenario, outcome: Outcome, judge: str | None) -> Iterator[tuple[str, str]]:
    """What the judge was sent about the first reply under pressure that it has read, message by message."""
    readings, replies = outcome.readings.get(PRESSURED, ()), run.replies(scenario.id)
    read = (take for take, reading in enumerate(readings) if getattr(reading, "by", None) == ReadBy.JUDGE)
    choice = next((replies[PRESSURED, take] for take in read if (PRESSURED, take) in replies), None)
    if choice is None or judge not in run.definition.judges:
        return
    settings = run.definition.settings(judge, kind=scenario.kind)
    asked = JUDGES[settings.style]
    for method in asked.questions(scenario.kind)[:1]:
        request = asked.request(method, scenario, PRESSURED, (choice.answer,), sampling=settings.judge_sampling)
        yield from ((message.role.capitalize(), message.content) for message in request.messages)
