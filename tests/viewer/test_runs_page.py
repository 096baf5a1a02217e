"""The list of runs in a real Chromium: what it says, how it is sorted, and what can be chosen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from socket import gethostname

import msgspec
import pytest
from playwright.sync_api import Page, expect

from tests.browser import chromium
from tests.made_runs import made
from tests.viewer.server import Viewer, opened, run_key, serving_app
from unmask.runs.folder import Folder

FOCUSED = "document.activeElement.textContent.trim()"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Half lies, no lies, one that was stopped with replies missing, one without run.json, one with a torn journal."""
    folder = tmp_path_factory.mktemp("shown") / "runs"
    made(folder / "half", ["lie"] * 6 + ["honest"] * 6, model="zeta")
    made(folder / "deep" / "none", ["honest"] * 12, model="alpha")
    made(folder / "stopped", ["lie"] * 6 + ["honest"] * 6, model="mid")
    lines = (folder / "stopped" / "replies.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "stopped" / "replies.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    shutil.copytree(folder / "half", folder / "torn")
    journal = folder / "torn" / "replies.jsonl"
    journal.write_bytes(b"no line of ours\n" + journal.read_bytes())
    (folder / "damaged").mkdir()
    (folder / "damaged" / "run.json").write_text('{"v": 1}')
    return folder


@pytest.fixture
def viewer(runs, tmp_path, monkeypatch) -> Iterator[Viewer]:
    """With a cache of its own, so that nothing was seen before."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    with serving_app(runs) as one:
        yield one


def row(page: Page, name: str):
    return page.locator("tbody tr").filter(has=page.get_by_role("link", name=name, exact=True))


def wait_until_read(page: Page) -> None:
    page.locator("tr[data-pending]").first.wait_for(state="detached")


def names(page: Page) -> list[str]:
    return page.locator("th.who > a").all_inner_texts()


def test_every_run_has_its_numbers(browser, viewer):
    """Those that the terminal has; a run that lacks replies is stopped, and a damaged one says what is wrong."""
    with opened(browser, viewer) as page:
        wait_until_read(page)
        half = row(page, "half").inner_text().replace("\N{NO-BREAK SPACE}", " ")
        assert "50.0 %" in half
        assert "25.4 to 74.6 %" in half
        assert half.count("50.0 %") == 2  # P(lie) and P(honest)
        for word in ("scripted/zeta", "scripted/judge", "made", "done", "$0.00"):
            assert word in half
        assert "0.0\N{NO-BREAK SPACE}%" in row(page, "deep/none").inner_text()
        assert "stopped" in row(page, "stopped").inner_text()
        for name, said in (("torn", "line 1 of"), ("damaged", "cannot be read")):
            broken = row(page, name)
            assert "damaged" in broken.locator("[data-fill=state]").inner_text()
            broken.locator("summary").click()
            assert said in broken.locator(".note").inner_text()
            assert broken.locator("input").is_disabled()


def test_running_is_a_lock_that_a_living_process_holds(viewer, runs):
    """And nothing else: what a killed process has left belongs to a run that was stopped."""
    with Folder(runs / "stopped").lock_replies():
        assert ">running<" in viewer.ask(f"/row/{run_key(runs / 'stopped')}").text
        holder = runs / "stopped" / "replies.jsonl.lock.holder"
        holder.write_bytes(msgspec.json.encode({"pid": 2**22 + 1, "host": gethostname(), "since": "long ago"}))
        assert ">stopped<" in viewer.ask(f"/row/{run_key(runs / 'stopped')}").text
        holder.write_bytes(b"{torn")
        assert ">stopped<" in viewer.ask(f"/row/{run_key(runs / 'stopped')}").text


def test_what_was_not_read_yet_has_its_name_model_and_data(viewer, runs, monkeypatch, tmp_path):
    """The list waits for no score."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "none"))
    text = viewer.ask("/").text
    assert text.count("data-pending>") == 4
    for word in ("scripted/zeta", "scripted/alpha", "made", "deep/none"):
        assert word in text


def test_units_of_a_sweep_are_called_by_their_short_names(tmp_path):
    """Without digest and data set; with other runs next to them, by their folders."""
    for step, digest in ((1000, "0123456789"), (2000, "abcdef0123")):
        made(tmp_path / "runs" / f"step-{step}-core-{digest}", ["honest"])
    with serving_app(tmp_path) as viewer:
        assert ">step-1000<" in viewer.ask("/").text
        assert "abcdef0123" not in viewer.ask("/").text
        made(tmp_path / "runs" / "other", ["honest"])
        assert ">runs/step-2000-core-abcdef0123<" in viewer.ask("/").text


def test_without_script_runs_are_chosen_by_a_plain_form(browser, viewer):
    with opened(browser, viewer, java_script_enabled=False) as page:
        row(page, "half").locator("input").check()
        row(page, "deep/none").locator("input").check()
        with page.expect_request(lambda request: "/compare" in request.url) as sent:
            page.get_by_role("button", name="Compare").click()
        assert sent.value.url.startswith(f"{viewer.origin}/compare?runs=")


def test_every_column_sorts_both_ways(browser, viewer):
    """By links, so that an order can be sent to somebody. What is not known comes last."""
    with opened(browser, viewer) as page:
        wait_until_read(page)
        page.get_by_role("link", name="P(lie)", exact=True).click()
        page.wait_for_url("**/?sort=p_lie&order=desc")
        down = names(page)
        page.get_by_role("link", name="P(lie)").click()
        page.wait_for_url("**/?sort=p_lie&order=asc")
        up = names(page)
        assert down.index("half") < down.index("deep/none")
        assert up.index("half") > up.index("deep/none")
        assert set(down[-2:]) == set(up[-2:]) == {"torn", "damaged"}
        assert page.locator("th[aria-sort=ascending]").inner_text().startswith("P(lie)")
        page.get_by_role("link", name="Model", exact=True).click()
        page.wait_for_url("**/?sort=model&order=asc")
        assert names(page)[0] == "deep/none"
    for name in ("name", "data", "judge", "state", "p_honest", "unjudged", "cost", "time"):
        for order in ("asc", "desc"):
            assert viewer.ask(f"/?sort={name}&order={order}").status == 200
    assert viewer.ask("/?sort=path").status == 404


def test_runs_are_chosen_and_compared_by_keys_alone(browser, viewer, runs):
    """j, k, x and c; the address names both runs by their keys."""
    with opened(browser, viewer, "/?sort=name&order=asc") as page:
        wait_until_read(page)
        assert page.get_by_role("button", name="Compare").is_disabled()
        page.keyboard.press("j")
        assert page.evaluate(FOCUSED) == "damaged"
        page.keyboard.press("j")
        assert page.evaluate(FOCUSED) == "deep/none"
        page.keyboard.press("x")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        assert page.evaluate(FOCUSED) == "half"
        page.keyboard.press("x")
        expect(page.locator("#chosen")).to_have_text("2 chosen")
        with page.expect_request(lambda request: "/compare" in request.url) as sent:
            page.keyboard.press("c")
        keys = "&".join(f"runs={run_key(runs / name)}" for name in ("deep/none", "half"))
        assert sent.value.url == f"{viewer.origin}/compare?{keys}"


def test_the_board_takes_several_runs_or_all(viewer, runs):
    one, two = (run_key(runs / name) for name in ("half", "deep/none"))
    several = [
        viewer.ask(f"/board?{query}").text for query in (f"runs={one}&runs={two}&runs={one}", f"runs={one},{two}")
    ]
    assert several[0] == several[1] != viewer.ask("/board").text
    assert viewer.ask(f"/compare?runs={one}").headers["Location"] == f"/?with={one}"
    assert viewer.ask("/board?runs=nothing").status == 404


def test_an_old_tab_says_that_its_viewer_has_ended(browser, runs, tmp_path, monkeypatch):
    """The page stays, and a line says why it cannot go on: after the end, and when another viewer has the port."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    with serving_app(runs) as first, chromium.blank_page(browser) as page:
        page.goto(first.address)
        page.wait_for_url(f"{first.origin}/")
        wait_until_read(page)
        page.context.set_offline(True)
        assert "has ended" in told(page)
        page.context.set_offline(False)
        page.evaluate("document.getElementById('told').remove()")
        page.context.clear_cookies()
        old = {"name": f"unmask-view-{first.port}", "value": "of an older viewer", "url": first.origin}
        page.context.add_cookies([old])
        assert "token of the viewer that is running now" in told(page)
        page.reload()
        assert "token of the viewer that is running now" in page.get_by_role("alert").inner_text()


def told(page: Page) -> str:
    """What the page says after it has asked the server for something."""
    page.evaluate("async () => { const {ask} = await import('/static/page.js'); await ask('/row/x'); }")
    return page.locator("#told").inner_text()


def test_a_run_that_goes_away_is_a_page(viewer, runs):
    """Renamed while it is shown: its row says that it is gone, and the others stay."""
    away = runs.parent / "away"
    key = run_key(runs / "half")
    assert viewer.ask(f"/row/{key}").status == 200
    (runs / "half").rename(away)
    try:
        gone = viewer.ask(f"/row/{key}")
        assert gone.status == 404
        assert "renamed or deleted" in gone.text
        assert key not in viewer.ask("/").text
    finally:
        away.rename(runs / "half")
