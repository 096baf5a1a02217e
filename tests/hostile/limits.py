"""Guards for work that must not run away, in CPU time of this process so that a busy machine changes nothing, and for
what must not wait for something that never comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: float, what: str = "") -> Iterator[None]:
    """Fails the test where the block takes this much CPU time. Meant to be a hundred times what it should take."""
    message = f"still at work after {seconds:g} s of CPU time {what}"
    with _stopped(signal.SIGVTALRM, signal.ITIMER_VIRTUAL, seconds, message):
        yield


@contextmanager
def without_waiting() -> Iterator[None]:
    """Fails the test where the block hangs: it has a minute for what takes milliseconds."""
    with _stopped(signal.SIGALRM, signal.ITIMER_REAL, 60, "still waiting"):
        yield


@contextmanager
def _stopped(number: signal.Signals, clock: int, seconds: float, message: str) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError(message)

    before = signal.signal(number, stop)
    signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        signal.setitimer(clock, 0)
        signal.signal(number, before)
