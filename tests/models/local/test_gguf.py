"""The header of GGUF files: what is read, and that nothing else than a GGUF file gets through."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import MissingError
from unmask.models.local.gguf import read_header

STRING, ARRAY, U32, BOOL = 8, 9, 4, 7


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def words(values: list[str]) -> bytes:
    return struct.pack("<IQ", STRING, len(values)) + b"".join(text(value) for value in values)


ENTRIES = (
    entry("general.architecture", STRING, text("llama")),
    entry("llama.context_length", U32, struct.pack("<I", 8192)),
    entry("tokenizer.ggml.tokens", ARRAY, words(["a", "b", "ü"])),
    entry("tokenizer.ggml.add_bos_token", BOOL, b"\x00"),
    entry("tokenizer.chat_template", STRING, text("{{ messages }}")),
)
TENSOR = text("weight") + struct.pack("<IQQIQ", 2, 4, 4, 0, 64)


def made(entries: tuple[bytes, ...] = ENTRIES, *, version: int = 3, tail: int = 200) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, 1, len(entries)) + b"".join(entries) + TENSOR + bytes(tail)


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return path


def test_what_the_file_says_about_itself_is_read(tmp_path):
    """Context length and chat template come from the metadata; arrays are stepped over."""
    header = read_header(saved(tmp_path, made()))
    assert (header.context_length, header.chat_template) == (8192, "{{ messages }}")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "does not start with GGUF"),
        (b"<!DOCTYPE html>", "does not start with GGUF"),
        (b"GGUF", "ends inside its header"),
        (made(version=1), "version is 1"),
        (made((entry("x", 77, b""),)), "unknown type 77"),
        (made((struct.pack("<Q", 2**63),)), "ends inside its header"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "ends inside its header"),
        (made((entry("x", ARRAY, struct.pack("<IQ", ARRAY, 1) * 5),)), "unknown type 9"),
    ],
)
def test_another_file_is_refused_with_the_reason(tmp_path, data, reason):
    """One line that names the file and says what is wrong with it; exit code 4."""
    with pytest.raises(MissingError, match=reason) as caught:
        read_header(saved(tmp_path, data))
    assert caught.value.exit_code == 4
    assert "model.gguf" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(cut=st.integers(0, len(made(tail=0)) - len(TENSOR) - 1))
def test_a_header_cut_anywhere_is_refused(tmp_path_factory, cut):
    """No prefix of the metadata passes for a file."""
    with pytest.raises(MissingError):
        read_header(saved(tmp_path_factory.getbasetemp(), made(tail=0)[:cut]))


@given(data=st.binary(max_size=300))
def test_garbage_behind_the_magic_never_escapes_as_another_exception(tmp_path_factory, data):
    """Whatever follows `GGUF` is read or refused; nothing crashes or fills the memory."""
    with contextlib.suppress(MissingError):
        read_header(saved(tmp_path_factory.getbasetemp(), b"GGUF\x03\x00\x00\x00" + data))
