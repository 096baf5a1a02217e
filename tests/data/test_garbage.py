"""Files that are not what their name says."""

from __future__ import annotations

import csv
import io
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.data.made import many, row, write_parquet
from unmask.data.dataset import Dataset, LoadOptions
from unmask.data.form import encode_lines
from unmask.data.load import load
from unmask.errors import UnmaskError

patient = settings(max_examples=80, deadline=None)
KINDS = st.sampled_from(["known_facts.csv", "known_facts.parquet", "set.jsonl"])


def attempt(name: str, data: bytes, *, skip: bool) -> Dataset | UnmaskError:
    """Whatever `load` makes of these bytes; anything but an UnmaskError gets through and fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            return load(path, options=LoadOptions(skip_bad_rows=skip))
        except UnmaskError as error:
            return error


@patient
@given(KINDS, st.binary(max_size=400), st.booleans())
@example("known_facts.csv", b"", False)
@example("known_facts.csv", b"\xff\xfet\x00a\x00", False)
@example("known_facts.parquet", b"PAR1PAR1", False)
@example("set.jsonl", b"[" * 100_000, False)
@example("set.jsonl", b'{"id":"\\ud800"}', False)
@example("set.jsonl", b'{"id":"\\r","truth":' + b"[" * 100_000, False)
@example("set.jsonl", b'{"a":' * 50_000 + b"1" + b"}" * 50_000, True)
def test_random_bytes_raise_only_our_errors(name: str, data: bytes, skip: bool):
    """Any bytes under any name we read."""
    assert isinstance(attempt(name, data, skip=skip), (Dataset, UnmaskError))


def parquet_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_parquet(Path(folder) / "t.parquet", [row(task_id=str(n)) for n in range(5)]).read_bytes()


def csv_bytes() -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(row()))
    writer.writeheader()
    writer.writerows(row(task_id=str(n)) for n in range(5))
    return file.getvalue().encode()


WHOLE = {
    "known_facts.csv": csv_bytes,
    "set.jsonl": lambda: encode_lines(many(known_facts=5)),
    "known_facts.parquet": parquet_bytes,
}


@cache
def whole_file(name: str) -> bytes:
    """Made for the tests that read it: pyarrow imports pandas."""
    return WHOLE[name]()


@patient
@given(KINDS, st.data())
def test_damaged_files_raise_only_our_errors(name: str, data: st.DataObject):
    """A good file with some bytes replaced, or cut short."""
    damaged = bytearray(whole_file(name))
    for place in data.draw(st.lists(st.integers(0, len(damaged) - 1), max_size=4)):
        damaged[place] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(damaged)))
    assert isinstance(attempt(name, bytes(damaged[:end]), skip=True), (Dataset, UnmaskError))


@patient
@given(st.lists(st.lists(st.text(max_size=20), max_size=16), max_size=5))
def test_any_table_of_text_raises_only_our_errors(table: list[list[str]]):
    """Well-formed CSV of any content."""
    file = io.StringIO()
    csv.writer(file).writerows([list(row()), *table])
    text = file.getvalue().encode("utf-8", "replace")
    assert isinstance(attempt("known_facts.csv", text, skip=True), (Dataset, UnmaskError))


@pytest.mark.parametrize("name", WHOLE)
def test_the_undamaged_files_load(name: str):
    """Otherwise the tests above would show nothing."""
    found = attempt(name, whole_file(name), skip=False)
    assert isinstance(found, Dataset)
    assert len(found.scenarios) == 5
