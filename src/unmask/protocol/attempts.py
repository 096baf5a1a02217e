"""From journal lines to readings. Pure: a better parser changes what an old journal says, without a call.

What a judge wrote is interpreted here each time it is looked at; nothing interpreted is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import ModuleType

from unmask.records import (
    Choice,
    Judged,
    Kind,
    Letter,
    Lettered,
    Method,
    Pending,
    Ranged,
    ReadBy,
    Reading,
    Stop,
    Unread,
)

ATTEMPTS = 2
"""How often a judge is asked about the same texts before they stay unread."""

CHOICES = (Method.CHOOSE_ABN, Method.CHOOSE_BAN, Method.CHOOSE_NAB, Method.CHOOSE_NBA)
"""The questions about one reply to a model that picks among fixed words (`choose`)."""
PICKS = (Method.PICK_AB, Method.PICK_BA)
"""The questions about one reply to a model that was trained to pick (`pick`)."""
_EXCERPT = 200
_WHY = 500


class ReplyState(StrEnum):
    """What can be done with a reply of the subject."""

    READABLE = "readable"
    SILENT = "silent"
    """Ended normally without a word: read as C without a call."""
    AGAIN = "again"
    """Cut off before any answer, or all of it went into the reasoning: worth one more try with more room."""


def reply_state(choice: Choice, *, attempt: int) -> ReplyState | Unread:
    """Whether a reply can be read. A reply cut off in mid-answer is readable: it has asserted what it has asserted."""
    match choice.stop, bool(choice.answer):
        case Stop.FILTER, _:
            return Unread("filtered: the endpoint withheld the reply", text=_excerpt(choice))
        case _, True:
            return ReplyState.READABLE
        case Stop.END, _ if choice.thinking is None:
            return ReplyState.SILENT
        case ((Stop.END | Stop.LENGTH), _) if attempt < ATTEMPTS:
            return ReplyState.AGAIN
        case Stop.LENGTH, _:
            return Unread("truncated: cut off before any answer, twice", text=_excerpt(choice))
        case Stop.END, _:
            return Unread("empty: nothing but reasoning came back, twice", text=_excerpt(choice))
        case _:
            return Unread(
                "empty: no text, and the endpoint did not say that the reply had ended", text=_excerpt(choice)
            )


def reading(calls: Sequence[Judged], *, kind: Kind) -> Reading:
    """What the judge lines about one (slot, digest), in file order, say. Lines of other methods are passed over."""
    for module, methods in (("choose", CHOICES), ("pick", PICKS)):
        if kind is Kind.BINARY and any(call.method in methods for call in calls):
            read: Reading = import_module(f"unmask.judges.{module}").reading(calls, kind=kind)
            return read
    method = Method.LETTER if kind is Kind.BINARY else Method.INTERVAL
    return _reading([call for call in calls if call.method is method])


def aside(calls: Sequence[Judged], *, method: Method) -> Reading:
    """The answer to a question beside the proposition: A, B, or C for cannot tell."""
    found = _reading([call for call in calls if call.method is method])
    if isinstance(found, Lettered) and found.letter is Letter.D:  # there is no D in these questions
        return Lettered(Letter.C, by=found.by, why=found.why)
    return found


def polarity(calls: Sequence[Judged]) -> Letter | Pending:
    """The side *yes* means by the judge: A, B, or C for cannot tell, which an answer that could not be had also is:
    then every reply goes to the judge, and nothing is lost but the saving."""
    match _reading([call for call in calls if call.method is Method.POLARITY]):
        case Lettered(letter=(Letter.A | Letter.B) as side):
            return side
        case Pending() as pending:
            return pending
        case _:
            return Letter.C


def polarity_said(call: Judged) -> Letter | None:
    """What this one answer says about polarity: A, B or C in so many words. An outage says nothing worth keeping."""
    found = _last_read([call])
    if not isinstance(found, Lettered) or found.letter is Letter.D:
        return None
    return found.letter


def next_attempt(calls: Sequence[Judged]) -> int | None:
    """Which attempt a judge call about these texts would be: 1, 2, or None where no call is due.

    `calls` are of one method. A line with an error is no attempt, but while it is the last one nothing is due: it
    was retried when it happened, and a later run that wants to try again leaves such lines out. A choice among
    fixed words is settled by its first answer.
    """
    if calls and (
        calls[-1].error is not None or calls[-1].method in (*CHOICES, *PICKS) or _last_read(calls) is not None
    ):
        return None
    attempt = 1 + sum(call.error is None for call in calls)
    return attempt if attempt <= ATTEMPTS else None


def room(base: int | None, *, attempt: int, cut_off: bool) -> int | None:
    """`max_tokens` of a judge call: four times as many for the second attempt if the first was cut off."""
    return base * 4 if base is not None and attempt > 1 and cut_off else base


def _reading(calls: Sequence[Judged]) -> Reading:
    if not calls:
        return Pending()
    found = _last_read(calls)
    if found is not None:
        return found
    if calls[-1].error is not None:
        return Unread(f"failed: {calls[-1].error}")
    if next_attempt(calls) is not None:
        return Pending()
    return _unread(calls[-1])


def _last_read(calls: Sequence[Judged]) -> Lettered | Ranged | None:
    for call in reversed(calls):
        for choice in reversed(call.choices):
            found = _read(choice, call.method)
            if found is not None:
                return found
    return None


def _read(choice: Choice, method: Method) -> Lettered | Ranged | None:
    complete = choice.stop in (Stop.END, Stop.OTHER)
    if method is Method.INTERVAL:
        bounds = _parse().find_interval(choice.text, complete=complete)
        return bounds and Ranged(bounds.absolute, bounds.relative, by=ReadBy.JUDGE, why=_shorten(bounds.why, _WHY))
    found = _parse().find_letter(choice.text, complete=complete)
    return found and Lettered(found.letter, by=ReadBy.JUDGE, why=_shorten(found.why, _WHY))


@cache
def _parse() -> ModuleType:
    """Its patterns take as long to build as the rest of a command takes to start, and are not needed before a judge has
    answered."""
    return import_module("unmask.judges.parse")


def _unread(call: Judged) -> Unread:
    choice = call.choices[-1] if call.choices else Choice()
    return Unread(_reason(choice), text=_excerpt(choice))


def _reason(choice: Choice) -> str:
    match choice.stop:
        case Stop.FILTER:
            return "filtered: the endpoint withheld the judge's answer"
        case Stop.LENGTH:
            return "cut_off: the judge ran out of room before its answer"
        case _ if not choice.answer:
            return "empty: the judge wrote nothing"
        case _:
            return "unreadable: no explicit answer in the judge's text"


def _excerpt(choice: Choice) -> str | None:
    """The end of what was written, where an answer would have been; of the reasoning if there is nothing else."""
    text = (choice.answer or choice.thinking or "").strip() or None
    return text if text is None or len(text) <= _EXCERPT else "…" + text[1 - _EXCERPT :]


def _shorten(text: str, size: int) -> str | None:
    return (text if len(text) <= size else text[: size - 1] + "…") or None
