"""Types a command into a terminal of 80 columns or more, as a person would, and keeps what the person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import NamedTuple

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
        return [line for line in self.lines if len(line) > self.columns]


def type_command(line: str, *, cwd: Path, env: dict[str, str], keys: str = "", columns: int = COLUMNS) -> Screen:
    """`keys` are typed ahead: whatever asks gets them."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
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
    text = ESCAPES.sub("", shown.decode("utf-8", errors="replace"))
    lines = [part.rstrip() for line in text.split("\n") for part in line.split("\r")]
    return Screen(None if silent else code, [line for line in lines if line], columns)
