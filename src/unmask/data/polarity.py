"""Which side *yes* means, for data that does not say. Asked of a judge once per question, kept for every later run.

The answers are lines of JSON in a side file: `unmask-polarity.jsonl` in the data folder, `FILE.polarity.jsonl` beside a
single file, and `polarity.jsonl` in the user's cache folder for data that has no writable place of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from unmask.data.dataset import Dataset
from unmask.errors import JournalError
from unmask.files import open_plain_file, read_bytes
from unmask.records import FORMAT_VERSION, Kind, Letter, Record, Scenario, digest

SIDE_FILE = "unmask-polarity.jsonl"
_LARGEST = 256 * 2**20
"""Bytes of a side file, which may be a stranger's as the data is; a line has some 150."""


class Polarity(Record, frozen=True, kw_only=True):
    """One answer. Letter C is "cannot tell": then every reply to this question goes to the judge."""

    v: int = FORMAT_VERSION
    key: str
    letter: Letter
    judge: str
    scenario: str
    """For people reading the file; the key alone decides."""


def question_key(scenario: Scenario) -> str:
    """Names the question together with the proposition: a change of either is a new question."""
    return digest((scenario.direct or "", scenario.proposition))


def load_answers(dataset: Dataset) -> dict[str, Letter]:
    """What is stored about the questions of this dataset, by `key`. The latest line wins, and the data's own side
    file wins over the cache. Lines that cannot be read are passed over: the worst they cost is one judge call."""
    keys = {
        question_key(scenario) for scenario in dataset.scenarios if scenario.kind is Kind.BINARY and scenario.direct
    }
    return {
        line.key: line.letter for path in _side_files(dataset)[::-1] for line in _read_answers(path) if line.key in keys
    }


def store_answer(dataset: Dataset, *, scenario: Scenario, letter: Letter | None, judge: str) -> None:
    """Store one answer; `None` is "cannot tell". Where nothing can be written it is forgotten without an error: the
    run's journal has the judge's answer anyway."""
    line = Polarity(key=question_key(scenario), letter=letter or Letter.C, judge=judge, scenario=scenario.id)
    data = msgspec.json.encode(line) + b"\n"
    for path in _side_files(dataset):
        if _append_line(path, data):
            return


def _side_files(dataset: Dataset) -> tuple[Path, ...]:
    """Where answers may be, the preferred place first."""
    from platformdirs import user_cache_dir

    cache = Path(user_cache_dir("unmask")) / "polarity.jsonl"
    if dataset.home is None:
        return (cache,)
    home = Path(dataset.home)
    return (home / SIDE_FILE if home.is_dir() else home.with_name(home.name + ".polarity.jsonl"), cache)


def _read_answers(path: Path) -> Iterator[Polarity]:
    try:
        data = read_bytes(path) if path.lstat().st_size <= _LARGEST else b""
    except (OSError, JournalError):
        return
    decoder = msgspec.json.Decoder(Polarity)
    for line in data.split(b"\n"):
        try:
            answer = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        if answer.letter in (Letter.A, Letter.B, Letter.C):
            yield answer


def _append_line(path: Path, data: bytes) -> bool:
    """One write to a file opened for appending, so that lines of several processes do not mix."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open_plain_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
    except (OSError, JournalError):
        return False
    try:
        # A torn last line, left by a killed process, must not take this one with it.
        if os.lseek(handle, 0, os.SEEK_END) > 0:
            os.lseek(handle, -1, os.SEEK_END)
            data = data if os.read(handle, 1) == b"\n" else b"\n" + data
        return os.write(handle, data) == len(data)
    except OSError:
        return False
    finally:
        os.close(handle)
