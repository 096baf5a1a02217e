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
the next writer sets it aside in `<file>.torn`, a reader ignores it. Any other damage is an error that names the line.
Lines about requests end with a checksum of themselves, so that damage which is still JSON is found as well.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from array import array
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import IO, Generic, TypeVar

import msgspec

from unmask.errors import JournalError
from unmask.files import Lock, cannot_write, file_exists, open_plain_file
from unmask.records import FORMAT_VERSION, Call, Usage

T = TypeVar("T", bound=msgspec.Struct)

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

    def open(self) -> None:
        """Before anything is paid for that has to go in: the first `append` would do it."""
        self._open()

    def append(self, record: msgspec.Struct) -> None:
        handle = self._open()
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

    def _open(self) -> int:
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
    """Every record of a journal file. A torn last line is left out; a damaged earlier one is an error."""
    decoder = msgspec.json.Decoder(kind)
    damage: tuple[int, Exception] | None = None
    for number, line in enumerate(_read_raw_lines(path), 1):
        if damage is not None:
            raise _damaged_error(path, *damage)
        if not line.strip():
            continue
        try:
            yield _decode_line(path, decoder.decode, line)
        except _DECODE_ERRORS as error:
            damage = number, error


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


def _damaged_error(path: Path, number: int, error: Exception) -> JournalError:
    return JournalError(
        f"line {number} of {path} is damaged: {error}",
        advice="Only the last line can be torn by a kill. Restore the file, or delete that line to ask it again.",
    )


class LineSummary(msgspec.Struct):
    """What a line is about and what it cost, without its texts: enough to count calls and to find lines again."""

    scenario: str
    v: int = FORMAT_VERSION
    choices: tuple[msgspec.Raw, ...] = ()
    error: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    tier: str | None = None
    model: str | None = None
    source: str | None = None


class LineIndex(Generic[T]):
    """Where the lines about each scenario stand in a journal file, so that a long one is read scenario by scenario.

    Takes about 20 bytes a line. Holds the file open, and sees it as it was when the index was made. `place` is called
    with every line and gives the number of its scenario. Damage is found as by `read_lines`; in a line that is JSON
    but no such record, only once it is read.
    """

    def __init__(self, path: Path, kind: type[T], *, scenarios: int, place: Callable[[LineSummary], int]) -> None:
        self.path = path
        self._decode = msgspec.json.Decoder(kind).decode
        self._first, self._last = array("q", [-1]) * scenarios, array("q", [-1]) * scenarios
        self._next, self._start, self._size = array("q"), array("q"), array("q")
        self._file = FileIO(path, opener=open_plain_file) if file_exists(path) else None
        self._fill(place)

    def records_of(self, scenario: int) -> Iterator[T]:
        """The records about one scenario, in file order."""
        for line, data in self._lines_of(scenario):
            try:
                yield _decode_line(self.path, self._decode, data)
            except _DECODE_ERRORS as error:
                with open(self.path, "rb", opener=open_plain_file) as file:
                    number = file.read(self._start[line]).count(b"\n") + 1
                raise _damaged_error(self.path, number, error) from error

    def texts_of(self, scenario: int) -> Iterator[bytes]:
        """The lines about one scenario as they stand in the file."""
        return (data for _, data in self._lines_of(scenario))

    def _lines_of(self, scenario: int) -> Iterator[tuple[int, bytes]]:
        line = self._first[scenario]
        while line >= 0 and self._file is not None:
            self._file.seek(self._start[line])
            yield line, self._file.read(self._size[line])
            line = self._next[line]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _fill(self, place: Callable[[LineSummary], int]) -> None:
        decoder = msgspec.json.Decoder(LineSummary)
        start, line = 0, b""
        for number, following in enumerate(_read_raw_lines(self.path)):
            try:
                if line.strip():
                    self._add(place(_decode_line(self.path, decoder.decode, line)), start, len(line))
            except _DECODE_ERRORS as error:
                raise _damaged_error(self.path, number, error) from error
            start, line = start + len(line), following
        with contextlib.suppress(*_DECODE_ERRORS):  # only the last line can be torn
            if line.strip():
                _decode_line(self.path, self._decode, line)
                self._add(place(decoder.decode(_verify_checksum(line))), start, len(line))

    def _add(self, scenario: int, start: int, size: int) -> None:
        line, before = len(self._start), self._last[scenario]
        self._start.append(start)
        self._size.append(size)
        self._next.append(-1)
        self._last[scenario] = line
        if before < 0:
            self._first[scenario] = line
        else:
            self._next[before] = line


def mend_file(path: Path, kind: type[msgspec.Struct]) -> bytes | None:
    """Set a torn last line aside in `<file>.torn`, so that appending is safe. Returns what was set aside."""
    if not file_exists(path) or not path.lstat().st_size:
        return None
    try:
        return _set_torn_line_aside(path, kind)
    except OSError as error:
        raise cannot_write(path, error) from error


def _set_torn_line_aside(path: Path, kind: type[msgspec.Struct]) -> bytes | None:
    with open(path, "rb+", opener=open_plain_file) as file:
        start = _last_line_start(file)
        file.seek(start)
        tail = file.read()
        try:
            _decode_line(path, msgspec.json.Decoder(kind).decode, tail)
        except _DECODE_ERRORS:
            with open(path.with_name(path.name + ".torn"), "ab", opener=open_plain_file) as torn:
                torn.write(tail.rstrip(b"\n") + b"\n")
            file.truncate(start)
            return tail
        if not tail.endswith(b"\n"):
            file.write(b"\n")
    return None


def _last_line_start(file: IO[bytes], block: int = 65536) -> int:
    position = file.seek(0, os.SEEK_END)
    blank = True
    while position > 0:
        step = min(block, position)
        position -= step
        file.seek(position)
        tail = file.read(step).rstrip(b"\n") if blank else file.read(step)
        blank = blank and not tail
        cut = tail.rfind(b"\n")
        if cut >= 0:
            return position + cut + 1
    return 0
