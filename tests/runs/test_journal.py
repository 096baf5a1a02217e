"""The run folder: nothing appended is lost, and damage is named."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from unmask.errors import JournalError
from unmask.files import write_atomically
from unmask.records import Asked, Choice
from unmask.runs.journal import JournalFile, mend_file, read_lines


def line(number: int) -> Asked:
    return Asked(scenario=f"s{number}", slot="direct", takes=(0,), choices=(Choice(f"text {number} ✓\n"),))


def written(path: Path, count: int) -> JournalFile:
    lines = JournalFile(path)
    for number in range(count):
        lines.append(line(number))
    return lines


def test_a_last_record_torn_at_any_byte_costs_only_itself(tmp_path: Path):
    """Cut the file at every offset of its last record: a reader sees the others, a writer can append again."""
    whole = tmp_path / "whole.jsonl"
    written(whole, 3).close()
    data = whole.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(start, len(data)):
        path = tmp_path / f"cut{cut}.jsonl"
        path.write_bytes(data[:cut])
        assert list(read_lines(path, Asked)) == [line(0), line(1)]
        mend_file(path)
        written(path, 1).close()
        assert list(read_lines(path, Asked)) == [line(0), line(1), line(0)]


@pytest.mark.parametrize("byte", [b"\0", b"A", b"7", b'"', b"\xff"])
def test_a_record_changed_at_any_byte_is_an_error_that_names_its_line(tmp_path: Path, byte: bytes):
    """Also where it is still JSON, such as one letter of a text. A kill cannot do this, so nothing is repaired."""
    path = tmp_path / "whole.jsonl"
    written(path, 3).close()
    rows = path.read_bytes().splitlines(keepends=True)
    for position in range(len(rows[1]) - 1):
        changed = rows[1][:position] + byte + rows[1][position + 1 :]
        path.write_bytes(rows[0] + changed + rows[2])
        if changed != rows[1]:
            with pytest.raises(JournalError, match="line 2 of"):
                list(read_lines(path, Asked))


def test_a_line_without_checksum_is_read(tmp_path: Path):
    """Lines made by hand are taken as they are."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(msgspec.json.encode(line(0)) + b"\n")
    mend_file(path)
    assert list(read_lines(path, Asked)) == [line(0)]


def test_an_unknown_field_is_damage(tmp_path: Path):
    """A line is refused, not half understood."""
    path = tmp_path / "x.jsonl"
    newer = b'{"scenario":"s","slot":"direct","takes":[0],"mood":"good"}\n'
    path.write_bytes(newer + msgspec.json.encode(line(1)) + b"\n")
    with pytest.raises(JournalError, match="mood"):
        list(read_lines(path, Asked))


def test_a_full_disk_is_an_error_with_advice(tmp_path: Path):
    """/dev/full refuses every byte, as a full disk does. No plain file, it takes the place of one that is open."""
    lines = written(tmp_path / "x.jsonl", 1)
    with open("/dev/full", "wb", buffering=0) as full:
        os.dup2(full.fileno(), lines.open())
    with pytest.raises(JournalError, match="No space left") as caught:
        lines.append(line(1))
    lines.close()
    assert "same command again" in (caught.value.advice or "")


def test_a_missing_file_is_an_empty_journal(tmp_path: Path):
    """A run that was killed before its first answer has no journal yet."""
    assert list(read_lines(tmp_path / "absent.jsonl", Asked)) == []
    mend_file(tmp_path / "absent.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_in_one_step(tmp_path: Path):
    """No half-written run.json is ever seen, and nothing is left beside it."""
    write_atomically(tmp_path / "run.json", b"old")
    write_atomically(tmp_path / "run.json", b"new")
    assert (tmp_path / "run.json").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
