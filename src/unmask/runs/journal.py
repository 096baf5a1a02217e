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
import errno
import os
import zlib
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Generic, TypeVar

import msgspec

from unmask.errors import JournalError
from unmask.files import Lock, cannot_write, file_exists, open_plain_file
from unmask.records import FORMAT_VERSION, Call, Label, Usage

T = TypeVar("T", bound=msgspec.Struct)

LONGEST = 64 * 2**20
"""Bytes of one line: hundreds of the longest replies. Whoever reads a folder never holds more of it at once."""

_encoder = msgspec.json.Encoder()
_SUM_KEY = b',"sum":"'
_SUM = _SUM_KEY + b'%08x"}\n'
_SUM_SIZE = len(_SUM % 0) - 1
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

RESERVE = 2**20
"""Bytes set aside on the disk while a journal is written: room for what is in flight when the disk becomes full."""


class TooLongError(JournalError):
    """A line that no reader would take: nothing of it is written. `size` are its bytes."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(
            f"a line of {size} bytes is too long for {path}, which takes {LONGEST}",
            advice="Nothing of it was written. Leave out what it holds, or shorten it.",
        )
        self.size = size


class JournalFile:
    """An append-only JSONL file. `append` returns only after the whole line is with the operating system.

    With a reserve, a line that finds no room is written into the room set aside, and so are those that come after it:
    they are paid for. The error is raised all the same, once, so that nothing more is asked. A lock that comes with the
    file is released when it is closed. `on_newer` is called before the first line of a newer format is written.
    """

    def __init__(
        self,
        path: Path,
        *,
        reserve: bool = False,
        lock: Lock | None = None,
        on_newer: Callable[[int], None] | None = None,
        checksum: bool = False,
    ) -> None:
        self.path = path
        self._checksum = checksum
        self._on_newer = on_newer
        self._lock = lock
        self._handle: int | None = None
        self._size = 0
        self._reserve = path.with_name(path.name + ".reserve") if reserve else None
        self._reserved = False

    def open(self) -> None:
        """Before anything is paid for that has to go in: the first `append` would do it."""
        self._open()

    def append(self, record: msgspec.Struct) -> None:
        handle = self._open()
        if self._on_newer is not None and isinstance(record, Call | Label) and record.v > FORMAT_VERSION:
            self._on_newer(record.v)
            self._on_newer = None
        data = _encoder.encode(record)
        # The checksum of a JSON object is its own last field.
        is_summed = self._checksum or isinstance(record, Call)
        data = data[:-1] + _SUM % zlib.crc32(data) if is_summed else data + b"\n"
        if len(data) > LONGEST:
            raise TooLongError(self.path, len(data))
        try:
            self._write(handle, data)
        except OSError as error:
            if error.errno in _DISK_FULL and self._reserved:
                self._release_reserve()
                with contextlib.suppress(OSError):
                    self._write(handle, data)
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

    def _create_reserve(self) -> None:
        """On a disk that has no room for it the journal goes without, as long as its lines find some."""
        if self._reserve is None:
            return
        try:
            self._reserve.unlink(missing_ok=True)
            with self._reserve.open("xb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, RESERVE)
                else:
                    file.write(bytes(RESERVE))
            self._reserved = True
        except OSError:
            self._release_reserve()

    def _release_reserve(self) -> None:
        self._reserved = False
        if self._reserve is not None:
            with contextlib.suppress(OSError):
                self._reserve.unlink(missing_ok=True)

    def _open(self) -> int:
        if self._handle is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._handle = open_plain_file(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
            except OSError as error:
                raise cannot_write(self.path, error) from error
            self._size = os.fstat(self._handle).st_size
            self._create_reserve()
        return self._handle

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            self._release_reserve()
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
            yield decoder.decode(_verify_checksum(line))
        except _DECODE_ERRORS as error:
            damage = number, error


def _verify_checksum(line: bytes) -> bytes:
    """The JSON of a line, without its checksum. A line that has none, older or made by hand, stands for itself."""
    data = line.rstrip(b"\n")
    start = len(data) - _SUM_SIZE
    if start <= 0 or not data.startswith(_SUM_KEY, start):
        return line
    content = data[:start] + b"}"
    if data[start:] + b"\n" != _SUM % zlib.crc32(content):
        raise msgspec.ValidationError("its checksum does not match")
    return content


def _read_raw_lines(path: Path) -> Iterator[bytes]:
    """Every line, each at most `LONGEST` bytes; none where there is no file."""
    if not file_exists(path):
        return
    with open(path, "rb", opener=open_plain_file) as file:
        if os.fstat(file.fileno()).st_size <= LONGEST:
            yield from file
            return
        for number, line in enumerate(iter(partial(file.readline, LONGEST + 1), b""), 1):
            if len(line) > LONGEST:
                raise _too_long_error(path, f"line {number}")
            yield line


def _too_long_error(path: Path, which: str) -> JournalError:
    return JournalError(
        f"{which} of {path} is longer than {LONGEST} bytes, which no journal line is",
        advice="Restore the file, or delete that line to ask it again.",
    )


def _damaged_error(path: Path, number: int, error: Exception) -> JournalError:
    return JournalError(
        f"line {number} of {path} is damaged: {error}",
        advice="Only the last line can be torn by a kill. Restore the file, or delete that line to ask it again.",
    )


class LineSummary(msgspec.Struct):
    """What a line is about and what it cost, without its texts: enough to count calls and to find lines again."""

    scenario: str
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
                yield self._decode(_verify_checksum(data))
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
                    self._add(place(decoder.decode(_verify_checksum(line))), start, len(line))
            except _DECODE_ERRORS as error:
                raise _damaged_error(self.path, number, error) from error
            start, line = start + len(line), following
        with contextlib.suppress(*_DECODE_ERRORS):  # only the last line can be torn
            if line.strip():
                self._decode(_verify_checksum(line))
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
    if not file_exists(path) or not path.stat().st_size:
        return None
    try:
        return _set_torn_line_aside(path, kind)
    except OSError as error:
        raise cannot_write(path, error) from error


def _set_torn_line_aside(path: Path, kind: type[msgspec.Struct]) -> bytes | None:
    with open(path, "rb+", opener=open_plain_file) as file:
        start = _last_line_start(file, path)
        file.seek(start)
        tail = file.read()
        try:
            msgspec.json.decode(_verify_checksum(tail), type=kind)
        except _DECODE_ERRORS:
            with open(path.with_name(path.name + ".torn"), "ab", opener=open_plain_file) as torn:
                torn.write(tail.rstrip(b"\n") + b"\n")
            file.truncate(start)
            return tail
        if not tail.endswith(b"\n"):
            file.write(b"\n")
    return None


def _last_line_start(file: IO[bytes], path: Path, block: int = 65536) -> int:
    end = position = file.seek(0, os.SEEK_END)
    blank = True
    while position > 0:
        step = min(block, position)
        position -= step
        file.seek(position)
        tail = file.read(step).rstrip(b"\n") if blank else file.read(step)
        blank = blank and not tail
        cut = tail.rfind(b"\n")
        start = position + cut + 1 if cut >= 0 else position
        if end - start > LONGEST:
            raise _too_long_error(path, "the last line")
        if cut >= 0:
            return start
    return 0
