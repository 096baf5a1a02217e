"""What a person is asked to read, and sheets of it for labelling elsewhere: JSONL or CSV, out and back in.

A file from outside has the columns of an export or the fields of a label.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from io import StringIO
from math import isfinite, nan
from pathlib import Path
from typing import Any

import msgspec

from unmask.data.form import read_bytes
from unmask.data.tables import csv_reader
from unmask.errors import DataError
from unmask.records import (
    CONTROL,
    PRESSURED,
    Interval,
    Kind,
    Label,
    Letter,
    Record,
    Scenario,
    Slot,
    digest,
    read_as,
)
from unmask.text import guard_formula, replace_surrogates_in_tree, unguard_formula

Key = tuple[str, Slot, int]
"""A reply: scenario, slot, take."""


Labels = dict[Key, Label]


def make_token(run: str, key: Key) -> str:
    """Names a reply of the run with this id, so that replies of several runs can be mixed in one file."""
    return digest((run, *map(str, key)))


def place_label(label: Label, run: str) -> Label | None:
    """The label with the slot that its token names, or `None` if that is no reply of this run: what leaves the run
    folder does not tell a control reply from a pressured one."""
    slots = (label.slot, CONTROL) if label.slot == PRESSURED else (label.slot,)
    keys = ((label.scenario, slot, label.take) for slot in slots)
    slot = next((key[1] for key in keys if label.token in (None, make_token(run, key))), None)
    return None if slot is None else msgspec.structs.replace(label, slot=slot)


COLUMNS = (
    *("scenario", "slot", "take", "kind", "statement_a", "statement_b", "figure", "unit", "context", "reply"),
    *("letter", "lower", "upper", "relative_lower", "relative_upper", "note", "who", "digest", "token"),
)


_FILLED = ("letter", "lower", "upper", "relative_lower", "relative_upper")


class Item(Record, frozen=True, kw_only=True):
    """What a person is asked to read: one reply, or all direct takes of a numeric scenario, which are one belief."""

    scenario: Scenario
    slot: Slot
    take: int
    texts: tuple[str, ...]
    run: str = ""
    """The id of its run."""

    @property
    def token(self) -> str:
        return make_token(self.run, self.key)

    @property
    def key(self) -> Key:
        return self.scenario.id, self.slot, self.take

    @property
    def digest(self) -> str:
        return digest(self.texts)


def format_items(labelled: Sequence[tuple[Item, Label | None]], ending: str, *, who: str | None = None) -> bytes:
    """A row for each of these replies with its label, as `.csv` or `.jsonl`. Neither model nor judge is named. Rows
    without a label are for `who`."""
    rows = [_export_row(item, label, who) for item, label in labelled]
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


def _export_row(item: Item, label: Label | None, who: str | None) -> dict[str, Any]:
    scenario = item.scenario
    binary = scenario.kind is Kind.BINARY
    a, b = scenario.statements if binary else (None, None)
    values = label and (label.letter, label.interval or Interval(), label.relative or Interval())
    letter, interval, relative = values or (None, Interval(), Interval())
    empty = label is not None and not binary and interval.empty and relative.empty
    figure = None if binary else scenario.proposition
    fields = (read_as(item.slot), item.take, scenario.kind.value, a, b, figure, scenario.unit)
    shown = (reply_context(item), "\n\n".join(item.texts))
    shown_letter = "C" if empty else letter and letter.value
    reading_cells = (shown_letter, interval.lower, interval.upper, relative.lower, relative.upper)
    end = (label and label.note, label.who if label else who, item.digest, item.token)
    return dict(zip(COLUMNS, (scenario.id, *fields, *shown, *reading_cells, *end), strict=True))


def reply_context(item: Item) -> str:
    """What the reply answers: the question, or the whole pressured conversation."""
    from unmask.protocol.probes import question

    if read_as(item.slot) != PRESSURED:
        return question(item.scenario, item.slot)
    return "\n\n".join(f"[{turn.role}] {turn.content}" for turn in item.scenario.conversation)


def read_file(path: Path) -> list[Label]:
    """Labels of a JSONL or CSV file. Rows that nobody filled in are passed over; wrong ones are all named."""
    labels: list[Label] = []
    problems: list[str] = []
    for place, row in _read_rows(path):
        try:
            label = _parse_label(row)
        except (ValueError, TypeError, OverflowError, RecursionError, msgspec.ValidationError) as error:
            problems.append(f"{place}: {error}")
            continue
        if label is not None:
            labels.append(label)
    if problems:
        raise DataError(f"{path} has rows that are no labels:", problems=tuple(problems))
    return labels


def _read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows, each with its place in the file."""
    if path.suffix.lower() in (".html", ".htm"):
        raise DataError(f"{path} is a page to label in", advice="Import the file that its Save button writes.")
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is no text in UTF-8 (byte {error.start})",
            advice="In a spreadsheet, save it as CSV UTF-8, then import that file.",
        ) from None
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
        yield f"line {number}", row


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows by their number in the sheet. In many countries spreadsheets separate columns with semicolons or tabs."""
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv_reader(text, separator=separator)
    number = 1
    try:
        header: list[str] = next(reader, [])
        lacking = [name for name in ("scenario", "slot") if name not in header]
        if lacking or not set(_FILLED) & set(header):
            raise DataError(
                f"{path} is no file of labels: it has no column {lacking[0] if lacking else _FILLED[0]}",
                advice="`unmask label` makes one with --export sheet.csv.",
            )
        for number, row in enumerate(reader, 2):
            if row:
                yield f"row {number}", {name: unguard_formula(cell) for name, cell in zip(header, row, strict=False)}
    except csv.Error as error:
        raise DataError(f"{path} is not a CSV table: {error} (after row {number})") from None


def _parse_label(row: dict[str, Any]) -> Label | None:
    if {"v", "interval", "relative", "skipped", "taken_back"} & row.keys():
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
        description = f"letter {filled['letter']!r}" + (" next to a number" if letter == "C" else "")
        raise ValueError(f"{description} is no label of a number: give lower and upper, or C alone where there is none")
    if not numeric and letter is not None and letter not in set(Letter):
        raise ValueError(f"{filled['letter']!r} is no letter from A to D")
    texts: dict[str, Any] = {name: str(filled[name]) for name in ("who", "note", "digest", "token") if name in filled}
    return Label(
        scenario=str(filled["scenario"]),
        slot=str(filled["slot"]),
        take=int(filled.get("take") or 0),
        letter=None if numeric or letter is None else Letter(letter),
        interval=Interval(*bounds[:2]) if numeric or letter is None else None,
        relative=Interval(*bounds[2:]) if bounds[2:] != [None, None] else None,
        **texts,
    )


def _parse_number(value: Any) -> float | None:
    """With a comma it could be a thousand or a fraction, so it is neither."""
    if value is None:
        return None
    try:
        number = float(str(value))
    except ValueError:
        number = nan
    if not isfinite(number):
        raise ValueError(f"{value!r} is no number: write 1500 or 1.5, without a comma")
    return number
