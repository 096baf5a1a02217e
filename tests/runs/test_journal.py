"""The run folder: nothing appended is lost, and damage is either set aside or named."""

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


def test_what_is_appended_is_read_back_in_order(tmp_path: Path):
    """Records survive the round trip, newlines and all."""
    written(tmp_path / "x.jsonl", 5).close()
    assert list(read_lines(tmp_path / "x.jsonl", Asked)) == [line(number) for number in range(5)]


def test_a_last_record_torn_at_any_byte_costs_only_itself(tmp_path: Path):
    """Cut the file at every offset of its last record: a reader sees the others, a writer can append again."""
    whole = tmp_path / "whole.jsonl"
    written(whole, 3).close()
    data = whole.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(start, len(data)):
        path = tmp_path / f"cut{cut}.jsonl"
        path.write_bytes(data[:cut])
        complete = cut == len(data) - 1  # only the newline is missing
        expected = [line(0), line(1), *([line(2)] if complete else [])]
        assert list(read_lines(path, Asked)) == expected
        mend_file(path, Asked)
        written(path, 1).close()
        assert list(read_lines(path, Asked)) == [*expected, line(0)]


@pytest.mark.parametrize("byte", [b"\0", b"A", b"7", b" ", b'"', b"\xff"])
def test_a_last_record_changed_at_any_byte_is_found_out(tmp_path: Path, byte: bytes):
    """Also where it is still JSON, such as one letter of a text: it is cut off, and the records before it stay."""
    whole = tmp_path / "whole.jsonl"
    written(whole, 3).close()
    data = whole.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    for position in range(start, len(data) - 1):
        path = tmp_path / f"at{position}.jsonl"
        path.write_bytes(data[:position] + byte + data[position + 1 :])
        if data[position : position + 1] == byte:
            continue
        assert len(list(read_lines(path, Asked))) == 2
        mend_file(path, Asked)
        assert path.read_bytes() == data[:start]


def test_damage_before_the_last_line_is_an_error_that_names_the_line(tmp_path: Path):
    """A kill cannot do this, so it is not repaired silently."""
    path = tmp_path / "x.jsonl"
    written(path, 3).close()
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(rows[0] + b"{broken\n" + rows[2])
    with pytest.raises(JournalError, match="line 2 of"):
        list(read_lines(path, Asked))


def test_a_changed_letter_before_the_last_line_is_an_error_that_names_the_line(tmp_path: Path):
    """The checksum does not match, whoever reads it."""
    path = tmp_path / "x.jsonl"
    written(path, 3).close()
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(rows[0] + rows[1].replace(b"s1", b"s7", 1) + rows[2])
    with pytest.raises(JournalError, match=r"line 2 of .* checksum"):
        list(read_lines(path, Asked))


def test_a_line_without_checksum_is_read(tmp_path: Path):
    """Lines made by hand stand for themselves."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(msgspec.json.encode(line(0)) + b"\n")
    mend_file(path, Asked)
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
    mend_file(tmp_path / "absent.jsonl", Asked)
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_in_one_step(tmp_path: Path):
    """No half-written run.json is ever seen, and nothing is left beside it."""
    write_atomically(tmp_path / "run.json", b"old")
    write_atomically(tmp_path / "run.json", b"new")
    assert (tmp_path / "run.json").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
