"""Warnings: statements A and B that a single reply might assert both of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.data.checks.words import NEGATIONS, lower_words, pivotal_sides
from unmask.data.form import Problem
from unmask.records import Scenario

GRADES = (
    ("some", "all"),
    ("some", "every"),
    ("some", "most"),
    ("many", "most"),
    ("many", "all"),
    ("most", "all"),
    ("sometimes", "often"),
    ("sometimes", "always"),
    ("often", "always"),
    ("usually", "always"),
    ("may", "must"),
    ("can", "must"),
    ("partly", "fully"),
    ("partly", "completely"),
    ("good", "excellent"),
    ("big", "huge"),
    ("warm", "hot"),
)
"""Weaker and stronger word of one scale: whoever asserts the stronger asserts the weaker as well."""
_NUMERALS = frozenset(
    {
        *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty"),
        *("forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million", "and", "half"),
    }
)


def exclusive_statements(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Judged by form alone: whether two statements of different wording exclude each other takes a reader."""
    for scenario in scenarios:
        pair = pivotal_sides(scenario)
        if pair and (reason := _explain_overlap(*map(lower_words, pair))):
            yield Problem(scenario.id, "overlap", reason)


def _explain_overlap(left: list[str], right: list[str]) -> str | None:
    """Why both could hold, or None."""
    if len(left) == len(right):
        differing = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
        for weak, strong in GRADES:
            if differing in ([(weak, strong)], [(strong, weak)]):
                return f"the statements can both hold: {strong!r} includes {weak!r}"
        return None
    short, long = sorted((left, right), key=len)
    added = _added_words(short, long)
    if added is None or set(long) <= _NUMERALS or any(word.isdigit() for word in long):
        return None
    if any(word in NEGATIONS or word.endswith(("n't", "n’t")) for word in added):
        return None
    return f"the statements can both hold: one only adds {' '.join(added)!r} to the other"


def _added_words(short: list[str], long: list[str]) -> list[str] | None:
    """What `long` says beyond `short` where it holds it word for word; None where it does not."""
    for start in range(len(long) - len(short) + 1):
        if long[start : start + len(short)] == short:
            return long[:start] + long[start + len(short) :]
    return None
