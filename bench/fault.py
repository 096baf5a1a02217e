"""What a fault schedule is told about a request, and what it can do to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple


class Seen(NamedTuple):
    """One chat request, as a fault schedule sees it."""

    number: int
    """Counts from 0 in the order of arrival."""
    role: str
    """`subject` or `judge`."""
    model: str
    scenario: str
    slot: str
    """The slot asked or read; `yes_means` for the question which side yes means."""
    repeat: int
    """How many requests with the very same body came before."""
    headers: bytes


class Fault(NamedTuple):
    """What happens to a request instead of its answer."""

    status: int = 503
    body: bytes = b'{"error": {"message": "overloaded", "type": "server_error", "code": null}}'
    headers: tuple[str, ...] = ()
    """Whole header lines, such as `Retry-After: 2`."""
    delay: float | None = None
    """Seconds until it happens; the usual latency if not said. `inf` leaves the client waiting."""
    drop: bool = False
    """Close the connection without an answer."""
    answer: bool = False
    """Send the planned answer after all, with status 200; it counts as answered, and its takes are used up."""
    change: Callable[[dict[str, Any]], Any] | None = None
    """What becomes of the planned answer before it is sent."""
    content_type: str = "application/json"
    sent: float = 1.0
    """Share of the body that is sent; the length announced is that of all of it."""
    chunks: tuple[float, ...] = ()
    """Send the body in so many chunks, these seconds before each; `inf` leaves the client waiting for the rest."""
    end: Literal["keep", "close", "reset"] = "keep"
    """What becomes of the connection afterwards. A reset is a real one: RST, not FIN."""


Faults = Callable[[Seen], Fault | None]
