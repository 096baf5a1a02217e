"""Files of a folder that may be a stranger's: plain ones, under plain names, and nothing that leads elsewhere.

A symbolic link in place of a file would make us read, extend or empty whatever it points to; a pipe or a device is
waited for, or has no end. Each is refused by its path. The folder itself may be a link: the user has named it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TypeVar

from unmask.errors import JournalError, RunLockedError, UsageError
from unmask.text import escape_line

T = TypeVar("T")

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Windows has no such flag; there the look before has to do."""

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}

RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
"""Names that Windows takes for devices, whatever ending they have."""


def is_file_name(name: str) -> bool:
    """Whether a name can only be that of one plain file, whatever the system."""
    return (
        0 < len(name.encode("utf-8", "surrogatepass")) <= 200
        and name.isprintable()
        and not any(sign in name for sign in '/\\:*?"<>|')
        and not name.startswith((".", " "))
        and not RESERVED.fullmatch(name)
    )


def file_exists(path: Path | str) -> bool:
    """Whether the file is there. Anything in its place that is no plain file is an error."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise _refusal_error(f"{path} is {kind}, not a plain file", "file")
    return True


def open_plain_file(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """A handle of a plain file, or of a new one. Also an `opener` for `open`."""
    file_exists(path)
    return os.open(path, flags | _NO_LINK, mode)


def read_bytes(path: Path) -> bytes:
    with open(path, "rb", opener=open_plain_file) as file:
        return file.read()


def refuse_linked_folder(path: Path) -> Path:
    """The folder itself, which need not be there yet. A link in its place is an error."""
    if path.is_symlink():
        raise _refusal_error(f"{path} is a symbolic link, not a folder", "folder")
    return path


def _refusal_error(what: str, kind: str) -> JournalError:
    return JournalError(
        what,
        advice=f"Put the {kind} itself in its place, or delete it. Do not use a folder of a stranger that holds this.",
    )


def read_lock_holder(file: IO[str]) -> str:
    """The number of the process that holds the lock, which it writes right after it has taken the lock."""
    for _ in range(20):
        file.seek(0)
        if number := file.read().strip():
            return number
        time.sleep(0.05)
    return "unknown"


def try_lock(file: IO[str]) -> bool:
    """Take the lock of this file if nobody has it."""
    with contextlib.suppress(OSError):
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def cannot_write(path: Path, error: OSError) -> JournalError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    advice = "Free some space and run the same command again: it continues." if full else "Check the folder's rights."
    return JournalError(f"cannot write {path}: {os.strerror(error.errno or 0)}", advice=advice)


def choose_by_ending(path: Path, kinds: Mapping[str, T]) -> T:
    """What the ending of a file's name stands for. Another ending is an error that names those that work."""
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise UsageError(
            f"the name {escape_line(str(path))} does not say what to write",
            advice=f"End it in {', '.join(kinds)}.",
        )
    return kind


FILE_ENDINGS = frozenset({".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".zip", ".html", ".md", ".txt"})


def refuse_file_name(folder: Path) -> None:
    """An error where the name of a folder that is to be made ends like that of a file: a file was meant."""
    if folder.suffix.lower() in FILE_ENDINGS:
        raise UsageError(
            f"{escape_line(str(folder))} would be a folder, and its name ends in {folder.suffix}",
            advice=f"Name the folder without it: --out {escape_line(str(folder.with_suffix('')))}",
        )


def write_atomically(path: Path, data: bytes | Callable[[IO[bytes]], object], *, mode: int = 0o666) -> None:
    """Replace a file in one step: a reader sees the old or the new one, never half. Long `data` may write itself."""
    new_file = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new_file.unlink(missing_ok=True)
        # Whatever a stranger put there is neither followed nor written into.
        with open(new_file, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data) if isinstance(data, bytes) else data(file)
            file.flush()
            os.fsync(file.fileno())
        new_file.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            new_file.unlink()
        if not isinstance(error, OSError):
            raise
        raise cannot_write(path, error) from error


class Lock:
    """At most one process works in a folder. The operating system drops the lock when its holder dies.

    The holder may remove the folder with the lock file in it. Whoever comes next makes both anew.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        self._file: IO[str] | None = None

    def __enter__(self) -> Lock:
        while self._file is None:
            try:
                file = self._open()
            except OSError as error:
                raise cannot_write(self.path, error) from error
            if not try_lock(file):
                holder = read_lock_holder(file)
                file.close()
                raise RunLockedError(
                    f"{self.path.parent} is in use by process {holder}",
                    advice="Wait for it to finish, or choose another --out.",
                )
            if self._is_in_place(file):
                self._file = file
            else:  # the holder before us has removed this file: it locks nobody out
                file.close()
        # Who holds it is only there to be read: a disk without room for a number is found out by what matters.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file.fileno(), 0)
            os.write(self._file.fileno(), str(os.getpid()).encode())
        return self

    def _open(self, *, tries: int = 100) -> IO[str]:
        """The lock file, made with its folder. Its holder may remove the folder between the two lines."""
        while True:
            tries -= 1
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                return open(self.path, "a+", encoding="utf-8", opener=open_plain_file)
            except (FileNotFoundError, FileExistsError):
                # the latter from `mkdir`, whose folder was gone when it looked
                if not tries:
                    raise

    def _is_in_place(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
