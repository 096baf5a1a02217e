"""A world that is not as it should be, for the command of one process (`tests.cli.forked`)."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterable
from typing import Any

DAY = 86400.0


def slow_dns(seconds: float) -> None:
    """Names take so long to resolve. Sleeps in the resolver's thread, as a name server that does not answer does."""
    real = socket.getaddrinfo

    def slow(host: Any, *rest: Any, **more: Any) -> Any:
        if host == "localhost":
            time.sleep(seconds)
        return real(host, *rest, **more)

    socket.getaddrinfo = slow


def jumping_clock(seed: float) -> None:
    """The wall clock steps by up to a month, to and fro, each time somebody looks."""
    rng, real = random.Random(seed), time.time
    time.time = lambda: real() + rng.choice((-30, -1, 0, 1, 30)) * DAY * rng.random()


def impatience(seconds: float) -> None:
    """A connection may take so long, instead of half a minute."""
    from unmask.models import http

    http.REACH_TIMEOUT = seconds


WORLDS = {"slow-dns": slow_dns, "jumping-clock": jumping_clock, "impatience": impatience}


def alter(items: Iterable[str]) -> None:
    """Make this process's world a strange one: `slow-dns=3`, `jumping-clock=7`."""
    for item in items:
        name, _, value = item.partition("=")
        WORLDS[name](float(value))
