"""Quantities in plain text: single figures, ranges, comparisons and approximations, each as an interval.

A strict comparison is read as a closed one (`less than 10` is up to 10): the tolerance applied later is wider than
the difference. `one in five` is 20 percent. A change (`rose from 3 to 5`) is two quantities, a range (`from 3 to 5
people`) is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from unmask.records import Interval, Record, Scenario

SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
_SCALE_SUFFIXES = {"k": 1e3, "K": 1e3, "mn": 1e6, "mln": 1e6, "M": 1e6, "bn": 1e9, "B": 1e9, "tn": 1e12}
_VULGAR = {"½": 1 / 2, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 1 / 4, "¾": 3 / 4, "⅕": 1 / 5, "⅖": 2 / 5, "⅗": 3 / 5, "⅘": 4 / 5}
_VULGAR_SIGNS = "".join(_VULGAR)
_EXPONENT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻−", "0123456789+--")

_UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: value for value, word in enumerate(_UNITS + _TEENS)} | {
    word: value for value, word in zip(range(20, 100, 10), _TENS, strict=True)
}
_PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}


class Numeral(NamedTuple):
    """`value` has the scale and the sign in it; `scale` is kept so that `3 to 5 million` can share it."""

    value: float
    start: int
    end: int
    scale: float = 1.0
    percent: bool = False
    currency: str = ""


def numerals(text: str) -> tuple[Numeral, ...]:
    """Every number of the text in order, without overlaps."""
    candidates = [*_in_digits(text), *_in_words(text)]
    candidates.sort(key=lambda numeral: (numeral.start, -numeral.end))
    result: list[Numeral] = []
    for numeral in candidates:
        if not result or numeral.start >= result[-1].end:
            result.append(numeral)
    return tuple(result)


# --- digits -----------------------------------------------------------------------------------------------

_SPACE = " \u00a0\u2009\u202f"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_POWER = rf"10(?:\s?(?:\^|\*\*)\s?\{{?[-−+]?[0-9]+\}}?|[⁺⁻]?[{_RAISED}]+)"
_IGNORED = re.compile(
    r"""
    (?<![0-9]) (?:
        [0-9]{1,2}:[0-9]{2} (?: :[0-9]{2} )?            # clock time
      | [0-9]{4}-[0-9]{2}-[0-9]{2}                      # date
      | [0-9]{1,2}/[0-9]{1,2}/[0-9]{2,4}
      | [0-9]+ (?: \.[0-9]+ ){2,}                       # version, address
    ) (?![0-9])
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(
    rf"""
    (?<![\w.,/^]) (?: (?<![A-Za-z][-'’]) | (?<=[0-9][A-Za-z]-) | (?<=[0-9][A-Za-z]{{2}}-) )
    (?P<sign> (?<![%)\]°]) [-−–+] (?=[0-9.$€£¥{_VULGAR_SIGNS}]) | (?ai:minus|negative)\s )?
    (?P<currency> [$€£¥] [-−]? )?
    (?:
        (?P<power> {_POWER} )
      | (?: (?P<whole>[0-9]{{1,3}}) \s )? (?P<over>[0-9]+) \s?[/⁄]\s? (?P<under>[0-9]+) (?![/0-9])
      | (?P<beside>[0-9]+)? \s? (?P<vulgar>[{_VULGAR_SIGNS}])
      | (?P<digits>
            [0-9]{{1,3}} (?: ,[0-9]{{3}} )+ (?![0-9]) (?: \.[0-9]+ )?
          | [0-9]{{1,3}} (?: [{_SPACE}][0-9]{{3}} )+ (?![0-9]) (?: \.[0-9]+ )?
          | [0-9]{{1,3}},[0-9]{{1,2}} (?![0-9,])
          | [0-9]+ (?: \.[0-9]+ )?
          | \.[0-9]+
        )
        (?: [eE] (?P<e> [-−+]?[0-9]+ ) (?!\w) | \s?[×x*·⋅]\s? (?P<times> {_POWER} ) )?
    )
    (?! [0-9] | (?:st|nd|rd|th)\b | (?<=[0-9]{{3}}0) s\b )
    """,
    re.VERBOSE,
)
_SUFFIX = re.compile(
    rf"""
    (?P<scales> (?: [\s-]? (?ai:{"|".join(SCALES)}) s?\b )* )
    (?P<short> (?<=[0-9]) (?: (?:{"|".join(_SCALE_SUFFIXES)}) | \s (?:bn|mn|mln|tn) ) (?!\w) )?
    (?P<percent> \s? [%％] | [\s-]? (?ai:percent(?:age[\s-]points?)?|per\scent|pct) \b )?
    """,
    re.VERBOSE,
)


def _in_digits(text: str) -> Iterator[Numeral]:
    ignored = _IGNORED.finditer(text)
    skipped = next(ignored, None)
    for digits in _DIGITS.finditer(text):
        # Both go through the text from left to right, so one look at the next stretch to ignore is enough.
        while skipped is not None and skipped.end() <= digits.start():
            skipped = next(ignored, None)
        if skipped is not None and skipped.start() < digits.end():
            continue
        numeral = _add_suffix(text, _value_of_digits(digits), start=digits.start(), end=digits.end())
        if numeral is None:
            continue
        sign, currency = (digits["sign"] or "+")[0], digits["currency"] or ""
        minus = sign != "+" or currency[1:] != ""
        yield numeral._replace(value=-numeral.value if minus else numeral.value, currency=currency[:1])


def _value_of_digits(match: re.Match[str]) -> float:
    if match["under"]:
        under = float(match["under"])
        return float(match["whole"] or 0) + float(match["over"]) / under if under else math.nan
    if match["vulgar"]:
        return float(match["beside"] or 0) + _VULGAR[match["vulgar"]]
    digits, power = match["digits"] or "1", match["power"] or match["times"]
    exponent = re.sub(r"[\s^*{}]", "", power[2:]) if power else match["e"] or "0"
    if re.fullmatch(r"[0-9]{1,3},[0-9]{1,2}", digits):
        digits = digits.replace(",", ".")
    plain = re.sub(rf"[,{_SPACE}]", "", digits)
    return float(f"{plain}e{exponent.translate(_EXPONENT)}")


def _add_suffix(text: str, size: float, *, start: int, end: int) -> Numeral | None:
    """The number with the scale words and percent sign behind it; None where it is no finite number."""
    suffix = _SUFFIX.match(text, end)
    assert suffix is not None  # every part is optional
    scale = math.prod(SCALES[word] for word in re.findall("|".join(SCALES), suffix["scales"].lower()))
    if suffix["short"]:
        scale *= _SCALE_SUFFIXES[suffix["short"].strip()]
    value = size * scale
    if not math.isfinite(value):
        return None
    return Numeral(value, start, suffix.end(), scale=scale, percent=bool(suffix["percent"]))


# --- words ------------------------------------------------------------------------------------------------

_FLAGS = re.IGNORECASE | re.ASCII  # without ASCII, `ſix` and `fıve` would be words the tables do not have
_SIGN_WINDOW = 12
"""Characters looked back over for a sign or a pronoun; the longest, `negative`, is shorter."""
_ONES = "|".join(_UNITS[1:])
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{_ONES}))?|{'|'.join(_TEENS)}|{'|'.join(_UNITS)})"
_GROUP = re.compile(
    rf"\b(?:(?P<count>{_SMALL}|an?)[\s-](?P<hundred>hundred)\b(?:[\s-](?:and\s)?(?P<rest>{_SMALL})\b)?|(?P<small>{_SMALL})\b"
    rf"|(?P<article>an?)(?=[\s-](?:thousand|million|billion|trillion|dozen)\b)|(?P<half>half\san?)(?=[\s-](?:million|billion|trillion|dozen)\b))"
    rf"(?:[\s-](?P<scale>thousand|million|billion|trillion|dozen)\b)?",
    _FLAGS,
)
_JOIN = re.compile(r"(?:,?\s(?:and\s)?)(?=\w)", _FLAGS)
_POINT = re.compile(rf"\spoint((?:\s(?:{'|'.join(_UNITS)})\b)+)", _FLAGS)
_PART = re.compile(
    rf"\b(?P<count>an?|{_ONES})[\s-](?P<part>half|halve|third|quarter|fifth|tenth)(?:s\b|(?=\sof\b))|\b(?P<half>half)(?=\s(?:of|the|all)\b)",
    _FLAGS,
)
_MINUS = re.compile(r"\b(?:minus|negative)\s\Z", _FLAGS)
_PRONOUN_BEFORE = re.compile(r"\b(?:no|any|every|some|the|this|that|which|each|another|only)[\s-]\Z", _FLAGS)
_PRONOUN_AFTER = re.compile(
    r"(?:\s(?:of|another|can|could|may|might|must|should|would|will|who|that|which|is|was|has|thing|day|way)\b|['’]s)",
    _FLAGS,
)


def _in_words(text: str) -> Iterator[Numeral]:
    place, part, group = 0, _PART.search(text), _GROUP.search(text)
    while part or group:
        if part and (group is None or part.start() <= group.start()):
            count = 1.0 if part["half"] else _value_of_words(part["count"])
            size, place = count / _PARTS[(part["part"] or "half").lower()], part.end()
            numeral = _add_suffix(text, size, start=part.start(), end=place)
        elif group:
            size, place, scale = _sum_groups(text, group)
            numeral = (
                None if _is_pronoun(text, group, place) else _add_suffix(text, size, start=group.start(), end=place)
            )
            numeral = numeral and numeral._replace(scale=numeral.scale * scale)
        if numeral:
            place = max(place, numeral.end)
            minus = _MINUS.search(text, max(0, numeral.start - _SIGN_WINDOW), numeral.start)
            yield numeral._replace(value=-numeral.value, start=minus.start()) if minus else numeral
        # Searching again only from where the last hit was used up keeps the whole linear.
        part = part if part is None or part.start() >= place else _PART.search(text, place)
        group = group if group is None or group.start() >= place else _GROUP.search(text, place)


def _sum_groups(text: str, group: re.Match[str]) -> tuple[float, int, float]:
    """Adds groups of falling scale: `two million three hundred thousand and five`. Value, end, scale of the last."""
    scale = SCALES[(group["scale"] or "").lower()] if group["scale"] else 1.0
    size = _below_thousand(group)
    end, lowest, total = group.end(), scale, size * scale
    point = _POINT.match(text, group.end("small")) if group["small"] else None
    if point:
        decimals = "".join(str(_WORDS[word.lower()]) for word in point.group(1).split())
        return float(f"{int(size)}.{decimals}"), point.end(), 1.0
    while lowest > 1 and (join := _JOIN.match(text, end)) and (more := _GROUP.match(text, join.end())):
        scale = SCALES[more["scale"].lower()] if more["scale"] else 1.0
        part = _below_thousand(more)
        if scale >= lowest or part * scale >= lowest or more["article"] or more["half"]:
            break
        total, end, lowest = total + part * scale, more.end(), scale
    return total, end, SCALES[group["scale"].lower()] if group["scale"] and end == group.end() else 1.0


def _below_thousand(group: re.Match[str]) -> float:
    if group["half"]:
        return 0.5
    if group["hundred"]:
        return _value_of_words(group["count"]) * 100 + (_value_of_words(group["rest"]) if group["rest"] else 0)
    return _value_of_words(group["small"] or group["article"])


def _value_of_words(words: str) -> float:
    return sum(1 if word in ("a", "an") else _WORDS[word] for word in re.split(r"[\s-]", words.lower()))


def _is_pronoun(text: str, group: re.Match[str], end: int) -> bool:
    before = max(0, group.start() - _SIGN_WINDOW), group.start()
    is_one = text[group.start() : end].lower() == "one"
    return is_one and bool(_PRONOUN_BEFORE.search(text, *before) or _PRONOUN_AFTER.match(text, end))


class Quantity(Record, frozen=True, kw_only=True):
    """`value` is in percent where `percent` is set: `45 %` is 45. `unit` is what stands behind, up to three words,
    or else the currency sign in front."""

    value: Interval
    span: tuple[int, int]
    unit: str = ""
    percent: bool = False


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


_OTHER_NUMBER = re.compile(
    r"\d|\b(?:none|nil|nought|nobody|nothing|single|couple|pairs?|both|once|twice|thrice|doubl\w+|tripl\w+|half|halves"
    r"|quarters?|thirds?|dozens?|hundreds|thousands|millions|billions)\b",
    re.IGNORECASE,
)
"""Digits and words that may stand for a number, though `numerals` makes none of them."""


def names_no_number(text: str) -> bool:
    """Whether a text surely gives no figure."""
    return not numerals(text) and not _OTHER_NUMBER.search(text)


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
_BEFORE = re.compile(rf"(?:(?P<least>{_AT_LEAST})|(?P<most>{_AT_MOST}))?(?:{_ROUGHLY})*\Z", re.IGNORECASE)
_BEHIND = re.compile(
    r"(?:\s[^\W\d_]+){0,2}?,?\s?(?:(?P<least>\s(?:or|and)\s(?:more|higher|greater|above|over|up(?:wards?)?)\b|\+(?!\w))"
    r"|(?P<most>\s(?:or|and)\s(?:less|fewer|lower|under|below)\b))",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[\s-]?((?:[^\W\d_]|[°µ²³/$€£])+(?:[ \t][^\W\d_]+){0,2})")
_WINDOW = 48
"""Characters looked back over; the longest opening, `at the very least approximately`, is shorter."""


def _match_opening(text: str, start: int) -> re.Match[str]:
    opening = _BEFORE.search(text, max(0, start - _WINDOW), start)
    assert opening is not None  # every part is optional
    return opening


def _parse_single(text: str, number: Numeral) -> Quantity:
    opening = _match_opening(text, number.start)
    limit = opening if opening["least"] or opening["most"] else _BEHIND.match(text, number.end)
    least, most = (limit["least"], limit["most"]) if limit else (None, None)
    return Quantity(
        value=Interval(None if most else number.value, None if least else number.value),
        span=(opening.start(), number.end),
        unit=_find_unit(text, number),
        percent=number.percent,
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
    if joint is None or not ((opening["least"] and joint["most"]) or (opening["most"] and joint["least"])):
        return None
    low, high = (_share_scale(first, second), second) if opening["least"] else (second, _share_scale(first, second))
    if low.value > high.value:
        return None
    percent = first.percent or second.percent
    return _build_quantity(text, Interval(low.value, high.value), second, start=opening.start(), percent=percent)


def _parse_range(text: str, first: Numeral, second: Numeral) -> Quantity | None:
    low, high = _share_scale(first, second).value, second.value
    between = _BETWEEN.search(text, max(0, first.start - _WINDOW), first.start)
    if between:
        start = between.start() if _AND.fullmatch(text, first.end, second.start) else None
        low, high = min(low, high), max(low, high)
    else:
        start = _match_opening(text, first.start).start() if _is_range(text, first, second) else None
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
    return Quantity(value=value, span=(start, last.end), unit=_find_unit(text, last), percent=percent)


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
