"""JSON over HTTP to one URL, cheap enough that the client is never what a run waits for.

A call costs little because nothing is done twice: address and headers are prepared once, bodies are encoded and decoded
by msgspec, and the connection (`wire`) does nothing an API does not need. Everything that can go wrong on the way
becomes a TransientModelError here; what a status code means is decided in `failures`.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.failures import looks_like_html
from unmask.models.pool import CannotConnectError, Pool, head_of, join, leave, place_of
from unmask.models.target import Target
from unmask.models.wire import BrokenOffError, Message, NoAnswerError, NotHTTPError, TooLargeError
from unmask.text import whole_tree

_ENCODER = msgspec.json.Encoder()
_T = TypeVar("_T")


class Answer(NamedTuple):
    status: int
    body: bytes
    message: Message
    latency: float

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in small letters."""
        return self.message.headers

    @property
    def has_escapes(self) -> bool:
        """Whether characters are written by their number, so that a secret may only show in what is decoded."""
        return b"\\u" in self.body


class Channel:
    """The way to one Target, on the event loop that first uses it."""

    def __init__(self, target: Target, *, timeout: float) -> None:
        self.target = target
        self.timeout = timeout
        self._pool: Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._head = b""

    async def post(self, payload: object) -> Answer:
        """The whole answer, whatever its status."""
        try:
            body = _ENCODER.encode(payload)
        except UnicodeEncodeError:
            raise RequestRefusedError(
                f"{self.target.name}: the request holds half a character, which JSON cannot carry"
            ) from None
        return await self._send("POST", b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def get(self) -> Answer:
        return await self._send("GET", b"\r\n")

    async def _send(self, method: str, rest: bytes) -> Answer:
        pool = self._pool
        if pool is None or self._loop is not asyncio.get_running_loop():
            pool = await self._open(method)
        begin = time.perf_counter()
        try:
            message = await pool.exchange(self._head + rest, within=self.timeout)
        except (CannotConnectError, NoAnswerError, BrokenOffError, NotHTTPError, OSError, ValueError) as error:
            trouble = self._explain(error)
        else:
            return Answer(message.status, self.target.hide(message.body), message, time.perf_counter() - begin)
        raise trouble  # out here: the exception behind it would be its context, and knows what was sent

    async def _open(self, method: str) -> Pool:
        await self.close()
        place = place_of(self.target.url)
        try:
            self._head = head_of(method, self.target.url, self.target.headers, place=place)
        except ValueError as error:
            raise FatalModelError(f"{self.target.name}: {error}", advice="take the line break out of the key") from None
        self._loop = asyncio.get_running_loop()
        self._pool = join(place)
        return self._pool

    async def close(self) -> None:
        """Afterwards the channel may be used again, also on another loop."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await leave(pool)

    def _explain(self, error: Exception) -> ModelError:
        target = self.target
        where = f"{target.name} at {target.shown}"
        match error:
            case CannotConnectError(cause=cause):
                return _unconnected(cause, target, where)
            case TimeoutError():
                return TransientModelError(f"timeout: no answer within {self.timeout:g} s from {where}")
            case NoAnswerError():
                return TransientModelError(f"{where}: the server closed the connection before it answered")
            case BrokenOffError():
                return TransientModelError(f"{where}: the answer broke off in the middle")
            case TooLargeError():
                return RequestRefusedError(f"{where}: {error}")
            case NotHTTPError():
                return TransientModelError(f"{where}: {error} came back", advice=_reach_advice(target))
            case _:
                said = target.scrub(f"{type(error).__name__}: {error}")
                return TransientModelError(f"{where}: the connection failed: {said}")


def _unconnected(cause: Exception, target: Target, where: str) -> ModelError:
    match cause:
        case TimeoutError():
            said = str(cause)
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            advice = "lower --max-connections, or raise the limit with ulimit -n"
            return TransientModelError(f"{where}: too many open files", throttled=True, advice=advice)
        case UnicodeError():
            return FatalModelError(f"{where}: not an address one can connect to", advice=_reach_advice(target))
        case NoAnswerError():
            said = "cannot connect: the proxy closed the connection"
        case _:
            said = f"cannot connect: {target.scrub(_in_words(cause))}"
    return TransientModelError(f"{where}: {said}", unreachable=True, advice=_reach_advice(target))


def _in_words(cause: Exception) -> str:
    """As the system says it: asyncio writes its own words over those of a refused connection."""
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno)
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


def _reach_advice(target: Target) -> str:
    return f"is a server running at {target.endpoint}, and is the base URL right?"


def decode(answer: Answer, shape: msgspec.json.Decoder[_T], target: Target) -> _T:
    """The body of a 200 as `shape`; what is not that is a broken answer and worth another try."""
    try:
        return shape.decode(answer.body)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.convert(_lenient(answer.body), shape.type)
    except (ValueError, RecursionError):
        what = "an HTML page" if looks_like_html(answer.body) else "something that is no JSON answer"
    said = target.scrub(answer.body[:2000].decode("utf-8", "replace"))
    raise TransientModelError(
        f"{target.name} at {target.shown}: {what} came back" + (f": {said}" if said else ": nothing"),
        advice=f"if this goes on, check that {target.shown} is the API's address; most base URLs end in /v1",
    )


def _lenient(body: bytes) -> Any:
    """Servers that cut a token in the middle of an emoji send half of it; it becomes U+FFFD instead of a failure."""
    return whole_tree(json.loads(body.decode("utf-8", "replace")))
