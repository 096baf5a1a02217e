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
the next writer cuts it off, a reader ignores it. Any other damage is an error that names the line.
Lines about requests end with a checksum of themselves, so that damage which is still JSON is found as well.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from unmask.errors import JournalError
from unmask.files import Lock, cannot_write, file_exists, open_plain_file
from unmask.records import FORMAT_VERSION, Call, shorten_reasoning

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

    def __init__(
        self,
        path: Path,
        *,
        lock: Lock | None = None,
        checksum: bool = False,
    ) -> None:
        self.path = path
        self._checksum = checksum
        self._lock = lock
        self._handle: int | None = None
        self._size = 0

    def append(self, record: msgspec.Struct) -> None:
        handle = self.open()
        data = _encoder.encode(record)
        # The checksum of a JSON object is its own last field.
        is_summed = self._checksum or isinstance(record, Call)
        data = data[:-1] + _SUM % zlib.crc32(data) if is_summed else data + b"\n"
        try:
            self._write(handle, data)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _write(self, handle: int, data: bytes) -> None:
        try:
            written = 0
            while written < len(data):
                written += os.write(handle, data[written:])
        except OSError:
            # A half line would be taken for damage later: go back to the last whole one.
            with contextlib.suppress(OSError):
                os.ftruncate(handle, self._size)
            raise
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


class _Line(NamedTuple, Generic[T]):
    """A record, where its line begins in the file, and how long that is."""

    record: T
    start: int
    size: int


def read_lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Every record of a journal file. A torn last line is left out; a damaged earlier one is an error."""
    return (line.record for line in _scan_lines(path, kind))


def _scan_lines(path: Path, kind: type[T]) -> Iterator[_Line[T]]:
    decoder = msgspec.json.Decoder(kind)
    damage: tuple[int, Exception] | None = None
    start = 0
    for number, line in enumerate(_read_raw_lines(path), 1):
        if damage is not None:
            raise _damaged_error(path, *damage)
        if line.strip():
            try:
                yield _Line(_decode_line(path, decoder.decode, line), start, len(line))
            except _DECODE_ERRORS as error:
                damage = number, error
        start += len(line)


def _decode_line(path: Path, decode: Callable[[bytes], T], line: bytes) -> T:
    """The record of a line. One of a newer format is an error of its own: it is neither torn nor damaged."""
    content = _verify_checksum(line)
    try:
        record = decode(content)
    except _DECODE_ERRORS:
        refuse_newer(path, content)
        raise
    if getattr(record, "v", FORMAT_VERSION) != FORMAT_VERSION:
        refuse_newer(path, content)
    return record


class _Versioned(msgspec.Struct):
    v: int = FORMAT_VERSION


def refuse_newer(path: Path, content: bytes) -> None:
    """Raise an error where this JSON object says that a newer version of unmask has written it."""
    try:
        version = msgspec.json.decode(content, type=_Versioned).v
    except _DECODE_ERRORS:
        return
    if version > FORMAT_VERSION:
        raise JournalError(f"{path} was written by a newer unmask (format {version})", advice="pip install -U unmask")


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
    decode, number, unsummed, faults, last = msgspec.json.Decoder(kind).decode, 0, 0, list[str](), b""
    for number, last in enumerate(_read_raw_lines(path), 1):
        try:
            _decode_line(path, decode, last)
            unsummed += _verify_checksum(last) is last
        except (*_DECODE_ERRORS, JournalError) as error:
            faults.append(f"line {number} of {path.name} is damaged: {error}")
    if faults and not last.endswith(b"\n"):
        faults[-1] = f"the last line of {path.name} is torn, as a kill leaves it"
    if unsummed:
        faults.append(f"{unsummed} of {number} lines of {path.name} have no checksum")
    return FileFaults(number, tuple(faults))


def _damaged_error(path: Path, number: int, error: Exception) -> JournalError:
    return JournalError(
        f"line {number} of {path} is damaged: {error}",
        advice="Only the last line can be torn by a kill. Restore the file, or delete that line to ask it again.",
    )


class CallLines(Generic[C]):
    """The lines of a file about requests, by scenario, as the file was when it was read.

    A reader has them `in_memory`, where only the end of long reasoning is kept. Without it, only their places in the
    file are kept, as a run that is being made needs them.
    """

    def __init__(self, path: Path, kind: type[C], *, in_memory: bool = True) -> None:
        self.path, self._kind, self._stamp = path, kind, stamp_file(path)
        self._decode = msgspec.json.Decoder(kind).decode
        self._places: dict[str, array[int]] = {}
        self._records: list[C] | None = [] if in_memory else None
        self._by_scenario: dict[str, list[C]] = {}
        for record, start, size in _scan_lines(path, kind):
            self._places.setdefault(record.scenario, array("q")).extend((start, size))
            if self._records is not None:
                short = _shorten_line(record)
                self._records.append(short)
                self._by_scenario.setdefault(record.scenario, []).append(short)

    def __iter__(self) -> Iterator[C]:
        """All of them in file order."""
        return read_lines(self.path, self._kind) if self._records is None else iter(self._records)

    @property
    def is_current(self) -> bool:
        """Whether the file is as it was when it was read."""
        return stamp_file(self.path) == self._stamp

    def refuse_foreign(self, ids: Collection[str]) -> None:
        """Raise an error where a line is about a scenario that the run does not have."""
        for scenario in self._places:
            if scenario not in ids:
                raise JournalError(
                    f"{self.path} has a line about scenario {scenario!r}, which the run does not contain",
                    advice="The folder holds files of two runs. Restore it from a copy.",
                )

    def about(self, scenario: str) -> list[C]:
        """The lines about one scenario, in file order."""
        return self.read(scenario) if self._records is None else self._by_scenario.get(scenario, [])

    def read(self, scenario: str) -> list[C]:
        """The same from the file, with all of their reasoning."""
        try:
            return [_decode_line(self.path, self._decode, text) for text in self.read_texts(scenario)]
        except _DECODE_ERRORS as error:
            raise JournalError(
                f"{self.path} is no longer as it was when it was opened: {error}", advice="Run the same command again."
            ) from error

    def read_texts(self, scenario: str) -> list[bytes]:
        """The lines about one scenario as they are in the file."""
        places = self._places.get(scenario)
        if places is None:
            return []
        texts = []
        with open(self.path, "rb", opener=open_plain_file) as file:
            for start, size in zip(places[::2], places[1::2], strict=True):
                file.seek(start)
                texts.append(file.read(size))
        return texts


def _shorten_line(line: C) -> C:
    choices = tuple(map(shorten_reasoning, line.choices))
    return line if choices == line.choices else msgspec.structs.replace(line, choices=choices)


def stamp_file(path: Path) -> tuple[int, ...]:
    """Differs where a file was replaced or appended to; empty where there is none."""
    try:
        now = path.lstat()
    except FileNotFoundError:
        return ()
    return now.st_ino, now.st_size, now.st_mtime_ns


def mend_file(path: Path, kind: type[msgspec.Struct]) -> None:
    """Cut off a torn last line, so that appending is safe."""
    if not file_exists(path) or not path.lstat().st_size:
        return
    try:
        with open(path, "rb+", opener=open_plain_file) as file:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                start = content.rfind(b"\n", 0, len(content) - 1) + 1
                last = content[start:]
            try:
                _decode_line(path, msgspec.json.Decoder(kind).decode, last)
            except _DECODE_ERRORS:
                file.truncate(start)
            else:
                if not last.endswith(b"\n"):
                    file.seek(0, os.SEEK_END)
                    file.write(b"\n")
    except OSError as error:
        raise cannot_write(path, error) from error
