"""Half characters. A server that cuts a text in the middle of an emoji sends a lone surrogate, which no file can hold:
U+FFFD takes its place where a stranger's text becomes ours."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_tree(value: Any) -> Any:
    """`whole` for every string of a decoded JSON value, keys included."""
    match value:
        case str():
            return whole(value)
        case list() | tuple():
            return [whole_tree(item) for item in value]
        case dict():
            return {whole_tree(name): whole_tree(item) for name, item in value.items()}
        case _:
            return value


def whole_record(record: T) -> T:
    """`whole` for every string of a record."""
    return msgspec.convert(whole_tree(msgspec.to_builtins(record)), type(record))
