"""The members of an `.eval` file, which is a zip of JSON. Nothing is unpacked to disk, and every size is bounded.

Recent logs are compressed with Zstandard, which the zip module of Python knows from 3.14 on. Before that the package
`zstandard` is used; it comes with the extra `inspect`.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from unmask.errors import DataError, MissingError
from unmask.text import plain

LARGEST = 128 * 2**20
"""Bytes of one member once unpacked. A sample of this benchmark has some 100 kB."""
MOST = 8 * 2**30
"""Bytes of all members that are read, once unpacked."""
RATIO = 100
"""How many times its own size a log may unpack to, beyond `LARGEST`. Transcripts in JSON shrink to a tenth, rarely to a
thirtieth; a file made of nothing shrinks to a thousandth."""
MEMBERS = 500_000

_ZSTANDARD = 93
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
"""What Inspect writes. The others are left alone: one of them reserves as much memory as a file asks for."""
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    struct.error,
    NotImplementedError,
    ValueError,
    OverflowError,
)
_LOCAL = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 0x41
"""Bits of a member's flags: encrypted in one way or the other."""
_PIECE = 256 * 2**10


class Archive:
    """Reads members by name. What is damaged or too large raises DataError with the file's name."""

    def __init__(self, path: Path, opened: zipfile.ZipFile) -> None:
        self._path = path
        self._zip = opened
        self._size = path.stat().st_size
        self._left = min(MOST, LARGEST + RATIO * self._size)
        starts = sorted(info.header_offset for info in opened.infolist())
        if len(starts) > MEMBERS:
            raise self._bad(f"it has {len(starts)} members")
        self._ends = dict(pairwise([*starts, self._size]))
        """Where the next member starts, by where one does."""
        if len(self._ends) < len(starts):
            raise self._bad("two of its members are in the same place")

    def names(self) -> tuple[str, ...]:
        """Each name once; of several members with one name the last counts, as for every zip reader."""
        return tuple(dict.fromkeys(self._zip.namelist()))

    def read(self, name: str) -> bytes:
        info = self._zip.getinfo(name)
        if info.file_size > LARGEST:
            raise self._bad(f"{plain(name)} would unpack to {info.file_size} bytes")
        if info.compress_type not in _KNOWN:
            raise self._bad(f"{plain(name)} is compressed in a way that logs are not ({info.compress_type})")
        self._left -= info.file_size
        if self._left < 0:
            raise self._bad(f"it would unpack to more than {min(MOST, LARGEST + RATIO * self._size)} bytes")
        if info.flag_bits & _ENCRYPTED:
            raise self._bad(f"{plain(name)} is encrypted")
        try:
            return self._unpacked(info)
        except _DAMAGE as error:
            raise self._bad(f"{plain(name)}: {plain(str(error))}") from None

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        """Never more than one byte beyond the size in the index, which is the one that was counted. `zipfile` unpacks
        whatever there is and cuts it afterwards."""
        match info.compress_type:
            case zipfile.ZIP_STORED:
                data = b"".join(self._packed(info, most=info.file_size + 1))
            case zipfile.ZIP_DEFLATED:
                data = _inflated(self._packed(info), info.file_size)
            case _:
                data = _zstandard()(b"".join(self._packed(info, most=2 * LARGEST)), info.file_size)
        if len(data) > info.file_size:
            raise zipfile.BadZipFile(f"it is longer than the {info.file_size} bytes the index says")
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise zipfile.BadZipFile("the content does not match its checksum")
        return data

    def _packed(self, info: zipfile.ZipInfo, *, most: int | None = None) -> Iterator[bytes]:
        """The bytes of a member as they lie in the file, in pieces."""
        with self._path.open("rb") as file:
            file.seek(info.header_offset)
            head = _LOCAL.unpack(file.read(_LOCAL.size))
            if head[0] != b"PK\x03\x04":
                raise zipfile.BadZipFile("a member does not start where the index says")
            file.seek(head[-2] + head[-1], 1)
            if file.tell() + info.compress_size > self._ends[info.header_offset]:
                raise zipfile.BadZipFile("it reaches into what follows it")
            left = info.compress_size if most is None else min(info.compress_size, most)
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece

    def _bad(self, why: str) -> DataError:
        return DataError(
            f"{plain(str(self._path))} is not a log that can be read: {why}",
            advice="Copy the log again from where it was written.",
        )


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """The archive at `path`, for as long as the block lasts."""
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise MissingError(f"cannot read {plain(str(path))}: {error.strerror or error}") from error
    except _DAMAGE as error:
        raise DataError(
            f"{plain(str(path))} is not an .eval log: {plain(str(error))}",
            advice="Copy the log again from where it was written.",
        ) from None
    with archive:
        yield Archive(path, archive)


def _inflated(pieces: Iterator[bytes], size: int) -> bytes:
    unpack = zlib.decompressobj(-zlib.MAX_WBITS)
    found = bytearray()
    for piece in pieces:
        found += unpack.decompress(piece, size + 1 - len(found))
        if len(found) > size or unpack.eof:
            break
    return bytes(found)


def _zstandard() -> Callable[[bytes, int], bytes]:
    """A function that unpacks at most one byte more than it is told to expect."""
    try:
        native = import_module("compression.zstd")
    except ImportError:
        return _zstandard_package()

    def unpack(data: bytes, size: int) -> bytes:
        found = b""
        while data and len(found) <= size:
            step = native.ZstdDecompressor()
            try:
                found += step.decompress(data, max_length=size + 1 - len(found))
            except native.ZstdError as error:
                raise zipfile.BadZipFile(str(error)) from None
            data = step.unused_data
        return found

    return unpack


def _zstandard_package() -> Callable[[bytes, int], bytes]:
    try:
        package = import_module("zstandard")
    except ImportError:
        raise MissingError(
            "this log is compressed with Zstandard, which needs a package before Python 3.14",
            advice="pip install 'unmask[inspect]'",
        ) from None

    def unpack(data: bytes, size: int) -> bytes:
        try:
            with package.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                found: bytes = reader.read(size + 1)
                return found
        except package.ZstdError as error:
            raise zipfile.BadZipFile(str(error)) from None

    return unpack
