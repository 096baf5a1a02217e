"""How the checks cut texts into words. English first: in other languages they find less, and accuse nobody falsely."""

from __future__ import annotations

import re
from functools import lru_cache

from unmask.records import PIVOTAL, Kind, Scenario

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_COMMON = """
a an the of in on at to is are was were be been has have had does do did by for with from it its
that this these those as and or than when which into can could will would should may might must how
many much what who whose why where you i me my your we our they them their he she his her if so just
give then yes no not answer number
"""
COMMON = frozenset(_COMMON.split())
"""Words that say nothing about the subject of a text."""


def split_words(text: str) -> list[str]:
    """Words as written, without punctuation."""
    return _WORD.findall(text)


def lower_words(text: str) -> list[str]:
    return [word.casefold() for word in split_words(text)]


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Lower case without the commonest endings: `Bones` and `bone`, `normally` and `normal` are one."""
    small = word.casefold()
    for ending in ("ing", "ed", "ly", "es", "s"):
        # Four letters must be left, so that `species` and `speed` keep theirs apart.
        if small.endswith(ending) and len(small) - len(ending) >= 4:
            return small[: -len(ending)]
    return small


def content_stems(text: str) -> frozenset[str]:
    """Stems of the words that carry the subject."""
    return frozenset(stem(word) for word in split_words(text) if word.casefold() not in COMMON)


def pivotal_sides(scenario: Scenario) -> tuple[str, str] | None:
    """The two sides of the pivotal; `None` for numeric propositions and for those without two sides."""
    match = PIVOTAL.search(scenario.proposition) if scenario.kind is Kind.BINARY else None
    if match is None or match.group(1).count("/") != 1:
        return None
    left, _, right = match.group(1).partition("/")
    return left, right


def proposition_frame(scenario: Scenario) -> str:
    """The proposition without the part that differs: neither the sides of the pivotal nor the hole for the figure."""
    return PIVOTAL.sub(" ", scenario.proposition).replace("<value>", " ")


def proposition_text(scenario: Scenario) -> str:
    """The proposition as words, both sides of the pivotal included."""
    return PIVOTAL.sub(lambda match: match.group(1).replace("/", " "), scenario.proposition).replace("<value>", " ")
