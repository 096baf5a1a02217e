"""Sealed files: what goes in comes out, and nothing else ever does."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.data.complete import binary
from unmask.data import seal
from unmask.data.form import encode_lines
from unmask.data.load import load
from unmask.errors import MissingError, UsageError

TEXT = encode_lines([binary("secret-id")])
COST = seal.COST
CHEAP = 2**4
"""A guess at this cost takes no time. What a guess has to cost is the subject of one test."""
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(seal, "COST", CHEAP)
    SEALED = seal.seal(TEXT, passphrase="rook takes pawn")


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "COST", CHEAP)


def opened(data: bytes, passphrase: str = "rook takes pawn") -> bytes:
    return seal.unseal(data, passphrase=passphrase, name="set.sealed")


@pytest.mark.parametrize(("data", "passphrase"), [(b"", "a"), (bytes(range(256)), "\u2654 \x00 \U0001f512 " * 50)])
def test_what_was_sealed_is_opened(data: bytes, passphrase: str):
    """Byte for byte, under any passphrase."""
    assert opened(seal.seal(data, passphrase=passphrase), passphrase) == data


def test_the_form_is_the_one_that_is_written_down(monkeypatch: pytest.MonkeyPatch):
    """Salt and nonce after the first line, AES-256-GCM, and a key that costs what the description says."""
    monkeypatch.setattr(seal, "COST", COST)
    sealed = seal.seal(TEXT, passphrase="rook takes pawn")
    salt, nonce = sealed[16:32], sealed[32:44]
    key = hashlib.scrypt(b"rook takes pawn", salt=salt, n=2**17, r=8, p=1, maxmem=2**28, dklen=32)
    assert AESGCM(key).decrypt(nonce, sealed[44:], sealed[:44]) == TEXT


def test_nothing_of_the_text_can_be_read():
    """Neither id nor any run of the text, and two seals have nothing but the first line in common."""
    again = seal.seal(TEXT, passphrase="rook takes pawn")
    assert b"secret-id" not in SEALED
    start = SEALED.index(b"\n") + 1
    assert SEALED[:start] == again[:start] == b"unmask-sealed 1\n"
    assert SEALED[start : start + 28] != again[start : start + 28]


def test_a_wrong_passphrase_is_a_usage_error():
    """Which does not say whether passphrase or file is to blame, because nobody can know."""
    with pytest.raises(UsageError, match="passphrase is another one, or the file was changed"):
        opened(SEALED, "rook takes queen")


@pytest.mark.parametrize("place", [16, 43, 44, len(SEALED) - 1])
def test_a_changed_byte_anywhere_is_refused(place: int):
    """Salt, nonce, text and tag are all authenticated."""
    changed = SEALED[:place] + bytes([SEALED[place] ^ 1]) + SEALED[place + 1 :]
    with pytest.raises(UsageError, match="does not open"):
        opened(changed)


@pytest.mark.parametrize("length", [len(SEALED) - 1])
def test_a_cut_file_is_refused(length: int):
    """Whole or nothing."""
    with pytest.raises(UsageError):
        opened(SEALED[:length])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a sealed file"),
        (TEXT, "not a sealed file"),
        (b"unmask-sealed 2\n" + SEALED[16:], "version '2'"),
        (b"unmask-sealed \xff\x1b\n", "version"),
        (SEALED[:59], "cut off"),
    ],
    ids=["empty", "text", "newer", "garbled", "cut"],
)
def test_other_files_are_told_apart_before_a_key_is_made(data: bytes, words: str):
    """With what they are."""
    with pytest.raises(UsageError, match=words):
        opened(data)


def test_accents_may_be_stored_either_way():
    """One passphrase typed on two systems."""
    assert opened(seal.seal(b"x", passphrase="caf\u00e9"), "cafe\u0301") == b"x"


def test_an_empty_passphrase_is_refused():
    """It would look sealed and not be."""
    with pytest.raises(UsageError, match="empty"):
        seal.seal(b"x", passphrase="")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    """What to install."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingError) as caught:
        seal.seal(b"x", passphrase="y")
    assert caught.value.advice == "pip install 'unmask[seal]'"


# --- files ------------------------------------------------------------------------------------------------


def test_data_takes_a_sealed_file_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the passphrase in the variable; the set has the name of the file inside."""
    path = tmp_path / "ours.jsonl.sealed"
    path.write_bytes(SEALED)
    monkeypatch.setenv(seal.VARIABLE, "rook takes pawn")
    found = load(path)
    assert (found.name, found.ids) == ("ours", ("secret-id",))
    assert os.listdir(tmp_path) == [path.name]


def test_without_the_variable_a_sealed_file_is_missing_its_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Exit code 4, and what to set."""
    path = tmp_path / "ours.sealed"
    path.write_bytes(SEALED)
    monkeypatch.delenv(seal.VARIABLE, raising=False)
    with pytest.raises(MissingError, match=seal.VARIABLE):
        load(path)


def test_a_file_is_written_whole_and_for_its_owner_only(tmp_path: Path):
    """No other file is left behind."""
    path = tmp_path / "out"
    seal.write_new(path, b"text")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"text", ["out"])
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As on a full disk: no half file under the name, and none beside it."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        seal.write_new(tmp_path / "out", b"text")
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_not_replaced(tmp_path: Path):
    """Opening into the wrong file must not destroy it."""
    (tmp_path / "out").write_bytes(b"precious")
    with pytest.raises(UsageError, match="exists"):
        seal.write_new(tmp_path / "out", b"text")
    assert (tmp_path / "out").read_bytes() == b"precious"
