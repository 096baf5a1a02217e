"""Names to addresses, without a thread that outlives the run.

The usual resolver works in the event loop's own threads, and those are waited for when the loop and the process end:
a name server that does not answer would keep a command that has long been interrupted.
"""

from __future__ import annotations

import socket
from functools import partial
from ipaddress import ip_address

from unmask.models.daemon import in_daemon


async def addresses(host: str, port: int) -> list[str]:
    """What the operating system knows for a name, in its order of preference; an address stands for itself."""
    try:
        return [str(ip_address(host.partition("%")[0])) if "%" not in host else host]
    except ValueError:
        pass
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    found = [_written(kind, address) for kind, _, _, _, address in await in_daemon(ask) if address]
    return list(dict.fromkeys(found))


def _written(kind: int, address: tuple[object, ...]) -> str:
    place = str(address[0])
    if kind == socket.AF_INET6 and len(address) == 4 and address[3]:  # link-local: the address needs its interface
        return f"{place}%{address[3]}"
    return place
