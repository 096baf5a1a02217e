"""One row of the reference layout as a scenario. Pure.

The reference columns cannot say everything a scenario can. A column `unmask` may hold a JSON object with the fields
that are missing or different; `export_reference` writes it, so that an exported set comes back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from unmask.data.form import Fault, find_faults
from unmask.records import Archetype, Interval, Kind, Scenario
from unmask.text import unify_line_ends_in_tree

EXTRA = "unmask"
COMMON_COLUMNS = ("task_id", "system_prompt", "user_prompt", "type", "proposition", "formatted_ground_truth")
TURN_COLUMNS = ("dd_turn_1_prompt", "dd_turn_1_response")
DIRECT_COLUMN = "belief_elicit_1"
INDIRECT_COLUMNS = ("belief_elicit_2", "belief_elicit_3")
COLUMNS = frozenset((*COMMON_COLUMNS, *TURN_COLUMNS, DIRECT_COLUMN, *INDIRECT_COLUMNS, "canary", "delivery", EXTRA))
"""All that are read; a table may have others."""

TYPES = {"binary": Kind.BINARY, "numerical": Kind.NUMERIC}
OPEN_FIELDS = tuple(
    name for name in Scenario.__struct_fields__ if name not in ("id", "archetype", "proposition", "truth")
)
"""Fields the `unmask` column may set. The others always have a column of their own, and it counts."""

_BOUND = r"\s*([+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf)|none|null)\s*"
_LIST = re.compile(rf"\s*[\[(]{_BOUND},{_BOUND},?\s*[\])]\s*", re.IGNORECASE | re.ASCII)


def parse_row(cells: Mapping[str, str], *, archetype: Archetype) -> Scenario | tuple[Fault, ...]:
    """The scenario a row describes, or every reason why it cannot be used."""
    extra = _parse_extra(cells.get(EXTRA, ""))
    if isinstance(extra, Fault):
        return (extra,)
    kind = TYPES.get(cells.get("type", "").strip().lower())
    if missing := tuple(_missing_cells(cells, archetype, kind, supplied_fields=frozenset(extra))):
        return missing
    if kind is None:
        return (Fault("type", f"type is {cells['type']!r}, not binary or numerical"),)
    fields = base_fields(cells, archetype=archetype, kind=kind)
    if isinstance(fields, Fault):
        return (fields,)
    try:
        scenario = msgspec.convert(fields | extra, Scenario)
    except (msgspec.ValidationError, RecursionError) as error:
        return (Fault("schema", str(error)),)
    return find_faults(scenario) or scenario


def base_fields(cells: Mapping[str, str], *, archetype: Archetype, kind: Kind) -> dict[str, Any] | Fault:
    """What the reference columns say by themselves, as plain values. Empty cells become absent fields."""
    truth = _parse_truth(cells["formatted_ground_truth"], kind)
    delivery = _parse_integer(cells.get("delivery", ""))
    for value in (truth, delivery):
        if isinstance(value, Fault):
            return value
    system, user = cells.get("system_prompt", ""), cells.get("user_prompt", "")
    turns = [("system", system), ("user", user)]
    if archetype.traits.has_scripted_answer:
        first, answer = (cells.get(column, "") for column in TURN_COLUMNS)
        turns = [("system", system), ("user", first), ("assistant", answer), ("user", user)]
    probes = INDIRECT_COLUMNS if has_indirect(archetype, kind) else ()
    return {
        "id": cells["task_id"],
        "archetype": archetype.value,
        "kind": kind.value,
        "proposition": cells["proposition"],
        "truth": truth,
        "conversation": [{"role": role, "content": content} for role, content in turns],
        "direct": None if archetype.traits.supplies_fact else cells.get(DIRECT_COLUMN) or None,
        "indirect": [text for column in probes if (text := cells.get(column))],
        "canary": cells.get("canary") or None,
        "delivery": delivery,
    }


def has_indirect(archetype: Archetype, kind: Kind | None) -> bool:
    """Whether the reference layout asks both indirect probes; a kind that cannot be read is held to that as well."""
    traits = archetype.traits
    return not traits.supplies_fact and traits.kind is Kind.BINARY and kind is not Kind.NUMERIC


def _missing_cells(
    cells: Mapping[str, str], archetype: Archetype, kind: Kind | None, *, supplied_fields: frozenset[str]
) -> Iterator[Fault]:
    """Columns whose cell must be filled and is not. The `unmask` column supplies `supplied_fields` instead."""
    required = list(COMMON_COLUMNS)
    if "conversation" in supplied_fields:
        required = [column for column in COMMON_COLUMNS if column not in ("system_prompt", "user_prompt")]
    elif archetype.traits.has_scripted_answer:
        required += TURN_COLUMNS
    if not archetype.traits.supplies_fact and "direct" not in supplied_fields:
        required.append(DIRECT_COLUMN)
    if has_indirect(archetype, kind) and "indirect" not in supplied_fields:
        required += INDIRECT_COLUMNS
    for column in required:
        if column not in cells:
            yield Fault("column", f"column `{column}` is missing")
        elif not cells[column].strip():
            yield Fault("empty", f"`{column}` is empty")


def _parse_truth(text: str, kind: Kind) -> str | list[float | None] | Fault:
    if kind is Kind.BINARY:
        letter = text.strip().upper()
        return letter if letter in ("A", "B") else Fault("truth", f"truth {text!r} is neither A nor B")
    interval = parse_interval(text)
    if interval is None:
        return Fault("truth", f"truth {text!r} is not a list of two numbers")
    return [interval.lower, interval.upper]


def parse_interval(text: str) -> Interval | None:
    """`[lower, upper]` as Python prints it. `None` or an infinity on its own side is an open bound; anything that is
    not exactly two bounds, or two open ones, cannot be read. Nothing is evaluated."""
    match = _LIST.fullmatch(text)
    if match is None:
        return None
    try:
        lower, upper = _parse_bound(match.group(1), open_at="-inf"), _parse_bound(match.group(2), open_at="inf")
    except OverflowError:
        return None
    return None if lower is None and upper is None else Interval(lower, upper)


def _parse_bound(text: str, *, open_at: str) -> float | None:
    word = text.lower()
    if word in ("none", "null") or word.removeprefix("+") == open_at:
        return None
    number = float(word)
    if number in (float("inf"), float("-inf")):
        raise OverflowError(text)
    return number


def _parse_integer(text: str) -> int | Fault | None:
    """`delivery` is a whole number; tables that passed through pandas print it as `1.0`."""
    match = re.fullmatch(r"\s*([+-]?\d{1,300})(?:\.0*)?\s*", text, re.ASCII)
    if match:
        return int(match.group(1))
    return None if not text.strip() else Fault("schema", f"`delivery` is {text!r}, not a whole number")


def _parse_extra(text: str) -> dict[str, Any] | Fault:
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
        return Fault("schema", f"column `{EXTRA}` cannot hold `{unknown[0]}`")
    fields: dict[str, Any] = unify_line_ends_in_tree(value)
    return fields
