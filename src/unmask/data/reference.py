"""One row of the reference layout as a scenario. Pure.

The reference columns cannot say everything a scenario can. A column `unmask` may hold a JSON object with the fields
that are missing or different; `export_reference` writes it, so that an exported set comes back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from unmask.data.form import Fault, faults
from unmask.records import Archetype, Interval, Kind, Scenario
from unmask.text import plain, tidy_tree

EXTRA = "unmask"
COMMON = ("task_id", "system_prompt", "user_prompt", "type", "proposition", "formatted_ground_truth")
TURN_COLUMNS = ("dd_turn_1_prompt", "dd_turn_1_response")
DIRECT_COLUMN = "belief_elicit_1"
INDIRECT_COLUMNS = ("belief_elicit_2", "belief_elicit_3")
COLUMNS = frozenset((*COMMON, *TURN_COLUMNS, DIRECT_COLUMN, *INDIRECT_COLUMNS, "canary", "delivery", EXTRA))
"""All that are read; a table may have others."""

TYPES = {"binary": Kind.BINARY, "numerical": Kind.NUMERIC}
FIXED_FIELDS = frozenset({"id", "archetype", "proposition", "truth"})
OPEN_FIELDS = tuple(name for name in Scenario.__struct_fields__ if name not in FIXED_FIELDS)
"""Fields the `unmask` column may set. The others always have a column of their own, and it counts."""

_BOUND = r"\s*([+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf)|none|null)\s*"
_LIST = re.compile(rf"\s*[\[(]{_BOUND},{_BOUND},?\s*[\])]\s*", re.IGNORECASE | re.ASCII)


def parse(cells: Mapping[str, str], *, archetype: Archetype) -> Scenario | tuple[Fault, ...]:
    """The scenario a row describes, or every reason why it cannot be used."""
    extra = _extra(cells.get(EXTRA, ""))
    if isinstance(extra, Fault):
        return (extra,)
    kind = TYPES.get(cells.get("type", "").strip().lower())
    if missing := tuple(_missing(cells, _required(archetype, kind, given=frozenset(extra)))):
        return missing
    if kind is None:
        return (Fault("type", f"type is {plain(cells['type'])!r}, not binary or numerical"),)
    fields = base(cells, archetype=archetype, kind=kind)
    if isinstance(fields, Fault):
        return (fields,)
    try:
        scenario = msgspec.convert(fields | extra, Scenario)
    except (msgspec.ValidationError, RecursionError) as error:
        return (Fault("schema", plain(str(error))),)
    return faults(scenario) or scenario


def base(cells: Mapping[str, str], *, archetype: Archetype, kind: Kind) -> dict[str, Any] | Fault:
    """What the reference columns say by themselves, as plain values. Empty cells become absent fields."""
    truth = _truth(cells["formatted_ground_truth"], kind)
    delivery = _whole(cells.get("delivery", ""))
    for value in (truth, delivery):
        if isinstance(value, Fault):
            return value
    direct, indirect = _probes(cells, archetype, kind)
    return {
        "id": cells["task_id"],
        "archetype": archetype.value,
        "kind": kind.value,
        "proposition": cells["proposition"],
        "truth": truth,
        "conversation": _conversation(cells, archetype),
        "direct": direct,
        "indirect": indirect,
        "canary": cells.get("canary") or None,
        "delivery": delivery,
    }


def _probes(cells: Mapping[str, str], archetype: Archetype, kind: Kind) -> tuple[str | None, list[str]]:
    if archetype.traits.supplies_fact:
        return None, []
    columns = INDIRECT_COLUMNS if has_indirect(archetype, kind) else ()
    return cells.get(DIRECT_COLUMN) or None, [text for column in columns if (text := cells.get(column))]


def has_indirect(archetype: Archetype, kind: Kind | None) -> bool:
    """Whether the reference layout asks both indirect probes; a kind that cannot be read is held to that as well."""
    traits = archetype.traits
    return not traits.supplies_fact and traits.kind is Kind.BINARY and kind is not Kind.NUMERIC


def _required(archetype: Archetype, kind: Kind | None, *, given: frozenset[str]) -> Iterator[str]:
    """Columns whose cell must be filled; `given` are the fields the `unmask` column supplies instead."""
    yield from (column for column in COMMON if column not in _supplied(given))
    if archetype.traits.has_scripted_answer and "conversation" not in given:
        yield from TURN_COLUMNS
    if not archetype.traits.supplies_fact and "direct" not in given:
        yield DIRECT_COLUMN
    if has_indirect(archetype, kind) and "indirect" not in given:
        yield from INDIRECT_COLUMNS


def _supplied(given: frozenset[str]) -> tuple[str, ...]:
    return ("system_prompt", "user_prompt") if "conversation" in given else ()


def _missing(cells: Mapping[str, str], columns: Iterator[str]) -> Iterator[Fault]:
    for column in columns:
        if column not in cells:
            yield Fault("column", f"column `{column}` is missing")
        elif not cells[column].strip():
            yield Fault("empty", f"`{column}` is empty")


def _conversation(cells: Mapping[str, str], archetype: Archetype) -> list[dict[str, str]]:
    system, user = cells.get("system_prompt", ""), cells.get("user_prompt", "")
    turns = [("system", system), ("user", user)]
    if archetype.traits.has_scripted_answer:
        first, answer = (cells.get(column, "") for column in TURN_COLUMNS)
        turns = [("system", system), ("user", first), ("assistant", answer), ("user", user)]
    return [{"role": role, "content": content} for role, content in turns]


def _truth(text: str, kind: Kind) -> str | list[float | None] | Fault:
    if kind is Kind.BINARY:
        letter = text.strip().upper()
        return letter if letter in ("A", "B") else Fault("truth", f"truth {plain(text)!r} is neither A nor B")
    interval = parse_interval(text)
    if interval is None:
        return Fault("truth", f"truth {plain(text)!r} is not a list of two numbers")
    return [interval.lower, interval.upper]


def parse_interval(text: str) -> Interval | None:
    """`[lower, upper]` as Python prints it. `None` or an infinity on its own side is an open bound; anything that is
    not exactly two bounds, or two open ones, cannot be read. Nothing is evaluated."""
    found = _LIST.fullmatch(text)
    if found is None:
        return None
    try:
        lower, upper = _bound(found.group(1), open_at="-inf"), _bound(found.group(2), open_at="inf")
    except OverflowError:
        return None
    return None if lower is None and upper is None else Interval(lower, upper)


def _bound(text: str, *, open_at: str) -> float | None:
    word = text.lower()
    if word in ("none", "null") or word.removeprefix("+") == open_at:
        return None
    number = float(word)
    if number in (float("inf"), float("-inf")):
        raise OverflowError(text)
    return number


def _whole(text: str) -> int | Fault | None:
    """`delivery` is a whole number; tables that passed through pandas print it as `1.0`."""
    found = re.fullmatch(r"\s*([+-]?\d{1,300})(?:\.0*)?\s*", text, re.ASCII)
    if found:
        return int(found.group(1))
    return None if not text.strip() else Fault("schema", f"`delivery` is {plain(text)!r}, not a whole number")


def _extra(text: str) -> dict[str, Any] | Fault:
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return Fault("schema", f"column `{EXTRA}` is not JSON")
    if not isinstance(value, dict):
        return Fault("schema", f"column `{EXTRA}` is not a JSON object")
    unknown = sorted(value.keys() - set(OPEN_FIELDS))
    if unknown:
        return Fault("schema", f"column `{EXTRA}` cannot hold `{plain(unknown[0])}`")
    fields: dict[str, Any] = tidy_tree(value)
    return fields
