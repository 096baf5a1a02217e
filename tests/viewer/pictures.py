"""`python -m tests.viewer.pictures FOLDER` draws docs/pictures/view-*.jpg: every page of the viewer at three widths in
both themes, one sheet a page. FOLDER gets the runs that are shown, unless it holds runs already."""

from __future__ import annotations

import re
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, Page

import unmask
from tests.browser import chromium
from tests.viewer.server import Viewer, running_viewer
from unmask.experiments.recorded import open_recorded

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
WIDTHS = (400, 1280, 1920)
THEMES = ("light", "dark")
HEIGHT = 1000
SCALE = 0.3
QUALITY = 70


def make_runs(folder: Path) -> None:
    """The recorded run of a real model, and scripted ones that stand for checkpoints."""
    open_recorded(folder / "qwen-1.5b")
    for name, model in (("step-1000", "scripted/honest"), ("step-2000", "scripted/liar")):
        unmask.run(data="core", model=model, judge="scripted/judge", out=folder / name, takes=3)


def open_link(page: Page, viewer: Viewer, pattern: str) -> None:
    """Follow the first link of the page whose address matches."""
    found = re.search(rf'href="({pattern}[^"]*)"', page.content())
    assert found is not None, pattern
    page.goto(viewer.origin + found[1].replace("&amp;", "&"))


def draw_pages(page: Page, viewer: Viewer, who: str) -> dict[str, bytes]:
    page.goto(f"{viewer.origin}/?token={viewer.token}")
    page.wait_for_url(viewer.origin + "/")
    page.locator("tr[data-pending]").first.wait_for(state="detached", timeout=60_000)
    keys = list(dict.fromkeys(re.findall(r'href="/run/([0-9a-f]+)"', page.content())))
    named = {page.locator(f'a[href="/run/{key}"]').first.inner_text(): key for key in keys}
    real, first, second = (named[name] for name in ("qwen-1.5b", "step-1000", "step-2000"))

    def label() -> None:
        page.goto(f"{viewer.origin}/label")
        page.get_by_label("Your name").fill(who)
        page.get_by_label("qwen-1.5b", exact=True).check()
        page.get_by_role("button", name="Begin").click()
        page.locator("#desk").wait_for(timeout=60_000)

    def go(path: str) -> Callable[[], object]:
        return lambda: page.goto(viewer.origin + path)

    steps: dict[str, Callable[[], object]] = {
        "runs": go("/"),
        "run": go(f"/run/{real}"),
        "list": go(f"/run/{real}?verdict=lie#scenarios"),
        "scenario": lambda: open_link(page, viewer, f"/run/{real}/scenario/"),
        "compare": go(f"/compare?runs={first},{second}"),
        "compared": lambda: open_link(page, viewer, "/compare/scenario/"),
        "label": label,
        "agreement": go(f"/agreement?run={real}"),
        "live": go(f"/run/{first}/live"),
        "board": go("/board"),
        "grid": go("/grid"),
    }
    drawn = {}
    for name, step in steps.items():
        step()
        page.wait_for_timeout(300)
        drawn[name] = page.screenshot()
    return drawn


def join_sheet(browser: Browser, pictures: list[tuple[int, bytes]]) -> bytes:
    """The pictures side by side, each as wide as its screen."""
    images = "".join(
        f'<img width="{width * SCALE:.0f}" height="{HEIGHT * SCALE:.0f}"'
        f' src="data:image/png;base64,{b64encode(data).decode()}">'
        for width, data in pictures
    )
    page = browser.new_page(viewport={"width": round(sum(WIDTHS) * SCALE) + 40, "height": 100}, device_scale_factor=1.5)
    page.set_content(f"<body style='margin:10px;font-size:0;background:#888'>{images}")
    sheet = page.screenshot(full_page=True, type="jpeg", quality=QUALITY)
    page.close()
    return sheet


def main(folder: Path) -> None:
    if not any(folder.rglob("run.json")):
        make_runs(folder)
    drawn: dict[str, list[tuple[int, bytes]]] = {}
    with (
        tempfile.TemporaryDirectory() as cache,
        running_viewer(folder, cache=Path(cache)) as viewer,
        chromium.browser() as browser,
    ):
        for number, (theme, width) in enumerate(product(THEMES, WIDTHS)):
            context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=theme)
            for name, data in draw_pages(context.new_page(), viewer, f"person {number}").items():
                drawn.setdefault(name, []).append((width, data))
            context.close()
        for name, pictures in drawn.items():
            (PICTURES / f"view-{name}.jpg").write_bytes(join_sheet(browser, pictures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
