"""Text that strangers wrote: made uniform when it is read, and harmless when it is shown."""

from __future__ import annotations

import re
from typing import Any

_LONGEST = 120
_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
_QUERY = re.compile(r"(?<=://)([^?#\s]{0,400})[?#]\S*")


def tidy(text: str) -> str:
    """One kind of line end. A CSV that passed through Windows then gives the same scenarios as the original."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def tidy_tree(value: Any) -> Any:
    """`tidy` for every string, keys apart, of a decoded JSON value."""
    match value:
        case str():
            return tidy(value)
        case list():
            return [tidy_tree(item) for item in value]
        case dict():
            return {key: tidy_tree(item) for key, item in value.items()}
        case _:
            return value


def escape(text: str) -> str:
    """Safe on a terminal: control characters and direction marks become visible escapes; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain(text: str) -> str:
    """`escape` on one line of bounded length, for ids and names inside a message."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return escape(short).replace("\n", "\\n").replace("\t", "\\t")


def without_credentials(source: str) -> str:
    """Drops `user:password@` and what follows `?` from anything that looks like a URL: sources are written into run
    folders."""
    return _QUERY.sub(r"\1", _CREDENTIALS.sub("", source))
