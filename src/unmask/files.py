"""Files of a folder that may be a stranger's, under plain names.

A symbolic link in place of a file would make us read, extend or empty whatever it points to, so it is refused by its
path. The folder itself may be a link: you have named it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shlex
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from socket import gethostname
from typing import IO, TYPE_CHECKING, TypeVar

import msgspec

from unmask.errors import JournalError, RunLockedError, UsageError
from unmask.records import Record
from unmask.text import unify_line_ends

if TYPE_CHECKING:
    from filelock import BaseFileLock

T = TypeVar("T")


def user_cache_folder() -> Path:
    """`$UNMASK_CACHE`, or the platform's cache folder for unmask."""
    if chosen := os.environ.get("UNMASK_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("unmask", appauthor=False))


def is_file_name(name: str) -> bool:
    """Whether a name can only be that of one plain file."""
    plain = name.isprintable() and not name.startswith((".", " ")) and not set(name) & set('/\\:*?"<>|')
    return plain and 0 < len(name.encode("utf-8", "surrogatepass")) <= 200


def file_exists(path: Path | str) -> bool:
    """Whether something has this name, a link to nothing included: opening that is an error."""
    return os.path.lexists(path)


def open_plain_file(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """A handle of a file, or of a new one, but never through a symbolic link. Also an `opener` for `open`."""
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), mode)  # Windows has no such flag
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refusal_error(f"{path} is a symbolic link, not a plain file", "file") from None
        raise


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


def cannot_write(path: Path, error: OSError) -> JournalError:
    advice = "Check the folder's rights."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "Free some space and run the same command again: it continues."
    elif in_the_way := next((part for part in path.parents if os.path.lexists(part) and not part.is_dir()), None):
        return JournalError(
            f"{in_the_way} is no folder, so {path} cannot be written",
            advice="Choose another path, or move away what is there.",
        )
    elif error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
        advice = "Choose another path."
    return JournalError(f"cannot write {path}: {os.strerror(error.errno or 0)}", advice=advice)


def choose_by_ending(path: Path, kinds: Mapping[str, T]) -> T:
    """What the ending of a file's name means. Another ending is an error that names those that work."""
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise UsageError(
            f"the name {path} does not say what to write",
            advice=f"End it in {', '.join(kinds)}.",
        )
    return kind


def write_atomically(path: Path, data: bytes | Callable[[IO[bytes]], object]) -> None:
    """Replace a file in one step: a reader sees the old or the new one, never half. Long `data` may write itself."""
    new_file = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new_file.unlink(missing_ok=True)
        # Whatever a stranger put there is neither followed nor written into.
        with open(new_file, "xb") as file:
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


# --- .env -------------------------------------------------------------------------------------------------

_LINE = re.compile(
    r"""^[^\S\n]*(?:export\s+)?([A-Za-z_]\w*)[^\S\n]*=[^\S\n]*(?:"([^"\n]*)"|'([^'\n]*)'|(.*?))[^\S\n]*(?:(?<=[\s=])#.*)?$""",
    re.MULTILINE | re.ASCII,
)


def parse_dotenv(text: str) -> dict[str, str]:
    """`NAME=value` lines; `export`, quotes and comments are understood, the rest is ignored."""
    found = _LINE.finditer(unify_line_ends(text.removeprefix("\ufeff")))
    return {match[1]: next((value for value in match.groups()[1:] if value is not None), "") for match in found}


def read_dotenv(folder: Path | None = None) -> dict[str, str]:
    """The variables of `.env` in `folder` (the working directory); none where there is no such file."""
    try:
        return parse_dotenv(((folder or Path.cwd()) / ".env").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return {}


def read_environment(folder: Path | None = None) -> Mapping[str, str]:
    """What the program may read: `.env` in `folder` (the working directory), overlaid by the real environment."""
    return {**read_dotenv(folder), **os.environ}


# --- locks ------------------------------------------------------------------------------------------------


class LockHolder(Record, frozen=True, kw_only=True):
    """What is written next to a lock file, for those who are refused."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


def _read_holder(path: Path) -> LockHolder | None:
    try:
        return msgspec.json.decode(read_bytes(path), type=LockHolder)
    except (OSError, JournalError, ValueError, RecursionError):
        return None


def find_holder(path: Path) -> str | None:
    """Who holds the lock of a file, without trying it; `None` where nobody on this machine does, or where one on
    another machine has written nothing for ten minutes."""
    holder = _read_holder(Path(f"{lock_path(path)}.holder"))
    if holder is None:
        return None
    try:
        if holder.host != gethostname():
            return str(holder) if time.time() - path.stat().st_mtime < _LONGEST_SILENCE else None
        os.kill(holder.pid, 0)
    except PermissionError:  # it is there, and somebody else's
        return str(holder)
    except (OSError, OverflowError):
        return None
    return str(holder)


_LONGEST_SILENCE = 600.0
_POLL = 0.02
"""Seconds between two attempts to take a lock."""
_SHORTEST_WAIT = 0.2
"""Seconds that every attempt lasts, so that a holder that is just ending refuses nobody."""


def lock_path(path: Path) -> Path:
    """The lock file of a file."""
    return path.with_name(path.name + ".lock")


class LockNotice(UserWarning):
    """What a user should know about locks on this file system."""


class Lock:
    """A lock file that at most one process holds, for `wait` seconds of trying. It is deleted at the end; of a process
    that was killed the operating system frees it.

    On a file system without locks the file is the lock as long as it exists. One that a killed process has left is
    removed if that process ran on this machine, and by the user if not.
    """

    def __init__(self, path: Path, *, advice: str, wait: float = 0.0) -> None:
        self.path = path
        self._holder_path = path.with_name(path.name + ".holder")
        self._advice, self._wait = advice, max(wait, _SHORTEST_WAIT)
        self._lock: BaseFileLock | None = None

    def __enter__(self) -> Lock:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def take(self) -> None:
        from filelock import FileLock, SoftFileLock, Timeout

        advice, kind = self._advice, FileLock
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self._system_has_locks():
                _tell_about_locks(self.path.parent)
                # The star is for the file with the name of its holder.
                advice += f" If that process has been killed, remove what it left: rm {shlex.quote(str(self.path))}*"
                kind = SoftFileLock
            self._lock = kind(self.path, timeout=self._wait, poll_interval=_POLL, thread_local=False)
            self._lock.acquire()
        except Timeout:
            self._lock = None
            guarded = self.path.with_suffix("") if self.path.suffix == ".lock" else self.path.parent
            who = _read_holder(self._holder_path) or "another process"
            raise RunLockedError(f"{guarded} is in use by {who}", advice=advice) from None
        except OSError as error:
            self._lock = None
            raise cannot_write(self.path, error) from error
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        holder = LockHolder(pid=os.getpid(), host=gethostname(), since=now)
        # A disk without room for it is found out by what matters.
        with contextlib.suppress(OSError), open(self._holder_path, "wb", opener=open_plain_file) as file:
            file.write(msgspec.json.encode(holder))

    def release(self) -> None:
        if self._lock is not None:
            for path in (self._holder_path, self.path):
                with contextlib.suppress(OSError):
                    path.unlink()
            self._lock.release()
            self._lock = None

    def _system_has_locks(self) -> bool:
        """Tried on the file that names the holder: the lock file itself may be the lock of another machine."""
        handle = open_plain_file(self._holder_path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
                return False
            if not isinstance(error, BlockingIOError):
                raise
        finally:
            os.close(handle)
        return True


_TOLD_ABOUT_LOCKS: set[int] = set()
"""Devices: a run has lock files in two folders, and is told once."""


def _tell_about_locks(folder: Path) -> None:
    if (device := folder.stat().st_dev) in _TOLD_ABOUT_LOCKS:
        return
    _TOLD_ABOUT_LOCKS.add(device)
    warnings.warn(
        f"the file system of {folder} has no locks: files whose names end with .lock take their place. They are deleted"
        " at the end; one that a killed process leaves behind on another machine has to be deleted by hand.",
        LockNotice,
        stacklevel=4,
    )
