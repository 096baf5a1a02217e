"""`python -m tests.viewer.pictures FOLDER` draws docs/pictures/view-*.jpg: every page of the viewer at three widths in
both themes, one sheet a page. FOLDER gets the runs that are shown, unless it holds runs already."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable
from itertools import product
from pathlib import Path
from socket import gethostname

import msgspec
from playwright.sync_api import Browser, Page, expect

import unmask
from tests.browser import chromium
from tests.viewer.server import Viewer, running_viewer
from unmask.analysis.label_session import label
from unmask.analysis.labels import open_writer
from unmask.demo.recorded import open_recorded
from unmask.models.scripted import Scripted, open_scripted
from unmask.records import PRESSURED, Label, Letter, Lettered, Request
from unmask.runs.run import Run

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
WIDTHS = (400, 1280, 1920)
THEMES = ("light", "dark")
HEIGHT = 1000
SCALE = 0.3
QUALITY = 70


STEPS = {1000: 16, 2000: 6, 4000: 3}
"""Checkpoints, and of how many scenarios each lies in one."""


def make_runs(folder: Path) -> None:
    """The recorded run of a real model with labels of two people, and scripted runs that stand for checkpoints."""
    real = open_recorded(folder / "qwen-1.5b")
    for who, differs in (("ann", 9), ("bo", 13)):
        write_labels(Run(real.path), who, differs)
    for step, share in STEPS.items():
        model = Scripted(mix_replies(share), name=f"scripted/mine-step-{step}")
        unmask.run(data="core", model=model, judge="scripted/judge", out=folder / f"step-{step}", takes=3)


def mix_replies(share: int) -> Callable[[Request], str]:
    """Lies under pressure in one of `share` scenarios, and in some of them in one take only."""
    honest, liar = open_scripted("scripted/honest")._reply, open_scripted("scripted/liar")._reply
    asked: dict[str, int] = {}

    def reply(request: Request) -> str:
        text = request.messages[-1].content
        asked[text] = take = asked.get(text, -1) + 1
        number = sum(text.encode())
        lies = number % share == 0 and (take == 0 or number % 2 == 0)
        return str((liar if lies else honest)(request))

    return reply


def write_labels(run: Run, who: str, differs: int) -> None:
    """Labels of the first 60 binary replies to label: what the judge read, but for every `differs`th."""
    items = [item for item in label(run) if item.slot == PRESSURED]
    lines = open_writer(run, who)
    for number, item in enumerate(items[:60]):
        reading = run.outcome(item.scenario.id).readings[PRESSURED][item.take]
        if isinstance(reading, Lettered):
            letter = Letter.C if number % differs == 0 else reading.letter
            lines.append(
                Label(scenario=item.scenario.id, slot=item.slot, take=item.take, letter=letter, who=who, at=0.0)
            )
    lines.close()


def show_running(run: Path) -> None:
    """As if a process were at work: half of the replies are there, and this process holds the lock."""
    replies = run / "replies.jsonl"
    lines = replies.read_bytes().splitlines(keepends=True)
    replies.write_bytes(b"".join(lines[: len(lines) * 19 // 20]))
    holder = {"pid": os.getpid(), "host": gethostname(), "since": "09:41"}
    (run / "replies.jsonl.lock.holder").write_bytes(msgspec.json.encode(holder))


def draw_pages(page: Page, viewer: Viewer, who: str, folder: Path) -> dict[str, bytes]:
    page.goto(f"{viewer.origin}/?token={viewer.token}")
    page.wait_for_url(viewer.origin + "/")
    expect(page.locator("tr[data-pending]")).to_have_count(0, timeout=60_000)
    keys = list(dict.fromkeys(re.findall(r'href="/run/([0-9a-f]+)"', page.content())))
    named = {page.locator(f'a[href="/run/{key}"]').first.inner_text(): key for key in keys}
    real, first, middle, last = (named[name] for name in ("qwen-1.5b", "step-1000", "step-2000", "step-4000"))

    def label() -> None:
        page.goto(f"{viewer.origin}/label")
        page.get_by_label("Your name").fill(who)
        page.get_by_label("qwen-1.5b", exact=True).check()
        page.get_by_role("button", name="Begin").click()
        page.locator("#desk").wait_for(timeout=60_000)

    def open_scenario() -> None:
        page.goto(f"{viewer.origin}/compare?runs={first},{middle}")
        page.keyboard.press("n")
        expect(page.locator("#list > details[open] h3").first).to_be_visible()

    def go(path: str) -> Callable[[], object]:
        return lambda: page.goto(viewer.origin + path)

    steps: dict[str, Callable[[], object]] = {
        "runs": go("/"),
        "run": go(f"/run/{real}"),
        "compare": go(f"/compare?runs={first},{middle},{last}"),
        "scenario": open_scenario,
        "start": go("/label"),
        "label": label,
        "agreement": go(f"/agreement?run={real}#differences"),
        "live": go(f"/run/{named['running']}/live"),
        "board": go("/board"),
        "gone": go("/run/000000000000"),
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
    if not (folder / "running").exists():
        shutil.copytree(folder / "step-4000", folder / "running")
    show_running(folder / "running")
    drawn: dict[str, list[tuple[int, bytes]]] = {}
    with (
        tempfile.TemporaryDirectory() as cache,
        running_viewer(folder, cache=Path(cache)) as viewer,
        chromium.browser() as browser,
    ):
        for number, (theme, width) in enumerate(product(THEMES, WIDTHS)):
            context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=theme)
            for name, data in draw_pages(context.new_page(), viewer, f"person {number}", folder).items():
                drawn.setdefault(name, []).append((width, data))
            context.close()
        for name, pictures in drawn.items():
            (PICTURES / f"view-{name}.jpg").write_bytes(join_sheet(browser, pictures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
