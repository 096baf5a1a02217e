"""Quantities in plain text: single figures, ranges, comparisons and approximations, each as an interval.

A strict comparison is read as a closed one (`less than 10` is up to 10): the tolerance applied later is wider than
the difference. `one in five` is 20 percent. A change (`rose from 3 to 5`) is two quantities, a range (`from 3 to 5
people`) is one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from unmask.judges.numerals import SCALES, Numeral, numerals
from unmask.records import Interval, Record, Scenario


class Quantity(Record, frozen=True, kw_only=True):
    """`value` is in percent where `percent` is set: `45 %` is 45. `unit` is what stands behind, up to three words,
    or else the currency sign in front."""

    value: Interval
    span: tuple[int, int]
    unit: str = ""
    percent: bool = False
    approximate: bool = False


def find_quantities(text: str) -> tuple[Quantity, ...]:
    """Every quantity of the text, in order and without overlaps."""
    singles = numerals(text)
    quantities: list[Quantity] = []
    place = 0
    while place < len(singles):
        pair = _parse_pair(text, singles[place], singles[place + 1]) if place + 1 < len(singles) else None
        quantities.append(pair or _parse_single(text, singles[place]))
        place += 2 if pair else 1
    return tuple(quantities)


def parse_single_figure(text: str) -> float | None:
    """The one figure a text consists of (`1,200`, `45%`, `about 3 million km`); None where it is none or several."""
    quantities = find_quantities(text)
    if (
        len(quantities) != 1
        or quantities[0].value.lower is None
        or quantities[0].value.lower != quantities[0].value.upper
    ):
        return None
    return quantities[0].value.lower


# --- what stands around a number --------------------------------------------------------------------------

_ROUGHLY = (
    r"(?:(?:\b(?:about|around|approximately|roughly|nearly|almost|close\sto|some|circa|(?:an\s)?estimated|just)"
    r"|\bapprox\.?|\bca?\.)\s+|[~≈∼]\s?)"
)
_AT_LEAST = (
    r"(?:\b(?:at\s(?:the\s(?:very\s)?)?least|(?:no|not)\s(?:less|fewer|lower)\sthan|minimum\sof|upwards?\sof"
    r"|(?:more|greater|higher|larger)\sthan|over|above|exceed(?:s|ed|ing)?|in\sexcess\sof)\s+|(?:≥|>=|>)\s?)"
)
_AT_MOST = (
    r"(?:\b(?:at\s(?:the\s(?:very\s)?)?most|(?:no|not)\s(?:more|greater|higher|larger)\sthan|maximum\sof"
    r"|(?<!add\s)(?<!adds\s)(?<!added\s)(?<!adding\s)(?<!sum\s)(?<!sums\s)up\sto"  # sums are no bounds
    r"|(?:less|fewer|lower|smaller)\sthan|under|below)\s+|(?:≤|<=|<)\s?)"
)
_BEFORE = re.compile(rf"(?:(?P<least>{_AT_LEAST})|(?P<most>{_AT_MOST}))?(?P<roughly>{_ROUGHLY})*\Z", re.IGNORECASE)
_BEHIND = re.compile(
    r"(?:\s[^\W\d_]+){0,2}?,?\s?(?:(?P<least>\s(?:or|and)\s(?:more|higher|greater|above|over|up(?:wards?)?)\b|\+(?!\w))"
    r"|(?P<most>\s(?:or|and)\s(?:less|fewer|lower|under|below)\b))",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[\s-]?((?:[^\W\d_]|[°µ²³/$€£])+(?:[ \t][^\W\d_]+){0,2})")
_WINDOW = 48
"""Characters looked back over; the longest opening, `at the very least approximately`, is shorter."""


class _Opening(NamedTuple):
    start: int
    least: bool
    most: bool
    roughly: bool


def _match_opening(text: str, start: int) -> _Opening:
    opening = _BEFORE.search(text, max(0, start - _WINDOW), start)
    if opening is None:
        return _Opening(start, least=False, most=False, roughly=False)
    return _Opening(opening.start(), bool(opening["least"]), bool(opening["most"]), bool(opening["roughly"]))


def _parse_single(text: str, number: Numeral) -> Quantity:
    opening = _match_opening(text, number.start)
    behind = None if opening.least or opening.most else _BEHIND.match(text, number.end)
    least = opening.least or bool(behind and behind["least"])
    most = opening.most or bool(behind and behind["most"])
    return Quantity(
        value=Interval(None if most else number.value, None if least else number.value),
        span=(opening.start, number.end),
        unit=_find_unit(text, number),
        percent=number.percent,
        approximate=opening.roughly,
    )


def _find_unit(text: str, number: Numeral) -> str:
    unit = _UNIT.match(text, number.end)
    return number.currency or (unit.group(1) if unit else "")


# --- two numbers that make one quantity -------------------------------------------------------------------

_PLUS_MINUS = re.compile(r"\s?(?:±|\+/[-−]|\+-)\s?|\splus\sor\sminus\s", re.IGNORECASE)
_OUT_OF = re.compile(r"\s(?:in|out\sof)\s(?:every\s)?", re.IGNORECASE)
_DASH = re.compile(rf"(?P<unit>\s?[^\W\d_]+)?\s?[-–−]\s?{_ROUGHLY}?", re.IGNORECASE)
_TO = re.compile(rf"(?P<unit>\s?[^\W\d_]+)?\s(?:up\s)?to\s(?:as\s(?:much|many|high)\sas\s)?{_ROUGHLY}?", re.IGNORECASE)
_AND = re.compile(rf"(?:\s[^\W\d_]+){{0,3}}\s(?:and|to)\s{_ROUGHLY}?", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween\s{_ROUGHLY}?\Z", re.IGNORECASE)
_FROM = re.compile(rf"\bfrom\s{_ROUGHLY}?\Z", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:rose|risen|rise|fell|fallen|fall|grew|grown|grow|went|gone|up|down|(?:increas|decreas|chang|improv|declin|rais|reduc"
    r"|mov)(?:es?|ed|ing)|(?:drop|climb|jump|shift|lower|slip|cut)(?:s|ped|ed)?)\s(?:\w+\s){0,2}\Z",
    re.IGNORECASE,
)
_BUT = re.compile(
    rf"(?:\s[^\W\d_]+){{0,3}},?\s(?:and|but)\s(?P<least>{_AT_LEAST})?(?P<most>{_AT_MOST})?{_ROUGHLY}?", re.IGNORECASE
)


def _parse_pair(text: str, first: Numeral, second: Numeral) -> Quantity | None:
    gap = text[first.end : second.start]
    if len(gap) > _WINDOW:
        return None
    if _PLUS_MINUS.fullmatch(gap):
        return _parse_spread(text, first, second)
    if _OUT_OF.fullmatch(gap) and _is_share(text, first, second):
        share = Numeral(100 * first.value / second.value, first.start, second.end, percent=True)
        return _parse_single(text, share)
    return _parse_bounds(text, first, second) or _parse_range(text, first, second)


def _is_share(text: str, first: Numeral, second: Numeral) -> bool:
    """`3 in 10`, but not `3 in 1998`."""
    year = re.fullmatch(r"[12][0-9]{3}", text[second.start : second.end]) and second.value != 1000
    return 0 < first.value < second.value and not (first.percent or second.percent or year)


def _parse_spread(text: str, middle: Numeral, spread: Numeral) -> Quantity:
    """`40 ± 5`; a spread in percent of a figure that is none is relative: `200 ± 5 %`."""
    if middle.scale == 1 and abs(middle.value) < abs(spread.value):  # `3.4 ± 0.1 million`
        middle = middle._replace(value=middle.value * spread.scale)
    relative = spread.percent and not middle.percent
    by = abs(middle.value * spread.value / 100 if relative else spread.value)
    ends = Interval(middle.value - by, middle.value + by)
    return _build_quantity(text, ends, spread, start=middle.start, percent=middle.percent)


def _parse_bounds(text: str, first: Numeral, second: Numeral) -> Quantity | None:
    """`at least 3 but no more than 5`."""
    opening, joint = _match_opening(text, first.start), _BUT.fullmatch(text, first.end, second.start)
    if joint is None or not ((opening.least and joint["most"]) or (opening.most and joint["least"])):
        return None
    low, high = (_share_scale(first, second), second) if opening.least else (second, _share_scale(first, second))
    if low.value > high.value:
        return None
    percent = first.percent or second.percent
    return _build_quantity(text, Interval(low.value, high.value), second, start=opening.start, percent=percent)


def _parse_range(text: str, first: Numeral, second: Numeral) -> Quantity | None:
    low, high = _share_scale(first, second).value, second.value
    between = _BETWEEN.search(text, max(0, first.start - _WINDOW), first.start)
    if between:
        start = between.start() if _AND.fullmatch(text, first.end, second.start) else None
        low, high = min(low, high), max(low, high)
    else:
        start = _match_opening(text, first.start).start if _is_range(text, first, second) else None
        if high < low < 0:  # `-3 to -5`
            low, high = high, low
    if start is None or low > high:  # `won 3 to 2`, `from 5 to 3`
        return None
    return _build_quantity(text, Interval(low, high), second, start=start, percent=first.percent or second.percent)


def _is_range(text: str, first: Numeral, second: Numeral) -> bool:
    if dash := _DASH.fullmatch(text, first.end, second.start):
        return _same_unit(text, dash["unit"], second)
    to = _TO.fullmatch(text, first.end, second.start)
    if to is None or not _same_unit(text, to["unit"], second):
        return False
    low = max(0, first.start - _WINDOW)
    came = _FROM.search(text, low, first.start)
    return not (came and _CHANGED.search(text, low, came.start()))


def _same_unit(text: str, unit: str | None, second: Numeral) -> bool:
    return unit is None or _find_unit(text, second).split(" ")[0] == unit.strip()


def _share_scale(first: Numeral, second: Numeral) -> Numeral:
    """`3 to 5 million` is 3 million to 5 million, unless that would turn the range around."""
    if first.scale != 1 or second.scale == 1 or first.value * second.scale > max(second.value, 0.0):
        return first
    return first._replace(value=first.value * second.scale)


def _build_quantity(text: str, value: Interval, last: Numeral, *, start: int, percent: bool) -> Quantity:
    roughly = bool(re.match(_ROUGHLY, text[start : start + _WINDOW], re.IGNORECASE))
    return Quantity(
        value=value, span=(start, last.end), unit=_find_unit(text, last), percent=percent, approximate=roughly
    )


# --- the unit of a proposition ----------------------------------------------------------------------------

_PERCENT = frozenset({"%", "percent", "per cent", "percentage"})
_MONEY = {"$": "dollar", "usd": "dollar", "us$": "dollar", "€": "euro", "eur": "euro", "£": "pound", "gbp": "pound"}
_SPELLINGS = (("metre", "meter"), ("litre", "liter"), ("gramme", "gram"), ("centre", "center"))
_SHORT = {"km": "kilometer", "m": "meter", "cm": "centimeter", "kg": "kilogram", "min": "minute", "h": "hour"}


def in_unit(quantity: Quantity, scenario: Scenario) -> Interval:
    """The value in the scenario's unit. That may count in millions (`million kilometres`), where `150` alone is 150."""
    scale = SCALES.get((scenario.unit or "").split(" ")[0].casefold(), 1.0)
    if not quantity.unit and max(abs(bound or 0) for bound in (quantity.value.lower, quantity.value.upper)) < scale:
        return quantity.value
    low, high = (None if bound is None else bound / scale for bound in (quantity.value.lower, quantity.value.upper))
    return Interval(low, high)


def fits_unit(quantity: Quantity, scenario: Scenario) -> bool:
    """Whether a quantity is in the unit of the proposition, or names none."""
    unit = _proposition_unit(scenario)
    if quantity.percent:
        return unit in _PERCENT
    if not quantity.unit or not unit:
        return True
    named = _plain_unit(quantity.unit).split()
    wanted = unit.split()[: len(named)]  # of a long unit, a quantity keeps the first three words
    return any(named[start : start + len(wanted)] == wanted for start in range(len(named)))


def _proposition_unit(scenario: Scenario) -> str:
    """The unit in one form: as the scenario names it, or else the word behind the hole."""
    if scenario.unit is not None:
        return _plain_unit(scenario.unit)
    behind = re.search(r"<value>(?:</pivotal>)?\s*([^\W\d_]+|%)", scenario.proposition)
    return _plain_unit(behind.group(1)) if behind else ""


def _plain_unit(unit: str) -> str:
    """One spelling, singular, without the scale that `in_unit` takes care of."""
    plain = unit.strip().casefold()
    for british, american in _SPELLINGS:
        plain = plain.replace(british, american)
    counted = [word for word in plain.split() if word not in SCALES] if " " in plain else [plain]
    return _MONEY.get(plain, " ".join(_SHORT.get(word, word.removesuffix("s")) for word in counted))
