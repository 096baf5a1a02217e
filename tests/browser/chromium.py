"""A real Chromium, found on this machine: Debian's package, any other, or the one UNMASK_CHROMIUM names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.needs import give_up
from tests.patience import MILLISECONDS

expect.set_options(timeout=MILLISECONDS)

WITHOUT = (
    "WebUIOmniboxPopup",  # for its address bar, which nobody sees, each window would start a second process
    "WebUIOmniboxAimPopup",
    # Chromium takes the last such list that it is given. These are on Playwright's own.
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *(
        "DestroyProfileOnBrowserClose",
        "HttpsFirstBalancedModeAutoEnable",
        "HttpsUpgrades",
        "LensOverlay",
        "MediaRouter",
    ),
    *("NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    *("TcpPortRandomizationWin", "ThirdPartyStoragePartitioning"),
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",  # tests may run as root, where Chromium refuses its sandbox
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(WITHOUT)}",
)
GET_CHROMIUM = f"Type `apt-get install chromium`, or name one with UNMASK_CHROMIUM=/path; looked for {', '.join(NAMES)}"
GET_DRIVER = "Playwright's driver does not start. On a minimal Debian, type `apt-get install libatomic1`"


def executable() -> str:
    """The browser to start."""
    named = os.environ.get("UNMASK_CHROMIUM")
    if named and not shutil.which(named):
        raise AssertionError(f"UNMASK_CHROMIUM={named} cannot be started")
    return named or next(filter(None, map(shutil.which, NAMES)), None) or give_up("Chromium", advice=GET_CHROMIUM)


@contextmanager
def driver() -> Iterator[Playwright]:
    """Playwright, whose driver is a program of its own with needs of its own."""
    started = sync_playwright()
    try:
        playwright = started.__enter__()
    except Exception as error:  # Playwright raises a bare one
        if "driver" not in str(error):
            raise
        give_up("program to drive a browser", advice=f"{GET_DRIVER} ({error})")
    try:
        yield playwright
    finally:
        started.__exit__()


@contextmanager
def browser(*flags: str) -> Iterator[Browser]:
    """With an empty profile of its own, and these flags besides."""
    path = executable()
    with driver() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
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
    context.set_default_timeout(MILLISECONDS)
    try:
        one = Opened(context.new_page())
        one.page.goto(path.as_uri())
        yield one
    finally:
        context.close()
