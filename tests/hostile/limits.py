"""A guard for work that must not run away, in CPU time of this process so that a busy machine changes nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: float, what: str = "") -> Iterator[None]:
    """Fails the test where the block takes this much CPU time. Meant to be a hundred times what it should take."""

    def stop(*_: object) -> None:
        raise AssertionError(f"still at work after {seconds:g} s of CPU time {what}")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
