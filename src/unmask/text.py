"""Text from outside, made fit for the place where it is shown: terminal, web page, Markdown, CSV, messages.

A model, a data file or a server wrote the text. Nothing in it may move a cursor, hide words, turn the direction of a
line, become a tag or a formula, or hold half a character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from unmask.errors import UsageError, escape_line
from unmask.records import Interval, Ranged

if TYPE_CHECKING:
    from markupsafe import Markup

# Colours and cursor movement go as a whole. Of longer sequences (titles, links) only the control characters go: their
# text stays visible, so that a reply cannot use them to hide what it says.
_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
# Control characters but for tab and newline; marks that reorder what follows, or hide it; lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NEWLINE = re.compile("\r\n?|[\u0085\u2028\u2029\x0b\x0c]")


def _is_plain(text: str) -> bool:
    """Whether this is ASCII without controls but for tabs and newlines: nothing to look for, as in most replies. The
    patterns below would need eight times as long to say so."""
    return text.isascii() and (text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable())


def strip_controls(text: str) -> str:
    """`text` without anything that moves the cursor, colours, reorders or hides; every line break becomes a newline."""
    if _is_plain(text):
        return text
    return _UNSAFE.sub("", _SEQUENCE.sub("", _NEWLINE.sub("\n", text)))


_LINE_END = re.compile("\r\n?|[\u0085\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
    "|(?<![^\0-\x7f])[\u200c\u200d\ufe0e\ufe0f]+|[\u200c\u200d]+(?![^\0-\x7f])|[\u200c\u200d\ufe0e\ufe0f]{3,}"
)
"""Controls, formats, tags, variation selectors, fillers, surrogates and non-characters: all that has no shape. Joiners
and selectors are hidden text next to ASCII and in a row; scripts and emoji need them elsewhere."""


def visible_html(text: str) -> Markup:
    """`text` as HTML that shows all of it. Line breaks of every kind become newlines.

    A character without a shape of its own becomes a mark with its number, so that a reader sees what a model sent and
    no reply can turn the direction of anything."""
    from markupsafe import Markup, escape

    if _is_plain(text):
        return escape(str(text))
    return Markup(_HIDDEN.sub(_mark_hidden, str(escape(_LINE_END.sub("\n", text)))))


def visible_html_line(text: str, *, limit: int = 300) -> Markup:
    """One line of at most `limit` characters."""
    line = " ".join(text.split())
    return visible_html(line if len(line) <= limit else f"{line[: limit - 1]}…")


def _mark_hidden(match: re.Match[str]) -> str:
    """Each character once with its count, so that thousands of them stay one mark."""
    counts = ((sign, sum(1 for _ in same)) for sign, same in groupby(match.group()))
    return "".join(
        f'<span class="u">U+{ord(sign):04X}{f" ×{count}" if count > 1 else ""}</span>' for sign, count in counts
    )


NO_FIGURE = "no figure"


def format_interval(bounds: Interval) -> str:
    match bounds.lower, bounds.upper:
        case None, None:
            return NO_FIGURE
        case None, upper:
            return f"at most {upper:g}"
        case lower, None:
            return f"at least {lower:g}"
        case lower, upper if lower == upper:
            return f"{lower:g}"
        case lower, upper:
            return f"{lower:g} to {upper:g}"


def format_figures(reading: Ranged) -> str:
    if reading.empty:
        return NO_FIGURE
    parts = [] if reading.absolute.empty else [format_interval(reading.absolute)]
    return " and ".join(parts if reading.relative.empty else [*parts, f"relative {format_interval(reading.relative)}"])


_MARKDOWN_SIGNS = re.compile(r"([\\`*_{}<>|#~]|\](?=[(\[:]))")
"""Also a bracket that ends the text of a link; others are what an interval is written in."""


def escape_markdown(text: str) -> str:
    """One line for a Markdown table or list: nothing in it is a mark, a tag or a column."""
    return _MARKDOWN_SIGNS.sub(r"\\\1", " ".join(strip_controls(text).split()))


_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
_QUERY = re.compile(r"(?<=://)([^?#\s]{0,400})[?#]\S*")


def unify_line_ends(text: str) -> str:
    """One kind of line end. A CSV that passed through Windows then gives the same scenarios as the original."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def unify_line_ends_in_tree(value: Any) -> Any:
    """`unify_line_ends` for every string of a decoded JSON value, keys included."""
    return _map_texts(value, unify_line_ends)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A decoded JSON value with every string of it changed, keys included."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [_map_texts(item, change) for item in value]
        case dict():
            return {_map_texts(name, change): _map_texts(item, change) for name, item in value.items()}
        case _:
            return value


def suggest_names(wrong: str, names: Iterable[str], listed: str) -> str:
    """Advice: the nearest of the names if one is near, and where all of them are listed. Those with the same number at
    their end are nearer: 2 is known_facts-002."""
    from difflib import get_close_matches

    every = list(names)
    alike = [name for name in every if _last_number(name) is not None and _last_number(name) == _last_number(wrong)]
    near = get_close_matches(wrong, alike, n=3) or get_close_matches(wrong, every, n=3) or alike[:3]
    return f"Did you mean {' or '.join(map(escape_line, near))}? {listed}".strip() if near else listed


def _last_number(name: str) -> int | None:
    digits = re.search(r"[0-9]{1,18}$", name)
    return None if digits is None else int(digits[0])


def refuse_unknown(settings: Iterable[str], names: Sequence[str]) -> None:
    """Keyword arguments that are none of these names are a usage error."""
    for name in settings:
        if name not in names:
            advice = suggest_names(name, names, f"Settings are: {', '.join(names)}")
            raise UsageError(f"there is no setting {name!r}", advice=advice)


def list_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Several names, or one by itself."""
    return (names,) if isinstance(names, str) else tuple(names)


def without_credentials(source: str) -> str:
    """Drops `user:password@` and what follows `?` from anything that looks like a URL: sources are written into run
    folders."""
    return _QUERY.sub(r"\1", _CREDENTIALS.sub("", source))


_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_HIDDEN_FORMULA = re.compile("'+[=+\\-@\t\r\n＝＋－＠]")


def guard_formula(text: str) -> str:
    """A text cell of a CSV file that no spreadsheet takes for a formula: an apostrophe comes before its sign.
    `unguard_formula(guard_formula(text)) == text` for every text."""
    return "'" + text if _FORMULA.match(text) else text


def unguard_formula(cell: str) -> str:
    return cell[1:] if _HIDDEN_FORMULA.match(cell) else cell


T = TypeVar("T", bound=msgspec.Struct)


def replace_surrogates(text: str) -> str:
    """U+FFFD in place of each half character: a server that cuts an emoji in the middle sends a lone surrogate, which
    no file can hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replace_surrogates_in_tree(value: Any) -> Any:
    """`replace_surrogates` for every string of a decoded JSON value, keys included."""
    return _map_texts(value, replace_surrogates)


def replace_surrogates_in_record(record: T) -> T:
    """`replace_surrogates` for every string of a record."""
    return msgspec.convert(replace_surrogates_in_tree(msgspec.to_builtins(record)), type(record))


LONGEST_ERROR = 100
"""Characters of an error that are quoted."""


def shorten_error(error: str) -> str:
    """The error of a request in one short line, without controls."""
    line = replace_surrogates(" ".join(strip_controls(error).split()))
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…"
