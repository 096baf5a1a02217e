"""Writes the fields in docs/reference.md from the records themselves: `python -m tests.docs_files`.

A record has one line for each field that a string below it explains, with the first sentence of that string. The others
are only named.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache

import msgspec

from tests.docs_cli import PATH, replace_part
from unmask.records import Asked, Call, Judged, Label
from unmask.runs.definition import DataSpec, Definition

FILES: dict[str, type[msgspec.Struct]] = {
    "run.json": Definition,
    "run.json: data": DataSpec,
    "replies.jsonl and readings": Call,
    "replies.jsonl": Asked,
    "readings": Judged,
    "labels": Label,
}
"""What a line or the whole of each file is, for who reads it with a program of their own."""


@cache
def meanings(record: type[msgspec.Struct]) -> dict[str, str]:
    """The first sentence of the string below each field, those of base classes included."""
    said: dict[str, str] = {}
    for part in reversed(record.__mro__):
        if part.__module__.startswith("unmask."):
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
            assert isinstance(definition, ast.ClassDef)
            said |= dict(_strings_below(definition))
    return said


def _strings_below(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                sentence = re.split(r"(?<!e\.g)\.(?: |$)|; ", " ".join(text.split()), maxsplit=1)[0]
                yield name, sentence.replace("`None`", "`null`")


def section(title: str, record: type[msgspec.Struct]) -> Iterator[str]:
    """Heading and fields, but for those of a base that has a section of its own."""
    said = meanings(record)
    bases = [base for base in record.__mro__[1:] if base in FILES.values()]
    inherited = {name for base in bases for name in base.__struct_fields__}
    names = [name for name in record.__struct_fields__ if name not in {*inherited, "v"}]
    yield from (f"### {title}", "")
    if bare := [f"`{name}`" for name in names if name not in said]:
        yield from (f"{', '.join(bare)}.", "")
    yield from [f"- `{name}`: {said[name]}" for name in names if name in said]
    yield ""


def text() -> str:
    """The page, with the fields as they are."""
    lines = [line for title, record in FILES.items() for line in section(title, record)]
    return replace_part(PATH.read_text(encoding="utf-8"), "fields", lines)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
