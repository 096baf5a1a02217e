"""Names to addresses, without a thread that outlives the run.

The usual resolver works in the event loop's own threads, and those are waited for when the loop and the process end:
a name server that does not answer would keep a command that has long been interrupted.
"""

from __future__ import annotations

import socket
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

from unmask.loops import in_daemon

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class Resolver(AbstractResolver):
    """Asks the operating system, each name in a thread of its own."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        ask = partial(
            socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
        )
        found = await in_daemon(ask)
        return [_result(host, kind, protocol, address) for kind, _, protocol, _, address in found if address]

    async def close(self) -> None:
        pass


def _result(host: str, kind: int, protocol: int, address: tuple[object, ...]) -> ResolveResult:
    place = str(address[0])
    if kind == socket.AF_INET6 and len(address) == 4 and address[3]:  # link-local: the address needs its interface
        place = f"{place}%{address[3]}"
    return ResolveResult(
        hostname=host, host=place, port=int(str(address[1])), family=kind, proto=protocol, flags=_NUMERIC
    )
