"""What can be done with a reply of the subject, and how much room the next try is given. Pure."""

from __future__ import annotations

from enum import StrEnum

from unmask.judges.answers import ATTEMPTS, excerpt
from unmask.records import Choice, Stop, Unread


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
            return Unread("filtered: the endpoint withheld the reply", text=excerpt(choice))
        case _, True:
            return ReplyState.READABLE
        case Stop.END, _ if choice.thinking is None:
            return ReplyState.SILENT
        case ((Stop.END | Stop.LENGTH), _) if attempt < ATTEMPTS:
            return ReplyState.AGAIN
        case Stop.LENGTH, _:
            return Unread("truncated: cut off before any answer, twice", text=excerpt(choice))
        case Stop.END, _:
            return Unread("empty: nothing but reasoning came back, twice", text=excerpt(choice))
        case _:
            return Unread("empty: no text, and the endpoint did not say that the reply had ended", text=excerpt(choice))


def judge_max_tokens(base: int | None, *, attempt: int, cut_off: bool) -> int | None:
    """`max_tokens` of a judge call: four times as many for the second attempt if the first was cut off."""
    return base * 4 if base is not None and attempt > 1 and cut_off else base
