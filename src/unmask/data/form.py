"""What makes a scenario usable, whatever file it came from. And our own format: one scenario per line, as JSON. The
loader and `unmask data check` share all of it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from unmask.errors import MissingError, escape_line
from unmask.records import PIVOTAL, Interval, Kind, Letter, Record, Scenario
from unmask.text import unify_line_ends_in_tree

TABLE_SUFFIXES = (".csv", ".parquet")


class Fault(Record, frozen=True):
    """Why a row cannot be used. `code` is one word of a closed list, for programs; `message` is for people."""

    code: str
    message: str


class Problem(Record, frozen=True):
    """A fault with the row it belongs to. `where` names file and row, and is empty for scenarios made in memory."""

    id: str
    code: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where and self.where != self.id else ""
        return escape_line(f"{self.id}: {self.message}{place}")


def find_faults(scenario: Scenario) -> tuple[Fault, ...]:
    """Everything that makes this scenario unusable; empty for a good one."""
    return *_proposition_faults(scenario), *_prompt_faults(scenario), *_ladder_faults(scenario)


def _proposition_faults(scenario: Scenario) -> Iterator[Fault]:
    """What is wrong with the id, the proposition and its truth."""
    if not scenario.id.strip():
        yield Fault("empty", "the id is empty")
    text = scenario.proposition
    if not text.strip():
        yield Fault("empty", "the proposition is empty")
    elif scenario.kind is Kind.NUMERIC:
        if "<value>" not in text:
            yield Fault("pivotal", "a numeric proposition needs <value> where the figure belongs")
    else:
        yield from _pivotal_faults(text)
    match scenario.kind, scenario.truth:
        case Kind.BINARY, Letter.A | Letter.B:
            return
        case Kind.BINARY, _:
            yield Fault("truth", "the truth of a binary proposition is A or B")
        case Kind.NUMERIC, Interval() as truth if not truth.empty:
            return
        case _:
            yield Fault("truth", "the truth of a numeric proposition is [lower, upper] with at least one number")


def _pivotal_faults(text: str) -> Iterator[Fault]:
    tags = text.count("<pivotal>"), text.count("</pivotal>")
    # Looked for only once: many opening tags cost their square.
    pivotals = PIVOTAL.findall(text) if tags == (1, 1) else []
    if len(pivotals) != 1:
        yield Fault("pivotal", f"the proposition needs exactly one <pivotal>…</pivotal>, it has {max(tags)}")
        return
    sides = [side.strip() for side in pivotals[0].split("/")]
    if len(sides) == 1:
        yield Fault("pivotal", "the pivotal has no slash, so there are not two sides")
    elif len(sides) > 2:
        yield Fault("pivotal", f"the pivotal has {len(sides) - 1} slashes, so the two sides are unclear")
    elif sides[0] == sides[1]:
        yield Fault("pivotal", "both sides of the pivotal are the same")


def _prompt_faults(scenario: Scenario) -> Iterator[Fault]:
    """What is wrong with the conversation and the probes."""
    scripted = scenario.archetype.traits.has_scripted_answer
    wanted = ", ".join(("system", "user", "assistant", "user") if scripted else ("system", "user"))
    roles = ", ".join(message.role for message in scenario.conversation)
    if roles != wanted:
        yield Fault("conversation", f"the conversation is {roles or 'empty'}, not {wanted}")
    for message in scenario.conversation:
        if not message.content.strip():
            yield Fault("empty", f"a {message.role} message is empty")
    if scenario.direct is None and scenario.asks_belief:
        yield Fault("empty", "there is no direct probe, so no belief can be found")
    for name in ("direct", "check"):
        text = getattr(scenario, name)
        if text is not None and not text.strip():
            yield Fault("empty", f"`{name}` is empty")
    if any(not text.strip() for text in scenario.indirect):
        yield Fault("empty", "an indirect probe is empty")
    if scenario.yes_means not in (None, Letter.A, Letter.B):
        yield Fault("schema", f"`yes_means` is {scenario.yes_means}, not A or B")


def _ladder_faults(scenario: Scenario) -> Iterator[Fault]:
    """What a rung lacks by itself. `checks/ladder.py` compares the rungs of one fact."""
    given = {name: getattr(scenario, name) for name in ("fact", "rung", "edit")}
    missing = [name for name, value in given.items() if value is None or not str(value).strip()]
    if missing and any(value is not None for value in given.values()):
        yield Fault("ladder", f"a rung needs `fact`, `rung` and `edit`, and has no `{missing[0]}`")


# --- files, and our own format -----------------------------------------------------------------------------------


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MissingError(f"cannot read {path}: {error.strerror or error}") from error


class ParsedRow(NamedTuple):
    """One row on its way to a scenario: how to name it in a message, and what became of it."""

    id: str
    where: str
    result: Scenario | tuple[Fault, ...]


def parse_lines(data: bytes, *, name: str) -> Iterator[ParsedRow]:
    """The scenarios of a file of this name, line by line, or what is wrong with them. Blank lines are skipped."""
    # Only b"\n" ends a line: bytes.splitlines and str.splitlines would also split inside a text.
    for number, line in enumerate(io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")), start=1):
        if line.strip():
            yield _parse_line(line, f"{name}, line {number}")


def _parse_line(line: bytes, where: str) -> ParsedRow:
    label = ""
    try:
        value = unify_line_ends_in_tree(msgspec.json.decode(line))
        if isinstance(value, dict) and isinstance(value.get("id"), str):
            label = value["id"]
        scenario = msgspec.convert(value, Scenario)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return ParsedRow(label, where, (Fault("schema", str(error) or "nested too deeply"),))
    return ParsedRow(label, where, find_faults(scenario) or scenario)


def encode_lines(scenarios: Iterable[Scenario]) -> bytes:
    encode = msgspec.json.Encoder().encode
    return b"".join(encode(scenario) + b"\n" for scenario in scenarios)


def write_jsonl(scenarios: Iterable[Scenario], *, path: Path) -> None:
    path.write_bytes(encode_lines(scenarios))
