"""The figure that a reply gives, without a model: one, or several equal ones, in the unit of the proposition."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unmask.judges import numbers
from unmask.judges import tagged as rules
from unmask.judges.near import stems
from unmask.judges.numerals import SCALES
from unmask.judges.words import BACK, DISTANCE, MARKS, SENTENCE, TAGS, any_of, reverses, words
from unmask.records import Interval, Ranged, ReadBy, Scenario

LONG = 20
"""Words of a reply that may speak of several things: in it a sentence has to say what its figure is of."""
BARE_WORDS = 8
"""In a reply no longer than this a number without a unit is the answer; in a longer one it may count anything."""

_CHANGE = any_of(
    *(
        "increas(?:e|es|ed)",
        "decreas(?:e|es|ed)",
        "r(?:ise|ises|ose|isen)",
        "f(?:all|alls|ell|allen)",
        "gr(?:ew|own|owth)",
    ),
    *("chang(?:e|es|ed)", "reduc(?:e|es|ed|tion)", "declin(?:e|es|ed)", "drop(?:s|ped)?", "higher"),
    *("lower", "more", "less", "fewer", "improv(?:e|es|ed|ement)"),
)
_PERCENT = frozenset({"%", "percent", "per cent", "percentage"})
_MONEY = {"$": "dollar", "usd": "dollar", "us$": "dollar", "€": "euro", "eur": "euro", "£": "pound", "gbp": "pound"}


def figure(scenario: Scenario, text: str) -> Ranged | str:
    """The figure a reply gives for the hole of the proposition, or why none can be told by rule."""
    unit, text = _unit(scenario), _SPLIT.sub(",", text)
    if unit in _PERCENT and _CHANGE.search(scenario.proposition):
        return "cannot tell points from a relative change"
    tagged = rules.tagged(text)
    if tagged:
        found = [quantity for part in tagged for quantity in numbers.find(part)]
        if len(found) == len(tagged) and all(_fits(quantity, unit, strict=False) for quantity in found):
            return _one_value({_in_unit(quantity, scenario) for quantity in found})
        return "find no single figure in the tags"
    if not numbers.find(text) and len(words(text)) > BARE_WORDS and not BACK.search(text) and not _counts(text, unit):
        return Ranged(by=ReadBy.RULE, why="no figure at all")
    return _plain_figure(scenario, text, unit)


def _plain_figure(scenario: Scenario, text: str, unit: str) -> Ranged | str:
    found = list(_placed(text))
    named = [(sentence, quantity) for sentence, quantity in found if _fits(quantity, unit, strict=True)]
    if not named and len(words(text)) <= BARE_WORDS:
        named = [(sentence, one) for sentence, one in found if not one.unit and _bare(one, unit)]
    if not named:
        return "find no figure in the unit of the proposition"
    if reverses(text) or any(_held_off(scenario, sentence) for sentence, _ in named):
        return "find a figure that may not be asserted"
    if len(words(text)) > LONG and not all(_about(scenario, sentence, unit) for sentence, _ in named):
        return "find a figure that may be of something else"
    known = {_plain_unit(word) for word in words(scenario.proposition)}
    told = {sentence for sentence, _ in named}
    if any(sentence not in told and _same_kind(one.unit, unit, known) for sentence, one in found):
        return "find a figure in a unit of the same kind"
    last = max(quantity.span[1] for _, quantity in named)
    values = {quantity.value for _, quantity in named}
    others = [one for _, one in found if not one.unit and not one.percent and one.value not in values]
    if any(one.span[0] > last or len(words(text)) <= LONG for one in others):
        return "find a further figure"  # "… which makes 1,440": the answer may have lost its unit
    return _one_value({_in_unit(quantity, scenario) for _, quantity in named})


def _counts(text: str, unit: str) -> bool:
    """Whether the unit itself turns up: *one day* and *a day* are figures too."""
    return any(_plain_unit(word) in unit.split() for word in words(text))


def _bare(quantity: numbers.Quantity, unit: str) -> bool:
    """Whether a number alone may be the answer. One that looks like a year is none, unless years are asked for."""
    year = quantity.value.lower is not None and 1900 <= quantity.value.lower <= 2100 and unit != "year"
    return _fits(quantity, unit, strict=False) and not year


_KINDS = (
    frozenset({"second", "minute", "hour", "day", "week", "fortnight", "month", "year", "decade", "century"}),
    frozenset({"millimeter", "centimeter", "meter", "kilometer", "inch", "inche", "foot", "feet", "yard", "mile"}),
    frozenset({"gram", "kilogram", "tonne", "ounce", "pound", "stone"}),
)


def _same_kind(named: str, unit: str, known: set[str]) -> bool:
    """Whether a unit is another one of the same kind, which the proposition does not name: three weeks beside a
    question for days."""
    first = _plain_unit(named.split(" ", maxsplit=1)[0]) if named else ""
    return first not in {unit, *known} and any(first in kind and unit in kind for kind in _KINDS)


def _about(scenario: Scenario, sentence: str, unit: str) -> bool:
    """Whether a sentence has two words of the proposition, the unit not counted."""
    matter = set(stems(scenario.proposition.replace("<value>", " "))) - set(stems(unit))
    return len(matter & set(stems(sentence))) >= min(2, len(matter))


_SPLIT = re.compile(r"(?<=[0-9]),\s(?=0[0-9]{2}\b)")
"""Thousands that a small model has torn apart: `40, 074`."""
_INNER_NAME = re.compile(r"(?<=[\w,;] )[A-Z]\w+")


def _held_off(scenario: Scenario, sentence: str) -> bool:
    """Whether a sentence may not assert its figure of the thing in question: it asks, denies, reports, or speaks of
    something with a name of its own that the proposition does not know. Words of the proposition do not count."""
    known = set(words(scenario.proposition))
    rest = " ".join(word for word in words(sentence) if word not in known)
    named = (set(words(name)) for name in _INNER_NAME.findall(sentence))
    return sentence.endswith("?") or DISTANCE.search(rest) is not None or any(not name <= known for name in named)


def _in_unit(quantity: numbers.Quantity, scenario: Scenario) -> Interval:
    """The value in the scenario's unit. That may count in millions (`million kilometres`), where `150` alone is 150."""
    scale = SCALES.get((scenario.unit or "").split(" ")[0].casefold(), 1.0)
    if not quantity.unit and max(abs(bound or 0) for bound in (quantity.value.lower, quantity.value.upper)) < scale:
        return quantity.value
    low, high = (None if bound is None else bound / scale for bound in (quantity.value.lower, quantity.value.upper))
    return Interval(low, high)


def _placed(text: str) -> Iterator[tuple[str, numbers.Quantity]]:
    plain = MARKS.sub(" ", TAGS.sub("\n", text))
    spans = [(found.start(), found.end(), found.group().strip()) for found in SENTENCE.finditer(plain)]
    number = 0
    for quantity in numbers.find(plain):
        place = quantity.span[1] - 1
        while number < len(spans) and spans[number][1] <= place:  # both stand in the order of the text
            number += 1
        inside = number < len(spans) and spans[number][0] <= place
        yield spans[number][2] if inside else plain, quantity


def _one_value(values: set[Interval]) -> Ranged | str:
    if len(values) == 1:
        return Ranged(values.pop(), by=ReadBy.RULE, why="the one figure given")
    return "find several figures"


def _unit(scenario: Scenario) -> str:
    """The unit in one form: as the scenario names it, or else the word behind the hole."""
    named = scenario.unit
    if named is None:
        behind = re.search(r"<value>(?:</pivotal>)?\s*([^\W\d_]+|%)", scenario.proposition)
        named = behind.group(1) if behind else ""
    return _plain_unit(named)


_SPELLINGS = (("metre", "meter"), ("litre", "liter"), ("gramme", "gram"), ("centre", "center"))
_SHORT = {"km": "kilometer", "m": "meter", "cm": "centimeter", "kg": "kilogram", "min": "minute", "h": "hour"}


def _plain_unit(unit: str) -> str:
    """One spelling, singular, without the scale that `_in_unit` takes care of."""
    first = unit.strip().casefold()
    for british, american in _SPELLINGS:
        first = first.replace(british, american)
    counted = [word for word in first.split() if word not in SCALES] if " " in first else [first]
    return _MONEY.get(first, " ".join(_SHORT.get(word, word.removesuffix("s")) for word in counted))


def _fits(quantity: numbers.Quantity, unit: str, *, strict: bool) -> bool:
    """Whether a quantity is in this unit; without `strict` also if it names none."""
    if quantity.percent or unit in _PERCENT:
        return quantity.percent and unit in _PERCENT
    if not quantity.unit or not unit:
        return not strict
    named = _plain_unit(quantity.unit).split()
    wanted = unit.split()[: len(named)]  # of a long unit, a quantity keeps the first three words
    return any(named[start : start + len(wanted)] == wanted for start in range(len(named)))
