"""The processes below a supervisor: who they are, and how they are noticed and ended. The standard library only, and
Linux only."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
LONGEST_KILL = 20.0
"""Seconds after which processes that survive SIGKILL, in the hands of a driver, are left to the system."""


def list_descendants() -> list[int]:
    """The processes below this one, by parent, whatever their session."""
    children: dict[int, list[int]] = {}
    for pid, parent in read_parents():
        children.setdefault(parent, []).append(pid)
    below, generation = [], [os.getpid()]
    while generation:
        generation = [child for pid in generation for child in children.get(pid, ())]
        below += generation
    return below


def read_parents() -> Iterator[tuple[int, int]]:
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                with open(f"/proc/{entry.name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()  # a name may hold spaces and brackets
            except OSError:
                continue
            yield int(entry.name), int(fields[1])


def end_descendants(*, first: subprocess.Popen[bytes] | None = None, grace: float) -> None:
    """End all processes below this one. `first` is asked with SIGTERM and has `grace` seconds to end what it started;
    what is left then, or once `first` is gone, is killed."""
    if first is not None and first.returncode is None:
        send_signal(first.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while first.returncode is None and time.monotonic() < deadline:
            time.sleep(0.02)
            reap_children(first)
    deadline = time.monotonic() + LONGEST_KILL
    while (left := list_descendants()) and time.monotonic() < deadline:
        for pid in left:
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.01)
        reap_children(first)


def reap_children(server: subprocess.Popen[bytes] | None) -> None:
    """Take note of all children that have ended, adopted ones too, and of how the server ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if server is not None and pid == server.pid:
            server.returncode = os.waitstatus_to_exitcode(status)


def send_signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def adopt_orphans() -> None:
    """Processes below this one stay below it when their parent ends."""
    _set_process_option(_PR_SET_CHILD_SUBREAPER, 1)


def _set_process_option(option: int, value: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def end_with_parent(number: signal.Signals, parent: int) -> None:
    """This process gets the signal when its parent dies, also if that has happened just now."""
    _set_process_option(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def describe_exit(code: int) -> str:
    if code >= 0:
        return f"the server ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = "; Linux ends processes this way when memory runs out" if name == "SIGKILL" else ""
    return f"the server was ended by {name}{hint}"
