"""Reads the header of a GGUF file: enough to refuse a wrong file before anything heavy is loaded.

The format: `GGUF`, a version, the number of tensors and of metadata entries, then the entries as key, type, value,
then where each tensor lies; all little-endian. Arrays (vocabularies, mostly) are stepped over, not kept.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from unmask.errors import MissingError
from unmask.records import Record

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_HEADER = 64 * 1024 * 1024
"""Bytes of a header, vocabulary included: twice what the largest in use have. Bounds memory and work alike."""
MAX_STRING = 16 * 1024 * 1024
MAX_ENTRIES = 100_000
MAX_DEPTH = 4
MAX_DIMENSIONS = 8

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

Value = str | int | float | bool


class Header(Record, frozen=True, kw_only=True):
    """What a GGUF file says about itself. `None` where it does not."""

    version: int
    tensors: int
    metadata: dict[str, Value]
    last_tensor: int
    """Where in the file the last tensor begins; a file that ends before it was cut off."""

    def _text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    @property
    def architecture(self) -> str | None:
        return self._text("general.architecture")

    @property
    def name(self) -> str | None:
        return self._text("general.name")

    @property
    def chat_template(self) -> str | None:
        return self._text("tokenizer.chat_template")

    @property
    def context_length(self) -> int | None:
        """The longest context the model was trained for, in tokens."""
        value = self.metadata.get(f"{self.architecture}.context_length")
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class _DamagedError(Exception):
    pass


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise _DamagedError("it ends inside its header")
    if file.tell() > MAX_HEADER:
        raise _DamagedError(f"its header is longer than {MAX_HEADER} bytes")
    return data


def _scalar(file: BinaryIO, code: str) -> int | float | bool:
    form = struct.Struct("<" + code)
    value: int | float | bool = form.unpack(_exactly(file, form.size))[0]
    return value


def _count(file: BinaryIO, limit: int) -> int:
    value = int(_scalar(file, "Q"))
    if value > limit:
        raise _DamagedError(f"its header names a length of {value}")
    return value


def _string(file: BinaryIO) -> str:
    return _exactly(file, _count(file, MAX_STRING)).decode("utf-8", "replace")


def _skip_array(file: BinaryIO, depth: int = 0) -> None:
    kind, length = int(_scalar(file, "I")), _count(file, 2**32)
    if kind in _SCALARS:
        file.seek(length * struct.calcsize("<" + _SCALARS[kind]), 1)
        return
    if depth >= MAX_DEPTH:
        raise _DamagedError("its header nests arrays too deeply")
    for _ in range(length):
        if kind == _STRING:
            file.seek(_count(file, MAX_STRING), 1)
        elif kind == _ARRAY:
            _skip_array(file, depth + 1)
        else:
            raise _DamagedError(f"its header uses the unknown type {kind}")


def _value(file: BinaryIO) -> Value | None:
    kind = int(_scalar(file, "I"))
    if kind == _STRING:
        return _string(file)
    if kind in _SCALARS:
        return _scalar(file, _SCALARS[kind])
    if kind == _ARRAY:
        _skip_array(file)
        return None
    raise _DamagedError(f"its header uses the unknown type {kind}")


def _parse(file: BinaryIO) -> Header:
    if file.read(4) != MAGIC:
        raise _DamagedError("it does not start with GGUF")
    version = int(_scalar(file, "I"))
    if version not in VERSIONS:
        raise _DamagedError(f"its version is {version}, this program reads 2 and 3")
    tensors, entries = _count(file, MAX_ENTRIES), _count(file, MAX_ENTRIES)
    metadata: dict[str, Value] = {}
    for _ in range(entries):
        key = _string(file)
        value = _value(file)
        if value is not None:
            metadata[key] = value
    last = max((_tensor_offset(file) for _ in range(tensors)), default=0)
    alignment = metadata.get("general.alignment")
    step = alignment if isinstance(alignment, int) and alignment > 0 else 32
    begin = -(-file.tell() // step) * step
    return Header(version=version, tensors=tensors, metadata=metadata, last_tensor=begin + last)


def _tensor_offset(file: BinaryIO) -> int:
    file.seek(_count(file, MAX_STRING), 1)
    dimensions = int(_scalar(file, "I"))
    if dimensions > MAX_DIMENSIONS:
        raise _DamagedError(f"it has a tensor of {dimensions} dimensions")
    file.seek(8 * dimensions + 4, 1)
    return int(_scalar(file, "Q"))


def read_header(path: Path) -> Header:
    """The header of the file at `path`; MissingError if there is none, or if it is no GGUF file."""
    advice = "give the path of a GGUF file, or `unmask pull --list` for models that can be fetched"
    try:
        with path.open("rb") as file:
            header = _parse(file)
            if file.seek(0, 2) <= header.last_tensor:
                raise _DamagedError("it ends before its last tensor")
            return header
    except _DamagedError as error:
        raise MissingError(f"{path} is not a usable GGUF file: {error}", advice=advice) from None
    except OSError as error:
        raise MissingError(f"cannot read {path}: {error.strerror or error}", advice=advice) from None
