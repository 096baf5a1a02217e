"""JSON over HTTP to one URL. aiohttp does the work (`session`); here stands what unmask promises about it.

Address, headers, proxy and time limit are prepared once, bodies are encoded and decoded by msgspec. Redirects are not
followed. Everything that can go wrong on the way becomes a ModelError here; what a status code means is decided in
`failures`.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.failures import looks_like_html
from unmask.models.keys import Target, basic_credentials, system_proxies
from unmask.models.room import UNLIMITED
from unmask.records import Request
from unmask.text import replace_surrogates_in_tree

if TYPE_CHECKING:
    from unmask.models.session import SharedSession

_ENCODER = msgspec.json.Encoder()
_T = TypeVar("_T")


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


class Channel:
    """The way to one Target, on the event loop that uses it."""

    def __init__(self, target: Target, *, timeout: float) -> None:
        self.target = target
        self.timeout = timeout
        self._shared: SharedSession | None = None
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
        return await self._send("POST", body, most=most, headers=headers)

    async def get(self) -> HttpAnswer:
        return await self._send("GET", None, most=LONGEST_LIST)

    async def send(self, method: str, body: bytes | None, *, most: int) -> HttpAnswer:
        """A call that is no chat; its answer may have `most` bytes."""
        return await self._send(method, body, most=most)

    async def _send(
        self, method: str, body: bytes | None, *, most: int, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        shared = self._shared
        if shared is None or shared.loop is not asyncio.get_running_loop():
            shared = await self._open()
        settings = self._settings
        if headers:  # ours win
            settings = settings | {"headers": {**headers, **self.target.headers}}
        begin = time.perf_counter()
        try:
            status, content, lines = await shared.send_and_read(method, body, settings, most=most)
            return HttpAnswer(status, content, lines, time.perf_counter() - begin)
        except _expected_errors() as error:
            trouble = self._explain(error, waited=time.perf_counter() - begin)
        raise trouble  # out here: the exception behind it would be its context, and knows what was sent

    async def _open(self) -> SharedSession:
        from aiohttp import ClientTimeout
        from yarl import URL

        from unmask.models.session import CONNECT_TIMEOUT, REACH_TIMEOUT, join_session

        await self.close()
        url = urlsplit(self.target.url)
        proxy = proxy_for(url)
        try:
            address = URL(self.target.url)
        except ValueError:
            where = f"{self.target.name} at {self.target.shown}: not an address one can connect to"
            raise FatalModelError(where, advice=_reach_advice(self.target)) from None
        settings: dict[str, Any] = {
            "url": address,
            "headers": self.target.headers,
            "allow_redirects": False,
            "timeout": ClientTimeout(total=self.timeout, connect=REACH_TIMEOUT, sock_connect=CONNECT_TIMEOUT),
        }
        if proxy is not None:
            settings |= _proxy_settings(proxy, secure=url.scheme == "https", headers=self.target.headers)
        shared = join_session()
        if url.scheme == "https" or (proxy or "").startswith("https:"):
            settings["ssl"] = shared.tls()
        self._shared, self._settings = shared, settings
        return shared

    async def close(self) -> None:
        """Afterwards the channel may be used again, also on another loop."""
        shared, self._shared = self._shared, None
        if shared is not None:
            from unmask.models.session import leave_session

            await leave_session(shared)

    def _explain(self, error: Exception, *, waited: float) -> ModelError:
        import aiohttp

        from unmask.models.session import TooLargeError

        target = self.target
        where = f"{target.name} at {target.shown}"
        match error:
            case TooLargeError():
                return RequestRefusedError(f"{where}: {error}", paid=error.paid)
            case aiohttp.ConnectionTimeoutError() | aiohttp.ClientConnectorError() | aiohttp.ClientHttpProxyError():
                if self._shared is not None:
                    self._shared.connector.clear_dns_cache()  # the name may have moved
                return self._explain_unconnected(error, waited=waited)
            case TimeoutError():
                return TransientModelError(f"timeout: no answer within {self.timeout:g} s from {where}")
            case aiohttp.ServerDisconnectedError(message=str()):
                return TransientModelError(f"{where}: the server closed the connection before it answered")
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
                return TransientModelError(f"{where}: the answer broke off, or cannot be unpacked", paid=True)
            case aiohttp.ClientResponseError():
                return TransientModelError(f"{where}: no answer in HTTP/1.1 came back", advice=_reach_advice(target))
            case _:
                detail = target.scrub(f"{type(error).__name__}: {error}")
                return TransientModelError(f"{where}: the connection failed: {detail}")

    def _explain_unconnected(self, error: Exception, *, waited: float) -> ModelError:
        from aiohttp import (
            ClientConnectorCertificateError,
            ClientConnectorDNSError,
            ClientConnectorError,
            ClientHttpProxyError,
        )

        target = self.target
        where = f"{target.name} at {target.shown}"
        starting = False
        resolved = not isinstance(error, ClientConnectorDNSError)
        match error:
            case ClientHttpProxyError(status=status):
                reason = f"cannot connect: the proxy refused the way through with HTTP {status}"
            case ClientConnectorCertificateError(certificate_error=cause):
                reason = f"cannot connect: {target.scrub(str(cause))}"
            case ClientConnectorError(os_error=OSError(errno=errno.EMFILE | errno.ENFILE)):
                advice = "lower --max-connections, or raise the limit with ulimit -n"
                return TransientModelError(f"{where}: too many open files", throttled=True, advice=advice)
            case ClientConnectorError(os_error=cause):
                # As the system says it: asyncio writes its own words over those of a refused connection.
                starting = isinstance(cause, ConnectionRefusedError)
                refused = isinstance(cause, ConnectionError) and cause.errno
                text = os.strerror(refused) if refused else cause.strerror or str(cause)
                reason = f"cannot connect: {target.scrub(text)}"
            case _:
                reason = f"no connection within {waited:.2g} s"
        advice = _reach_advice(target) if resolved else f"is this machine online, and is {target.endpoint} right?"
        return TransientModelError(f"{where}: {reason}", unreachable=True, starting=starting, advice=advice)


def _expected_errors() -> tuple[type[Exception], ...]:
    """Asked for only where something went wrong."""
    from aiohttp import ClientError

    from unmask.models.session import TooLargeError

    return (OSError, ValueError, ClientError, TooLargeError)


def _reach_advice(target: Target) -> str:
    return f"is a server running at {target.endpoint}, and is the base URL right?"


def proxy_for(url: SplitResult) -> str | None:
    """The proxy that the environment names for this server. aiohttp could look as well, but then it would read
    `.netrc` too, and send what stands there."""
    host = url.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return None
    named = system_proxies()
    proxy = named.get(url.scheme) or named.get("all")
    if proxy is None:
        return None
    from urllib.request import proxy_bypass

    return None if proxy_bypass(host) else proxy


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
    settings: dict[str, Any] = {"proxy": URL.build(scheme=parts.scheme, host=parts.hostname, port=parts.port)}
    basic = basic_credentials(parts)
    if basic is None:
        return settings
    lines = {"Proxy-Authorization": f"Basic {basic}"}
    return settings | ({"proxy_headers": lines} if secure else {"headers": {**headers, **lines}})


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
