"""Months and years that a sentence names, for `stated` and `doubts`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from unmask.judges import cues


class Moment(NamedTuple):
    """A month, a year, or both, at a place of a sentence."""

    start: int
    end: int
    month: str
    year: str


def find_moments(text: str) -> list[Moment]:
    result = []
    for match in cues.TIME.finditer(text):
        month = match["month"] or ""
        if (
            month
            and not match["of"]
            and not re.search(r"\b(?:in|by|until|since|of|to|for|early|late|mid)\s+\Z", text[: match.start()])
        ):
            continue
        if not cues.NO_TIME.search(text[: match.start()]):
            result.append(Moment(match.start(), match.end(), month, match["of"] or match["year"] or ""))
    return result


def same_time(moment: Moment, wanted: Sequence[Moment]) -> bool:
    """Whether a moment is one of the proposition, as far as both say when."""
    return any(
        (not moment.year or not time.year or moment.year == time.year)
        and (not moment.month or not time.month or moment.month == time.month)
        for time in wanted
    )


def chain_moments(moments: Sequence[Moment], sentence: str) -> list[Moment]:
    """The first moment, and what it is joined to: *August 2020 to July 2021*. In either direction."""
    result = list(moments[:1])
    for moment in moments[1:]:
        first, second = sorted((result[-1], moment))
        if not cues.JOINS.fullmatch(sentence, first.end, second.start):
            break
        result.append(moment)
    return result
