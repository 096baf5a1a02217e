"""The lock file: who holds it, who is refused, what a killed holder leaves. All with real processes."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unmask.errors import JournalError, RunLockedError
from unmask.files import Lock, find_holder, lock_path

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
COUNT = """
import sys, time
from pathlib import Path
from unmask.files import Lock

number = Path(sys.argv[1]) / "number"
for _ in range(20):
    with Lock(Path(sys.argv[1]) / "number.lock", advice="", wait=60):
        before = int(number.read_text())
        time.sleep(0.001)
        number.write_text(str(before + 1))
"""


@contextmanager
def holder(path: Path, number: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until its input ends; with a number, where `flock` fails with it."""
    command = [sys.executable, "-W", "ignore", "-c", HOLD, str(path), str(number)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "taken\n"
        yield child


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return lock_path(tmp_path / "run" / "replies.jsonl")


def test_a_second_process_is_told_who_holds_what_and_since_when(path: Path):
    """And what to do, in the words of the one who wanted the lock."""
    with holder(path) as first:
        with pytest.raises(RunLockedError) as caught, Lock(path, advice="Choose another."):
            pass
        since = json.loads(path.with_name(path.name + ".holder").read_text())["since"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", since)
        who = f"process {first.pid} on {os.uname().nodename} since {since}"
        assert f"replies.jsonl is in use by {who}" in str(caught.value)
        assert caught.value.advice == "Choose another."
        (path.parent / "replies.jsonl").touch()
        assert find_holder(path.parent / "replies.jsonl") == who
        with Lock(path.with_name("other.lock"), advice=""):
            assert len(list(path.parent.glob("*.lock"))) == 2


def test_a_killed_holder_leaves_no_lock(path: Path):
    """Its file stays and locks nobody out; the next one removes it at the end."""
    with holder(path) as first:
        first.kill()
        first.wait()
        assert path.exists()
        assert find_holder(path.parent / "replies.jsonl") is None
        with Lock(path, advice=""):
            pass
    assert list(path.parent.iterdir()) == []


def test_no_change_of_six_processes_is_lost(tmp_path: Path):
    """Each adds one twenty times and waits for the others. Before them, a process was killed while it held the lock."""
    (tmp_path / "number").write_text("0")
    with holder(tmp_path / "number.lock") as first:
        first.kill()
        first.wait()
    children = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path)]) for _ in range(6)]
    assert [child.wait() for child in children] == [0] * 6
    assert (tmp_path / "number").read_text() == "120"
    assert [file.name for file in tmp_path.iterdir()] == ["number"]


def without_flock(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_flock_the_file_is_the_lock_and_the_user_is_told_once(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
):
    """What a killed process leaves is taken over on its own machine; on another one the error names what removes it."""
    without_flock(monkeypatch, number)
    monkeypatch.setattr("unmask.files._TOLD_ABOUT_LOCKS", set())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for place in (path, path.parent / "readings" / "judge.jsonl.lock"):  # the two folders of a run
            with Lock(place, advice=""):
                assert place.exists()
    assert ["has no locks" in str(one.message) for one in told] == [True]
    (path.parent / "readings").rmdir()
    assert list(path.parent.iterdir()) == []
    with holder(path, number) as first:
        with pytest.raises(RunLockedError, match=f"in use by process {first.pid} on ") as caught, Lock(path, advice=""):
            pass
        first.kill()
        first.wait()
        path.write_text(f"{first.pid}\nnode17\n")
        with pytest.raises(RunLockedError), Lock(path, advice=""):
            pass
        subprocess.run((caught.value.advice or "").partition("left: ")[2], shell=True, check=True)
        assert list(path.parent.iterdir()) == []
    with holder(path, number) as first:
        first.kill()
        first.wait()
        with Lock(path, advice=""):
            pass
    assert list(path.parent.iterdir()) == []


def test_another_error_of_flock_is_named(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that fails is not in use by anybody."""
    without_flock(monkeypatch, errno.EIO)
    with pytest.raises(JournalError, match="Input/output error"), Lock(path, advice=""):
        pass


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path):
    (tmp_path / "run").write_text("notes")
    with pytest.raises(JournalError) as caught, Lock(tmp_path / "run" / "lock", advice=""):
        pass
    assert "move away what is there" in (caught.value.advice or "")
