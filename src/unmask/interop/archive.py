"""The members of an `.eval` file, which is a zip of JSON. Nothing is unpacked to disk, and every size is bounded.

Recent logs are compressed with Zstandard, which Python knows from 3.14 on. Before that the package `zstandard` is used;
it comes with the extra `inspect`.
"""

from __future__ import annotations

import copy
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from unmask.errors import DataError, MissingError
from unmask.text import escape_line

LARGEST = 128 * 2**20
"""Bytes of one member once unpacked. A sample of this benchmark has some 100 kB."""
MOST = 8 * 2**30
"""Bytes of all members that are read, once unpacked."""
RATIO = 100
"""How many times its own size a log may unpack to, beyond `LARGEST`. Transcripts in JSON shrink to a tenth, rarely to a
thirtieth; a file made of nothing shrinks to a thousandth."""

_ZSTANDARD = 93
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
"""What Inspect writes. The others are left alone: one of them reserves as much memory as a file asks for."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError, OverflowError)
"""What `zipfile` raises about a file that is damaged, encrypted or of a kind it does not know."""


class Archive:
    """Reads members by name. What is damaged or too large raises DataError with the file's name."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self._path = path
        self._zip = file
        self._limit = min(MOST, LARGEST + RATIO * path.stat().st_size)
        self._unpacked = 0

    def names(self) -> tuple[str, ...]:
        """Each name once; of several members with one name the last counts, as for every zip reader."""
        return tuple(dict.fromkeys(self._zip.namelist()))

    def read(self, name: str) -> bytes:
        """The content of a member. It is not longer than the size in the index, which is counted before."""
        info = self._zip.getinfo(name)
        if info.file_size > LARGEST:
            raise self._damage_error(f"{escape_line(name)} would unpack to {info.file_size} bytes")
        if info.compress_type not in _METHODS:
            raise self._damage_error(
                f"{escape_line(name)} is compressed in a way that logs are not ({info.compress_type})"
            )
        self._unpacked += info.file_size
        if self._unpacked > self._limit:
            raise self._damage_error(f"it would unpack to more than {self._limit} bytes")
        try:
            if info.compress_type == _ZSTANDARD:
                return _read_zstandard(self._zip, info)
            with self._zip.open(name) as member:
                return member.read(info.file_size + 1)  # one more, so that the checksum is compared
        except _DAMAGE as error:
            raise self._damage_error(f"{escape_line(name)}: {escape_line(str(error))}") from None

    def _damage_error(self, why: str) -> DataError:
        return DataError(
            f"{escape_line(str(self._path))} is not a log that can be read: {why}",
            advice="Copy the log again from where it was written.",
        )


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive at `path`, for as long as the block lasts."""
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise MissingError(f"cannot read {escape_line(str(path))}: {error.strerror or error}") from error
    except _DAMAGE as error:
        raise DataError(
            f"{escape_line(str(path))} is not an .eval log: {escape_line(str(error))}",
            advice="Copy the log again from where it was written.",
        ) from None
    with archive:
        yield Archive(path, archive)


def _read_zstandard(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member that is compressed with Zstandard: `zipfile` gives its bytes as they lie there, we unpack them."""
    packed = copy.copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del packed.CRC  # it is the checksum of the unpacked content
    with archive.open(packed) as member:
        content = _unpack_zstandard(member, info.file_size + 1)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile("the content does not match its checksum")
    return content


def _unpack_zstandard(member: IO[bytes], most: int) -> bytes:
    """At most so many bytes of what is compressed in `member`."""
    package: Any
    try:
        package = import_module("compression.zstd")
    except ImportError:
        try:
            package = import_module("zstandard")
        except ImportError:
            raise MissingError(
                "this log is compressed with Zstandard, which needs a package before Python 3.14",
                advice="pip install 'unmask[inspect]'",
            ) from None
        stream = package.ZstdDecompressor().stream_reader(member, read_across_frames=True)
    else:
        stream = package.ZstdFile(member)
    try:
        with stream:
            content: bytes = stream.read(most)
            return content
    except package.ZstdError as error:
        raise zipfile.BadZipFile(str(error)) from None
