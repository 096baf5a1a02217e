"""A scenario file under a passphrase, so that a team can keep a private set where others can read the disk.

A sealed file is one line `unmask-sealed 1`, 16 bytes of salt, 12 bytes of nonce, and the file under AES-256-GCM with
everything before it authenticated. The key is scrypt (n = 2^17, r = 8, p = 1) of the passphrase in Unicode normal form
NFC. The version in the first line fixes all of this, so nothing about it is read from a file a stranger may have made.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.errors import JournalError, MissingError, UsageError
from unmask.files import write_atomically
from unmask.text import escape_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "UNMASK_PASSPHRASE"
COST = 2**17
"""What one guess of a passphrase costs: the n of scrypt. Part of version 1 of the form of sealed files."""

_MAGIC = b"unmask-sealed "
_HEADER = _MAGIC + b"1\n"
_SALT, _NONCE, _TAG = 16, 12, 16
_START = len(_HEADER) + _SALT + _NONCE


def seal(data: bytes, *, passphrase: str) -> bytes:
    """The sealed form of `data`. Two seals of the same data differ, and neither shows more than its length."""
    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    head = _HEADER + salt + nonce
    return head + _derive_cipher(passphrase, salt).encrypt(nonce, data, head)


def unseal(sealed: bytes, *, passphrase: str, name: str) -> bytes:
    """What was sealed, whole, or an error: altered and cut files give nothing. `name` is for the message."""
    if not sealed.startswith(_MAGIC):
        raise UsageError(
            f"{escape_line(name)} is not a sealed file", advice="Sealed files are made by: unmask data seal"
        )
    if not sealed.startswith(_HEADER):
        version = sealed[len(_MAGIC) : 40].partition(b"\n")[0].decode("ascii", "replace")
        raise UsageError(
            f"{escape_line(name)} has version {escape_line(version)!r} of the sealed format; this unmask knows"
            f" version 1",
            advice="Use the version of unmask that sealed it, or a newer one.",
        )
    if len(sealed) < _START + _TAG:
        raise UsageError(f"{escape_line(name)} is cut off: {len(sealed)} bytes are too few for a sealed file")
    head, body = sealed[:_START], sealed[_START:]
    cipher = _derive_cipher(passphrase, head[len(_HEADER) : -_NONCE])
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(head[-_NONCE:], body, head)
    except InvalidTag:
        raise UsageError(
            f"{escape_line(name)} does not open: the passphrase is another one, or the file was changed",
            advice=f"Check the passphrase (in {VARIABLE}, or as you type it) and the file.",
        ) from None


def passphrase_from_environment(name: str) -> str:
    """The passphrase that commands use without asking."""
    passphrase = os.environ.get(VARIABLE, "")
    if not passphrase:
        raise MissingError(
            f"{escape_line(name)} is sealed and {VARIABLE} is not set",
            advice=f"Set {VARIABLE} to its passphrase, or write the file in the clear with: unmask data open",
        )
    return passphrase


def write_new(path: Path, data: bytes) -> None:
    """Write a new file that only its owner can read. It appears complete or not at all, and replaces nothing."""
    if path.exists():
        raise UsageError(f"{escape_line(str(path))} exists", advice="Choose another file with --out, or remove it.")
    try:
        write_atomically(path, data, mode=0o600)
    except JournalError as error:
        raise UsageError(escape_line(str(error)), advice="Choose another file with --out.") from error


def _derive_cipher(passphrase: str, salt: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
    except ImportError:
        raise MissingError("sealed files need cryptography", advice="pip install 'unmask[seal]'") from None
    if not passphrase:
        raise UsageError("the passphrase is empty", advice=f"Type one, or set {VARIABLE}.")
    # One passphrase typed on two systems can differ in how accents are stored; bytes that are no text stay as they are.
    try:
        secret = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageError("the passphrase holds half a character", advice=f"Type another, or set {VARIABLE}.") from None
    return AESGCM(Scrypt(salt=salt, length=32, n=COST, r=8, p=1).derive(secret))
