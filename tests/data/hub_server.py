"""A loopback server that behaves like the hub, as far as its download client looks.

Listing, branch look-up, HEAD and GET with a redirect to a separate file address, entity tags, gating by token, and
the error codes the client tells apart. Counts what it is asked.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

_LISTING = re.compile(r"/api/datasets/(?P<repo>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)")
_LOOK_UP = re.compile(r"/api/(?:datasets|models)/(?P<repo>[^/]+/[^/]+)(?:/revision/(?P<revision>[^/]+))?")
_RESOLVE = re.compile(r"(?:/datasets)?/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
_FILE = re.compile(r"/files/(?P<path>.+)")


@dataclass
class Hub:
    """What the server holds. `token` gates it; `listing_gated` hides even the list of files."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str] = field(default_factory=dict)
    repo: str = "cais/MASK"
    token: str | None = None
    listing_gated: bool = False
    broken: bool = False
    storage: str = ""
    """Where files lie: another host than the hub's, as the client follows redirects within a host by itself."""
    cut: int | None = None
    """After how many bytes the first answer with a file breaks off."""
    ranges: list[str | None] = field(default_factory=list)
    """The Range headers that files were asked for with."""
    asked: list[str] = field(default_factory=list)
    authorized: set[str] = field(default_factory=set)
    """The Authorization headers that it saw."""

    def commit(self, revision: str) -> str | None:
        name = self.branches.get(revision, revision)
        return name if name in self.commits else None


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    """The address of a running server for this hub."""

    class Handler(_Handler):
        pass

    Handler.hub = hub
    with _listening(Handler) as hub.storage, _listening(Handler) as address:
        yield address


@contextmanager
def _listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        self.hub.authorized.add(self.headers.get("Authorization") or "")
        if self.hub.broken:
            self._send(500, b"out of order")
        elif found := _LISTING.fullmatch(path):
            self._list(found["repo"], found["revision"])
        elif found := _RESOLVE.fullmatch(path):
            self._resolve(found["repo"], found["revision"], found["path"])
        elif found := _FILE.fullmatch(path):
            self._file(found["path"])
        elif found := _LOOK_UP.fullmatch(path):
            self._look_up(found["repo"], found["revision"] or "main")
        else:
            self._send(404, b"")

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the base class's)
        """Quiet: the test prints what matters."""

    def _allowed(self) -> bool:
        return self.hub.token in (None, (self.headers.get("Authorization") or "").removeprefix("Bearer "))

    def _refuse(self, repo: str, revision: str, *, listing: bool = False) -> bool:
        """Answers with the hub's error, if there is one."""
        if repo != self.hub.repo:
            self._send(404, b"Repository not found", {"X-Error-Code": "RepoNotFound"})
        elif not self._allowed() and (self.hub.listing_gated or not listing):
            self._send(401, b"Access to this dataset is restricted", {"X-Error-Code": "GatedRepo"})
        elif self.hub.commit(revision) is None:
            self._send(404, b"Invalid rev id", {"X-Error-Code": "RevisionNotFound"})
        else:
            return False
        return True

    def _look_up(self, repo: str, revision: str) -> None:
        if not self._refuse(repo, revision, listing=True):
            files = [{"rfilename": name} for name in self.hub.commits[self.hub.commit(revision) or ""]]
            self._json({"id": repo, "sha": self.hub.commit(revision), "siblings": files, "private": False, "tags": []})

    def _list(self, repo: str, revision: str) -> None:
        if not self._refuse(repo, revision, listing=True):
            files = self.hub.commits[self.hub.commit(revision) or ""]
            self._json([_entry(name, data) for name, data in files.items()])

    def _resolve(self, repo: str, revision: str, path: str) -> None:
        if self._refuse(repo, revision):
            return
        commit = self.hub.commit(revision) or ""
        data = self.hub.commits[commit].get(path)
        if data is None:
            self._send(404, b"Entry not found", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            return
        headers = {"X-Repo-Commit": commit, "X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{_sha256(data)}"'}
        self._send(302, b"", headers | {"Location": f"{self.hub.storage}/files/{commit}/{path}"})

    def _file(self, path: str) -> None:
        commit, _, name = path.partition("/")
        data = self.hub.commits[commit][name]
        headers = {"ETag": f'"{_sha256(data)}"', "Content-Type": "application/octet-stream"}
        asked = self.headers.get("Range")
        cut = None
        if self.command == "GET":
            self.hub.ranges.append(asked)
            cut, self.hub.cut = self.hub.cut, None
        if asked is None:
            self._send(200, data, headers, cut=cut)
        else:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self._send(206, data[start:], headers)

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None, *, cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])
        self.close_connection = self.close_connection or cut is not None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _entry(name: str, data: bytes) -> dict[str, object]:
    blob = hashlib.sha1(data).hexdigest()
    large = {"oid": _sha256(data), "size": len(data), "pointerSize": 130}
    return {"type": "file", "path": name, "size": len(data), "oid": blob, "lfs": large}
