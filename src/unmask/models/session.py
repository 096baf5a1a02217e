"""The aiohttp session of an event loop: one for every model of a run, so that subject and judge share connections.

This module imports aiohttp, so `http` imports it with the first request. The resolver is ours: the usual one works in
the event loop's own threads, and those are waited for when the loop and the process end. A name server that does not
answer would keep a command that has long been interrupted.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

if TYPE_CHECKING:
    import ssl

CONNECT_TIMEOUT = 10.0
"""Seconds for one connection to one address."""
REACH_TIMEOUT = 30.0
"""Seconds until a connection can be used: name, all addresses of it, tunnel of a proxy, TLS."""
KEEP_ALIVE = 4.0
"""Below the five seconds after which uvicorn, and so vLLM, closes an idle connection under the next request."""
REMEMBER_NAMES = 300
"""Seconds for which the addresses of a name are used again. A connection that cannot be made ends that."""

MAX_LINE = 8190
"""Bytes of one header line."""
MAX_LINES = 128
"""Header lines of an answer."""


class TooLargeError(Exception):
    """The answer has more bytes than are read. `paid` says that it was one, and no error page."""

    def __init__(self, most: int, *, paid: bool) -> None:
        super().__init__(f"an answer beyond {most} bytes")
        self.paid = paid


class DaemonResolver(AbstractResolver):
    """Asks the operating system for the addresses of a name, in a thread that nobody waits for."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        from unmask.models.daemon import run_in_daemon  # an address in numbers needs no thread

        ask = partial(socket.getaddrinfo, host, port, family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return [
            ResolveResult(
                hostname=host,
                host=_address_of(kind, address),
                port=port,
                family=kind,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, _, _, address in await run_in_daemon(ask)
            if address
        ]

    async def close(self) -> None:
        """There is nothing to close."""


def _address_of(kind: int, address: tuple[object, ...]) -> str:
    if kind == socket.AF_INET6 and len(address) == 4 and address[3]:  # link-local: the address needs its interface
        return f"{address[0]}%{address[3]}"
    return str(address[0])


class SharedSession:
    """The session of one event loop. Each user counts itself in and out; the last one out closes the connections."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.users = 0
        self.connector = aiohttp.TCPConnector(
            resolver=DaemonResolver(),
            limit=0,
            keepalive_timeout=KEEP_ALIVE,
            ttl_dns_cache=REMEMBER_NAMES,
        )
        self.client = aiohttp.ClientSession(
            connector=self.connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
            max_headers=MAX_LINES,
        )
        self._tls: ssl.SSLContext | None = None

    async def send_and_read(
        self, method: str, body: bytes | None, settings: dict[str, Any], *, most: int
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send and read: status, body and headers."""
        response = await self.client.request(method, data=body, **settings)
        try:
            content = await read_body(response, most)
        except BaseException:
            response.release()  # a body that was read to its end has done that
            raise
        return response.status, content, response.headers

    def tls(self) -> ssl.SSLContext:
        """One for all requests: connections with different ones are not shared. Made when first needed, because
        aiohttp's own is made at import and knows nothing of an `SSL_CERT_FILE` that was set later."""
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls


_SESSIONS: WeakValueDictionary[asyncio.AbstractEventLoop, SharedSession] = WeakValueDictionary()
"""Its users hold a session. It holds its loop, so as a value of a dictionary with weak keys it would never go."""


def join_session() -> SharedSession:
    """The session of the running loop, one user more."""
    loop = asyncio.get_running_loop()
    shared = _SESSIONS.get(loop)
    if shared is None:
        shared = _SESSIONS[loop] = SharedSession()
    shared.users += 1
    return shared


async def leave_session(shared: SharedSession) -> None:
    """One user less. Connections of another loop that still runs are left to it; one that has ended needs only to be
    told that nobody will close them."""
    shared.users -= 1
    if shared.users > 0 or (shared.loop is not asyncio.get_running_loop() and not shared.loop.is_closed()):
        return
    _SESSIONS.pop(shared.loop, None)
    await shared.client.close()


async def read_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The whole body, unpacked piece by piece: some gateways pack for everybody. Raises TooLargeError as soon as more
    than `most` bytes are promised or came."""
    paid = response.status < 300
    if (response.content_length or 0) > most:
        raise TooLargeError(most, paid=paid)
    body = await response.content.readany()
    if not response.content.at_eof():
        growing = bytearray(body)
        while len(growing) <= most and (piece := await response.content.readany()):
            growing += piece
        body = bytes(growing)
    if len(body) > most:
        raise TooLargeError(most, paid=paid)
    return body
