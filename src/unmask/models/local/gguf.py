"""Reads the metadata of a GGUF file: enough to refuse a wrong file, or to say how large its model is, before anything
heavy is loaded.

The format: `GGUF`, a version, the number of tensors and of entries, then the entries as key, type, value; all
little-endian. Arrays (vocabularies, mostly) are stepped over. Whether the weights are complete is llama.cpp's word.

Why not the package `gguf`: it makes an array of every word of a vocabulary, which took 7.0 s and 520 MB for the 1.5B
model of the catalogue. This takes 0.2 s.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

from unmask.errors import MissingError
from unmask.records import Record

MAX_HEADER = 64 * 1024 * 1024
"""Bytes of a file that are looked at: twice what the largest headers in use have, vocabulary included."""

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Header(Record, frozen=True, kw_only=True):
    """What a GGUF file says about itself. `None` where it does not."""

    chat_template: str | None
    context_length: int | None
    """The longest context the model was trained for, in tokens."""


def read_header(path: Path) -> Header:
    """The header of the file at `path`; MissingError if there is none, or if it is no GGUF file."""
    metadata = _read_file(path)
    template = metadata.get("tokenizer.chat_template")
    context = metadata.get(f"{metadata.get('general.architecture')}.context_length")
    return Header(
        chat_template=template if isinstance(template, str) else None,
        context_length=context if type(context) is int else None,
    )


def _read_file(path: Path) -> dict[str, str | float]:
    """The entries of the metadata."""
    advice = "Give the path of a GGUF file, or `unmask pull` for models that can be fetched"
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ValueError("it does not start with GGUF")
            size = min(os.fstat(file.fileno()).st_size, MAX_HEADER)
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
                return _MetadataParser(data).parse()
    except ValueError as error:
        raise MissingError(f"{path} is not a usable GGUF file: {error}", advice=advice) from None
    except OSError as error:
        raise MissingError(f"cannot read {path}: {error.strerror or error}", advice=advice) from None


class _MetadataParser:
    """Goes through the entries from the first to the last. What is damaged raises ValueError with the reason."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._place = 4

    def parse(self) -> dict[str, str | float]:
        version, _ = self._read_number("I"), self._read_number("Q")
        count = int(self._read_number("Q"))
        if version not in (2, 3):
            raise ValueError(f"its version is {version}, this program reads 2 and 3")
        entries = {}
        for _ in range(count):
            key, kind = self._read_string(), int(self._read_number("I"))
            if kind != _ARRAY:
                entries[key] = self._read_string() if kind == _STRING else self._read_number(_struct_code(kind))
                continue
            kind, length = int(self._read_number("I")), int(self._read_number("Q"))
            if kind != _STRING:
                self._skip_bytes(length * struct.calcsize("<" + _struct_code(kind)))
                continue
            for _ in range(length):
                self._skip_bytes(int(self._read_number("Q")))
        return entries

    def _read_number(self, code: str) -> float:
        start = self._skip_bytes(struct.calcsize("<" + code))
        number: float = struct.unpack_from("<" + code, self._data, start)[0]
        return number

    def _read_string(self) -> str:
        start = self._skip_bytes(int(self._read_number("Q")))
        return self._data[start : self._place].decode("utf-8", "replace")

    def _skip_bytes(self, size: int) -> int:
        """Goes on by so many bytes and returns where they start."""
        start, self._place = self._place, self._place + size
        if self._place > len(self._data):
            raise ValueError(f"it ends inside its header, or its header is longer than {MAX_HEADER} bytes")
        return start


def _struct_code(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"its header uses the unknown type {kind}")
    return _SCALARS[kind]
