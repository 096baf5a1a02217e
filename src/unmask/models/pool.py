"""Connections to one server, kept open between requests and shared by every model behind it on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit
from weakref import WeakKeyDictionary

from unmask.models.resolver import addresses
from unmask.models.target import basic_of, proxies
from unmask.models.wire import Message, NoAnswerError, Wire

if TYPE_CHECKING:
    import ssl

CONNECT_TIMEOUT = 10.0
KEEP_ALIVE = 4.0
"""Below the five seconds after which uvicorn, and so vLLM, closes an idle connection under the next request."""

IMPATIENCE = 2.0
"""Seconds after which the next address of a name is tried."""

TICK = 1.0
"""Seconds between two looks at who has waited too long."""

REMEMBER = 300.0
"""Seconds for which the address that answered is used again without asking for the name."""

PORTS = {"http": 80, "https": 443}


class CannotConnectError(Exception):
    """Nothing was sent. `cause` is what the system or the proxy said."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Place(NamedTuple):
    """Where a connection goes: the server, and the proxy on the way if there is one."""

    scheme: str
    host: str
    port: int
    proxy: str | None = None

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def place_of(url: str) -> Place:
    parts = urlsplit(url)
    host = parts.hostname or ""
    with contextlib.suppress(UnicodeError):
        host = host.encode("idna").decode() if not host.isascii() else host
    return Place(parts.scheme, host, parts.port or PORTS[parts.scheme], proxy_for(parts))


def proxy_for(parts: SplitResult) -> str | None:
    """The proxy the environment names for this server, looked up once and not at every request."""
    host = parts.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return None
    found = proxies()
    proxy = found.get(parts.scheme) or found.get("all")
    if proxy is None:
        return None
    from urllib.request import proxy_bypass

    return None if proxy_bypass(host) else proxy


def head_of(method: str, url: str, headers: Mapping[str, str], *, place: Place) -> bytes:
    """The first lines of every request to `url`, all but its length. A plain request to a proxy names the server."""
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._") + (f"?{_query(parts.query)}" if parts.query else "")
    lines = dict(headers)
    if place.proxy is not None and place.scheme == "http":
        path = f"http://{place.authority}{path}"
        lines |= _authorisation(place.proxy)
    text = "".join(f"{name}: {value}\r\n" for name, value in {"Host": place.authority, **lines}.items())
    broken = next((name for name, value in lines.items() if "\r" in value or "\n" in value), None)
    if broken is not None:
        raise ValueError(f"the header {broken} holds a line break")
    return f"{method} {path} HTTP/1.1\r\n{text}".encode()


def _query(query: str) -> str:
    return quote(query, safe="/%:@!$&'()*+,;=~-._?")


def _authorisation(proxy: str) -> dict[str, str]:
    basic = basic_of(urlsplit(proxy))
    return {} if basic is None else {"Proxy-Authorization": f"Basic {basic}"}


class Pool:
    """Open connections to one place. Whoever uses it counts itself in and out; the last one out closes them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.users = 0
        self._idle: list[Wire] = []
        self._all: set[Wire] = set()
        self._address: tuple[str, float] | None = None
        self._tls: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        self._deadlines: dict[asyncio.Future[Message], float] = {}
        self._watching: asyncio.TimerHandle | None = None

    async def exchange(self, data: bytes, *, within: float) -> Message:
        """Send a whole request and wait for the whole answer. Raises TimeoutError, CannotConnectError, or what `wire`
        names. The time limit covers everything, connecting included."""
        begun = time.monotonic()
        wire = self._reuse(begun) or await self._connect(min(within, 3 * CONNECT_TIMEOUT))
        return await self._ask(wire, data, within=within - (time.monotonic() - begun))

    async def close(self) -> None:
        wires, self._all, self._idle = self._all, set(), []
        for wire in wires:
            wire.abort()
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if wires:
            await asyncio.sleep(0)  # transports close their sockets in the next turn of the loop

    async def _ask(self, wire: Wire, data: bytes, *, within: float, bodiless: bool = False) -> Message:
        waiter: asyncio.Future[Message] = self._loop.create_future()
        now, wait = self._loop.time(), min(TICK, max(0.0, within))
        self._deadlines[waiter] = now + within
        # Only ever to an earlier moment: requests that keep coming would put a later one off for ever.
        if self._watching is None or now + wait < self._watching.when():
            self._watch(wait)
        wire.send(data, waiter, bodiless=bodiless)
        try:
            return await waiter
        except BaseException:
            self._all.discard(wire)
            wire.abort()
            raise
        finally:
            del self._deadlines[waiter]

    def _watch(self, seconds: float) -> None:
        """One timer for all requests: a timer each, nearly always cancelled, would cost more than sending them."""
        if self._watching is not None:
            self._watching.cancel()
        self._watching = self._loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        now = self._loop.time()
        late = [waiter for waiter, deadline in self._deadlines.items() if deadline <= now and not waiter.done()]
        for waiter in late:
            waiter.set_exception(TimeoutError())
        self._watching = None
        waiting = [deadline for waiter, deadline in self._deadlines.items() if not waiter.done()]
        if waiting:
            self._watch(min(TICK, max(0.0, min(waiting) - now)))

    def _reuse(self, now: float) -> Wire | None:
        """The connection used last, which is the one least likely to have been closed at the other end."""
        while self._idle:
            wire = self._idle.pop()
            if wire.usable and now - wire.idle_since < KEEP_ALIVE:
                return wire
            wire.abort()
            self._all.discard(wire)
        return None

    def _released(self, wire: Wire) -> None:
        """A wire not counted yet is still being opened: what it has just received is a proxy's word."""
        wire.idle_since = time.monotonic()
        if wire in self._all:
            self._idle.append(wire)

    async def _connect(self, limit: float) -> Wire:
        wire = Wire(self._released, self._all.discard)
        try:
            async with asyncio.timeout(limit):
                await self._open(wire)
        except TimeoutError as error:
            wire.abort()
            self._address = None
            raise CannotConnectError(TimeoutError(str(error) or f"no connection within {limit:g} s")) from None
        except (OSError, ValueError, NoAnswerError) as error:
            wire.abort()
            self._address = None
            raise CannotConnectError(error) from None
        except BaseException:
            wire.abort()
            raise
        self._all.add(wire)
        return wire

    async def _open(self, wire: Wire) -> None:
        place = self.place
        if place.proxy is None:
            await self._reach(wire, place.host, place.port, secure=place.scheme == "https")
            return
        proxy = urlsplit(place.proxy if "://" in place.proxy else f"http://{place.proxy}")
        if proxy.scheme not in PORTS or not proxy.hostname:
            raise ValueError("the proxy the environment names is no http or https URL")
        await self._reach(wire, proxy.hostname, proxy.port or PORTS[proxy.scheme], secure=proxy.scheme == "https")
        if place.scheme == "https":
            await self._tunnel(wire)

    async def _reach(self, wire: Wire, host: str, port: int, *, secure: bool) -> None:
        now, known = time.monotonic(), self._address
        if known is not None and now - known[1] < REMEMBER:
            places = [known[0]]
        else:
            places = await addresses(host, port)
        if not places:
            raise ConnectionError(f"{host} has no address")
        more: dict[str, Any] = {"ssl": self._context(), "server_hostname": host} if secure else {}
        for place in places[:-1]:
            with contextlib.suppress(OSError):  # the time limit, too, is one of them
                async with asyncio.timeout(IMPATIENCE):
                    await self._loop.create_connection(lambda: wire, place, port, **more)
                self._address = (place, now)
                return
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self._loop.create_connection(lambda: wire, places[-1], port, **more)
        except TimeoutError:
            raise TimeoutError(f"no connection within {CONNECT_TIMEOUT:g} s") from None
        self._address = (places[-1], now)

    async def _tunnel(self, wire: Wire) -> None:
        """Ask the proxy for a way through, then speak TLS with the server itself."""
        place = self.place
        assert place.proxy is not None
        lines = {"Host": f"{place.host}:{place.port}", **_authorisation(place.proxy)}
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        head = f"CONNECT {place.host}:{place.port} HTTP/1.1\r\n{text}\r\n".encode()
        answer = await self._ask(wire, head, within=CONNECT_TIMEOUT, bodiless=True)
        if answer.status != 200 or wire.transport is None:
            raise ConnectionError(f"the proxy refused the way through with HTTP {answer.status}")
        raw = wire.transport
        wire.transport = await self._loop.start_tls(raw, wire, self._context(), server_hostname=place.host)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls


_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Place, Pool]] = WeakKeyDictionary()


def join(place: Place) -> Pool:
    """The pool of this place on the running loop, one user more."""
    pools = _POOLS.setdefault(asyncio.get_running_loop(), {})
    pool = pools.get(place)
    if pool is None:
        pool = pools[place] = Pool(place)
    pool.users += 1
    return pool


async def leave(pool: Pool) -> None:
    """One user less. On another loop there is nothing to close: that loop is gone and has taken the sockets along."""
    pool.users -= 1
    if pool.users > 0 or pool._loop is not asyncio.get_running_loop():
        return
    _POOLS.get(pool._loop, {}).pop(pool.place, None)
    await pool.close()
