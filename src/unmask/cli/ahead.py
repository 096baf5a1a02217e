"""Importing what readings and the end of a command need while the first answers are on their way."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

LOOK = 0.05
"""Seconds between two looks at what the process does."""

IDLE = 0.2
"""The share of them it works at most while it is taken to be waiting for answers."""


@contextlib.contextmanager
def importing_ahead() -> Iterator[None]:
    """A run that comes to wait has the code that reads answers, scores them and prints that ready when it needs it."""
    over = threading.Event()
    threading.Thread(target=_when_idle, args=(over,), name="unmask-ahead", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _when_idle(over: threading.Event) -> None:
    """While requests are being made up, importing would only keep them back: both take the same core."""
    before = time.process_time()
    while not over.wait(LOOK):
        now = time.process_time()
        if now - before < IDLE * LOOK:
            _import()
            return
        before = now


def _import() -> None:
    from unmask.judges import parse  # first: the first answers need it

    del parse
    from rich import console, table, text

    from unmask.cli import finish
    from unmask.render.terminal import score as shown

    del console, table, text, finish, shown
