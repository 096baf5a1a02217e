"""No command is silent for long: what it is doing is said again on standard error when nothing was said for a while."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

LONGEST = 20.0
"""Seconds without a word, after which one is said. docs/faults.md promises 30."""


class _State:
    """What the command is doing, and when something was last shown."""

    step = ""
    shown = 0.0


def say_step(text: str) -> None:
    """Say what is being done from now on."""
    print(f"{text} …", file=sys.stderr, flush=True)
    set_step(text)
    note_output()


def set_step(text: str) -> None:
    """What is being done from now on, said only if it takes long."""
    _State.step = text


def note_output() -> None:
    """Something was shown just now."""
    _State.shown = time.monotonic()


@contextlib.contextmanager
def break_silence(name: str) -> Iterator[None]:
    """While the command `name` works, says every `LONGEST` seconds of silence that it does, and at what."""
    started, ended = time.monotonic(), threading.Event()
    set_step("")
    note_output()

    def watch() -> None:
        while not ended.wait(max(0.05, _State.shown + LONGEST - time.monotonic())):
            if time.monotonic() - _State.shown >= LONGEST:
                with contextlib.suppress(OSError, ValueError):  # a terminal that has gone is no reason to stop
                    step = _State.step or f"{name}: still computing"
                    print(f"{step} … {time.monotonic() - started:.0f} s so far", file=sys.stderr, flush=True)
                note_output()

    threading.Thread(target=watch, name="silence", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
