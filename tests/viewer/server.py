"""A viewer to test: the real command in a process of its own, or the app in a thread of this one."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.parse import urlsplit

import uvicorn
from playwright.sync_api import Browser, Page

from tests.browser import chromium
from tests.browser.axe import find_violations
from tests.patience import PATIENCE
from unmask.viewer.access import LOOPBACK
from unmask.viewer.app import build_app
from unmask.viewer.catalogue import Catalogue, make_key

TOKEN = "t" * 43


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    text: str


class Viewer(NamedTuple):
    """`process` is `None` for an app in a thread."""

    port: int
    token: str
    process: subprocess.Popen[str] | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """What a person opens."""
        return f"{self.origin}/?token={self.token}"

    @property
    def cookie(self) -> str:
        return f"unmask-view-{self.port}={self.token}"

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        with_cookie: bool = True,
        host: str | None = None,
    ) -> Answer:
        """One request with exactly these headers, beside Host and cookie. `path` goes out as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", f"127.0.0.1:{self.port}" if host is None else host)
            if with_cookie:
                connection.putheader("Cookie", self.cookie)
            for name, value in headers:
                connection.putheader(name, value)
            if body is not None and not any(name.lower() == "content-length" for name, _ in headers):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode("utf-8"))
        finally:
            connection.close()

    def post(self, path: str, body: bytes = b"{}", **changed: str | None) -> Answer:
        """A POST as our own pages send it; a header that is `None` is left out, another value changes it."""
        usual: dict[str, str | None] = {
            "Origin": self.origin,
            "Sec-Fetch-Site": "same-origin",
            "Sec-Fetch-Mode": "cors",
            "Sec-Fetch-Dest": "empty",
            "Content-Type": "application/json",
        }
        usual |= {name.replace("_", "-"): value for name, value in changed.items()}
        headers = [(name, value) for name, value in usual.items() if value is not None]
        return self.ask(path, method="POST", headers=headers, body=body)


def run_key(folder: Path) -> str:
    """What stands for a run in addresses."""
    return make_key(Path(os.path.abspath(folder)))


@contextmanager
def serving_app(*folders: Path, token: str = TOKEN, port: int = 0) -> Iterator[Viewer]:
    """The app in a thread, behind its door, on a free port of loopback."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        chosen = listening.getsockname()[1]
        hosts = [f"{name}:{chosen}" for name in LOOPBACK]
        app = build_app(Catalogue(folders), token=token, hosts=hosts, cookie=f"unmask-view-{chosen}")
        server = uvicorn.Server(
            uvicorn.Config(
                app, log_level="critical", lifespan="off", ws="none", http="h11", timeout_graceful_shutdown=1
            )
        )
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            wait_until_open(chosen)
            yield Viewer(chosen, token)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


@contextmanager
def running_viewer(*arguments: str | Path, cache: Path, cwd: Path | None = None) -> Iterator[Viewer]:
    """`unmask view ARGUMENTS --no-open` as a user types it. Killed at the end if it is still there."""
    command = [sys.executable, "-m", "unmask.cli.main", "view", *map(str, arguments), "--no-open"]
    env = {**os.environ, "UNMASK_CACHE": str(cache)}
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            assert line.startswith("http://"), process.communicate()[1]
            parts = urlsplit(line)
            assert parts.port is not None
            wait_until_open(parts.port)
            yield Viewer(parts.port, parts.query.removeprefix("token="), process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_until_open(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


@contextmanager
def opened(browser: Browser, viewer: Viewer, path: str = "/", **settings: object) -> Iterator[Page]:
    """A page of the viewer. Nothing may be said on the console, and nothing asked for elsewhere."""
    with chromium.blank_page(browser, **settings) as page:
        complaints: list[str] = []
        chromium.hear(page, "console", lambda said: complaints.append(said.text) if "404" not in said.text else None)
        chromium.hear(page, "pageerror", lambda error: complaints.append(str(error)))
        chromium.hear(
            page, "request", lambda sent: sent.url.startswith((viewer.origin, "data:")) or complaints.append(sent.url)
        )
        where, hash_sign, part = path.partition("#")
        page.goto(f"{viewer.origin}{where}{'&' if '?' in where else '?'}token={viewer.token}")
        page.wait_for_url(lambda url: "token=" not in url)
        if part:
            page.goto(f"{viewer.origin}{where}{hash_sign}{part}")
        yield page
        assert complaints == []


def refuse_violations(page: Page) -> None:
    """axe finds no serious fault in either theme, and the page is no wider than its screen."""
    page.emulate_media(color_scheme="light")
    found = find_violations(page)
    page.emulate_media(color_scheme="dark")
    found += find_violations(page, rules=False)
    bad = [rule for rule in found if rule["impact"] in {"serious", "critical"}]
    assert [(rule["id"], [node["html"][:120] for node in rule["nodes"]][:3]) for rule in bad] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
