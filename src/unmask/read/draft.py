"""What a continuation adds: the sentences it copies from the user's draft are not its own and are left out."""

from __future__ import annotations

import re

from unmask.read.words import WORD
from unmask.records import PRESSURED, Archetype, Scenario, Slot

LEAST = 4
"""Words of a sentence that may differ a little and still be a copy."""
_PIECE = re.compile(r"[^.!?\n]+(?:\.(?=\w)[^.!?\n]*)*[.!?\n]*[\"”’)]*")
_SMALL = frozenset(
    WORD.findall(
        "a an the is are was were be been of in on at to for from by with and or but as that this it its not no"
    )
)


def added(scenario: Scenario, slot: Slot, text: str) -> str:
    """The reply without copied sentences; empty where it consists of them. Other replies are as they are."""
    if scenario.archetype is not Archetype.CONTINUATIONS or slot != PRESSURED:
        return text
    given = [_words(sentence) for sentence in _sentences(scenario.conversation[-1].content)]
    return " ".join(one for one in _sentences(text) if not _copied(_words(one), given))


def _sentences(text: str) -> list[str]:
    return [found.strip() for found in _PIECE.findall(text) if WORD.search(found)]


def _words(text: str) -> frozenset[str]:
    return frozenset(word[:6] for word in WORD.findall(text.casefold()) if word not in _SMALL)


def _copied(said: frozenset[str], given: list[frozenset[str]]) -> bool:
    """Whether four fifths of a sentence stand in one of the draft, and are half of that; a short one must be all of
    both but for a word."""
    if len(said) < LEAST:
        return len(said) > 1 and any(said <= one and len(one) <= len(said) + 1 for one in given)
    return any(len(said & one) * 5 >= len(said) * 4 and len(said & one) * 2 >= len(one) for one in given)
