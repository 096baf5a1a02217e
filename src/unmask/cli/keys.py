"""Single keys from a terminal. What is typed ahead is not lost, Ctrl-C works, and the terminal is left as it was."""

from __future__ import annotations

import os
import sys
from typing import Any


class Keys:
    """Reads keys and, in between, whole lines. Where a terminal has no such mode, click reads the keys."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        self._terminal = sys.stdin.fileno()

    def __enter__(self) -> Keys:
        try:
            import termios
        except ImportError:  # Windows
            return self
        self._before = termios.tcgetattr(self._terminal)
        self._enter_key_mode()
        return self

    def __exit__(self, *_: object) -> None:
        self._restore_mode()

    def read_key(self) -> str:
        """One key; the arrows come as their whole sequence, the end of input as `q`."""
        if self._before is None:
            import click

            return click.getchar()
        data = os.read(self._terminal, 1)
        if data == b"\x1b":
            data += self._read_pending(2)
        elif data >= b"\x80":
            data += self._read_pending(3)
        return data.decode("utf-8", "replace") or "q"

    def read_line(self, prompt: str) -> str:
        self._restore_mode()
        try:
            return input(prompt)
        except EOFError:
            return ""
        finally:
            self._enter_key_mode()

    def _read_pending(self, most: int) -> bytes:
        import select

        return os.read(self._terminal, most) if select.select([self._terminal], [], [], 0.05)[0] else b""

    def _enter_key_mode(self) -> None:
        if self._before is not None:
            import termios
            import tty

            tty.setcbreak(self._terminal, termios.TCSADRAIN)

    def _restore_mode(self) -> None:
        if self._before is not None:
            import termios

            termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)
