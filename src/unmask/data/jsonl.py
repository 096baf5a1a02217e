"""Our own format: one scenario per line, as JSON."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from unmask.data.form import Fault, find_faults
from unmask.errors import UsageError
from unmask.records import Scenario
from unmask.text import escape_line, unify_line_ends_in_tree

LONGEST = 16 * 2**20
"""Bytes of one scenario."""


def parse_lines(data: bytes) -> Iterator[tuple[int, str, Scenario | tuple[Fault, ...]]]:
    """Line number, id as far as it can be told, and the scenario or what is wrong with it. Blank lines are skipped."""
    decoder = msgspec.json.Decoder(Scenario)
    # Only b"\n" ends a line: bytes.splitlines and str.splitlines would also split inside a text.
    for number, line in enumerate(io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")), start=1):
        if not line.strip():
            continue
        result = _parse_line(line, decoder)
        if isinstance(result, Scenario):
            yield number, result.id, find_faults(result) or result
        else:
            yield number, _id_of(line), result


def encode_lines(scenarios: Iterable[Scenario]) -> bytes:
    encode = msgspec.json.Encoder().encode
    return b"".join(encode(scenario) + b"\n" for scenario in scenarios)


def write_jsonl(scenarios: Iterable[Scenario], *, path: Path) -> None:
    path.write_bytes(encode_lines(scenarios))


def append_scenario(scenario: Scenario, *, path: Path) -> int:
    """Append one scenario to a file, which is made if it is not there, and give the number it now holds. An id that is
    already used, or a file with a line that is no scenario, is left alone."""
    try:
        data = path.read_bytes() if path.exists() else b""
        entries = list(parse_lines(data))
        for number, name, result in entries:
            if not isinstance(result, Scenario):
                raise UsageError(
                    f"{escape_line(path.name)}, line {number}: {result[0].message}", advice="Mend that line first."
                )
            if name == scenario.id:
                raise UsageError(
                    f"{escape_line(path.name)} has a scenario {escape_line(name)!r} already",
                    advice="Choose another id.",
                )
        line = encode_lines([scenario])
        with path.open("ab") as file:
            file.write(line if not data or data.endswith(b"\n") else b"\n" + line)
    except OSError as error:
        raise UsageError(f"cannot write {escape_line(str(path))}: {error.strerror or error}") from error
    return len(entries) + 1


def _parse_line(line: bytes, decoder: msgspec.json.Decoder[Scenario]) -> Scenario | tuple[Fault, ...]:
    if len(line) > LONGEST:
        return (Fault("schema", f"the line has {len(line)} bytes, more than the {LONGEST} a scenario may have"),)
    try:
        if b"\\r" in line or b"\\u000d" in line.lower():
            line = msgspec.json.encode(unify_line_ends_in_tree(msgspec.json.decode(line)))
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return (Fault("schema", escape_line(str(error) or "nested too deeply")),)


def _id_of(line: bytes) -> str:
    if len(line) > LONGEST:
        return ""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    name = value.get("id") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""
