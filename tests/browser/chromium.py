"""A real Chromium, found on this machine: Debian's package, any other, or the one UNMASK_CHROMIUM names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",  # tests may run as root, where Chromium refuses its sandbox
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = (
    "no Chromium was found, and these tests need one: `apt-get install chromium`, or name one with"
    f" UNMASK_CHROMIUM=/path. Looked for: {', '.join(NAMES)}"
)


def executable() -> str:
    """The browser to start. Not finding one fails where it matters, in CI; elsewhere the tests are skipped in plain
    sight, because `make test` promises to need nothing but Python."""
    named = os.environ.get("UNMASK_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if not found or not shutil.which(found):
        if named or os.environ.get("CI"):
            raise AssertionError(f"UNMASK_CHROMIUM={named} cannot be started" if named else MISSING)
        pytest.skip(MISSING)
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """With an empty profile of its own."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


class Opened:
    """A page with everything it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.context.on("request", lambda request: self.asked.append(request.url))
        page.context.on("page", lambda other: self.said.append(f"opened {other.url}"))


@contextmanager
def opened(found: Browser, path: Path, **settings: Any) -> Iterator[Opened]:
    """The file in a fresh context; `settings` are those of a browser context."""
    context = found.new_context(**({"viewport": {"width": 1280, "height": 900}} | settings))
    context.set_default_timeout(20_000)
    try:
        one = Opened(context.new_page())
        one.page.goto(path.as_uri())
        yield one
    finally:
        context.close()
