"""The judge's answer, from whatever way it was written down. Ambiguous is None, never a guess.

A letter is an *explicit* answer where a judge would put its own: behind a label (`Answer: B`, `the answer is (b)`) at
the start of a line or sentence, under the key `answer` of a JSON object, or alone on the last line. A label inside
quotation marks, in a block quote, or told about somebody else (`the reply says Answer: A`) is a mention. The last
explicit answer counts. Echoes of the template (`Answer: X`, `Answer: A, B, C or D`) are passed over; two letters
given as one answer (`Answer: A or B`) answer nothing and cancel what came before. So does taking an answer back without
giving another in its place (`Answer: A … the answer is not A`), or with one that has no label (`Answer: A. No, B.`).
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from unmask.judges import figures
from unmask.records import Choice, Interval, Letter

# --- letters ----------------------------------------------------------------------------------------------

# A judge that writes a Cyrillic or Greek capital means the letter it looks like: no other was on offer. Read so only
# in the place of an answer. Full-width, circled and mathematical letters are folded by NFKC before.
_LOOKALIKE = str.maketrans("АВСΑΒ", "ABCAB")
_LETTER = "[A-Da-dАВСΑΒ]"

_LEAD = (
    "so|thus|hence|therefore|then|overall|wait|actually|no|hmm|and|but|i|i'd|i'll|we|would|will|think|believe|conclude"
    "|that|means|this|is|makes|my|the|our|final|correct|corrected|best|right|proper|appropriate|revised|in|conclusion"
    "|correction|sorry|oops|rather|instead|hold|on"
)
"""Words that may stand between the start of a sentence and the label when a judge speaks for itself."""

_LABEL = re.compile(
    rf"""
    (?P<before> ^[\W_]*(?:[0-9]+[.)]\s*)? | [.!?;)\]]["'”’*_)]{{0,8}}\s+[*_]* | \s[–—-]+\s+[*_]* )
    (?: (?:{_LEAD})\b [\s,:*_]* )*
    (?P<label>
        (?<![^\W_]) (?:answer|choice|verdict|reading|classification|option|letter) (?![^\W_]) [\s*_`"']*
        (?: [:=] | -+>? | [–—→⇒] | \b(?:is|(?:would|must|should|has\ to|ought\ to)\ be)\b:? ) [\s*_]*
        (?: (?:clearly|therefore|thus|definitely|simply|indeed|still) \s+ )?
      | \b (?:choose|pick|select|go\ with) \s+
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_GIVEN = re.compile(
    rf"""
    (?P<open> (?: [*_`"'“‘(\[{{<$\s] | \\boxed | \\text(?:bf)? )* )
    (?: (?:option|statement|choice|letter) \b [\s:*_(]* )?
    (?P<letter> {_LETTER} ) (?! \w | ['’]\w )
    (?P<close> [*_`"'”’)\]}}>$]* )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MORE = re.compile(
    rf"""
    \s*+ (?: (?P<joint> (?:,\s*+)?\b(?:or|and|to|through)\b | [/|&+] | -+> | [→⇒] ) \s*+
          | (?: , | [–—-] ) \s*+ (?= ["'*_`(\[]* {_LETTER} ["'*_`)\]]* \s* (?: $ | [,/|.)\]}}>–—-] | or\b | and\b ) ) )
    ["'*_`(\[]* (?P<letter> {_LETTER} ) (?!\w) ["'*_`)\]]*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BACK = (
    r"no(?=\s*[,.;:!–—-])|wait|actually|rather(?!\s+than)|instead|sorry|correction|oops|hmm|scratch\ that|i\ mean"
    r"|make\ that|on\ second\ thought"
)
_REVISION = rf"""
    (?:{_BACK})\b
    (?: [\s,:;.!*_–—-]++ (?: {_BACK} | it | that | this | is | (?:it|that)['’]s | should | would | must | has | to | be
        | the | one | answer ) \b )*
    [\s,:;.!*_–—-]*+ ["'(]* (?P<letter> (?-i:[A-D]) ) (?! \w | ['’]\w ) ["')*_]*+ (?= \s*+ (?: $ | [.,;:!] ) )
"""
"""Another letter, with nothing before it but words that take an answer back."""
_REVISED = re.compile(rf"[\s*_]*+ [.,;:!?–—-]*+ [\s*_(]*+ {_REVISION}", re.VERBOSE | re.IGNORECASE)
_REVISING = re.compile(rf"[\W_]*+ {_REVISION} [\W_]*+ $", re.VERBOSE | re.IGNORECASE)
_DENIED = re.compile(
    r"""(?<![^\W_]) (?:answer|choice|verdict|reading|classification|option|letter) (?![^\W_]) [\s*_`"']*
    (?: is\s+not | isn['’]t | is\s+no\s+longer | (?:can|could|would|should|must)\s*(?:not|n['’]t)\s+be | cannot\s+be )
    [\s*_]* (?: (?:option|statement|letter) \s+ )? ["'(*_`]* (?P<letter> (?-i:[A-D]) ) (?! \w | ['’]\w )""",
    re.VERBOSE | re.IGNORECASE,
)
"""What the answer is said not to be."""
_AFTER = re.compile(r"\s*(?:$|[.,;:!](?!\w)|[()\[\]{}—–<>|\\]|-(?!\w)|because\b|since\b|as\b)", re.IGNORECASE)
_KEYED = re.compile(
    rf"""["'](?:answer|final_answer|letter|choice)["']\s*:\s*["']?(?:(?:option|statement)\s+)?({_LETTER})["']?\s*(?=[,}}\]]|$)""",
    re.IGNORECASE,
)
_JSON_LINE = re.compile(r"""\s*(?:```\w*\s*)?(?:[\[{]\s*[{"']|["']\w+["']\s*:)""")
_ALONE = re.compile(
    rf"""
    (?P<open> (?: [*_`"'“‘(\[{{<$\#\s] | \\boxed | \\text(?:bf)? | option\s )* )
    (?P<letter> {_LETTER} )
    (?P<close> [*_`"'”’)\]}}>$\s]* ) [.!]? [*_`$"'\s]*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_DRESS = 60
"""Characters that emphasis, quotation marks and spaces around one letter may take; what has more is no answer."""
_FENCE = re.compile(r"\s*```\w*\s*")
_HEADING = re.compile(r"[\W_]*(?:my\s+|the\s+)?(?:final\s+)?answer(?:\s+is)?[\W_]*", re.IGNORECASE)
_WHOLE_QUOTE = re.compile(r"""(["'`“‘])([^"'`“”‘’]*)["'`”’]""")


class LetterAnswer(NamedTuple):
    """A judge's answer with the text that led to it."""

    letter: Letter
    why: str


def find_letter(text: str, *, complete: bool = True) -> LetterAnswer | None:
    """The last explicit answer, or None.

    `complete=False` says that the judge was cut off: then only a labelled answer at the start of a line counts,
    because the end of the text may be the middle of a quotation, and a last `A` the beginning of `A car`.
    """
    lines = [_normalise_line(line) for line in Choice(text=text).answer.splitlines()]
    full = [place for place, line in enumerate(lines) if line.strip() and not _FENCE.fullmatch(line)]
    taken_back: set[Letter] = set()
    # The last explicit answer counts, so the search begins at the end and as a rule ends there.
    for before, place in zip([*full[-2::-1], None], reversed(full), strict=False):
        is_last = complete and place == full[-1]
        headed = before is not None and bool(_HEADING.fullmatch(lines[before]))
        search = _search_line_cached if len(lines[place]) <= _SHORT else _search_line
        letters = search(lines[place], is_last, complete) or _lone_letter(lines[place], is_last=is_last, headed=headed)
        if letters:
            why = "\n".join(lines[:place]).strip() or text.strip()
            return LetterAnswer(letters[0], why) if len(letters) == 1 and letters[0] not in taken_back else None
        taken_back |= _taken_back(lines[place])
    return None


def _taken_back(line: str) -> set[Letter]:
    """The letters that this line, which gives none itself, says the answer is not."""
    if line.lstrip().startswith(">"):
        return set()
    if revised := _REVISING.match(line):
        return set(Letter) - {_as_letter(revised["letter"])}
    quotes = _Quotes(line)
    return {_as_letter(denial["letter"]) for denial in _DENIED.finditer(line) if not quotes.open_at(denial.start())}


def _normalise_line(line: str) -> str:
    """Without look-alikes of width and style, and without invisible characters."""
    if line.isascii():
        return line
    return "".join(char for char in unicodedata.normalize("NFKC", line) if unicodedata.category(char) != "Cf")


def _search_line(line: str, is_last: bool, complete: bool) -> tuple[Letter, ...]:
    """The letters given by the last explicit answer on this line: none, one, or several at once."""
    if line.lstrip().startswith(">"):
        return ()
    if _JSON_LINE.match(line):
        return tuple(_as_letter(sign) for sign in _KEYED.findall(line)[-1:])
    quotation = _WHOLE_QUOTE.fullmatch(line.strip()) if is_last else None
    line = quotation.group(2) if quotation else line
    last: tuple[Letter, ...] = ()
    quotes = _Quotes(line)
    for label in _LABEL.finditer(line):
        if quotes.open_at(label.start("label")) or not (complete or label.start() == 0):
            continue
        last = _letters_after_label(line, label.end()) or last
    if len(last) == 1 and any(_as_letter(denied["letter"]) is last[0] for denied in _DENIED.finditer(line)):
        return last * 2  # `Answer: A. Wait, the answer is not A.`
    return last


_SHORT = 40
_search_line_cached = lru_cache(maxsize=1024)(_search_line)
"""Most answers end in one of a few short lines, and a long run reads millions of them."""


class _Quotes:
    """Whether a place of a line stands inside quotation marks. Places are asked for in order, so that a line is gone
    over once however many labels it has."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._seen = 0
        self._count = dict.fromkeys('"`“”«»„', 0)

    def open_at(self, place: int) -> bool:
        for mark in self._count:
            self._count[mark] += self._line.count(mark, self._seen, place)
        self._seen = place
        count = self._count
        open_pairs = any(count[left] > count[right] for left, right in ("“”", "«»", "„“"))
        before = self._line[max(0, place - _DRESS) : place].rstrip("*_ ")
        return bool(count['"'] % 2 or count["`"] % 2) or open_pairs or before.endswith(("'", "‘"))


def _letters_after_label(line: str, place: int) -> tuple[Letter, ...]:
    if line.startswith("{", place):
        return tuple(_as_letter(answer) for answer in _KEYED.findall(line, place)[-1:])
    answer = _GIVEN.match(line, place)
    if answer is None or _closes_a_quotation(answer):
        return ()
    letters, end, ranged = [_as_letter(answer["letter"])], answer.end(), False
    while more := _MORE.match(line, end):
        ranged = ranged or (more["joint"] or "").strip(" ,").lower() in ("", "to", "through")
        letters.append(_as_letter(more["letter"]))
        end = more.end()
    if len(set(letters)) > 1:
        is_template = len(set(letters)) > 2 or (
            ranged and letters[0] is Letter.A and letters[-1] in (Letter.C, Letter.D)
        )
        return () if is_template else tuple(letters)
    if (revised := _REVISED.match(line, end)) and _as_letter(revised["letter"]) is not letters[0]:
        return letters[0], _as_letter(revised["letter"])
    ends = answer["close"] and not line.startswith("?", end)
    return (letters[0],) if ends or _AFTER.match(line, end) else ()


def _closes_a_quotation(match: re.Match[str]) -> bool:
    """`Answer: A"` is the end of somebody else's words that began on an earlier line."""
    return any(mark in match["close"] for mark in '"”') and not any(mark in match["open"] for mark in '"“')


def _lone_letter(line: str, *, is_last: bool, headed: bool) -> tuple[Letter, ...]:
    line = line.strip()
    sign = _ALONE.fullmatch(line) if (is_last or headed) and len(line) <= 2 * _DRESS else None
    if sign is None:
        return ()
    dressed = bool(sign["open"].strip() or sign["close"].strip())
    return (_as_letter(sign["letter"]),) if headed or dressed or sign["letter"].isupper() else ()


def _as_letter(sign: str) -> Letter:
    return Letter(sign.upper().translate(_LOOKALIKE))


# --- intervals --------------------------------------------------------------------------------------------

KEYS = ("lower", "upper", "relative_lower", "relative_upper")
_OPEN = {"", "null", "none", "nan", "n/a", "na", "unknown", "undefined", "open", "unbounded", "-", "–", "—"} | {
    sign + word for sign in ("", "+", "-", "−") for word in ("inf", "infinity", "∞")
}
_BLOCK_QUOTE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_PATIENCE = 100_000
"""Characters that may be gone over again in search of where broken JSON begins; then only flat objects are read."""
_OPENING = re.compile(r"\{|\[(?=\s*\{)")
_FLAT = re.compile(r"\{[^{}]*\}")
_PAIR = re.compile(
    r"""
    ["'“”]? (?<!\w) (?P<key> (?:relative[_\s-]?)? (?:lower|upper) ) ["'“”]? \s*[:=]\s*
    (?P<value> "[^"]*" | '[^']*' | “[^”]*” | [^\n]{0,80}? )
    \s*+ (?= (?:[,;]\s*+)? (?: ["'“”]?[A-Za-z_][\w \t-]{0,40}["'“”]?\s{0,8}[:=] | \} | \n | // | \# ) )
    """,
    re.VERBOSE | re.IGNORECASE,
)


class IntervalAnswer(NamedTuple):
    """Absolute and relative bounds with the text that led to them."""

    absolute: Interval
    relative: Interval
    why: str


class _Unusable(Exception):
    """A bound that is neither a number nor open."""


def find_interval(text: str, *, complete: bool = True) -> IntervalAnswer | None:
    """Absolute and relative bounds from the last JSON object that has one of the four keys, or None.

    Missing keys, null, NaN and infinities are open bounds; inverted bounds are swapped; numbers may be strings
    (`"1,200"`, `"45%"`). Block quotes are passed over. A bound of another type, or several such objects in a list,
    makes the answer unreadable. `complete=False`, for a judge that was cut off, wants the object to start its line.
    """
    text = _BLOCK_QUOTE.sub("", Choice(text=text).answer)
    last: tuple[int, list[dict[str, Any]]] | None = None
    for start, holders in _find_objects(text):
        if holders and (complete or _starts_line(text, start)):
            last = (start, holders)
    if last is None or len(last[1]) != 1:
        return None
    start, (holder,) = last
    bounds = {key.strip().lower().replace(" ", "_").replace("-", "_"): value for key, value in holder.items()}
    try:
        low, high, relative_low, relative_high = (_parse_bound(bounds.get(key)) for key in KEYS)
    except _Unusable:
        return None
    reason = holder.get("reason")
    why = reason if isinstance(reason, str) else re.sub(r"```\w*\s*\Z", "", text[:start])
    return IntervalAnswer(_order_bounds(low, high), _order_bounds(relative_low, relative_high), why.strip())


def _starts_line(text: str, place: int) -> bool:
    """Whether nothing but space, or the opening of a fence, stands before this place on its line."""
    before = text[max(0, place - _DRESS) : place]
    begins = r"\A|\n" if place <= _DRESS else r"\n"
    return re.search(rf"(?:{begins})\s*(?:```\w*\s*)?\Z", before) is not None


def _find_objects(text: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Every JSON-like object or list of objects, with the dictionaries in it that hold bounds."""
    place, decoder = 0, json.JSONDecoder()
    patience = _PATIENCE + 4 * len(text)
    while opening := _OPENING.search(text, place):
        start = opening.start()
        try:
            if patience < 0:
                raise RecursionError
            value, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            # Objects that are opened one inside the other and never closed fail once for each of them.
            patience -= getattr(error, "pos", start + _PATIENCE // 4) - start + 50
            flat = _FLAT.match(text, start)
            place = flat.end() if flat else start + 1
            # Key by key, for what is nearly JSON: single quotes, trailing or thousands commas, bare words, comments.
            pairs = _PAIR.finditer(flat.group()) if flat else ()
            value = {pair["key"]: pair["value"].strip().strip("\"'“”") for pair in pairs}
        yield start, list(_find_holders(value))


def _find_holders(value: Any) -> Iterator[dict[str, Any]]:
    """Dictionaries with bounds, in the order of the text. No recursion: JSON may nest deeper than calls can."""
    pile = [value]
    while pile:
        match pile.pop():
            case dict() as holder if any(
                str(key).strip().lower().replace(" ", "_").replace("-", "_") in KEYS for key in holder
            ):
                yield holder
            case dict() as outer:
                pile.extend(reversed(outer.values()))
            case list() as outer:
                pile.extend(reversed(outer))


def _parse_bound(value: Any) -> float | None:
    match value:
        case None:
            return None
        case bool():
            raise _Unusable
        case int() | float():
            try:
                return float(value) if math.isfinite(value) else None
            except OverflowError:
                return None
        case str() if value.strip().casefold() in _OPEN:
            return None
        case str():
            point = figures.parse_single_figure(value)
            if point is None:
                raise _Unusable
            return point
        case _:
            raise _Unusable


def _order_bounds(low: float | None, high: float | None) -> Interval:
    if low is not None and high is not None and low > high:
        return Interval(high, low)
    return Interval(low, high)
