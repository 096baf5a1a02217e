"""Importing what the end of a command needs while its first answers are on their way."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

WAIT = 0.6
"""Seconds after which a run is taken to be waiting for answers."""


@contextlib.contextmanager
def importing_ahead() -> Iterator[None]:
    """A run that takes longer than a moment has the code that scores and prints it ready when it ends."""
    timer = threading.Timer(WAIT, _import)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _import() -> None:
    from unmask.cli import finish
    from unmask.show import text

    del finish, text
