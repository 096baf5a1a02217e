"""Keys and URLs from the environment and from `.env` in the working directory; the real environment wins."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from unmask.errors import UsageError

Role = Literal["subject", "judge"]

KEY_VARIABLE: dict[Role, str] = {"subject": "UNMASK_API_KEY", "judge": "UNMASK_JUDGE_API_KEY"}
URL_VARIABLE: dict[Role, str] = {"subject": "UNMASK_BASE_URL", "judge": "UNMASK_JUDGE_BASE_URL"}

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)", re.DOTALL)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?\Z')
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?\Z")
_COMMENT = re.compile(r"(?:\A|\s)#.*")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A secret and the variable it came from. Shows only the latter, so that no log or traceback has the former."""

    value: str
    source: str

    def __repr__(self) -> str:
        return f"Key(from {self.source})"


def parse_dotenv(text: str) -> dict[str, str]:
    """`NAME=value` lines; `export`, quotes, escapes in double quotes and comments are understood, the rest ignored."""
    found: dict[str, str] = {}
    for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")):
        if match := _LINE.fullmatch(line):
            found[match.group(1)] = _value(match.group(2))
    return found


def _value(written: str) -> str:
    if match := _DOUBLE.match(written):
        return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape.group(1), escape.group(1)), match.group(1))
    if match := _SINGLE.match(written):
        return match.group(1)
    return _COMMENT.sub("", written).strip()


def environment(folder: Path | None = None) -> Mapping[str, str]:
    """What the program may read: `.env` in `folder` (the working directory), overlaid by the real environment."""
    try:
        text = ((folder or Path.cwd()) / ".env").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return os.environ
    return {**parse_dotenv(text), **os.environ}


def find_key(variables: tuple[str, ...], *, environ: Mapping[str, str]) -> Key | None:
    """The first of `variables` that is set and not blank."""
    for variable in variables:
        value = environ.get(variable, "").strip()
        if not value:
            continue
        if not value.isascii() or not value.isprintable():
            raise UsageError(
                f"the key in {variable} has characters that no HTTP header may carry",
                advice=f"copy the key again into {variable}, without quotes, line breaks or an ellipsis",
            )
        return Key(value, variable)
    return None


def find_url(variables: tuple[str, ...], *, environ: Mapping[str, str]) -> str | None:
    """The first of `variables` that is set and not blank."""
    return next((url for variable in variables if (url := environ.get(variable, "").strip())), None)
