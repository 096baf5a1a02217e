"""Units of figures: what stands behind (or before) a number, and how to bring it to the unit of a proposition.

A unit is a kind (length, money in dollars, share, count of something …) and a factor to the base of that kind. Two
units of different kinds cannot be converted: no rate of exchange, no weight of a bushel is known here. What is not in
the tables is a count of whatever the words name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from unmask.judges.figures import SCALES, numerals
from unmask.judges.words import WORD
from unmask.records import PIVOTAL, Scenario


class FigureUnit(NamedTuple):
    """`kind` is empty where nothing is named. `nouns` are the words of a count, cut to their stems."""

    kind: str = ""
    factor: float = 1.0
    offset: float = 0.0
    """Added after the factor: degrees Fahrenheit and Celsius do not begin at the same zero."""
    nouns: frozenset[str] = frozenset()
    per: str = ""
    """What it is counted for: `acre`, `woman`. A time (`day`) or a number of people is in `factor`."""
    rate: float = 0.0
    """Of how many it is a share: 1,000 in *per 1,000*. 0 where it is none."""
    time: str = ""
    """*a year*, *per day*."""


_PHYSICAL: dict[str, tuple[str, float]] = {
    r"bushels?|bu": ("bushels", 1.0),
    # length, in metres
    r"millimet(?:er|re)s?|mm": ("length", 1e-3),
    r"centimet(?:er|re)s?|cm": ("length", 1e-2),
    r"kilomet(?:er|re)s?|kms?": ("length", 1e3),
    r"met(?:er|re)s?|m": ("length", 1.0),
    r"inch(?:es)?": ("length", 0.0254),
    r"feet|foot|ft": ("length", 0.3048),
    r"yards?|yd": ("length", 0.9144),
    r"nautical\s+miles?": ("length", 1852.0),
    r"miles?": ("length", 1609.344),
    # area, in square metres
    r"(?:square|sq\.?)\s*(?:kilomet(?:er|re)s?|km)|km2|km²": ("area", 1e6),
    r"(?:square|sq\.?)\s*(?:met(?:er|re)s?|m)|m2|m²": ("area", 1.0),
    r"(?:square|sq\.?)\s*(?:miles?|mi)": ("area", 2_589_988.11),
    r"(?:square|sq\.?)\s*(?:feet|foot|ft)": ("area", 0.09290304),
    r"hectares?|ha": ("area", 1e4),
    r"acres?": ("area", 4046.8564),
    # mass, in kilograms
    r"(?:metric\s+)?kilotons?|kilotonnes?": ("mass", 1e6),
    r"(?:metric\s+)?gigatons?|gigatonnes?|(?-i:Gt|GT)": ("mass", 1e12),
    r"(?:metric\s+)?megatons?|megatonnes?|(?-i:Mt|MT)": ("mass", 1e9),
    r"tonnes?|metric\s+tons?|tons?": ("mass", 1e3),
    r"kilogram(?:me)?s?|kilos?|kgs?": ("mass", 1.0),
    r"milligram(?:me)?s?|mg": ("mass", 1e-6),
    r"gram(?:me)?s?|g": ("mass", 1e-3),
    r"pounds?|lbs?": ("mass", 0.45359237),
    r"ounces?|oz": ("mass", 0.028349523),
    # volume, in litres
    r"cubic\s+kilomet(?:er|re)s?|km3|km³": ("volume", 1e12),
    r"cubic\s+met(?:er|re)s?|m3|m³": ("volume", 1e3),
    r"millilit(?:er|re)s?|ml": ("volume", 1e-3),
    r"lit(?:er|re)s?|l": ("volume", 1.0),
    r"gallons?": ("volume", 3.785411784),
    r"barrels?": ("volume", 158.987294928),
    # time, in days
    r"seconds?|secs?": ("time", 1 / 86400),
    r"minutes?|mins?": ("time", 1 / 1440),
    r"hours?|hrs?|h": ("time", 1 / 24),
    r"days?": ("time", 1.0),
    r"weeks?": ("time", 7.0),
    r"months?": ("time", 365.25 / 12),
    r"years?": ("time", 365.25),
    r"decades?": ("time", 3652.5),
    r"centur(?:y|ies)": ("time", 36525.0),
    # energy in kilowatt-hours, power in kilowatts
    r"kilowatt[\s-]hours?|kwh": ("energy", 1.0),
    r"megawatt[\s-]hours?|mwh": ("energy", 1e3),
    r"gigawatt[\s-]hours?|gwh": ("energy", 1e6),
    r"terawatt[\s-]hours?|twh": ("energy", 1e9),
    r"petawatt[\s-]hours?|pwh": ("energy", 1e12),
    r"watts?": ("power", 1e-3),
    r"kilowatts?|kw": ("power", 1.0),
    r"megawatts?|mw": ("power", 1e3),
    r"gigawatts?|gw": ("power", 1e6),
    r"terawatts?|tw": ("power", 1e9),
    # speed, in metres per second
    r"(?:kilomet(?:er|re)s?|km)\s*(?:/|per|an)\s*(?:h|hour)|kph|km/h": ("speed", 1 / 3.6),
    r"(?:miles?)\s*(?:/|per|an)\s*hour|mph": ("speed", 0.44704),
    r"(?:kilomet(?:er|re)s?|km)\s*(?:/|per|a)\s*(?:s|second)": ("speed", 1e3),
    r"(?:met(?:er|re)s?|m)\s*(?:/|per|a)\s*(?:s|second)": ("speed", 1.0),
    r"knots?": ("speed", 0.514444),
}
_CURRENCIES = {
    r"(?:u\.?s\.?\s*|american\s+)?dollars?|us\$|usd|bucks": "dollar",
    r"cents?": "cent",
    r"euros?|eur": "euro",
    r"pounds?\s+sterling|gbp": "pound",
    r"yen|jpy": "yen",
    r"yuan|renminbi|rmb": "yuan",
    r"(?:indian\s+)?rupees?": "rupee",
    r"roubles?|rubles?": "rouble",
    r"francs?": "franc",
    r"pesos?": "peso",
    r"reais|real": "real",
    r"won|krw": "won",
    r"kron(?:a|e|or|er)": "krone",
    r"pence|pennies": "penny",
}
_SIGNS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
_SHARES = r"%|％|percent|per\s?cent|pct|prozent|por\s?ciento|pour\s?cent|per\s?cento|procent"
_POINTS = r"(?:%|percent(?:age)?|per\s?cent)[\s-]*points?|pp\b"
_DEGREES = {
    r"(?:°|degrees?)\s*c(?:elsius|entigrade)?|degrees?": (1.0, 0.0),
    r"(?:°|degrees?)\s*f(?:ahrenheit)?": (5 / 9, -160 / 9),
    r"kelvins?": (1.0, -273.15),
}
_STOP = frozenset(
    WORD.findall(
        "of in on at and or to for from by with per a an the is are was were be been being has have had will would can"
        " could that this which who whose while when where than then as but so if though although because since during"
        " under over about around it they he she we i you its their his her each every between among across into out up"
        " down not no only just also still now ago according annually yearly today worldwide globally nationwide live"
        " lived living died die dies killed visited came come arrived against compared versus more less fewer higher"
        " lower greater"
    )
)
"""Words that end the name of what is counted."""
_ALIKE = (
    "people inhabitant resident citizen person individual population human soul",
    "death people fatality victim casualty dead life person",
    "birth baby child children newborn infant",
    "tourist visitor arrival guest visit traveller traveler people",
    "visitor visit guest people person admission",
    "passenger traveller traveler flyer people",
)
"""Words that count the same."""
_TIMES = {
    "second": 1 / 86400,
    "minute": 1 / 1440,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
    "month": 30.4375,
    "year": 365.25,
}


def _anchored(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"[\s-]*(?:{pattern})(?![^\W_])", re.IGNORECASE)


_UNITS = sorted(
    [(_anchored(words), kind, factor, 0.0) for words, (kind, factor) in _PHYSICAL.items()]
    + [(_anchored(words), f"money:{name}", 1.0, 0.0) for words, name in _CURRENCIES.items()]
    + [(_anchored(words), "temperature", factor, offset) for words, (factor, offset) in _DEGREES.items()]
    + [(re.compile(rf"[\s-]*(?:{_POINTS})", re.IGNORECASE), "points", 1.0, 0.0)]
    + [(re.compile(rf"[\s-]*(?:{_SHARES})", re.IGNORECASE), "share", 0.01, 0.0)],
    key=lambda row: -len(row[0].pattern),
)
_PER = re.compile(
    r"[\s-]*(?:(?:per|for\s+every|for\s+each|out\s+of(?:\s+every)?|in\s+every|of\s+every)\s+|/\s*)", re.IGNORECASE
)
_EACH = re.compile(
    r"[\s-]*(?:an?|each|every)\s+(second|minute|hour|day|week|month|year|barrel|gallon|lit(?:re|er)|acre|hectare|person|head"
    r"|household|woman|tonne|ton|kilo|pound|bushel)\b",
    re.IGNORECASE,
)
_SAME_PER = {
    "capita": "person",
    "head": "person",
    "inhabitant": "person",
    "resident": "person",
    "ac": "acre",
    "ha": "hectare",
    "liter": "litre",
    "bbl": "barrel",
    "women": "woman",
    "gal": "gallon",
    "ton": "tonne",
}
_ADVERB = re.compile(r"[\s-]*(annually|yearly|daily|weekly|monthly|hourly)\b", re.IGNORECASE)
_ADVERBS = {
    "annually": "year",
    "yearly": "year",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "hourly": "hour",
}
_WORDS = re.compile(r"[\s-]*([^\W\d_]+(?:['’][^\W\d_]+)?)")


def stem(word: str) -> str:
    """One form of a word and its plural."""
    plain = word.casefold().replace("’", "'").removesuffix("'s")
    return plain[:-3] + "y" if plain.endswith("ies") and len(plain) > 4 else plain.removesuffix("s")


def parse_unit(behind: str, *, sign: str = "") -> tuple[FigureUnit, int]:
    """The unit at the beginning of what stands behind a number, and how many characters of it are used. `sign` is the
    currency in front."""
    place = 0
    unit = FigureUnit(f"money:{_SIGNS[sign]}") if sign in _SIGNS else FigureUnit()
    matches = [(match.end(), row) for row in _UNITS if (match := row[0].match(behind))]
    if matches and not unit.kind:
        place, (_, kind, factor, offset) = max(matches, key=lambda pair: pair[0])
        unit = FigureUnit(kind, factor, offset)
    elif unit.kind and matches and matches[0][1][1].startswith("money:"):
        place = matches[0][0]
    if not unit.kind:
        nouns, place = _parse_nouns(behind)
        unit = FigureUnit("count" if nouns else "", nouns=nouns)
    else:
        place += _skip_of(behind[place:])
    return _parse_per(behind, unit, place)


def _parse_nouns(behind: str) -> tuple[frozenset[str], int]:
    place = 0
    nouns: list[str] = []
    while len(nouns) < 4 and (word := _WORDS.match(behind, place)):
        if word.group(1).casefold() in _STOP:
            break
        nouns.append(stem(word.group(1)))
        place = word.end()
    return frozenset(nouns), place


def _skip_of(behind: str) -> int:
    """*tonnes of carbon dioxide a year*: the words between the unit and what it is counted for."""
    match = re.match(
        r"\s+of\s+(?:[^\W\d_]+\s+){0,3}?(?=(?:per|an?|each|every|annually|yearly)\b)", behind, re.IGNORECASE
    )
    return match.end() - 1 if match else 0


def _parse_per(behind: str, unit: FigureUnit, place: int) -> tuple[FigureUnit, int]:
    while True:
        each, adverb = _EACH.match(behind, place), _ADVERB.match(behind, place)
        if each or adverb:
            name = stem(each.group(1)) if each else _ADVERBS[adverb.group(1).casefold()]  # type: ignore[union-attr]
            unit = _per_name(unit, name)
            place = (each or adverb).end()  # type: ignore[union-attr]
            continue
        per = _PER.match(behind, place)
        if per is None:
            return unit, place
        numbers = numerals(behind[per.end() : per.end() + 30])
        if numbers and numbers[0].start == 0:
            unit, place = unit._replace(rate=numbers[0].value), per.end() + numbers[0].end
            _, used = _parse_nouns(behind[place:])
            place += used
            continue
        scale = re.compile(r"(thousand|million|billion)\b", re.IGNORECASE).match(behind, per.end())
        if scale:
            unit, place = unit._replace(rate=SCALES[scale.group(1).casefold()]), scale.end()
            continue
        word = re.compile(r"[^\W\d_]+").match(behind, per.end())
        if word is None:
            return unit, place
        unit = _per_name(unit, "person" if word.group().casefold() in _STOP else stem(word.group()))
        place = word.end()


def _per_name(unit: FigureUnit, name: str) -> FigureUnit:
    return unit._replace(time=name) if name in _TIMES else unit._replace(per=_SAME_PER.get(name, name))


class Hole(NamedTuple):
    """What a proposition wants: the unit of its hole, how many of it one is, and whether it is a change."""

    unit: FigureUnit
    scale: float
    change: int | None
    """None for a level; 1 where it speaks of a rise, -1 of a fall, 0 where the sign says which."""


@lru_cache(maxsize=4096)
def hole_of(scenario: Scenario) -> Hole:
    sentence = PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition)
    before, _, behind = sentence.partition("<value>")
    sign = before[-1:] if before[-1:] in _SIGNS else ""
    scale, behind_scale = _take_scale(behind)
    unit, _ = parse_unit(behind_scale, sign=sign)
    if scenario.unit is not None:
        named_scale, named = _take_scale(scenario.unit)
        named_unit, _ = parse_unit(named)
        scale = named_scale if named_scale != 1 else scale
        if named_unit.kind == "count" and unit.kind == "count":  # both say what is counted
            named_unit = named_unit._replace(nouns=named_unit.nouns | unit.nouns)
        elif not named_unit.kind:
            named_unit = named_unit._replace(kind=unit.kind or "count", nouns=unit.nouns)
        unit = named_unit
    return Hole(unit, scale, _direction(before, behind))


def _take_scale(text: str) -> tuple[float, str]:
    """*million people* is a million and people."""
    match = re.match(rf"[\s-]*((?:(?:{'|'.join(SCALES)})s?\b[\s-]*)+)", text, re.IGNORECASE)
    if match is None:
        return 1.0, text
    scale = 1.0
    for word in re.findall("|".join(SCALES), match.group(1).casefold()):
        scale *= SCALES[word]
    return scale, text[match.end() :]


UP = (
    r"(?:r[oi]se[ns]?|rising|rises|increas\w*|gr[eo]w\w*|growth|gain\w*|climb\w*|jump\w*|surg\w*|soar\w*|expan\w*|up"
    r"|higher|added|rebound\w*|improv\w*)"
)
DOWN = (
    r"(?:f[ae]ll(?:s|en|ing)?|declin\w*|decreas\w*|drop\w*|shr[aiu]nk\w*|contract\w*|lost|los[es]\w*|loss|down|lower"
    r"|reduc\w*|slump\w*|plung\w*|slid\w*|dip(?:s|ped|ping)?|plummet\w*|sh[ea]d(?:s|ding)?|fewer|less|downturn|cut)"
)
_CHANGE_BEFORE = re.compile(
    rf"\b(?:(?P<any>chang\w*)|(?P<up>{UP})|(?P<down>{DOWN}))\s+(?:\w+\s+){{0,3}}?by\s+(?:\w+\s+){{0,2}}$", re.I
)
_CHANGE_BEHIND = re.compile(
    r"^\s*(?:\S+\s+){1,3}?(?:(?P<up>higher|more|above|greater|larger)|(?P<down>lower|less|below|fewer|smaller))\s+than\b",
    re.I,
)


def _direction(before: str, behind: str) -> int | None:
    match = _CHANGE_BEFORE.search(before) or _CHANGE_BEHIND.search(behind)
    if match is None:
        return None
    named = match.groupdict()
    return 1 if named.get("up") else -1 if named.get("down") else 0


def convert(value: float, unit: FigureUnit, hole: Hole) -> float | None:
    """A value with all its scale in the unit of the hole, or None where that is another kind of thing."""
    wanted = hole.unit
    if unit.per and wanted.per and unit.per != wanted.per:
        source, target = _measure_of(unit.per), _measure_of(wanted.per)
        if source is None or target is None or source[0] != target[0]:
            return None
        value *= target[1] / source[1]  # a dollar per litre is 159 per barrel
    if unit.per and not wanted.per and unit.per != "person" and not wanted.time:
        return None
    value = _convert_time(value, unit, hole)  # type: ignore[assignment]
    if value is None:
        return None
    if wanted.rate:  # deaths per 1,000 births
        if unit.rate:
            return value * wanted.rate / unit.rate / hole.scale
        return value * 0.01 * wanted.rate / hole.scale if unit.kind == "share" else None
    if unit.rate:
        return value * 100 / unit.rate / hole.scale if wanted.kind == "share" else None
    if unit.kind != wanted.kind and not (unit.kind in {"", "count"} and wanted.kind in {"", "count"}):
        if {unit.kind, wanted.kind} == {"money:dollar", "money:cent"}:
            return value * (0.01 if unit.kind == "money:cent" else 100) / hole.scale
        return None
    return ((value * unit.factor + unit.offset) - wanted.offset) / wanted.factor / hole.scale


def _measure_of(name: str) -> tuple[str, float] | None:
    """The kind and factor of what something is counted for, where it is a measure."""
    for pattern, kind, factor, _ in _UNITS:
        if pattern.fullmatch(name):
            return kind, factor
    return None


def _convert_time(value: float, unit: FigureUnit, hole: Hole) -> float | None:
    wanted = hole.unit
    if unit.time == wanted.time or not unit.time:
        return value
    if not wanted.time:  # a yearly figure of a proposition about one year
        return value if unit.time == "year" and hole.change is None else None
    return value * _TIMES[wanted.time] / _TIMES[unit.time]


def counts_same(unit: FigureUnit, hole: Hole) -> bool:
    """Whether the words behind a number name what the proposition counts. Kinds other than counts always do."""
    if hole.unit.kind not in {"", "count"}:
        return True
    if unit.nouns & hole.unit.nouns:
        return True
    alike = [frozenset(map(stem, line.split())) for line in _ALIKE]
    return any(unit.nouns & words and hole.unit.nouns & words for words in alike)
