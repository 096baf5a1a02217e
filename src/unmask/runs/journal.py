"""The run folder: an append-only journal, and nothing else is state.

    run.json               what defines the run, hashes included; replaced whole, atomically
    scenarios.jsonl        the scenarios as they were asked: a run is judged and shown without its data source
    replies.jsonl          one finished subject request per line (records.Asked)
    readings/<judge>.jsonl one finished judge request per line (records.Judged)
    labels/<who>.jsonl     readings by people (records.Label)
    batches.jsonl          what was handed to batch APIs (runs.batches)
    <file>.lock            held by the process that writes this file

Replies, the readings of each judge and the labels of each person have one writer at a time, and each its own.
A line is written with one system call before it is interpreted. What a kill can tear is the last line of a file;
it has no newline, a reader ignores it, and the next writer cuts it off. Any other damage is an error that names the
line. Lines about requests end with a checksum of themselves, so that damage which is still JSON is found as well.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import zlib
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from unmask.errors import JournalError
from unmask.files import Lock, cannot_write, file_exists, open_plain_file
from unmask.records import Call

T = TypeVar("T", bound=msgspec.Struct)
C = TypeVar("C", bound=Call)

_encoder = msgspec.json.Encoder()
_SUM_KEY = b',"sum":"'
_SUM = _SUM_KEY + b'%08x"}\n'
_SUM_SIZE = len(_SUM % 0) - 1
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class JournalFile:
    """An append-only JSONL file. `append` returns only after the whole line is with the operating system.

    A lock that comes with the file is released when it is closed.
    """

    def __init__(self, path: Path, *, lock: Lock | None = None) -> None:
        self.path = path
        self._lock = lock
        self._handle: int | None = None
        self._size = 0

    def append(self, record: msgspec.Struct) -> None:
        """The checksum of a JSON object is its own last field."""
        handle, data = self.open(), _encoder.encode(record)
        data = data[:-1] + _SUM % zlib.crc32(data)
        written = 0
        try:
            while written < len(data):
                written += os.write(handle, data[written:])
        except OSError as error:
            # A half line would be taken for damage later: go back to the last whole one.
            with contextlib.suppress(OSError):
                os.ftruncate(handle, self._size)
            raise cannot_write(self.path, error) from error
        self._size += len(data)

    def open(self) -> int:
        """Before anything is paid for that has to go in: the first `append` would do it."""
        if self._handle is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._handle = open_plain_file(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
            except OSError as error:
                raise cannot_write(self.path, error) from error
            self._size = os.fstat(self._handle).st_size
        return self._handle

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._lock is not None:
            self._lock.release()


def read_lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Every record of a journal file. A torn last line is left out; any other damage is an error."""
    return (record for record, _, _ in _scan_lines(path, kind))


def _scan_lines(path: Path, kind: type[T]) -> Iterator[tuple[T, int, int]]:
    """Every record, where its line begins in the file, and how long that is."""
    decode, start = msgspec.json.Decoder(kind).decode, 0
    for number, line in enumerate(_read_raw_lines(path), 1):
        if not line.endswith(b"\n"):
            return
        if line.strip():
            try:
                yield decode(_verify_checksum(line)), start, len(line)
            except _DECODE_ERRORS as error:
                raise JournalError(
                    f"line {number} of {path} is damaged: {error}",
                    advice="A kill does not do this. Restore the file, or delete that line to ask it again.",
                ) from None
        start += len(line)


def _verify_checksum(line: bytes) -> bytes:
    """The JSON of a line, without its checksum. A line that has none, as one made by hand, is taken as it is."""
    data = line.rstrip(b"\n")
    start = len(data) - _SUM_SIZE
    if start <= 0 or not data.startswith(_SUM_KEY, start):
        return line
    content = data[:start] + b"}"
    if data[start:] + b"\n" != _SUM % zlib.crc32(content):
        raise msgspec.ValidationError("its checksum does not match")
    return content


def _read_raw_lines(path: Path) -> Iterator[bytes]:
    """Every line; none where there is no file."""
    if file_exists(path):
        with open(path, "rb", opener=open_plain_file) as file:
            yield from file


class FileFaults(NamedTuple):
    """What is wrong with the lines of a file about requests."""

    lines: int
    faults: tuple[str, ...]
    """Sentences without their full stops that name the line; empty where each line is as it was written."""


def check_lines(path: Path, kind: type[Call]) -> FileFaults:
    """Look at every line, also behind one that is damaged."""
    decode, number, unsummed, faults = msgspec.json.Decoder(kind).decode, 0, 0, list[str]()
    for number, line in enumerate(_read_raw_lines(path), 1):
        try:
            if not line.endswith(b"\n"):
                faults.append(f"the last line of {path.name} is torn, as a kill leaves it")
                continue
            content = _verify_checksum(line)
            unsummed += content is line
            decode(content)
        except _DECODE_ERRORS as error:
            faults.append(f"line {number} of {path.name} is damaged: {error}")
    if unsummed:
        faults.append(f"{unsummed} of {number} lines of {path.name} have no checksum")
    return FileFaults(number, tuple(faults))


class CallLines(Generic[C]):
    """The lines of a file about requests, by scenario, as the file was when it was read. Memory has their places; a
    line is read when its scenario is asked for, so that no run is too long."""

    def __init__(self, path: Path, kind: type[C], ids: Collection[str] | None = None) -> None:
        """A line about a scenario that is none of the `ids` is an error."""
        self.path, self._kind, self._stamp = path, kind, stamp_file(path)
        self._decode = msgspec.json.Decoder(kind).decode
        self._places: dict[str, array[int]] = {}
        for record, start, size in _scan_lines(path, kind):
            if ids is not None and record.scenario not in ids:
                raise JournalError(
                    f"{path} has a line about scenario {record.scenario!r}, which the run does not contain",
                    advice="The folder holds files of two runs. Restore it from a copy.",
                )
            self._places.setdefault(record.scenario, array("q")).extend((start, size))

    def __iter__(self) -> Iterator[C]:
        """All of them in file order."""
        return read_lines(self.path, self._kind)

    @property
    def is_current(self) -> bool:
        """Whether the file is as it was when it was read."""
        return stamp_file(self.path) == self._stamp

    def about(self, scenario: str) -> list[C]:
        """The lines about one scenario, in file order."""
        places = self._places.get(scenario, ())
        if not places:
            return []
        lines = []
        try:
            with open(self.path, "rb", opener=open_plain_file) as file:
                for start, size in zip(places[::2], places[1::2], strict=True):
                    file.seek(start)
                    lines.append(self._decode(_verify_checksum(file.read(size))))
        except _DECODE_ERRORS as error:
            raise JournalError(
                f"{self.path} is no longer as it was when it was opened: {error}", advice="Run the same command again."
            ) from error
        return lines


def stamp_file(path: Path) -> tuple[int, ...]:
    """Differs where a file was replaced or appended to; empty where there is none."""
    try:
        now = path.lstat()
    except FileNotFoundError:
        return ()
    return now.st_ino, now.st_size, now.st_mtime_ns


def mend_file(path: Path) -> None:
    """Cut off a torn last line, so that appending is safe."""
    if not file_exists(path) or not (size := path.lstat().st_size):
        return
    try:
        with (
            open(path, "rb", opener=open_plain_file) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            whole = content.rfind(b"\n") + 1
        if whole < size:
            os.truncate(path, whole)
    except OSError as error:
        raise cannot_write(path, error) from error
