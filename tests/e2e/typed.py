"""Types a command into a terminal of 80 columns or more, as a person would, and keeps what the person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.cli.forked import forker
from tests.patience import PATIENCE

COLUMNS = 80
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]")


class Screen(NamedTuple):
    """What a command showed, and how it ended. `code` is `None` where it was silent for too long."""

    code: int | None
    lines: list[str]
    columns: int = COLUMNS

    @property
    def too_wide(self) -> list[str]:
        """A command on a line of its own stays in one piece: it is there to be copied."""
        return [line for line in self.lines if len(line) > self.columns and not line.startswith("  unmask ")]


def type_command(line: str, *, cwd: Path, env: dict[str, str], keys: str = "", columns: int = COLUMNS) -> Screen:
    """`keys` are typed ahead: whatever asks gets them."""
    outer, inner = _open_terminal(columns)
    shell = subprocess.Popen(
        ["bash", "-c", line], cwd=cwd, env=env, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    os.write(outer, keys.encode())
    shown, last = b"", time.monotonic()
    silent = False
    while True:
        if select.select([outer], [], [], 1.0)[0]:
            try:
                part = os.read(outer, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown, last = shown + part, time.monotonic()
        elif time.monotonic() - last > PATIENCE:
            silent = True
            os.killpg(shell.pid, signal.SIGKILL)
            break
    os.close(outer)
    code = shell.wait()
    return Screen(None if silent else code, _read_screen(shown), columns)


def show_command(line: str, *, cwd: Path, env: dict[str, str], columns: int = COLUMNS) -> Screen:
    """The same screen of a line that is nothing but `unmask` and its arguments, without a start of shell and Python."""
    name, *arguments = shlex.split(line, comments=True)
    assert name == "unmask", line
    outer, inner = _open_terminal(columns)
    shown: list[bytes] = []
    reader = threading.Thread(target=_read_to_end, args=(outer, shown))
    reader.start()
    try:
        code = forker().run_in_terminal(arguments, os.ttyname(inner), cwd=cwd, env=env)
    finally:
        os.close(inner)  # now nobody has the terminal open, and the reader comes to its end
        reader.join()
        os.close(outer)
    return Screen(code, _read_screen(b"".join(shown)), columns)


def _open_terminal(columns: int) -> tuple[int, int]:
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    return outer, inner


def _read_to_end(outer: int, shown: list[bytes]) -> None:
    with suppress(OSError):  # the other end is closed
        while part := os.read(outer, 65536):
            shown.append(part)


def _read_screen(shown: bytes) -> list[str]:
    text = ESCAPES.sub("", shown.decode("utf-8", errors="replace"))
    lines = [part.rstrip() for line in text.split("\n") for part in line.split("\r")]
    return [line for line in lines if line]
