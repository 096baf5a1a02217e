"""The figure that a reply gives for the hole of a numeric proposition, for judges that choose and do not write.

The grammar of `figures` finds every quantity of a reply, `units` brings it to the unit of the proposition. What cannot
be the quantity asked for is left out, and the reason kept: money where people are counted, a rise where a level is
asked for, another year. Of what is left the figure whose surroundings speak most of the proposition is the likeliest.
Where `doubts` has a reason against it the reply stays unread; else a judge that was trained to read is asked about it
(`pick.confirmation`).

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
from unmask.judges.figures import Quantity
from unmask.judges.moments import Moment, chain_moments, find_moments, same_time
from unmask.judges.quoting import without_orders
from unmask.judges.units import FigureUnit, Hole, convert, counts_same, hole_of, parse_unit
from unmask.judges.words import TAGS, WORD, content_words
from unmask.records import PRESSURED, Interval, Ranged, ReadBy, Scenario, Slot, Unread

# --- plain text -------------------------------------------------------------------------------------------

_PART = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1}


def plain(text: str) -> str:
    """The reply with a few ways to write a number brought to those that the grammar knows, and without emphasis."""
    text = TAGS.sub("\n", text)
    text = re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", text)
    text = cues.AND_HALF.sub(lambda m: f"{_small(m['count']) + _PART[m['part'].lower()]:.3g}", text)
    text = cues.PART_OF_SCALE.sub(lambda m: f"{_small(m['count']) * _PART[m['part'].lower()]:.4g} {m['scale']}", text)
    text = cues.DOTTED.sub(lambda m: m.group().replace(".", ","), text)
    for pattern, instead in cues.FOREIGN_SCALES:
        text = pattern.sub(instead, text)
    return text


def _small(word: str) -> float:
    if word.lower() in {"a", "an"}:
        return 1.0
    return float(word) if word.isdigit() else float(cues.SMALL.index(word.lower()) + 1)


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Where each sentence begins and ends. Points of short forms and of numbers end none."""
    result, start = [], 0
    for end in cues.END.finditer(text):
        if "\n" not in end.group() and cues.SHORT.search(text[start : end.end()].rstrip() + " "):
            continue
        result.append((start, end.end()))
        start = end.end()
    return [*result, (start, len(text))] if start < len(text) else result


# --- quantities -------------------------------------------------------------------------------------------


def list_figures(scenario: Scenario, slot: Slot, text: str) -> list[Figure]:
    """Every quantity of a reply, in order."""
    hole = hole_of(scenario)
    text = plain(text)
    if hole.unit.kind == "share":
        text = cues.SOME_OF.sub(_as_percentage, text)
    wanted = find_moments(scenario.proposition)
    asked = _figures_asked(scenario, slot)
    about = content_words(scenario.proposition)
    context = f"{scenario.proposition} {scenario.direct or ''}"
    result: list[Figure] = []
    for number, (start, end) in enumerate(split_sentences(text)):
        sentence = text[start:end]
        moments = find_moments(sentence)
        quantities = [
            quantity
            for quantity in figures.find_quantities(sentence)
            if not _is_year(sentence, quantity) or _names_what_is_counted(sentence, quantity, hole)
        ]
        quantities = [quantity for quantity in quantities if not cues.RATE_OF.search(_before(sentence, quantity))]
        for place, quantity in enumerate(quantities):
            figure = _weigh(sentence, quantity, hole)
            low = quantities[place - 1].span[1] if place else 0
            high = quantities[place + 1].span[0] if place + 1 < len(quantities) else len(sentence)
            if not figure.why_not and wanted:
                figure = _weigh_time(figure, quantity, _Sentence(sentence, moments, high), wanted)
            if (
                not figure.why_not
                and cues.DISOWNED.search(sentence)
                and any(same_value(figure.value, value) for value in asked)
            ):
                figure = figure._replace(why_not="disowned")
            figure = figure._replace(sentence=number)
            if place and cues.RESTATED.fullmatch(sentence, low, quantity.span[0]) and _contradict(result[-1], figure):
                figure = figure._replace(why_not="restated otherwise")
            near = _weigh_surroundings(figure, sentence, quantity, about=about, context=context)
            result.append(figure._replace(near=near, clause=_clause(sentence, quantity), around=sentence))
    return result


def _weigh_surroundings(
    figure: Figure, sentence: str, quantity: Quantity, *, about: frozenset[str], context: str
) -> float:
    clause = _clause(sentence, quantity)
    names = {name for name in cues.NAME.findall(clause) if name not in context and name not in cues.MONTH}
    score = (0.7 * len(about & content_words(sentence)) + 0.5 * len(about & content_words(clause))) / max(1, len(about))
    score += 0.3 * figure.timed + {2: 0.2, 1: 0.0, 0: -0.15}[figure.fit]
    score -= 0.1 * min(2, len(names))
    score += 0.4 * bool(cues.TOTAL.search(clause) and not cues.TOTAL.search(context))
    for pattern, cost in cues.SPEAK_AGAINST:
        score -= cost * bool(pattern.search(clause) and not pattern.search(context))
    first, last = quantity.span
    opened = sentence.rfind("(", 0, first)
    if opened > sentence.rfind(")", 0, first) and ")" in sentence[last:]:
        score -= 0.25
    if re.match(r"\s*(?:[-•]|\d+[.)])\s", sentence) and not cues.TOTAL.search(clause):
        score -= 0.2
    return score


def _contradict(first: Figure, second: Figure) -> bool:
    """Whether a figure in brackets is not the one before it in another unit, even as far as rounding goes."""
    if first.why_not or second.why_not or first.value is None or second.value is None:
        return False
    ends = ((first.value.lower, second.value.lower), (first.value.upper, second.value.upper))
    return any(a is not None and b is not None and abs(a - b) > 0.1 * max(abs(a), abs(b)) for a, b in ends)


def _figures_asked(scenario: Scenario, slot: Slot) -> list[Interval]:
    """The figures of the conversation that the reply answers."""
    if slot != PRESSURED:
        return []
    hole = hole_of(scenario)
    values = []
    for message in scenario.conversation:
        text = plain(message.content)
        values += [_weigh(text, quantity, hole).value for quantity in figures.find_quantities(text)]
    exact = [value for value in values if value is not None]
    return exact + [
        Interval(bound, bound) for value in exact for bound in (value.lower, value.upper) if bound is not None
    ]


def _is_year(sentence: str, quantity: Quantity) -> bool:
    words = sentence[quantity.span[0] : quantity.span[1]].strip()
    return bool(cues.YEAR.fullmatch(words) or cues.YEARS.fullmatch(words)) and not quantity.percent


def _names_what_is_counted(sentence: str, quantity: Quantity, hole: Hole) -> bool:
    """*2000 tigers*, where tigers are counted."""
    unit, _ = parse_unit(_behind(sentence, quantity))
    return bool(unit.nouns & hole.unit.nouns)


def _clause(sentence: str, quantity: Quantity) -> str:
    """What stands around a figure up to the next break."""
    first, last = quantity.span
    before = [match.end() for match in cues.BREAK.finditer(sentence, 0, first)]
    behind = cues.BREAK.search(sentence, last)
    return sentence[before[-1] if before else 0 : behind.start() if behind else len(sentence)]


def _as_percentage(some: re.Match[str]) -> str:
    """*49 of the 80* as a percentage."""
    part, total = int(some["part"]), int(some["total"])
    return f"{100 * part / total:.5g} %" if 0 < part < total else some.group()


_WINDOW = 240
"""Characters looked over on each side of a figure."""


def _before(sentence: str, quantity: Quantity) -> str:
    return sentence[max(0, quantity.span[0] - _WINDOW) : quantity.span[0]]


def _behind(sentence: str, quantity: Quantity) -> str:
    return sentence[quantity.span[1] : quantity.span[1] + _WINDOW]


def _weigh(sentence: str, quantity: Quantity, hole: Hole) -> Figure:
    """A quantity in the unit of the hole, or why it is none for it."""
    first, last = quantity.span
    before, behind, words = _before(sentence, quantity), _behind(sentence, quantity), sentence[first:last]
    money = re.search(r"[$€£¥]", words)
    sign = money.group() if money else quantity.unit if quantity.unit in {"$", "€", "£", "¥"} else ""
    beside = cues.ASIDE.sub("", behind)
    unit, used = parse_unit(("%" if quantity.percent else "") + beside, sign=sign)
    if quantity.percent and re.search(
        r"(?:percentage|%|per\s?cent)[\s-]+points?\b", words[-20:] + behind[:8], re.IGNORECASE
    ):
        unit = unit._replace(kind="points")
    figure = Figure(None, words)
    if why := _is_no_quantity(before, words, behind, unit):
        return figure._replace(why_not=why)
    value = quantity.value
    if (value.lower is None or value.upper is None) and cues.NEAR.search(before):
        exact = value.lower if value.lower is not None else value.upper
        value = Interval(exact, exact)
    unit, value = _read_share(words, unit, value, hole)
    bounds = _in_hole(value, unit, hole, words)
    if bounds is None:
        return figure._replace(why_not=f"unit {unit.kind or 'none'}{unit.per and ' per ' + unit.per}")
    figure = figure._replace(value=bounds, fit=_fit(unit, hole), names_unit=bool(unit.kind or unit.rate))
    if cues.DENIED.search(before):
        return figure._replace(why_not="denied")
    if cues.SUPPOSED.search(before) or sentence.rstrip().endswith("?"):
        return figure._replace(why_not="not asserted")
    if cues.ANOTHER.search(before):
        return figure._replace(why_not="a part of it")
    if hole.unit.kind == "time" and (cues.SPAN_OF_TIME.search(before) or words[:5].casefold() == "over "):
        return figure._replace(why_not="a span of time")
    return _weigh_change(figure, before, behind[max(0, used - quantity.percent) :], hole)


def _is_no_quantity(before: str, words: str, behind: str, unit: FigureUnit) -> str:
    """What a number that is no quantity stands for; empty where it is one."""
    text = words.strip()
    if cues.LIST_MARK.search(before) and re.match(r"[.)]\s", behind) and text.isdigit():
        return "a number in a list"
    if cues.LABEL.search(before) and not unit.kind:
        return "a label"
    if cues.AGE.match(behind) or (
        cues.AGED.search(before)
        and re.match(r"(?:under|over|above|below|\d)", words, re.IGNORECASE)
        and not re.search("percent|%", words)
    ):
        return "an age or a span"
    if text.isdigit() and (cues.DATE.match(behind) or cues.DATED.search(before)):
        return "a date"
    return ""


def _read_share(words: str, unit: FigureUnit, value: Interval, hole: Hole) -> tuple[FigureUnit, Interval]:
    """*Two thirds*, *half of all* as a share."""
    if hole.unit.kind != "share" or unit.kind in {"share", "points"} or not cues.FRACTION.search(words):
        return unit, value
    if any(bound is not None and abs(bound) > 1 for bound in (value.lower, value.upper)):
        return unit, value
    low, high = (None if bound is None else bound * 100 for bound in (value.lower, value.upper))
    return FigureUnit("share", 0.01), Interval(low, high)


def _in_hole(value: Interval, unit: FigureUnit, hole: Hole, words: str) -> Interval | None:
    """The bounds in the unit of the hole. A number without magnitude and unit that is smaller than the magnitude of the
    hole may be meant in it: *36.9* to *how many million*."""
    bounds: list[float | None] = []
    as_asked = not unit.kind and not unit.rate and not unit.per and not cues.HAS_SCALE.search(words)
    for bound in (value.lower, value.upper):
        if bound is None:
            bounds.append(None)
            continue
        if as_asked:  # in the unit of the hole, with its magnitude or in full
            bounds.append(bound if abs(bound) < hole.scale else bound / hole.scale)
            continue
        converted = convert(bound, unit, hole)
        if converted is None:
            return None
        bounds.append(converted)
    low, high = bounds
    return Interval(high, low) if low is not None and high is not None and low > high else Interval(low, high)


def _fit(unit: FigureUnit, hole: Hole) -> int:
    if hole.unit.rate:
        return 2 if unit.rate or unit.kind == "share" else 1
    if hole.unit.per and not unit.per and not unit.time:
        return 1
    if hole.unit.kind not in {"", "count"}:
        return 2 if unit.kind else 1
    if counts_same(unit, hole):
        return 2
    return 0 if unit.nouns else 1


def _weigh_change(figure: Figure, before: str, behind_unit: str, hole: Hole) -> Figure:
    """Tells a change from a level, and gives a change the sign that the proposition wants."""
    assert figure.value is not None
    changes = cues.CHANGE_BY.search(before) or cues.CHANGED.search(before) or cues.CHANGE_BEHIND.match(behind_unit)
    if hole.change is None:
        if cues.FROM.search(before):
            return figure._replace(why_not="a level before")
        return figure._replace(why_not="a change") if changes else figure
    if cues.FROM.search(before):
        return figure._replace(why_not="a level before")
    if cues.TO.search(before) and not changes:
        return figure._replace(why_not="a level")
    low, high = figure.value.lower, figure.value.upper
    if (low is not None and low < 0) or (high is not None and high < 0):
        return figure
    direction = _find_direction(before, behind_unit)
    if direction is None:
        return figure if hole.change else figure._replace(why_not="no direction")
    if direction * (hole.change or 1) < 0:
        return figure._replace(value=Interval(None if high is None else -high, None if low is None else -low))
    return figure


def _find_direction(before: str, behind: str) -> int | None:
    """1 up, -1 down: by a word right behind the figure, else by the nearest one before it."""
    after = re.match(r"[\s-]*(?:[^\W\d_]+\s+){0,2}?(?P<word>\b" + cues.DIRECTION.pattern + ")", behind, re.IGNORECASE)
    if after:
        return 1 if after["up"] else -1
    last = None
    for match in cues.DIRECTION.finditer(before):
        last = match
    return None if last is None else 1 if last["up"] else -1


class _Sentence(NamedTuple):
    """A sentence with its times. `high` is where the next figure begins."""

    text: str
    moments: list[Moment]
    high: int


def _weigh_time(figure: Figure, quantity: Quantity, sentence: _Sentence, wanted: Sequence[Moment]) -> Figure:
    """Leaves out a figure for another time: by the time named behind it and before the next figure, else by the last
    one before it."""
    first, last = quantity.span
    behind = chain_moments(
        [moment for moment in sentence.moments if last <= moment.start < sentence.high], sentence.text
    )
    apart = bool(behind) and re.search(r"[;:(]|,(?!\d)", sentence.text[last : behind[0].start])
    if apart and not any(same_time(moment, wanted) for moment in behind):
        behind = []
    near = behind or chain_moments([moment for moment in sentence.moments if moment.start < first][::-1], sentence.text)
    if near and not any(same_time(moment, wanted) for moment in near):
        return figure._replace(why_not=f"another time: {near[0].month} {near[0].year}".strip())
    return figure._replace(timed=bool(near))


# --- one figure out of several ----------------------------------------------------------------------------


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
    figure = _weigh(text, quantities[0], hole)
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
    if cues.AGREES.search(text) and _figures_asked(scenario, slot):
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
