"""Single numbers in English prose, in digits or in words, before ranges and comparisons are understood.

Left alone on purpose: ordinals and decades (`21st`, `1990s`), digits glued to a word (`H2O`, `COVID-19`), clock
times, dates in digits, version numbers, and `one` as a pronoun. A comma followed by three digits separates
thousands, followed by one or two it is a decimal comma (`3,5`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
_SHORT = {"k": 1e3, "K": 1e3, "mn": 1e6, "mln": 1e6, "M": 1e6, "bn": 1e9, "B": 1e9, "tn": 1e12}
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
    (?P<short> (?<=[0-9]) (?: (?:{"|".join(_SHORT)}) | \s (?:bn|mn|mln|tn) ) (?!\w) )?
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
        scale *= _SHORT[suffix["short"].strip()]
    value = size * scale
    if not math.isfinite(value):
        return None
    return Numeral(value, start, suffix.end(), scale=scale, percent=bool(suffix["percent"]))


# --- words ------------------------------------------------------------------------------------------------

_FLAGS = re.IGNORECASE | re.ASCII  # without ASCII, `ſix` and `fıve` would be words the tables do not have
_WINDOW = 12
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
            numeral, place = _parse_fraction(text, part), part.end()
        elif group:
            size, place, scale = _sum_groups(text, group)
            numeral = (
                None if _is_pronoun(text, group, place) else _add_suffix(text, size, start=group.start(), end=place)
            )
            numeral = numeral and numeral._replace(scale=numeral.scale * scale)
        if numeral:
            place = max(place, numeral.end)
            minus = _MINUS.search(text, max(0, numeral.start - _WINDOW), numeral.start)
            yield numeral._replace(value=-numeral.value, start=minus.start()) if minus else numeral
        # Searching again only from where the last hit was used up keeps the whole linear.
        part = part if part is None or part.start() >= place else _PART.search(text, place)
        group = group if group is None or group.start() >= place else _GROUP.search(text, place)


def _parse_fraction(text: str, part: re.Match[str]) -> Numeral | None:
    count = 1.0 if part["half"] else _value_of_words(part["count"])
    return _add_suffix(text, count / _PARTS[(part["part"] or "half").lower()], start=part.start(), end=part.end())


def _sum_groups(text: str, group: re.Match[str]) -> tuple[float, int, float]:
    """Adds groups of falling scale: `two million three hundred thousand and five`. Value, end, scale of the last."""
    scale = SCALES[(group["scale"] or "").lower()] if group["scale"] else 1.0
    size = _below_thousand(group)
    end, lowest, total = group.end(), scale, size * scale
    point = _POINT.match(text, group.end("small")) if group["small"] else None
    if point:
        return _with_point(text, size, point)
    while lowest > 1 and (join := _JOIN.match(text, end)) and (more := _GROUP.match(text, join.end())):
        scale = SCALES[more["scale"].lower()] if more["scale"] else 1.0
        part = _below_thousand(more)
        if scale >= lowest or part * scale >= lowest or more["article"] or more["half"]:
            break
        total, end, lowest = total + part * scale, more.end(), scale
    return total, end, SCALES[group["scale"].lower()] if group["scale"] and end == group.end() else 1.0


def _with_point(text: str, size: float, point: re.Match[str]) -> tuple[float, int, float]:
    decimals = "".join(str(_WORDS[word.lower()]) for word in point.group(1).split())
    return float(f"{int(size)}.{decimals}"), point.end(), 1.0


def _below_thousand(group: re.Match[str]) -> float:
    if group["half"]:
        return 0.5
    if group["hundred"]:
        return _value_of_words(group["count"]) * 100 + (_value_of_words(group["rest"]) if group["rest"] else 0)
    return _value_of_words(group["small"] or group["article"])


def _value_of_words(words: str) -> float:
    return sum(1 if word in ("a", "an") else _WORDS[word] for word in re.split(r"[\s-]", words.lower()))


def _is_pronoun(text: str, group: re.Match[str], end: int) -> bool:
    if text[group.start() : end].lower() != "one":
        return False
    return bool(
        _PRONOUN_BEFORE.search(text, max(0, group.start() - _WINDOW), group.start()) or _PRONOUN_AFTER.match(text, end)
    )
