"""Which side *yes* means, for data that does not say: what each judge said, for later runs with the same judge.

A judge that gets it wrong must move nobody else's numbers, so an answer counts for this judge and this wording of the
question alone. The answers are lines of JSON in a side file: `unmask-polarity.jsonl` in the data folder,
`FILE.polarity.jsonl` beside a single file, and `polarity.jsonl` in the user's cache folder for data that has no
writable place of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from unmask.errors import JournalError
from unmask.files import open_plain_file, read_bytes
from unmask.records import FORMAT_VERSION, Letter, Record

SIDE_FILE = "unmask-polarity.jsonl"
_LARGEST = 256 * 2**20
"""Bytes of a side file, which may be a stranger's as the data is; a line has some 150."""


class Polarity(Record, frozen=True, kw_only=True):
    """What a judge said about one question."""

    v: int = FORMAT_VERSION
    judge: str
    """The model, with its adapter if it has one."""
    prompt: str
    """Hash of the wording of the question."""
    key: str
    """Digest of the question and the proposition."""
    answers: tuple[Letter, Letter]
    """What it said with the statements as the data has them, and exchanged; both by the data's own statements. A side
    where they are the same, else C: then every reply to this question goes to the judge."""
    run: str
    """Id of the run in which it was asked."""
    scenario: str
    """For people reading the file."""


def load_answers(home: str | None, *, judge: str, prompt: str) -> dict[str, Polarity]:
    """What this judge has said to this wording, by `key`. `home` is that of the dataset. The latest line wins, and the
    data's own side file wins over the cache. Lines that cannot be read are passed over, and so are those of earlier
    versions, which do not say how they were asked: the worst they cost is two judge calls."""
    return {
        line.key: line
        for path in _side_files(home)[::-1]
        for line in _read_answers(path)
        if line.judge == judge and line.prompt == prompt
    }


def store_answer(home: str | None, answer: Polarity) -> None:
    """Store what a judge said. Where nothing can be written it is forgotten without an error: the run's journal has
    the judge's answer anyway."""
    try:
        data = msgspec.json.encode(answer) + b"\n"
    except UnicodeEncodeError:
        return
    for path in _side_files(home):
        if _append_line(path, data):
            return


def cache_file() -> Path:
    """Where answers about data without a place of its own are kept."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("unmask")) / "polarity.jsonl"


def _side_files(home: str | None) -> tuple[Path, ...]:
    """Where answers may be, the preferred place first."""
    cache = cache_file()
    if home is None:
        return (cache,)
    place = Path(home)
    return (place / SIDE_FILE if place.is_dir() else place.with_name(place.name + ".polarity.jsonl"), cache)


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
        if Letter.D not in answer.answers:
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
