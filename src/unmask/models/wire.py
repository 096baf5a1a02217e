"""One HTTP/1.1 connection: sends a request, understands the answer, says whether it may be used again.

Only what an API needs, and no more work per answer than that: no streaming, no pipelining, no redirects, no cookies. A
general client spends most of its time on those; measured per call, this one costs a third (`bench/overhead`).
"""

from __future__ import annotations

import asyncio
import re
import threading
import zlib
from collections.abc import Callable
from typing import NamedTuple

MAX_HEAD = 128 * 1024
MAX_INTERIM = 20
"""Answers such as "100 Continue" before the one that counts."""
MAX_BODY = 64 * 2**20
"""Bytes of an answer; one with 128 choices of the longest kind has a few million. More is not read to the end."""

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?\r\n")
# What stands around a value is stripped afterwards: a pattern for it would try every end of every blank.
_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:([^\r\n]*+)(?=\r\n)")
_CODING = re.compile(rb"\r\n(?:transfer|content)-encoding[ \t]*:[ \t]*([^\r\n]*)")
_CONNECTION = re.compile(rb"\r\nconnection[ \t]*:[ \t]*([^\r\n]*)")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?")


class Message(NamedTuple):
    """An answer. `head` is as it came, status line included; `headers` takes it apart when somebody asks."""

    status: int
    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """Names in small letters; of a header that comes twice, the first."""
        found: dict[str, str] = {}
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            name, colon, value = line.partition(":")
            if colon:
                found.setdefault(name.strip().lower(), value.strip())
        return found


class NoAnswerError(Exception):
    """The connection ended before a word of the answer had come."""


class BrokenOffError(Exception):
    """The connection ended in the middle of the answer."""


class NotHTTPError(Exception):
    """What came is not an answer in this protocol, or larger than any answer is."""


class TooLargeError(NotHTTPError):
    """More than any answer of a model has."""

    def __init__(self) -> None:
        super().__init__(f"an answer beyond {MAX_BODY} bytes")


class Incoming:
    """An answer while it comes in. `feed` it; it is complete when `whole` is set."""

    __slots__ = ("_bodiless", "_body", "_data", "_head", "_interim", "_more", "_size", "_status", "keep", "whole")

    def __init__(self, *, bodiless: bool = False) -> None:
        self.whole: Message | None = None
        self.keep = False
        """Whether the connection can be used again."""
        self._data: bytes | bytearray = b""
        """What has come and is not understood yet."""
        self._head = b""
        self._status = 0
        self._size = 0
        self._interim = 0
        self._bodiless = bodiless
        """An answer to CONNECT has no body where it succeeds."""
        self._body = bytearray()
        self._more: Callable[[], None] = self._read_head

    @property
    def begun(self) -> bool:
        return bool(self._data or self._head)

    def feed(self, data: bytes) -> None:
        # Nearly every answer comes in one piece and is never copied; a large one grows in place.
        if not self._data:
            self._data = data
        else:
            if not isinstance(self._data, bytearray):
                self._data = bytearray(self._data)
            self._data += data
        self._more()

    def end(self) -> None:
        """The other side has closed. An answer without a length ends here; any other was not finished."""
        if self._more == self._until_close:
            body, self._data = self._data, b""
            self._finish(body)
        if self.whole is None:
            raise BrokenOffError if self.begun else NoAnswerError

    def _read_head(self) -> None:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            if not b"HTTP/1.".startswith(self._data[:7]) or len(self._data) > MAX_HEAD:
                raise NotHTTPError("no answer in HTTP/1.1")
            return
        head, self._data = bytes(self._data[: end + 4]), self._data[end + 4 :]
        found = _STATUS.match(head)
        if found is None or end > MAX_HEAD:
            raise NotHTTPError("no answer in HTTP/1.1")
        self._status = int(found[2])
        if self._status < 200:  # "100 Continue" and its like: the answer is still to come
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise NotHTTPError("promises of an answer, and no answer,")
            if self._data:
                self._read_head()
            return
        self._head = head
        self._choose(head.lower(), old=found[1] == b"0")

    def _choose(self, head: bytes, *, old: bool) -> None:
        """How long the body is, which is the one thing in a head that has to be right."""
        said = _CONNECTION.search(head)
        self.keep = (said is not None and b"keep-alive" in said[1]) if old else said is None or b"close" not in said[1]
        lengths = {value.strip(b" \t") for value in _LENGTH.findall(head)}
        tunnel = self._bodiless and self._status < 300
        if tunnel or self._status in {204, 304}:
            self.keep = self.keep or tunnel  # what a proxy says of its connection is not about the way through
            self._finish(b"")
            return
        if b"\r\ntransfer-encoding" in head:
            self._more = self._chunks
        elif lengths:
            self._size = _length(lengths)
            self._more = self._counted
        else:
            self.keep = False
            self._more = self._until_close
        self._more()

    def _counted(self) -> None:
        if len(self._data) >= self._size:
            body, self._data = self._data[: self._size], self._data[self._size :]
            self._finish(body)

    def _chunks(self) -> None:
        at, data = 0, self._data
        while (end := data.find(b"\r\n", at)) >= 0:
            found = _CHUNK.fullmatch(data, at, end)
            if found is None:
                raise NotHTTPError("a chunk without a length")
            size = int(found[1], 16)
            if size == 0:
                last = data.find(b"\r\n\r\n", end)  # trailers, if there are any, end where a head does
                if last >= 0:
                    self._data = data[last + 4 :]
                    self._finish(self._body)
                    return
                if len(data) - end > MAX_HEAD:
                    raise NotHTTPError("an answer whose trailers have no end")
                break
            stop = end + 2 + size
            if len(data) < stop + 2:
                break
            self._body += data[end + 2 : stop]
            at = stop + 2
        # It is looked through again whenever something comes, so it may not grow as far as a body.
        if end < 0 and len(data) - at > MAX_HEAD:
            raise NotHTTPError("a chunk without a length")
        if at:
            self._data = data[at:]
        if len(self._data) + len(self._body) > MAX_BODY:
            raise TooLargeError

    def _until_close(self) -> None:
        if len(self._data) > MAX_BODY:
            raise TooLargeError

    def _finish(self, body: bytes | bytearray) -> None:
        self.keep = self.keep and not self._data
        content = bytes(body)
        if b"-encoding" in (head := self._head.lower()) and any(
            coding.strip() not in {b"identity", b"chunked"} for coding in _CODING.findall(head)
        ):
            content = _unpacked(content, head)
        self.whole = Message(self._status, self._head, content)


def _length(written: set[bytes]) -> int:
    """Two different lengths are the mark of somebody who wants two readers to see two answers."""
    one = written.pop()
    if written or not one.isdigit():
        raise NotHTTPError(f"an answer of {one[:20].decode('latin-1')!r} bytes")
    if len(one) > 15 or int(one) > MAX_BODY:
        raise TooLargeError
    return int(one)


def _unpacked(body: bytes, head: bytes) -> bytes:
    """Some gateways compress what nobody asked them to."""
    if not all(re.search(rb"\b(?:gzip|deflate|identity|chunked)\b", coding) for coding in _CODING.findall(head)):
        raise NotHTTPError("an answer in a coding nobody asked for")
    try:
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        found = unpack.decompress(body, MAX_BODY)
    except zlib.error:
        raise BrokenOffError from None
    if unpack.unconsumed_tail:
        raise TooLargeError
    return found


class _Room(threading.local):
    """Where what arrives is put for a moment. One for all connections of a thread: it is copied out before anything
    else can run there. Event loops of other threads run meanwhile, and would write over it."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(256 * 1024))


_ROOM = _Room()


class Wire(asyncio.BufferedProtocol):
    """A connection that carries one request at a time."""

    __slots__ = ("_incoming", "_lost", "_released", "_waiter", "idle_since", "transport")

    def __init__(self, released: Callable[[Wire], None], lost: Callable[[Wire], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.idle_since = 0.0
        self._released = released
        """Told when an answer is complete and the connection is free for the next request."""
        self._lost = lost
        """Told when the connection is gone, whoever closed it."""
        self._waiter: asyncio.Future[Message] | None = None
        self._incoming = Incoming()

    @property
    def usable(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def send(self, data: bytes, waiter: asyncio.Future[Message], *, bodiless: bool = False) -> None:
        """Write a whole request; its answer, or what came instead, ends up in `waiter`."""
        if self.transport is None:
            waiter.set_exception(NoAnswerError())
            return
        self._waiter = waiter
        self._incoming = Incoming(bodiless=bodiless)
        self.transport.write(data)

    def abort(self) -> None:
        self._waiter = None
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> memoryview:
        return _ROOM.view

    def buffer_updated(self, nbytes: int) -> None:
        waiter, incoming = self._waiter, self._incoming
        if waiter is None or waiter.done():  # nobody asked: a server that says goodbye, or talks out of turn
            self.abort()
            return
        try:
            incoming.feed(bytes(_ROOM.view[:nbytes]))
        except (NotHTTPError, BrokenOffError) as error:
            waiter.set_exception(error)
            self.abort()
            return
        if incoming.whole is not None:
            self._complete(waiter, incoming)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._lost(self)
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            return
        try:
            if exc is not None:
                raise BrokenOffError if self._incoming.begun else NoAnswerError
            self._incoming.end()
        except (NoAnswerError, NotHTTPError, BrokenOffError) as error:
            waiter.set_exception(error)
            return
        assert self._incoming.whole is not None
        waiter.set_result(self._incoming.whole)

    def _complete(self, waiter: asyncio.Future[Message], incoming: Incoming) -> None:
        self._waiter = None
        waiter.set_result(incoming.whole)  # type: ignore[arg-type]
        transport = self.transport
        if transport is None:
            return
        if incoming.keep and not transport.is_closing() and not transport.get_write_buffer_size():
            self._released(self)
        else:
            transport.close()
