"""Files of a folder that may be a stranger's, under plain names.

A symbolic link in place of a file would make us read, extend or empty whatever it points to, so it is refused by its
path. The folder itself may be a link: you have named it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from socket import gethostname
from typing import IO, Annotated, TypeVar

import msgspec

from unmask.errors import JournalError, RunLockedError, UsageError
from unmask.records import Record
from unmask.text import escape_line

T = TypeVar("T")

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Windows has no such flag."""

RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
"""Names that Windows takes for devices, whatever ending they have."""


def user_cache_folder() -> Path:
    """`$UNMASK_CACHE`, or the platform's cache folder for unmask."""
    if chosen := os.environ.get("UNMASK_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("unmask", appauthor=False))


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
    """Whether something has this name, a link to nothing included: opening that is an error."""
    return os.path.lexists(path)


def open_plain_file(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """A handle of a file, or of a new one, but never through a symbolic link. Also an `opener` for `open`."""
    try:
        return os.open(path, flags | _NO_LINK, mode)
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


def write_atomically(path: Path, data: bytes | Callable[[IO[bytes]], object], *, durable: bool = True) -> None:
    """Replace a file in one step: a reader sees the old or the new one, never half. Long `data` may write itself. What
    need not be `durable` does not wait for the disk, and makes no folder."""
    new_file = path.with_name(path.name + ".new")
    try:
        if durable:
            path.parent.mkdir(parents=True, exist_ok=True)
        new_file.unlink(missing_ok=True)
        # Whatever a stranger put there is neither followed nor written into.
        with open(new_file, "xb") as file:
            file.write(data) if isinstance(data, bytes) else data(file)
            if durable:
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

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)", re.DOTALL)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?\Z')
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?\Z")
_COMMENT = re.compile(r"(?:\A|\s)#.*")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def parse_dotenv(text: str) -> dict[str, str]:
    """`NAME=value` lines; `export`, quotes, escapes in double quotes and comments are understood, the rest ignored."""
    variables: dict[str, str] = {}
    for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")):
        if (match := _LINE.fullmatch(line)) is None:
            continue
        name, value = match.groups()
        if quoted := _DOUBLE.match(value):
            value = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted[1])
        elif quoted := _SINGLE.match(value):
            value = quoted[1]
        else:
            value = _COMMENT.sub("", value).strip()
        variables[name] = value
    return variables


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


class LockNotice(UserWarning):
    """What a user should know about locks on this file system."""


class LockHolder(Record, frozen=True, kw_only=True):
    """What a lock file says about the process that holds it."""

    pid: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    host: str
    since: str
    system: str
    """Names the running system that `pid` is a number of; empty where nothing does."""
    flock: bool
    """Whether the operating system drops the lock with its holder. If not, the file is the lock while it is there."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"

    @property
    def is_gone(self) -> bool:
        """Whether the holder has certainly ended. Nothing can be known about processes of another system."""
        if not self.system or self.system != _name_system():
            return False
        try:
            os.kill(self.pid, 0)
        except OSError as error:
            return error.errno == errno.ESRCH
        return False


def _name_system() -> str:
    """Names the system that gives this process its number. After a restart, or in another container, it is another."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except (OSError, UnicodeError):
        return ""


_POLL = 0.02
"""Seconds between two looks at a lock."""
_HELD_ERRORS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
_NO_LOCK_ERRORS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)
_told_systems: set[int] = set()
"""File systems without `flock` of which the user has been told."""


def _try_flock(handle: int) -> bool | None:
    """Take the lock of an open file if nobody has it. None where the file system has no such locks."""
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCK_ERRORS:
            return None
        if error.errno not in _HELD_ERRORS:
            raise
        return False
    return True


def lock_path(path: Path) -> Path:
    """The lock of a file stands beside it."""
    return path.with_name(path.name + ".lock")


class Lock:
    """At most one process holds a lock file. It is removed at the end, and the system drops the lock of a dead holder.

    On a file system that has no `flock` the file itself is the lock: whoever makes it holds it. Then one that a killed
    process has left is removed if that process ran on this system, and by the user if not. `wait` are seconds.

    The holder may remove the folder with the lock file in it. Whoever comes next makes both anew.
    """

    def __init__(self, path: Path, *, advice: str, wait: float = 0.0) -> None:
        self.path = path
        self._advice, self._wait = advice, wait
        self._handle: int | None = None
        self._by_file = False

    def __enter__(self) -> Lock:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def take(self) -> None:
        deadline = time.monotonic() + self._wait
        removals = 50
        try:
            while not self._try():
                if removals and self._is_left_behind():
                    removals -= 1
                    self._remove_left_file()
                elif time.monotonic() >= deadline:
                    holder = self._read_holder(tries=50)
                    if holder is None and self._try():  # it has ended meanwhile
                        return
                    raise self._refusal(holder)
                time.sleep(_POLL)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def release(self) -> None:
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            if self._is_in_place(self._handle):
                os.unlink(self.path)
        os.close(self._handle)
        self._handle = None

    def _try(self) -> bool:
        """Take the lock if nobody has it."""
        handle, is_new = self._open()
        try:
            locked = _try_flock(handle)
            while locked and not self._is_in_place(handle):  # a holder before us has removed it: it locks nobody out
                os.close(handle)
                handle, is_new = self._open()
                locked = _try_flock(handle)
            self._by_file = locked is None
            if self._by_file:
                self._tell_user()
            if self._holds(locked=locked, is_new=is_new):
                self._handle = handle
                self._sign(handle, flock=bool(locked))
        finally:
            if self._handle is None:
                if self._by_file and is_new:  # interrupted: nobody holds it
                    os.unlink(self.path)
                os.close(handle)
        return self._handle is not None

    def _holds(self, *, locked: bool | None, is_new: bool) -> bool:
        """Whether this process holds the lock, once it has opened the file and tried to lock it."""
        if locked is None:
            return is_new
        holder = self._read_holder()  # on a machine that locks this file system in another way
        return locked and (holder is None or holder.flock or holder.is_gone)

    def _sign(self, handle: int, *, flock: bool) -> None:
        """Write down who holds the lock. A disk without room for it is found out by what matters."""
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        holder = LockHolder(pid=os.getpid(), host=gethostname(), since=now, system=_name_system(), flock=flock)
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.write(handle, msgspec.json.encode(holder))

    def _read_holder(self, *, tries: int = 1) -> LockHolder | None:
        """Who holds the lock, which it writes right after it has taken it."""
        while True:
            tries -= 1
            with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return msgspec.json.decode(read_bytes(self.path), type=LockHolder)
            if not tries:
                return None
            time.sleep(_POLL)

    def _refusal(self, holder: LockHolder | None) -> RunLockedError:
        guarded = self.path.with_suffix("") if self.path.suffix == ".lock" else self.path.parent
        who, advice = str(holder or "a process that has not written its number down"), self._advice
        if self._by_file or (holder is not None and not holder.flock):
            # The star is for the file of a process that was killed while it removed a lock.
            advice += f" If that process has been killed, remove what it left: rm {shlex.quote(str(self.path))}*"
        return RunLockedError(f"{guarded} is in use by {who}", advice=advice)

    def _is_left_behind(self) -> bool:
        """Whether the file is the lock, and who made it has ended."""
        holder = self._read_holder() if self._by_file else None
        return isinstance(holder, LockHolder) and holder.is_gone

    def _remove_left_file(self) -> None:
        """One process at a time looks again and removes: the file of the next holder has the same name."""
        removing = self.path.with_name(self.path.name + ".removing")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(removing, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                if self._is_left_behind():
                    os.unlink(self.path)
            finally:
                os.unlink(removing)

    def _tell_user(self) -> None:
        if (device := os.stat(self.path.parent).st_dev) not in _told_systems:
            _told_systems.add(device)
            warnings.warn(
                f"the file system of {self.path.parent} has no flock: files whose names end with .lock take its place."
                " They are deleted at the end; one that a killed process leaves behind on another machine has to be"
                " deleted by hand.",
                LockNotice,
                stacklevel=2,
            )

    def _open(self, *, tries: int = 100) -> tuple[int, bool]:
        """The lock file, made with its folder, and whether it is new. Its holder may remove both between two lines."""
        while True:
            tries -= 1
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    return open_plain_file(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL), True
                return open_plain_file(self.path, os.O_RDWR), False
            except (FileNotFoundError, FileExistsError):
                # the latter from `mkdir`, whose folder was gone when it looked
                if not tries:
                    raise

    def _is_in_place(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False
