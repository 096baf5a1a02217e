"""JSON over HTTP to one URL. aiohttp does the work; here is what unmask promises about it.

Address, headers, proxy and time limit are prepared once, bodies are encoded and decoded by msgspec. Redirects are not
followed. Everything that can go wrong on the way becomes a ModelError here; what a status code means is decided in
`failures`. aiohttp takes longer to import than most commands take, so the first request does it.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.failures import looks_like_html
from unmask.models.keys import Target, basic_credentials
from unmask.models.room import UNLIMITED
from unmask.records import Request
from unmask.text import replace_surrogates_in_tree

if TYPE_CHECKING:
    import aiohttp

_ENCODER = msgspec.json.Encoder()
_T = TypeVar("_T")

CONNECT_TIMEOUT = 10.0
"""Seconds for one connection to one address."""
REACH_TIMEOUT = 30.0
"""Seconds until a connection can be used: name, all addresses of it, tunnel of a proxy, TLS."""
KEEP_ALIVE = 4.0
"""Below the five seconds after which uvicorn, and so vLLM, closes an idle connection under the next request."""

FIXED_BYTES, BYTES_PER_TOKEN = 1 << 20, 64
"""What an answer may have at most."""
LONGEST_LIST = 1 << 24
"""Bytes of what an endpoint says about itself."""


def bound_bytes(request: Request) -> int:
    """The bytes of an answer at most: of all its choices at their full length, and of what is around them."""
    return FIXED_BYTES + BYTES_PER_TOKEN * request.n * (request.sampling.max_tokens or UNLIMITED)


class HttpAnswer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]
    """Names may be looked up in any case; of a header that comes twice, the first counts."""
    latency: float

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class TooLargeError(Exception):
    """The answer has more bytes than are read. `paid` says that it was one, and no error page."""

    def __init__(self, most: int, *, paid: bool) -> None:
        super().__init__(f"an answer beyond {most} bytes")
        self.paid = paid


class _NameLoop:
    """Where aiohttp looks up names: in a thread that nobody waits for. Those of an event loop are waited for when it
    ends, and a name server that does not answer would keep a command that has long been interrupted."""

    async def getaddrinfo(self, host: str, port: int, **how: Any) -> Any:
        from unmask.models.daemon import run_in_daemon

        return await run_in_daemon(partial(socket.getaddrinfo, host, port, **how))

    async def getnameinfo(self, address: Any, flags: int = 0) -> Any:
        return socket.getnameinfo(address, flags)  # of an address in numbers


class Channel:
    """The way to one Target, on the event loop that uses it."""

    def __init__(self, target: Target, *, timeout: float) -> None:
        self.target = target
        self.timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._settings: dict[str, Any] = {}
        """What every request is made with, as aiohttp names it."""

    async def post(self, payload: object, *, most: int, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """The whole answer of at most so many bytes, whatever its status."""
        try:
            body = _ENCODER.encode(payload)
        except UnicodeEncodeError:
            raise RequestRefusedError(
                f"{self.target.name}: the request holds half a character, which JSON cannot carry"
            ) from None
        return await self.send("POST", body, most=most, headers=headers)

    async def send(
        self, method: str, body: Any, *, most: int = LONGEST_LIST, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        session = self._session
        if session is None or self._loop is not asyncio.get_running_loop():
            session = await self._open()
        from aiohttp import ClientError

        settings = self._settings
        if headers:  # ours win
            settings = settings | {"headers": {**headers, **self.target.headers}}
        begin = time.perf_counter()
        try:
            response = await session.request(method, data=body, **settings)
            try:
                content = await _read_body(response, most)
            finally:
                response.release()
            return HttpAnswer(response.status, content, response.headers, time.perf_counter() - begin)
        except (OSError, ValueError, ClientError, TooLargeError) as error:
            trouble = self._explain(error, waited=time.perf_counter() - begin)
        raise trouble  # out here: the exception behind it would be its context, and knows what was sent

    async def close(self) -> None:
        """Afterwards the channel may be used again, also on another loop."""
        session, loop, self._session = self._session, self._loop, None
        # Connections of another loop that still runs are left to it.
        if session is not None and loop is not None and (loop.is_closed() or loop is asyncio.get_running_loop()):
            await session.close()

    async def _open(self) -> aiohttp.ClientSession:
        import aiohttp
        from yarl import URL

        await self.close()
        target, url = self.target, urlsplit(self.target.url)
        try:
            address = URL(target.url)
        except ValueError:
            where = f"{target.name} at {target.shown}: not an address one can connect to"
            raise FatalModelError(where, advice=_reach_advice(target)) from None
        self._settings = {
            "url": address,
            "headers": target.headers,
            "allow_redirects": False,
            "timeout": aiohttp.ClientTimeout(total=self.timeout, connect=REACH_TIMEOUT, sock_connect=CONNECT_TIMEOUT),
        }
        if (proxy := proxy_for(url)) is not None:
            self._settings |= _proxy_settings(proxy, secure=url.scheme == "https", headers=target.headers)
        secure = url.scheme == "https" or (proxy or "").startswith("https:")
        connector = aiohttp.TCPConnector(
            resolver=aiohttp.ThreadedResolver(_NameLoop()),  # type: ignore[arg-type]
            limit=0,
            keepalive_timeout=KEEP_ALIVE,
            ssl=_make_tls() if secure else True,
        )
        self._loop = asyncio.get_running_loop()
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _explain(self, error: Exception, *, waited: float) -> ModelError:
        import aiohttp

        target = self.target
        where = f"{target.name} at {target.shown}"
        starting, advice = False, _reach_advice(target)
        match error:
            case TooLargeError():
                return RequestRefusedError(f"{where}: {error}", paid=error.paid)
            case aiohttp.ClientHttpProxyError(status=status):
                reason = f"cannot connect: the proxy refused the way through with HTTP {status}"
            case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
                reason = f"cannot connect: {target.scrub(str(cause))}"
            case aiohttp.ClientConnectorError(os_error=OSError(errno=errno.EMFILE | errno.ENFILE)):
                advice = "lower --max-connections, or raise the limit with ulimit -n"
                return TransientModelError(f"{where}: too many open files", throttled=True, advice=advice)
            case aiohttp.ClientConnectorError(os_error=cause):
                # As the system says it: asyncio writes its own words over those of a refused connection.
                starting = isinstance(cause, ConnectionRefusedError)
                refused = isinstance(cause, ConnectionError) and cause.errno
                text = os.strerror(refused) if refused else cause.strerror or str(cause)
                reason = f"cannot connect: {target.scrub(text)}"
                if isinstance(error, aiohttp.ClientConnectorDNSError):
                    advice = f"is this machine online, and is {target.endpoint} right?"
            case aiohttp.ConnectionTimeoutError():
                reason = f"no connection within {waited:.2g} s"
            case TimeoutError():
                return TransientModelError(f"timeout: no answer within {self.timeout:g} s from {where}")
            case aiohttp.ServerDisconnectedError(message=str()):
                return TransientModelError(f"{where}: the server closed the connection before it answered")
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
                return TransientModelError(f"{where}: the answer broke off, or cannot be unpacked", paid=True)
            case aiohttp.ClientResponseError():
                return TransientModelError(f"{where}: no answer in HTTP/1.1 came back", advice=advice)
            case _:
                detail = target.scrub(f"{type(error).__name__}: {error}")
                return TransientModelError(f"{where}: the connection failed: {detail}")
        return TransientModelError(f"{where}: {reason}", unreachable=True, starting=starting, advice=advice)


def _make_tls() -> Any:
    """Made when it is needed: aiohttp's own is made at import, and knows nothing of an `SSL_CERT_FILE` set later."""
    import ssl

    return ssl.create_default_context()


def _reach_advice(target: Target) -> str:
    return f"is a server running at {target.endpoint}, and is the base URL right?"


async def _read_body(response: aiohttp.ClientResponse, most: int) -> bytes:
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


def proxy_for(url: SplitResult) -> str | None:
    """The proxy that the environment names for this server. aiohttp could look as well, but then it would read
    `.netrc` too, and send what is in it."""
    from urllib.request import getproxies, proxy_bypass

    host = url.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return None
    named = getproxies()
    proxy = named.get(url.scheme) or named.get("all")
    return None if proxy is None or proxy_bypass(host) else proxy


def _proxy_settings(proxy: str, *, secure: bool, headers: Mapping[str, str]) -> dict[str, Any]:
    """How to go through a proxy: its address without credentials, and those as a header. A proxy that gives a tunnel
    gets the header with the request for the tunnel, any other one with the request itself."""
    from yarl import URL

    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FatalModelError(
            "the proxy that the environment names is no http or https URL",
            advice="Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or name the server in NO_PROXY",
        )
    address = {"proxy": URL.build(scheme=parts.scheme, host=parts.hostname, port=parts.port)}
    basic = basic_credentials(parts)
    own = {"Proxy-Authorization": f"Basic {basic}"} if basic else {}
    return address | ({"proxy_headers": own} if secure else {"headers": {**headers, **own}})


def decode_answer(answer: HttpAnswer, shape: msgspec.json.Decoder[_T], target: Target) -> _T:
    """The body of a 200 as `shape`; what is not that is a broken answer and worth another try."""
    try:
        return shape.decode(answer.body)
    except (ValueError, RecursionError):
        pass
    try:
        # Servers that cut a token in the middle of an emoji send half of it; it becomes U+FFFD instead of a failure.
        content = replace_surrogates_in_tree(json.loads(answer.body.decode("utf-8", "replace")))
        return msgspec.convert(content, shape.type)
    except (ValueError, RecursionError):
        web_page = looks_like_html(answer.body)
        what = "an HTML page" if web_page else "something that is no JSON answer"
    excerpt = target.scrub(answer.body[:2000].decode("utf-8", "replace"))
    raise TransientModelError(
        f"{target.name} at {target.shown}: {what} came back" + (f": {excerpt}" if excerpt else ": nothing"),
        web_page=web_page,
        paid=not web_page,
        advice=f"If this goes on, check that {target.shown} is the API's address; most base URLs end in /v1",
    )
