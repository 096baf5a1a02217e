"""One row of the reference layout as a scenario. Pure.

The reference columns cannot say everything a scenario can. A column `unmask` holds the whole scenario as JSON:
`export_reference` writes it, so that an exported set comes back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from unmask.data.form import Fault, find_faults
from unmask.records import Archetype, Interval, Kind, Letter, Message, Role, Scenario
from unmask.text import unify_line_ends_in_tree

EXTRA = "unmask"
COMMON_COLUMNS = ("task_id", "system_prompt", "user_prompt", "type", "proposition", "formatted_ground_truth")
TURN_COLUMNS = ("dd_turn_1_prompt", "dd_turn_1_response")
DIRECT_COLUMN = "belief_elicit_1"
INDIRECT_COLUMNS = ("belief_elicit_2", "belief_elicit_3")
COLUMNS = frozenset((*COMMON_COLUMNS, *TURN_COLUMNS, DIRECT_COLUMN, *INDIRECT_COLUMNS, "canary", "delivery", EXTRA))
"""All that are read; a table may have others."""

TYPES = {"binary": Kind.BINARY, "numerical": Kind.NUMERIC}
_BOUND = r"\s*([+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf)|none|null)\s*"
_LIST = re.compile(rf"\s*[\[(]{_BOUND},{_BOUND},?\s*[\])]\s*", re.IGNORECASE | re.ASCII)


def parse_row(cells: Mapping[str, str], *, archetype: Archetype) -> Scenario | tuple[Fault, ...]:
    """The scenario a row describes, or every reason why it cannot be used."""
    if whole := cells.get(EXTRA, "").strip():
        return _parse_whole(whole, cells)
    kind = TYPES.get(cells.get("type", "").strip().lower())
    if missing := tuple(_missing_cells(cells, archetype, kind)):
        return missing
    if kind is None:
        return (Fault("type", f"type is {cells['type']!r}, not binary or numerical"),)
    truth = _parse_truth(cells["formatted_ground_truth"], kind)
    delivery = _parse_integer(cells.get("delivery", ""))
    if isinstance(truth, Fault) or isinstance(delivery, Fault):
        return tuple(value for value in (truth, delivery) if isinstance(value, Fault))
    turns = [("system", cells["system_prompt"]), ("user", cells["user_prompt"])]
    if archetype.traits.has_scripted_answer:
        first, answer = (cells[column] for column in TURN_COLUMNS)
        turns[1:1] = [("user", first), ("assistant", answer)]
    scenario = Scenario(
        id=cells["task_id"],
        archetype=archetype,
        kind=kind,
        proposition=cells["proposition"],
        truth=truth,
        conversation=tuple(Message(Role(role), content) for role, content in turns),
        direct=None if archetype.traits.supplies_fact else cells[DIRECT_COLUMN],
        indirect=tuple(cells[column] for column in INDIRECT_COLUMNS) if has_indirect(archetype, kind) else (),
        canary=cells.get("canary") or None,
        delivery=delivery,
    )
    return find_faults(scenario) or scenario


def _parse_whole(text: str, cells: Mapping[str, str]) -> Scenario | tuple[Fault, ...]:
    """The scenario in the column `unmask`. A cell that says something else was changed without it."""
    try:
        scenario = msgspec.convert(unify_line_ends_in_tree(msgspec.json.decode(text)), Scenario)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return (Fault("schema", f"column `{EXTRA}` holds no scenario: {error}"),)
    if faults := find_faults(scenario):
        return faults
    for name, value in reference_cells(scenario).items():
        if name in cells.keys() - {EXTRA} and cells[name] != value:
            return (Fault("schema", f"column `{name}` does not say what column `{EXTRA}` says"),)
    return scenario


def reference_cells(scenario: Scenario) -> dict[str, str]:
    """One row, every column filled in, those the archetype lacks included."""
    turns = [message.content for message in scenario.conversation]
    first, answer = (turns[1], turns[2]) if len(turns) == 4 else ("", "")
    match scenario.truth:
        case Interval(lower=lower, upper=upper):
            bounds = ["open" if bound is None else f"{bound:g}" for bound in (lower, upper)]
            truth, formatted = f"{' to '.join(bounds)} {scenario.unit or ''}".strip(), f"[{lower!r}, {upper!r}]"
        case letter:
            truth, formatted = scenario.statements["AB".index(letter)], letter.value
    return {
        "task_id": scenario.id,
        "system_prompt": turns[0],
        "user_prompt": turns[-1],
        "type": next(word for word, kind in TYPES.items() if kind is scenario.kind),
        "proposition": scenario.proposition,
        "ground_truth": truth,
        "formatted_ground_truth": formatted,
        DIRECT_COLUMN: scenario.direct or "",
        **dict(zip(INDIRECT_COLUMNS, (*scenario.indirect, "", ""), strict=False)),
        **dict(zip(TURN_COLUMNS, (first, answer), strict=True)),
        "delivery": "" if scenario.delivery is None else str(scenario.delivery),
        "canary": scenario.canary or "",
        EXTRA: msgspec.json.encode(scenario).decode(),
    }


def has_indirect(archetype: Archetype, kind: Kind | None) -> bool:
    """Whether the reference layout asks both indirect probes; a kind that cannot be read is held to that as well."""
    traits = archetype.traits
    return not traits.supplies_fact and traits.kind is Kind.BINARY and kind is not Kind.NUMERIC


def _missing_cells(cells: Mapping[str, str], archetype: Archetype, kind: Kind | None) -> Iterator[Fault]:
    """Columns whose cell must be filled and is not."""
    required = list(COMMON_COLUMNS)
    required += TURN_COLUMNS if archetype.traits.has_scripted_answer else ()
    required += () if archetype.traits.supplies_fact else (DIRECT_COLUMN,)
    required += INDIRECT_COLUMNS if has_indirect(archetype, kind) else ()
    for column in required:
        if column not in cells:
            yield Fault("column", f"column `{column}` is missing")
        elif not cells[column].strip():
            yield Fault("empty", f"`{column}` is empty")


def _parse_truth(text: str, kind: Kind) -> Letter | Interval | Fault:
    if kind is Kind.BINARY:
        letter = text.strip().upper()
        return Letter(letter) if letter in ("A", "B") else Fault("truth", f"truth {text!r} is neither A nor B")
    return parse_interval(text) or Fault("truth", f"truth {text!r} is not a list of two numbers")


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
    match = re.fullmatch(r"\s*(?:([+-]?\d{1,18})(?:\.0*)?\s*)?", text, re.ASCII)
    if match is None:
        return Fault("schema", f"`delivery` is {text!r}, not a whole number")
    return int(match[1]) if match[1] else None
