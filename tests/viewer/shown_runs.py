"""A running viewer over run folders, and its pages in a real browser, for the tests of run, scenario and compare."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import uvicorn
from playwright.sync_api import Browser, Page

from tests.browser import chromium
from unmask.viewer.app import build_app
from unmask.viewer.catalogue import Catalogue, make_key

TOKEN = "t" * 43
COOKIE = "unmask-view-test"


class Answer(NamedTuple):
    status: int
    text: str
    headers: dict[str, str]


class Viewer:
    """The real app behind a real socket on loopback."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address

    def key(self, name: str) -> str:
        return make_key(self.folder / name)

    def get(self, path: str) -> Answer:
        request = Request(self.address + path, headers={"Cookie": f"{COOKIE}={TOKEN}"})
        try:
            with urlopen(request, timeout=60) as answer:
                return Answer(answer.status, answer.read().decode(), dict(answer.headers))
        except HTTPError as error:
            return Answer(error.code, error.read().decode(), dict(error.headers))

    @contextmanager
    def page(self, browser: Browser, path: str, **settings: object) -> Iterator[Page]:
        """A page, with everything it said to the console, and asked for elsewhere, in `page.complaints`."""
        with chromium.blank_page(browser, **settings) as page:
            page.context.add_cookies([{"name": COOKIE, "value": TOKEN, "url": self.address}])
            complaints: list[str] = []
            chromium.hear(page, "console", lambda message: complaints.append(message.text))
            chromium.hear(page, "pageerror", lambda error: complaints.append(str(error)))
            chromium.hear(
                page, "request", lambda sent: sent.url.startswith(self.address) or complaints.append(sent.url)
            )
            page.complaints = complaints
            page.goto(self.address + path)
            yield page


@contextmanager
def serving(folder: Path) -> Iterator[Viewer]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        app = build_app(Catalogue([folder]), token=TOKEN, hosts=[host], cookie=COOKIE)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield Viewer(folder, f"http://{host}")
        finally:
            server.should_exit = True
            thread.join(10)
