"""JSON over HTTP to one URL, cheap enough that the client is never what a run waits for.

A call costs little because nothing is done twice: the URL and the headers are prepared once, bodies are encoded and
decoded by msgspec, and the session is a bare connection pool. Everything that can go wrong on the way becomes a
TransientModelError here; what a status code means is decided in `failures`.
"""

from __future__ import annotations

import asyncio
import errno
import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.failures import looks_like_html
from unmask.models.resolve import Resolver
from unmask.models.target import Target

CONNECT_TIMEOUT = 10.0
KEEP_ALIVE = 4.0
"""Below the five seconds after which uvicorn, and so vLLM, closes an idle connection under the next request."""

LARGEST = 64 * 2**20
"""Bytes of an answer; one with 128 choices of the longest kind has a few million."""

_ENCODER = msgspec.json.Encoder()
_T = TypeVar("_T")


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]
    latency: float


class Channel:
    """A connection pool for one Target. The session belongs to the event loop that first posts through it."""

    def __init__(self, target: Target, *, timeout: float) -> None:
        self.target = target
        self.timeout = timeout
        self._url = URL(target.url, encoded=False)
        self._headers = CIMultiDict(target.headers)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._proxy: str | None = None

    async def post(self, payload: object) -> Answer:
        """The whole answer, whatever its status."""
        try:
            body = _ENCODER.encode(payload)
        except UnicodeEncodeError:
            raise RequestRefusedError(
                f"{self.target.name}: the request holds half a character, which JSON cannot carry"
            ) from None
        session = self._session
        if session is None or self._loop is not asyncio.get_running_loop():
            session = await self._open()
        begin = time.perf_counter()
        try:
            async with session.post(
                self._url, data=body, headers=self._headers, allow_redirects=False, proxy=self._proxy
            ) as response:
                content = self.target.hide(await self._body(response))
                return Answer(response.status, content, response.headers, time.perf_counter() - begin)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            trouble = self._explain(error)
        raise trouble  # out here: an exception of aiohttp holds the headers that were sent, and would be its context

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """All of an answer, unless it would fill the memory: by its length, without one, or by unpacking."""
        length = response.content_length
        if length is not None and length <= LARGEST and "Content-Encoding" not in response.headers:
            return await response.read()
        found = bytearray()
        async for part in response.content.iter_any():
            found += part
            if len(found) > LARGEST:
                raise RequestRefusedError(
                    f"{self.target.name} at {self.target.shown}: an answer beyond {LARGEST} bytes"
                )
        return bytes(found)

    async def _open(self) -> aiohttp.ClientSession:
        await self.close()
        self._proxy = _proxy_for(self.target.endpoint)
        self._loop = asyncio.get_running_loop()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=300, keepalive_timeout=KEEP_ALIVE, resolver=Resolver()
            ),
            timeout=aiohttp.ClientTimeout(
                total=self.timeout, connect=3 * CONNECT_TIMEOUT, sock_connect=CONNECT_TIMEOUT
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent",),
        )
        return self._session

    async def close(self) -> None:
        """Afterwards the channel may be used again, also on another loop."""
        session, self._session = self._session, None
        if session is None:
            return
        if self._loop is asyncio.get_running_loop():
            await session.close()
        else:
            # Its loop is gone and has taken the sockets with it: there is nothing left to say goodbye to.
            session.detach()

    def _explain(self, error: Exception) -> ModelError:
        target = self.target
        where = f"{target.name} at {target.shown}"
        match error:
            case aiohttp.ConnectionTimeoutError():
                said = f"no connection within {CONNECT_TIMEOUT:g} s"
                return TransientModelError(f"{where}: {said}", unreachable=True, advice=_reach_advice(target))
            case TimeoutError():
                return TransientModelError(f"timeout: no answer within {self.timeout:g} s from {where}")
            case aiohttp.ClientConnectorError(os_error=cause) if cause.errno in (errno.EMFILE, errno.ENFILE):
                advice = "lower --max-connections, or raise the limit with ulimit -n"
                return TransientModelError(f"{where}: too many open files", throttled=True, advice=advice)
            case aiohttp.ClientConnectorError(os_error=cause):
                said = target.scrub(cause.strerror or str(cause))
                return TransientModelError(
                    f"{where}: cannot connect: {said}", unreachable=True, advice=_reach_advice(target)
                )
            case aiohttp.InvalidURL():
                return FatalModelError(f"{where}: not an address one can connect to", advice=_reach_advice(target))
            case aiohttp.ServerDisconnectedError():
                return TransientModelError(f"{where}: the server closed the connection before it answered")
            case aiohttp.ClientPayloadError():
                return TransientModelError(f"{where}: the answer broke off in the middle")
            case _:
                said = target.scrub(f"{type(error).__name__}: {error}")
                return TransientModelError(f"{where}: the connection failed: {said}")


def _reach_advice(target: Target) -> str:
    return f"is a server running at {target.endpoint}, and is the base URL right?"


def _proxy_for(endpoint: str) -> str | None:
    """The proxy the environment names, looked up once: aiohttp would scan the environment at every request."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127.") or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


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
    return _whole(json.loads(body.decode("utf-8", "replace")))


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_whole(item) for item in value]
        case dict():
            return {_whole(name): _whole(item) for name, item in value.items()}
        case _:
            return value
