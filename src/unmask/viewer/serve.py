"""The server: a socket of its own, the app behind it, and its address for the browser."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from unmask.errors import UsageError
from unmask.viewer.access import LOOPBACK
from unmask.viewer.app import build_app
from unmask.viewer.catalogue import Catalogue


def serve(folders: Sequence[Path], *, port: int = 0, remote: str | None = None, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C. `ready` is called once with the address to open, when the socket takes connections.

    Only this machine can connect, unless `remote` gives the name or address under which others reach it."""
    catalogue = Catalogue(folders)
    with _open_socket("" if remote else "127.0.0.1", port) as server_socket:
        chosen = server_socket.getsockname()[1]
        token = secrets.token_urlsafe(32)
        hosts = [f"{name}:{chosen}" for name in (*LOOPBACK, *([remote.lower()] if remote else []))]
        app = build_app(
            catalogue,
            token=token,
            hosts=hosts,
            cookie=f"unmask-view-{chosen}",
            is_stopping=lambda: server.should_exit,
        )
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            lifespan="off",
            ws="none",
            http="h11",
            loop="asyncio",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        ready(f"http://{remote or '127.0.0.1'}:{chosen}/?token={token}")
        server.run(sockets=[server_socket])


def _open_socket(host: str, port: int) -> socket.socket:
    """The listening socket; an error that names the port where another program has it."""
    server_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server_socket.bind((host, port))
        server_socket.listen(128)
    except OSError as error:
        server_socket.close()
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", advice="Choose another with --port, or leave it out."
        ) from error
    return server_socket
