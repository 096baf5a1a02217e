"""The lock file: who holds it, who is refused, what a killed holder leaves. All with real processes."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from unmask.errors import JournalError, RunLockedError
from unmask.files import Lock, LockNotice, lock_path

HOLD = """
import fcntl, os, sys
from pathlib import Path
from unmask.files import Lock

number = int(sys.argv[2])
def refuse(*_):
    raise OSError(number, os.strerror(number))
if number:
    fcntl.flock = refuse
with Lock(Path(sys.argv[1]), advice="Wait.", wait=60):
    print("taken", flush=True)
    sys.stdin.readline()
"""

NO_FLOCK = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP]


@contextmanager
def holder(path: Path, number: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until it reads a line; with a number, on a file system where `flock` fails so."""
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", HOLD, str(path), str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        try:
            assert child.stdout.readline() == "taken\n"
            yield child
        finally:
            if child.poll() is None:
                child.stdin.write("\n")
                child.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return lock_path(tmp_path / "run" / "replies.jsonl")


def named_holder(path: Path) -> dict[str, Any]:
    """What is written next to a lock file about who holds it."""
    return json.loads(path.with_name(path.name + ".holder").read_text())


def without_flock(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_a_second_process_is_told_who_holds_what_and_since_when(path: Path):
    """And what to do: the words of whoever wanted the lock."""
    with holder(path) as first:
        with pytest.raises(RunLockedError) as caught, Lock(path, advice="Choose another."):
            pass
        since = named_holder(path)["since"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", since)
        assert f"replies.jsonl is in use by process {first.pid} on {os.uname().nodename} since {since}" in str(
            caught.value
        )
        assert caught.value.advice == "Choose another."


def test_a_killed_holder_leaves_no_lock(path: Path):
    """Its file stays and locks nobody out; who comes next removes it at the end."""
    with holder(path) as first:
        first.kill()
        first.wait()
        assert path.exists()
        with Lock(path, advice=""):
            assert named_holder(path)["pid"] == os.getpid()
    assert list(path.parent.iterdir()) == []


def test_who_waits_gets_the_lock_when_its_holder_ends(path: Path):
    """Also when the file it had waited at was removed meanwhile."""
    with holder(path) as first, ExitStack() as stack:
        waiting = [
            subprocess.Popen(
                [sys.executable, "-c", HOLD, str(path), "0"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        for child in waiting:
            stack.enter_context(child)
        assert first.stdin is not None
        first.stdin.write("\n")
        first.stdin.flush()
        assert [child.communicate(timeout=60)[0] for child in waiting] == ["taken\n"] * 3
    assert list(path.parent.iterdir()) == []


def test_locks_of_two_files_are_two(path: Path):
    """Whoever reads with one judge keeps nobody from reading with another."""
    with holder(path), holder(path.with_name("other.lock")), Lock(path.with_name("third.lock"), advice=""):
        assert len(list(path.parent.glob("*.lock"))) == 3


# --- a file system without flock


@pytest.mark.parametrize("number", NO_FLOCK)
def test_without_flock_one_process_holds_the_file_and_the_user_is_told(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
):
    """Once for each file system."""
    without_flock(monkeypatch, number)
    monkeypatch.setattr("unmask.files._told_systems", set())
    with warnings.catch_warnings(record=True) as told:
        for _ in range(2):
            with Lock(path, advice=""):
                assert path.exists()
    assert ["has no locks" in str(one.message) for one in told] == [True]
    assert list(path.parent.iterdir()) == []
    with holder(path, number) as first:
        with pytest.raises(RunLockedError) as caught, Lock(path, advice="Wait."):
            pass
        assert f"in use by process {first.pid} on " in str(caught.value)
        assert caught.value.advice == (
            f"Wait. If that process has been killed, remove what it left: rm {shlex.quote(str(path))}*"
        )
    with Lock(path, advice=""):
        pass


def test_without_flock_one_who_does_not_get_as_far_leaves_no_lock(path: Path, monkeypatch: pytest.MonkeyPatch):
    """`python -W error` makes an error of the sentence; nobody could remove the file then."""
    without_flock(monkeypatch, errno.ENOLCK)
    monkeypatch.setattr("unmask.files._told_systems", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LockNotice), Lock(path, advice=""):
            pass
    assert not path.exists()


@pytest.mark.filterwarnings("ignore::unmask.files.LockNotice")
def test_without_flock_the_file_of_a_killed_process_is_taken_over(path: Path, monkeypatch: pytest.MonkeyPatch):
    """It ran on this machine, and its number is no longer one of a process."""
    without_flock(monkeypatch, errno.ENOLCK)
    with holder(path, errno.ENOLCK) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert named_holder(path)["pid"] == first.pid
        with Lock(path, advice=""):
            assert named_holder(path)["pid"] == os.getpid()
    assert list(path.parent.iterdir()) == []


@pytest.mark.filterwarnings("ignore::unmask.files.LockNotice")
def test_without_flock_a_process_elsewhere_is_never_taken_for_dead(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its number means nothing here. The command in the advice is the way out."""
    without_flock(monkeypatch, errno.ENOSYS)
    with holder(path, errno.ENOSYS) as first:
        first.kill()
        first.wait()
        path.write_text(f"{first.pid}\nnode17\n")
        holder_file = path.with_name(path.name + ".holder")
        holder_file.write_text(json.dumps(named_holder(path) | {"host": "node17"}))
        with pytest.raises(RunLockedError, match=f"process {first.pid} on node17") as caught, Lock(path, advice=""):
            pass
        subprocess.run((caught.value.advice or "").partition("left: ")[2], shell=True, check=True)
        assert list(path.parent.iterdir()) == []
        with Lock(path, advice=""):
            pass


COUNT = """
import fcntl, os, sys, time
from pathlib import Path
from unmask.files import Lock

def refuse(*_):
    raise OSError(37, os.strerror(37))
if sys.argv[2] == "file":
    fcntl.flock = refuse
number = Path(sys.argv[1]) / "number"

def count():
    for _ in range(20):
        with Lock(Path(sys.argv[1]) / "number.lock", advice="", wait=60):
            before = int(number.read_text())
            time.sleep(0.001)
            number.write_text(str(before + 1))

children = []
for _ in range(6):
    children.append(os.fork())
    if not children[-1]:
        code = 1
        try:
            count()
            code = 0
        finally:
            os._exit(code)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


@pytest.mark.parametrize("kind", ["flock", "file"])
def test_no_change_of_six_processes_is_lost(tmp_path: Path, kind: str):
    """Each adds one twenty times. Before them, a process was killed while it held the lock."""
    (tmp_path / "number").write_text("0")
    with holder(tmp_path / "number.lock", errno.ENOLCK if kind == "file" else 0) as first:
        first.kill()
        first.wait()
    command = [sys.executable, "-W", "ignore", "-c", COUNT, str(tmp_path), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0, 0, 0, 0, 0]\n"
    assert (tmp_path / "number").read_text() == "120"
    assert [path.name for path in tmp_path.iterdir()] == ["number"]


def test_a_machine_with_flock_respects_the_file_of_one_without(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nodes of a cluster may have mounted the same disk in two ways."""
    with holder(path, errno.ENOSYS) as first:
        with pytest.raises(RunLockedError, match=f"process {first.pid}"), Lock(path, advice=""):
            pass
        first.kill()
        first.wait()
        with Lock(path, advice=""), monkeypatch.context() as elsewhere:
            without_flock(elsewhere, errno.ENOSYS)
            elsewhere.setattr("unmask.files._told_systems", {path.parent.stat().st_dev})
            with pytest.raises(RunLockedError, match=f"process {os.getpid()}"), Lock(path, advice=""):
                pass


def test_another_error_of_flock_is_named(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that fails is not in use by anybody."""
    without_flock(monkeypatch, errno.EIO)
    with pytest.raises(JournalError, match="Input/output error"), Lock(path, advice=""):
        pass


def test_a_file_in_place_of_the_folder_is_said(tmp_path: Path):
    """Nobody's rights are the problem."""
    (tmp_path / "run").write_text("notes")
    with pytest.raises(JournalError) as caught, Lock(tmp_path / "run" / "lock", advice=""):
        pass
    assert "move away what is there" in (caught.value.advice or "")
