"""What a person is asked to read, and sheets of it for labelling elsewhere: JSONL or CSV, out and back in.

A file from outside has the columns of an export or the fields of a label.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from unmask.data.form import read_bytes
from unmask.data.tables import csv_reader
from unmask.errors import DataError, UsageError
from unmask.files import write_atomically
from unmask.records import (
    PRESSURED,
    Interval,
    Kind,
    Label,
    Letter,
    Record,
    Scenario,
    Slot,
    digest,
)
from unmask.text import escape_line, guard_formula, replace_surrogates_in_tree, unguard_formula

Key = tuple[str, Slot, int]
"""A reply: scenario, slot, take."""


Labels = dict[Key, Label]


COLUMNS = (
    *("scenario", "slot", "take", "kind", "statement_a", "statement_b", "figure", "unit", "context", "reply"),
    *("letter", "lower", "upper", "relative_lower", "relative_upper", "note", "who", "digest"),
)


_FILLED = ("letter", "lower", "upper", "relative_lower", "relative_upper")


class Item(Record, frozen=True, kw_only=True):
    """What a person is asked to read: one reply, or all direct takes of a numeric scenario, which are one belief."""

    scenario: Scenario
    slot: Slot
    take: int
    texts: tuple[str, ...]

    @property
    def key(self) -> Key:
        return self.scenario.id, self.slot, self.take

    @property
    def digest(self) -> str:
        return digest(self.texts)


def export_items(items: Sequence[Item], path: Path, *, labels: Mapping[Key, Label] | None = None) -> int:
    """Write items for labelling elsewhere, JSONL or CSV by the ending. Neither model nor judge is named.

    Nothing is replaced: a file that is there may be a sheet that somebody has filled in.
    """
    ending = path.suffix.lower()
    if ending not in (".jsonl", ".csv"):
        raise UsageError(f"{path} has neither of the endings .jsonl and .csv", advice="Give the file one of them.")
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already", advice="It may hold labels. Choose another file for --export.")
    write_atomically(path, format_items([(item, (labels or {}).get(item.key)) for item in items], ending))
    return len(items)


def format_items(labelled: Sequence[tuple[Item, Label | None]], ending: str) -> bytes:
    """A row for each of these replies with its label, as `.csv` or `.jsonl`."""
    rows = [_export_row(item, label) for item, label in labelled]
    text = StringIO(newline="")
    if ending == ".csv":
        sheet = csv.DictWriter(text, COLUMNS)
        sheet.writeheader()
        # A spreadsheet runs what starts like a formula: text of others gets an apostrophe before it.
        sheet.writerows(
            {name: guard_formula(value) if isinstance(value, str) else value for name, value in row.items()}
            for row in rows
        )
    else:
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _export_row(item: Item, label: Label | None) -> dict[str, Any]:
    scenario = item.scenario
    binary = scenario.kind is Kind.BINARY
    a, b = scenario.statements if binary else (None, None)
    values = label and (label.letter, label.interval or Interval(), label.relative or Interval())
    letter, interval, relative = values or (None, Interval(), Interval())
    empty = label is not None and not binary and interval.empty and relative.empty
    fields = (item.slot, item.take, scenario.kind.value, a, b, None if binary else scenario.proposition, scenario.unit)
    shown = (reply_context(item), "\n\n".join(item.texts))
    shown_letter = "C" if empty else letter and letter.value
    reading_cells = (shown_letter, interval.lower, interval.upper, relative.lower, relative.upper)
    end = (label and label.note, label and label.who, item.digest)
    return dict(zip(COLUMNS, (scenario.id, *fields, *shown, *reading_cells, *end), strict=True))


def reply_context(item: Item) -> str:
    """What the reply answers: the question, or the whole pressured conversation."""
    from unmask.protocol.probes import question

    if item.slot != PRESSURED:
        return question(item.scenario, item.slot)
    return "\n\n".join(f"[{turn.role}] {turn.content}" for turn in item.scenario.conversation)


def read_file(path: Path) -> list[Label]:
    """Labels of a JSONL or CSV file. Rows that nobody filled in are passed over; wrong ones are all named."""
    labels: list[Label] = []
    problems: list[str] = []
    for number, row in _read_rows(path):
        try:
            label = _parse_label(row)
        except (ValueError, TypeError, OverflowError, RecursionError, msgspec.ValidationError) as error:
            problems.append(f"line {number}: {escape_line(str(error))}")
            continue
        if label is not None:
            labels.append(label)
    if problems:
        raise DataError(f"{path} has rows that are no labels:", problems=tuple(problems))
    return labels


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    if path.suffix.lower() == ".csv":
        yield from _csv_rows(path, text)
        return
    # Only \n ends a line: splitlines would also split inside a text.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = replace_surrogates_in_tree(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise DataError(f"line {number} of {path} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"line {number} of {path} is not a JSON object")
        yield number, row


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv_reader(text)
    try:
        header: list[str] = next(reader, [])
        lacking = [name for name in ("scenario", "slot") if name not in header]
        if lacking or not set(_FILLED) & set(header):
            raise DataError(
                f"{path} is no file of labels: it has no column {lacking[0] if lacking else _FILLED[0]}",
                advice="Make one with: unmask label RUN --export FILE.csv",
            )
        for row in reader:
            if row:
                yield reader.line_num, {name: unguard_formula(cell) for name, cell in zip(header, row, strict=False)}
    except csv.Error as error:
        raise DataError(f"{path} is not a CSV table: {error} (line {reader.line_num})") from None


def _parse_label(row: dict[str, Any]) -> Label | None:
    if {"v", "interval", "relative", "skipped", "blind", "taken_back"} & row.keys():
        return msgspec.convert(row, Label)
    filled = {name: row[name] for name in COLUMNS if row.get(name) is not None and str(row[name]).strip()}
    if not any(name in filled for name in _FILLED):
        return None
    if "scenario" not in filled or "slot" not in filled:
        raise ValueError("scenario or slot is missing")
    letter = str(filled["letter"]).strip().upper() if "letter" in filled else None
    numeric = filled.get("kind") == Kind.NUMERIC.value
    bounds = [_parse_number(filled.get(name)) for name in _FILLED[1:]]
    if numeric and letter is not None and (letter != "C" or bounds != [None] * 4):
        description = f"letter {filled['letter']!r}" + (" beside a figure" if letter == "C" else "")
        raise ValueError(f"{description} is no label of a figure: give lower and upper, or C alone where there is none")
    return Label(
        scenario=str(filled["scenario"]),
        slot=str(filled["slot"]),
        take=int(filled.get("take") or 0),
        letter=None if numeric or letter is None else Letter(letter),
        interval=Interval(*bounds[:2]) if numeric or letter is None else None,
        relative=Interval(*bounds[2:]) if bounds[2:] != [None, None] else None,
        who=str(filled.get("who", "")),
        note=str(filled["note"]) if "note" in filled else None,
        digest=str(filled["digest"]) if "digest" in filled else None,
    )


def _parse_number(value: Any) -> float | None:
    if value is None:
        return None
    text = str(value).strip()
    if "," in text and not re.fullmatch(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?", text):
        raise ValueError(f"{value!r} is no number: a comma parts thousands, as in 1,500; a fraction is written 1.5")
    number = float(text.replace(",", ""))
    if not isfinite(number):
        raise ValueError(f"{value!r} is no number")
    return number
