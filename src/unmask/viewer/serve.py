"""The server: a socket of its own, the app behind it, and its address for the browser."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from unmask.errors import UsageError
from unmask.viewer.access import LOOPBACK
from unmask.viewer.app import build_app
from unmask.viewer.catalogue import Catalogue


class _TellingServer(uvicorn.Server):
    """Calls `tell` when it answers, and Ctrl-C ends it in order."""

    tell: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.tell()


def serve(
    folders: Sequence[Path],
    *,
    ready: Callable[[str], None],
    page: str = "/?",
    port: int = 0,
    remote: str | None = None,
) -> None:
    """Serve until Ctrl-C. `ready` is called once with the address of `page`, when it is answered; it must not wait.

    Only this machine can connect, unless `remote` gives the name or address under which others reach it."""
    catalogue = Catalogue(folders)
    name = "127.0.0.1" if remote is None else _check_host(remote)
    with _open_socket(name, port) as server_socket:
        chosen = server_socket.getsockname()[1]
        token = secrets.token_urlsafe(32)
        hosts = {f"{host}:{chosen}" for host in (*LOOPBACK, name)}
        if chosen == 80:  # browsers leave it out
            hosts |= {*LOOPBACK, name}
        app = build_app(catalogue, token=token, hosts=hosts, cookie=f"unmask-view-{chosen}")
        config = uvicorn.Config(
            app,
            log_level="critical",  # what fails in a page, the app itself says
            access_log=False,
            lifespan="off",
            ws="none",
            http="h11",
            loop="asyncio",
            server_header=False,
            proxy_headers=False,
        )
        # Seconds for what is being written.
        config.timeout_graceful_shutdown = 0.3  # type: ignore[assignment]
        server = _TellingServer(config)
        server.tell = partial(ready, f"http://{name}:{chosen}{page}token={token}")
        server.run(sockets=[server_socket])


def _check_host(host: str) -> str:
    """The host as browsers write it into an address: small letters, and brackets around an address of IPv6."""
    plain = host.lower().removeprefix("[").removesuffix("]")
    try:
        return f"[{plain}]" if ip_address(plain).version == 6 else plain
    except ValueError:
        if re.fullmatch(r"(?=.{1,253}$)[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*", plain):
            return plain
    raise UsageError(
        f"--allow-remote {host!r} is neither a name nor an address of this machine",
        advice="Give what others type to reach it, without http:// and without a port: --allow-remote gpu7.lab.org",
    )


def _open_socket(name: str, port: int) -> socket.socket:
    """The listening socket, for other machines unless `name` is that of loopback; an error that names the port where
    another program has it."""
    host = name if name == "127.0.0.1" else ""
    family = socket.AF_INET6 if name.startswith("[") else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {os.strerror(error.errno or 0)}",
            advice="Choose another with --port, or leave it out.",
        ) from error
