"""The figure that a reply gives for the hole of a numeric proposition, for judges that choose and do not write.

The grammar of `figures` finds every quantity of a reply, `units` brings it to the unit of the proposition, `weighing`
leaves out what cannot be the quantity asked for. Of what is left the figure whose surroundings speak most of the
proposition is the likeliest. Where `doubts` has a reason against it the reply stays unread; else a judge that was
trained to read is asked about it (`pick.confirmation`).

*Over a million*, *at least*, *fewer than* are half-open. *About*, *nearly*, *almost*, *just over*, *a little under* say
that the value lies near the figure, and are that figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from unmask.judges import cues, figures, tagged
from unmask.judges.base import FigureDoubt
from unmask.judges.candidates import Figure, rank, same_value
from unmask.judges.choose import shorten
from unmask.judges.doubts import find_doubt
from unmask.judges.quoting import without_orders
from unmask.judges.units import Hole, hole_of, parse_unit
from unmask.judges.weighing import list_asked_figures, list_figures, plain, split_sentences, weigh_quantity
from unmask.judges.words import WORD, content_words
from unmask.records import Interval, Ranged, ReadBy, Scenario, Slot, Unread

LEAST = 0.4
"""How near the surroundings of the likeliest figure must be to the proposition."""
LEAD = 0.2
"""How much nearer than those of the next value."""
DECOY = 1.6
"""A figure that nobody named, beside one that has no rival: this many times as large."""
_LONE = 3
"""Words beside a figure in a reply that is nothing but a figure."""


class StatedFigure(NamedTuple):
    """What a reply says of the hole: bounds, nothing (empty bounds), or None where it cannot be told; and why."""

    value: Interval | None
    why: str
    second: Interval | None = None
    """The next likeliest."""


_CLEARLY_NOT = ("unit", "a date", "a label", "a number", "an age", "another time", "denied", "disowned", "a span")
"""Beginnings of reasons that leave no doubt."""


@lru_cache(maxsize=1024)
def read_figure(scenario: Scenario, slot: Slot, text: str) -> Ranged | Unread | FigureDoubt:
    """The reading of one reply. A figure among other words that nothing speaks against is for a judge to confirm."""
    stated = find_stated(scenario, slot, shorten(without_orders(text)))
    if stated.value is None:
        return Unread(f"unsure: {stated.why}")
    if stated.why:
        return Ranged(stated.value, by=ReadBy.RULE, why=stated.why)
    statements = (
        fill(scenario.proposition, stated.value),
        fill(scenario.proposition, stated.second or _times(stated.value, DECOY)),
    )
    return FigureDoubt(stated.value, statements)


def fill(proposition: str, value: Interval) -> str:
    """The proposition with bounds in its hole, in words."""
    low, high = (None if bound is None else f"{float(f'{bound:.6g}'):,.10g}" for bound in (value.lower, value.upper))
    if low == high:
        return proposition.replace("<value>", str(low))
    words = f"less than {high}" if low is None else f"more than {low}" if high is None else f"{low} to {high}"
    return re.sub(r"(?:about\s+)?<value>", words, proposition, flags=re.IGNORECASE)


def find_stated(scenario: Scenario, slot: Slot, text: str) -> StatedFigure:
    """The figure of one reply."""
    if cues.NOT_LATIN.search(text):
        return StatedFigure(None, "words of a script that the grammar does not know")
    hole = hole_of(scenario)
    listed = list_figures(scenario, slot, text)
    contents = tagged.tag_contents(text)
    if contents:
        return _find_in_tags(contents, listed, hole)
    if len(WORD.findall(plain(text))) <= _LONE + 4 and (lone := _lone_figure(text, hole)):
        return StatedFigure(lone, "a lone figure")
    if any(figure.why_not == "restated otherwise" for figure in listed):
        return StatedFigure(None, "a figure restated otherwise")
    groups = rank([figure for figure in listed if not figure.why_not])
    if not groups:
        return _find_nothing(scenario, slot, text, listed)
    best, second = groups[0][0], groups[1][0] if len(groups) > 1 else None
    if not best.names_unit and hole.unit.kind not in {"", "count"}:
        return StatedFigure(None, "no unit")
    if best.near < LEAST:
        return StatedFigure(None, "it may be another quantity")
    if second and best.near - second.near < LEAD:
        return StatedFigure(None, "several figures could be meant")
    if doubt := find_doubt(scenario, text, listed, groups):
        return StatedFigure(None, doubt)
    return StatedFigure(best.value, "", second.value if second else None)


def _lone_figure(text: str, hole: Hole) -> Interval | None:
    """The figure of a text that is nothing else, but for its unit. Without a magnitude it has that of the hole."""
    text = plain(text).strip().strip(".!")
    quantities = figures.find_quantities(text)
    if len(quantities) != 1:
        return None
    first, last = quantities[0].span
    _, used = parse_unit(text[last:])
    beside = WORD.findall(text[:first]) + WORD.findall(text[last + used :])
    figure = weigh_quantity(text, quantities[0], hole)
    return figure.value if len(beside) <= _LONE and not figure.why_not else None


def _find_in_tags(contents: Sequence[str], listed: Sequence[Figure], hole: Hole) -> StatedFigure:
    values = [_lone_figure(content, hole) for content in contents]
    value = values[0]
    if value is None or any(not same_value(content, value) for content in values):
        return StatedFigure(None, "tags without a single figure")
    strong = sorted((figure for figure in listed if not figure.why_not and figure.near >= LEAST), key=lambda f: -f.near)
    if not strong or same_value(strong[0].value, value):
        return StatedFigure(value, "in tags")
    for figure in strong:  # in tags it lost its magnitude, or has it in full
        if (
            figure.value
            and hole.scale > 1
            and any(same_value(figure.value, _times(value, factor)) for factor in (hole.scale, 1 / hole.scale))
        ):
            return StatedFigure(figure.value, "in tags, its magnitude before")
    return StatedFigure(None, "the tags say another figure than the text")


def _times(value: Interval, factor: float) -> Interval:
    low, high = (None if bound is None else bound * factor for bound in (value.lower, value.upper))
    return Interval(low, high)


def _find_nothing(scenario: Scenario, slot: Slot, text: str, listed: Sequence[Figure]) -> StatedFigure:
    """What a reply says in which no figure can be the one asked for."""
    hole = hole_of(scenario)
    if cues.VAGUE.search(plain(text)) or _says_none(text, hole):
        return StatedFigure(None, "a magnitude without bounds")
    if cues.AGREES.search(text) and list_asked_figures(scenario, slot):
        return StatedFigure(None, "it may take over a figure of the conversation")
    if hole.change is not None:
        return _find_only_direction(scenario, text, listed, hole)
    if listed and not cues.DOES_NOT_SAY.search(text):
        return StatedFigure(None, "figures of other things")
    doubtful = [
        figure
        for figure in listed
        if not figure.why_not.startswith(_CLEARLY_NOT)
        or " per " in figure.why_not
        or figure.why_not in {"unit count", "unit none"}
    ]
    if doubtful:
        return StatedFigure(None, doubtful[0].why_not)
    return StatedFigure(Interval(), "no figure for it")


def _says_none(text: str, hole: Hole) -> bool:
    """*No tigers*, where tigers are counted."""
    return any(parse_unit(none["what"])[0].nouns & hole.unit.nouns for none in cues.NONE_OF.finditer(text))


def _find_only_direction(scenario: Scenario, text: str, listed: Sequence[Figure], hole: Hole) -> StatedFigure:
    """*It fell*: half-open at 0, where the sentences about the proposition name no figure and one direction."""
    about = content_words(scenario.proposition)
    text = plain(text)
    ways = set()
    for number, (start, end) in enumerate(split_sentences(text)):
        sentence = text[start:end]
        shared = len(about & content_words(sentence)) / max(1, len(about))
        here = [figure for figure in listed if figure.sentence == number]
        if shared >= 0.3 and here:
            return StatedFigure(None, "figures from which it might follow")
        if shared >= 0.3 and (match := cues.DIRECTION.search(sentence)):
            ways.add(1 if match["up"] else -1)
    if len(ways) != 1:
        nothing = not listed and not ways
        return StatedFigure(Interval(), "no figure for it") if nothing else StatedFigure(None, "no direction")
    sign = ways.pop() * (hole.change or 1)
    return StatedFigure(Interval(0.0, None) if sign > 0 else Interval(None, 0.0), "a direction")
