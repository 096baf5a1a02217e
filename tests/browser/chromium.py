"""A real Chromium, found on this machine: Debian's package, any other, or the one UNMASK_CHROMIUM names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, Error, Page, Playwright, ViewportSize, expect, sync_playwright

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
REBOUND = "rebound.example"
"""A name that leads to this machine, as one of an attacker does after DNS rebinding."""
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The first has the same engine without windows, and shows a page for three quarters of the processor time."""
FLAGS = (
    "--no-sandbox",  # tests may run as root, where Chromium refuses its sandbox
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # else nearly each page that is opened starts a process of its own: seven times as many
    f"--disable-features={','.join(WITHOUT)}",
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
)
GET_CHROMIUM = (
    "Type `apt-get install chromium-headless-shell`, or name one with UNMASK_CHROMIUM=/path;"
    f" looked for {', '.join(NAMES)}"
)
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
def browser() -> Iterator[Browser]:
    """With an empty profile of its own."""
    path = executable()
    with driver() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield started
        finally:
            started.close()


_WAITING: list[tuple[Browser, ExitStack]] = []


@contextmanager
def shared_browser() -> Iterator[Browser]:
    """One that waits after its use for the next: to start it and its driver takes a second. Nothing of one use is left
    in the next but an empty page. While it waits, no event loop can run in this thread: see `close_waiting`."""
    started, stack = _WAITING.pop() if _WAITING else (None, ExitStack())
    if started is None or not started.is_connected():
        stack.close()
        started = stack.enter_context(browser())
    try:
        yield started
    except BaseException:
        stack.close()
        raise
    kept = _KEPT.get(started)
    for context in started.contexts:
        if kept is None or context != kept.context:
            context.close()
    _WAITING.append((started, stack))


def close_waiting() -> None:
    """Close the browser that nobody uses, if there is one."""
    while _WAITING:
        _WAITING.pop()[1].close()


_KEPT: WeakKeyDictionary[Browser, Page] = WeakKeyDictionary()
"""The page of each browser that waits for its next use."""
_HEARERS: list[tuple[Any, str, Callable[[Any], object]]] = []


@contextmanager
def blank_page(found: Browser, **settings: Any) -> Iterator[Page]:
    """An empty page without cookies and memory; `settings` are those of a browser context. To make a profile and its
    window takes a browser longer than to show a page, so one that differs in no more than its size and theme is used
    again. One that was in a failed test is not."""
    changed = dict(settings)
    size: ViewportSize = changed.pop("viewport", {"width": 1280, "height": 900})
    theme = changed.pop("color_scheme", "light")
    page = None if changed else _KEPT.pop(found, None)
    if page is None:
        context = found.new_context(viewport=size, color_scheme=theme, **changed)
        context.set_default_timeout(MILLISECONDS)
        page = context.new_page()
    else:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=theme)
    try:
        yield page
    except BaseException:
        page.context.close()
        raise
    if changed or found in _KEPT or page.is_closed() or len(page.context.pages) > 1:
        page.context.close()
        return
    try:
        _empty(page)
    except Error:  # it was on its way to another page
        page.context.close()
    else:
        _KEPT[found] = page


def hear(emitter: Any, event: str, call: Callable[[Any], object]) -> None:
    """Call this at every such event of a page or its context, for as long as the test has the page."""
    emitter.on(event, call)
    _HEARERS.append((emitter, event, call))


def _empty(page: Page) -> None:
    for emitter, event, call in _HEARERS:
        if emitter in (page, page.context):
            emitter.remove_listener(event, call)
    _HEARERS[:] = [one for one in _HEARERS if one[0] not in (page, page.context)]
    with suppress(Error):  # a page of an error has none
        page.evaluate("sessionStorage.clear(); localStorage.clear()")
    page.goto("about:blank")
    page.context.clear_cookies()
    page.emulate_media(media="null")


class Opened:
    """A page with everything it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        hear(page, "console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        hear(page, "pageerror", lambda error: self.said.append(f"error: {error}"))
        hear(page.context, "request", lambda request: self.asked.append(request.url))
        hear(page.context, "page", lambda other: self.said.append(f"opened {other.url}"))


@contextmanager
def opened(found: Browser, path: Path, **settings: Any) -> Iterator[Opened]:
    """The file in an empty page; `settings` are those of a browser context."""
    with blank_page(found, **settings) as page:
        one = Opened(page)
        page.goto(path.as_uri())
        yield one
