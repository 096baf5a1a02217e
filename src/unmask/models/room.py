"""How many tokens one reply may have where the user has not set a limit.

As published: 1,000. Reasoning counts as part of a reply, so that limit cuts off a model that reasons before it has
answered, and a reply that was cut off reads more honest than it is: a thinking model of 27 billion parameters measured
89.7 % honesty with replies cut at 1,000 tokens and 69.6 % at 32,000. Once a model has shown that it reasons it gets
16,000.
"""

from __future__ import annotations

from enum import StrEnum

from unmask.records import Asked, Call, Record, Stop

ROOM = 1_000
ROOM_FOR_REASONING = 16_000

UNLIMITED = 32_768
"""Tokens that are expected at most of a reply whose length is left to the endpoint."""


def room_of_try(fixed: int | None, attempt: int) -> int:
    """For questions that are asked one by one: more for the second try, since the first may have been cut off."""
    return fixed or (ROOM if attempt == 1 else ROOM_FOR_REASONING)


class Sign(StrEnum):
    """What shows that a model reasons."""

    TOKENS = "reasoning tokens"
    TEXT = "reasoning text"
    CUT_OFF = "a reply cut off before any answer"


class Room(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a model gets that reasons."""

    tokens: int = ROOM_FOR_REASONING
    """Of one reply: less than 16,000 where the endpoint or a context has named its limit."""
    since: str
    """When the model showed that it reasons."""
    sign: Sign


def find_sign(line: Call) -> Sign | None:
    """What an answer shows. A judge answers in its last line, so one that was cut off has not answered; a pick of one
    word is whole whatever its stop reason."""
    if line.usage.reasoning:
        return Sign.TOKENS
    of_subject = isinstance(line, Asked)
    for choice in line.choices:
        if choice.reasoning or ("<" in choice.text and choice.thinking):
            return Sign.TEXT
        if choice.stop is Stop.LENGTH and choice.probabilities is None and not (of_subject and choice.answer):
            return Sign.CUT_OFF
    return None
