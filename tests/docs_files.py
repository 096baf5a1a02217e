"""Writes the fields in docs/reference.md from the records themselves: `python -m tests.docs_files`.

A record has one line for each field, with the first sentence of the string below the field, up to a semicolon. Fields
that another record has too, with the same line, are only named.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from tests.docs_cli import PATH, replace_part
from unmask.records import Asked, Call, Judged, Label, Scenario, Usage
from unmask.runs.batches import Batch
from unmask.runs.definition import Definition
from unmask.whitebox.fluency import Fluency

FILES: dict[str, type[msgspec.Struct]] = {
    "run.json": Definition,
    "scenarios.jsonl": Scenario,
    "replies.jsonl and readings": Call,
    "replies.jsonl": Asked,
    "readings": Judged,
    "batches.jsonl": Batch,
    "labels": Label,
    "fluency.json": Fluency,
}
"""What a line or the whole of each file is. The records inside are found from these."""
ABSENT: tuple[Any, ...] = (msgspec.NODEFAULT, msgspec.UNSET, None, (), "", {}, Usage())
"""Defaults that say no more than that there is nothing."""
WORDS = {str: "text", int: "integer", float: "number", bool: "boolean", Any: "anything"}


def records() -> dict[str, type[msgspec.Struct]]:
    """Every record on disk by its heading: those of files, and after each the records in its fields."""
    found: dict[str, type[msgspec.Struct]] = {}
    for title, record in FILES.items():
        found[title] = record
        _add_inner(found, title, record)
    return found


def _add_inner(found: dict[str, type[msgspec.Struct]], title: str, record: type[msgspec.Struct]) -> None:
    for name, kind in get_type_hints(record).items():
        for inner in _records_in(kind):
            if inner not in found.values():
                found[f"{title}: {name}"] = inner
                _add_inner(found, title, inner)


def _records_in(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """The records that a type names, but for those that are lists on disk, such as an interval."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if not kind.__struct_config__.array_like:
            yield kind
        return
    for part in get_args(kind):
        yield from _records_in(part)


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
                yield name, first_sentence(text)


def first_sentence(text: str) -> str:
    """Up to the first full stop or semicolon, as a reader of JSON would say it."""
    sentence = re.split(r"(?<!e\.g)\.(?: |$)|; ", " ".join(text.split()), maxsplit=1)[0]
    return sentence.replace("`None`", "`null`")


def kind_of(annotation: Any) -> str:
    """A type as JSON has it, in words."""
    if annotation in WORDS:
        return WORDS[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind_of(parts[0])
    if origin in (Union, UnionType):
        kinds = [kind_of(part) for part in parts if part not in (NoneType, msgspec.UnsetType)]
        return " or ".join(kinds) + ("?" if NoneType in parts else "")
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin is tuple:
        return "list" if ... in parts else f"list of {len(parts)}"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return f"*{annotation.__name__}*"
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        fields = ", ".join(annotation.__struct_fields__)
        return f"list [{fields}]" if annotation.__struct_config__.array_like else "object"
    assert origin is dict or hasattr(annotation, "__supertype__"), annotation
    return "object" if origin is dict else kind_of(annotation.__supertype__)


ELSEWHERE = {"scenarios.jsonl": "[Writing scenarios](data.md#writing-scenarios) says what goes into each field."}
"""Records whose fields another page explains: here are their types."""
LEAST_IN_COMMON = 4
"""So many fields with the same lines are named and not written again."""


def section(title: str, record: type[msgspec.Struct], above: dict[str, list[str]]) -> Iterator[str]:
    """Heading, what the record is, and its fields, but for those of a base that has a section of its own.

    `above` has the lines of the sections before this one, by their headings.
    """
    yield from (f"### {title}", "")
    if record.__doc__ and title not in record.__doc__:
        yield from (first_sentence(record.__doc__) + ".", "")
    lines = fields_of(record)
    if title in ELSEWHERE:
        yield from (ELSEWHERE[title], "")
        lines = [line.partition(": ")[0] for line in lines]
    for other, others in above.items():
        same = [line for line in lines if line in others]
        if len(same) >= LEAST_IN_COMMON:
            lines = [line for line in lines if line not in same]
            names = ", ".join(re.findall(r"^- (`\w+`)", "\n".join(same), re.MULTILINE))
            yield from (f"As in *{other}*: {names}.", "")
    bare = [line.removeprefix("- ") for line in lines if ": " not in line]
    if bare:
        yield from (f"{', '.join(bare)}.", "")
    if said := [line for line in lines if ": " in line]:
        yield from (*said, "")


def fields_of(record: type[msgspec.Struct]) -> list[str]:
    """A line for each field: its type, its default and what it means."""
    kinds, said = get_type_hints(record), meanings(record)
    inherited = {name for base in record.__mro__[1:] if base in FILES.values() for name in get_type_hints(base)}
    lines = []
    for field in msgspec.structs.fields(record):
        if field.name not in {*inherited, "v"}:
            default = "" if field.default in ABSENT else f" = {msgspec.json.encode(field.default).decode()}"
            meaning = f": {said[field.name]}" if field.name in said else ""
            kind = f"{kind_of(kinds[field.name])}{default}"
            lines.append(f"- `{field.name}`{'' if kind == 'text' else f' ({kind})'}{meaning}")
    return lines


def enums() -> dict[str, type[StrEnum]]:
    """The sets of words that fields of records take one of."""
    kinds = [kind for record in records().values() for kind in get_type_hints(record).values()]
    return {kind.__name__: kind for annotation in kinds for kind in _enums_in(annotation)}


def _enums_in(kind: Any) -> Iterator[type[StrEnum]]:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        yield kind
    for part in get_args(kind):
        yield from _enums_in(part)


def text() -> str:
    """The page, with the fields as they are."""
    found = records()
    lines: list[str] = []
    above: dict[str, list[str]] = {}
    for title, record in found.items():
        lines += section(title, record, above)
        above[title] = fields_of(record)
    words = [f"- *{name}*: {', '.join(f'`{word.value}`' for word in kind)}" for name, kind in sorted(enums().items())]
    return replace_part(PATH.read_text(encoding="utf-8"), "fields", [*lines, "### Words", "", *words])


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
