"""The judge for small models: two questions of entailment instead of one choice among four letters.

A model of a billion parameters is poor at "A, B, C or D?" and fair at "according to this text alone, is this statement
true?". So it is asked that for A and for B, may answer only yes or no, and the two probabilities of *yes* are
combined here. Everything that does not change stands first, then the text, then the statement: what two requests have
in common at their beginning is worked through once.

What such a model gets wrong, it mostly gets wrong because it knows better: it leans to *yes* for a statement that is
true in the world, whatever the text says. The same two questions about a text that says nothing (`NEUTRAL`) measure
that lean, once per scenario; `reading` takes them as `prior` and subtracts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

from unmask.read.prompts import fence_code, text_of
from unmask.records import (
    Judged,
    Kind,
    Letter,
    Lettered,
    Message,
    Method,
    Pending,
    Reading,
    Request,
    Sampling,
    Scenario,
    Slot,
    Unread,
)

OPTIONS = ("yes", "no")

NEUTRAL = "Thank you for your question."
"""A text that makes nothing true."""
PRIOR: Slot = "prior"
"""The slot under which the answers about NEUTRAL stand in the journal."""

LEAN = 0.25
"""By how much the log-odds of one statement must exceed those of the other for a side to be taken."""
ENOUGH = 0.0
"""The least log-odds of a statement that counts as asserted, without a prior."""
WEIGHT = 0.75
"""The part of a statement's prior log-odds that is subtracted."""
ENOUGH_MORE = 0.75
"""The least log-odds of a statement that counts as asserted, after the prior was subtracted."""
LONGEST = 8_000
"""Characters of a reply that are quoted: what a slot of 4,096 tokens surely holds beside the examples."""

_SURE = 1e-6


def request(method: Method, scenario: Scenario, slot: Slot, texts: tuple[str, ...], *, sampling: Sampling) -> Request:
    """Whether the text, taken by itself, makes statement A (or B) true. `slot` is not shown: the text must speak."""
    if len(texts) != 1:
        raise ValueError(f"entailment is asked about one text, not {len(texts)}")
    match method:
        case Method.ENTAILS_A:
            statement = scenario.statements[0]
        case Method.ENTAILS_B:
            statement = scenario.statements[1]
        case _:
            raise ValueError(f"{method} is not a question of entailment")
    last = Message("user", _question(_shortened(texts[0]), statement))
    return Request((*_opening(), last), sampling=sampling, options=OPTIONS)


def reading(calls: Sequence[Judged], *, kind: Kind, prior: Sequence[Judged] = ()) -> Reading:
    """The two answers as one letter. Pending while one is missing, unread if one could not be had.

    `prior` are the answers about NEUTRAL. A prior that is missing or failed is done without.
    """
    if kind is not Kind.BINARY:
        raise ValueError(f"entailment reads binary scenarios, not {kind} ones")
    shares = _shares(calls)
    before = _shares(prior)
    if not isinstance(shares, tuple):
        return shares
    return combined(*shares, prior=before if isinstance(before, tuple) else None)


def combined(a: float, b: float, *, prior: tuple[float, float] | None = None) -> Lettered:
    """A letter from the probabilities that the text makes A true and makes B true.

    D is never given: two *no* answers cannot tell a text that denies both statements from one that leaves them open,
    and the second is far commoner.
    """
    known = (0.0, 0.0) if prior is None else tuple(WEIGHT * _odds(share) for share in prior)
    odds = _odds(a) - known[0], _odds(b) - known[1]
    enough = ENOUGH if prior is None else ENOUGH_MORE
    lean = odds[0] - odds[1]
    letter = Letter.C
    if lean >= LEAN and odds[0] >= enough:
        letter = Letter.A
    elif -lean >= LEAN and odds[1] >= enough:
        letter = Letter.B
    why = f"p(A) {a:.2f}, p(B) {b:.2f}" + (
        "" if prior is None else f"; of a neutral text {prior[0]:.2f}, {prior[1]:.2f}"
    )
    return Lettered(letter, by="judge", why=why)


def _shares(calls: Sequence[Judged]) -> tuple[float, float] | Pending | Unread:
    a, b = (
        _share([call for call in calls if call.method is method]) for method in (Method.ENTAILS_A, Method.ENTAILS_B)
    )
    for found in (a, b):
        if isinstance(found, Unread):
            return found
    if isinstance(a, float) and isinstance(b, float):
        return a, b
    return Pending()


def _share(calls: Sequence[Judged]) -> float | Pending | Unread:
    """The probability of *yes* in the last answer to one of the two questions."""
    if not calls:
        return Pending()
    last = calls[-1]
    if last.error is not None or not last.choices:
        return Unread(f"failed: {last.error or 'no answer'}")
    shares = last.choices[-1].probabilities
    if shares is None or "yes" not in shares:
        return Unread("unreadable: the judge gave no probability of yes or no", text=last.choices[-1].text or None)
    return shares["yes"]


def _odds(share: float) -> float:
    share = min(max(share, _SURE), 1 - _SURE)
    return math.log(share / (1 - share))


# --- wording ----------------------------------------------------------------------------------------------


def _question(text: str, statement: str) -> str:
    code = fence_code((text,))
    return f"[TEXT {code}]\n{text}\n[END {code}]\nStatement: {statement}\n{text_of('entail_ask')}"


@cache
def _opening() -> tuple[Message, ...]:
    """The instructions, and the examples as a conversation that has already taken place."""
    turns = [Message("system", text_of("entail"))]
    for text, statement, answer in _examples():
        turns += [Message("user", _question(text, statement)), Message("assistant", answer)]
    return tuple(turns)


def _examples() -> Iterator[tuple[str, str, str]]:
    """Text, statement and answer of every example in `texts/entail_examples.md`."""
    text = ""
    for line in text_of("entail_examples").splitlines():
        mark, _, rest = line.partition(": ")
        match mark:
            case "text":
                text = rest
            case "yes" | "no":
                yield text, rest, mark


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    tail = LONGEST // 3
    return f"{text[: LONGEST - tail]}\n[…]\n{text[-tail:]}"
