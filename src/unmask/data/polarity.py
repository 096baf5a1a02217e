"""Which side *yes* means, for data that does not say: what each judge said, for later runs with the same judge.

A judge that gets it wrong must move nobody else's numbers, so an answer counts for this judge at this address and this
wording of the question alone: a mock or a gateway under the same name is another judge. The answers are lines of JSON
in `polarity.jsonl` in the user's cache folder, and nowhere else: a file that comes with data is not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from unmask.errors import JournalError
from unmask.files import open_plain_file, read_bytes, user_cache_folder
from unmask.records import Letter, Record

_LARGEST = 256 * 2**20
"""Bytes of the store; a line has some 200."""


class Polarity(Record, frozen=True, kw_only=True):
    """What a judge said about one question."""

    judge: str
    """The model, with its adapter if it has one."""
    endpoint: str
    """Where it was asked: scheme, host and port. A model in this process has its own name here."""
    prompt: str
    """Hash of the wording of the question."""
    key: str
    """Digest of the question and the proposition."""
    answers: tuple[Letter, Letter]
    """What it said with the statements as the data has them, and exchanged; both by the data's own statements. A side
    where they are the same, else C: then every reply to this question goes to the judge."""
    run: str
    """The run in which it was asked: the name of its folder, and its id."""
    scenario: str
    """For people reading the file."""


def load_answers(*, judge: str, endpoint: str, prompt: str) -> dict[str, Polarity]:
    """What this judge at this address has said to this wording, by `key`. The latest line wins. Lines that cannot be
    read are passed over: the worst they cost is two judge calls."""
    wanted = judge, endpoint, prompt
    return {
        line.key: line for line in _read_answers(store_path()) if (line.judge, line.endpoint, line.prompt) == wanted
    }


def store_answer(answer: Polarity) -> None:
    """Store what a judge said. Where nothing can be written it is forgotten without an error: the run's journal has
    the judge's answer anyway."""
    try:
        data = msgspec.json.encode(answer) + b"\n"
    except UnicodeEncodeError:
        return
    _append_line(store_path(), data)


def store_path() -> Path:
    """Where the answers are kept."""
    return user_cache_folder() / "polarity.jsonl"


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


def _append_line(path: Path, data: bytes) -> None:
    """One write to a file opened for appending, so that lines of several processes do not mix."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open_plain_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
    except (OSError, JournalError):
        return
    try:
        # A torn last line, left by a killed process, must not take this one with it.
        if os.lseek(handle, 0, os.SEEK_END) > 0:
            os.lseek(handle, -1, os.SEEK_END)
            data = data if os.read(handle, 1) == b"\n" else b"\n" + data
        os.write(handle, data)
    except OSError:
        return
    finally:
        os.close(handle)
