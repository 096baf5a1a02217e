"""What holds for every page of the viewer: readable by everybody at every width, with its keys, and no lock tried."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from socket import gethostname
from typing import NamedTuple

import msgspec
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.axe import name_violations
from tests.made_runs import made
from tests.thorough import THOROUGH
from tests.viewer.server import Viewer, opened, run_key, serving_app
from unmask.analysis.label_session import label
from unmask.files import Lock
from unmask.render.html.conversation import name_anchor
from unmask.runs.run import Run
from unmask.viewer.app import PAGES

FILES = {"/row/{run}", "/run/{run}/search", "/compare/search"}
"""Routes that answer with no page of their own."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Two checkpoints, one of which is at work, and a folder that is damaged."""
    root = tmp_path_factory.mktemp("every") / "sweep"
    for step, lies in ((100, 2), (200, 5)):
        model = f"gates-step-{step}"
        made(root / "runs" / model, ["lie"] * lies + ["honest"] * (6 - lies), model=model)
    (root / "damaged").mkdir()
    (root / "damaged" / "run.json").write_text("{torn")
    return root


@pytest.fixture(scope="module")
def viewer(runs: Path) -> Iterator[Viewer]:
    with serving_app(runs) as started:
        yield started


@pytest.fixture(scope="module")
def addresses(runs: Path, viewer: Viewer) -> dict[str, list[str]]:
    """Addresses of every kind of page, by the route that answers. The first run has labels of one person."""
    first, second = (runs / "runs" / f"gates-step-{step}" for step in (100, 200))
    key, both = run_key(first), f"runs={run_key(first)},{run_key(second)}"
    anchor = name_anchor(Run(first).scenarios[0].id)
    session = begin_session(viewer, "bo", first)
    answer_all(viewer, begin_session(viewer, "ann", first), len(label(Run(first))))
    show_running(second)
    return {
        "/": ["/"],
        "/run/{run}": [f"/run/{key}", f"/run/{key}#verdict=lie&words=gate", "/run/000000000000"],
        "/run/{run}/sensitivity": [f"/run/{key}/sensitivity"],
        "/run/{run}/scenario/{anchor}": [f"/run/{key}/scenario/{anchor}", f"/run/{key}/scenario/nothing"],
        "/run/{run}/live": [f"/run/{key}/live", f"/run/{run_key(second)}/live"],
        "/compare": [f"/compare?{both}"],
        "/compare/scenario/{anchor}": [f"/compare/scenario/{anchor}?{both}"],
        "/label": ["/label"],
        "/label/{session}": [session, "/label/unknown"],
        "/agreement": ["/agreement", f"/agreement?run={key}", f"/agreement?run={run_key(second)}"],
        "/board": ["/board", "/board?published=1"],
    }


def begin_session(viewer: Viewer, who: str, run: Path) -> str:
    answer = viewer.post("/label", json.dumps({"runs": [run_key(run)], "who": who}).encode())
    return f"/label/{json.loads(answer.text)['session']}"


def answer_all(viewer: Viewer, session: str, count: int) -> None:
    for place in range(count):
        assert viewer.post(session, json.dumps({"place": place, "letter": "BA"[place % 2]}).encode()).status == 200


def show_running(run: Path) -> None:
    """As if a process were at work: this one."""
    holder = {"pid": os.getpid(), "host": gethostname(), "since": "a minute ago"}
    (run / "replies.jsonl.lock.holder").write_bytes(msgspec.json.encode(holder))


def test_every_route_is_looked_at(addresses):
    """A page that is added later has to be added here."""
    routes = {route.path for name in PAGES for route in import_module(f"unmask.viewer.pages.{name}").ROUTES}
    assert set(addresses) == routes - FILES


class Look(NamedTuple):
    """One page on one screen. `keys` says whether they are shown at first, after a question mark and after another;
    `unnamed` are those of links and buttons that are not among them."""

    violations: list[str]
    too_wide: list[int]
    keys: list[bool]
    unnamed: set[str]


@pytest.fixture(scope="module")
def looks(browser: Browser, viewer: Viewer, addresses: dict[str, list[str]]) -> dict[tuple[str, str], Look]:
    """Every page, errors and empty ones included, by address and theme. The two screens take turns, so that each page
    is looked at on one of them; in a thorough run on both."""
    every = [address for of_route in addresses.values() for address in of_route]
    seen = {}
    for first, (width, theme) in enumerate([(400, "dark"), (1280, "light")]):
        with opened(browser, viewer, "/label", color_scheme=theme) as page:
            for address in every if THOROUGH else every[first::2]:
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(viewer.origin + address)
                seen[address, theme] = look_at(page, width)
    return seen


def look_at(page: Page, width: int) -> Look:
    """With every fold open; as wide as the screen and on a wide one."""
    list_of_keys = page.locator("#keys")
    keys = [list_of_keys.is_visible()]
    page.keyboard.press("?")
    keys.append(list_of_keys.is_visible())
    named = set(list_of_keys.locator("kbd").all_inner_texts())
    used = page.locator("[data-key], [data-press]").evaluate_all(
        "(parts) => parts.map((part) => part.dataset.key || part.dataset.press)"
    )
    page.keyboard.press("?")
    keys.append(list_of_keys.is_visible())
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    violations, too_wide = name_violations(page), []
    for other in (width, 1920):
        page.set_viewport_size({"width": other, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth") > other:
            too_wide.append(other)
    return Look(violations, too_wide, keys, set(used) - named)


def test_axe_finds_nothing_on_any_page(looks):
    assert {at: look.violations for at, look in looks.items() if look.violations} == {}


def test_no_page_is_wider_than_its_screen(looks):
    assert {at: look.too_wide for at, look in looks.items() if look.too_wide} == {}


def test_a_question_mark_shows_the_keys_of_every_page(looks):
    """And hides them again; every key that a link or a button of the page has is among them."""
    assert {at: look.keys for at, look in looks.items() if look.keys != [False, True, False]} == {}
    assert {at: look.unnamed for at, look in looks.items() if look.unnamed} == {}


def test_no_page_and_no_file_tries_a_lock(viewer, addresses, runs, monkeypatch):
    """Whoever looks is never in the way of a run at work."""

    def refuse(lock: Lock) -> None:
        raise AssertionError(f"{lock.path} was tried")

    monkeypatch.setattr(Lock, "take", refuse)
    key = run_key(runs / "runs" / "gates-step-100")
    files = ["row/{run}", "run/{run}/search?q=gate"]
    for address in (*(one for of_route in addresses.values() for one in of_route), *files):
        assert viewer.ask(f"/{address.lstrip('/').format(run=key)}").status in {200, 404}, address
