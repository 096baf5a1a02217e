"""The lock file: who holds it, who is refused, what a killed holder leaves. All with real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unmask.errors import JournalError, RunLockedError
from unmask.files import Lock, find_holder, lock_path

HOLD = """
import sys
from pathlib import Path
from unmask.files import Lock

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
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(path)]
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


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path):
    (tmp_path / "run").write_text("notes")
    with pytest.raises(JournalError) as caught, Lock(tmp_path / "run" / "lock", advice=""):
        pass
    assert "move away what is there" in (caught.value.advice or "")
