"""*Live* in a real Chromium: it follows a real run, and says what became of one that was killed, torn or deleted."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from bench.planted import write_jsonl
from bench.process import ROOT
from tests.browser import chromium
from tests.browser.axe import find_violations
from tests.faults.served import Served, flags, serving
from tests.made_runs import made
from tests.patience import PATIENCE
from tests.viewer.server import Viewer, run_key, running_viewer, serving_app
from unmask.runs.status import FRESH, read_status, status_path
from unmask.viewer.pages import live


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_INTERVAL", 0.2)


@contextmanager
def opened(browser: Browser, viewer: Viewer, path: str, **settings) -> Iterator[Page]:
    """A page of the viewer. Nothing may be said on the console."""
    with chromium.blank_page(browser, **settings) as page:
        complaints: list[str] = []
        chromium.hear(page, "console", lambda said: complaints.append(said.text) if "404" not in said.text else None)
        chromium.hear(page, "pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{viewer.origin}{path}{'&' if '?' in path else '?'}token={viewer.token}")
        page.wait_for_url(lambda url: "token=" not in url)
        yield page
        assert complaints == []


def refuse_violations(page: Page) -> None:
    """axe finds no serious fault. Only contrast depends on the theme."""
    page.emulate_media(color_scheme="light")
    found = find_violations(page)
    page.emulate_media(color_scheme="dark")
    found += find_violations(page, rules=False)
    bad = [rule for rule in found if rule["impact"] in {"serious", "critical"}]
    assert [(rule["id"], [node["html"][:120] for node in rule["nodes"]][:3]) for rule in bad] == []


@contextmanager
def planted_run(folder: Path, scenarios: int) -> Iterator[tuple[subprocess.Popen[bytes], Served]]:
    """A real run that takes half a minute, if the endpoint is not made quicker. Killed at the end."""
    with serving(scenarios, latency=1.0) as served:
        data = write_jsonl(served.plants, folder.parent / "planted.jsonl")
        command = [sys.executable, "-m", "unmask.cli.start", "run", *flags(served, data, folder)]
        process = subprocess.Popen(
            [*command, "--max-connections", "10"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            until = time.monotonic() + PATIENCE
            while not (read_status(folder).status and (folder / "run.json").exists()) and time.monotonic() < until:
                time.sleep(0.05)
            yield process, served
        finally:
            process.kill()
            process.wait()


def put_picture(folder: Path, **changes: object) -> None:
    """Change the picture of a finished run, as a run at work would. It stays fresh for as long as the test needs."""
    status = read_status(folder).status
    assert status is not None
    status_path(folder).write_bytes(msgspec.json.encode(msgspec.structs.replace(status, **changes)))
    os.utime(status_path(folder), (time.time(), time.time() + 3600))


def test_a_real_run_is_followed_to_its_end(tmp_path: Path, browser: Browser):
    """Without a reload: done grows, newest scenarios are links, and at the end it says so and leads to the run."""
    folder = tmp_path / "run"
    with planted_run(folder, 24) as (process, served), serving_app(tmp_path) as viewer:
        path = f"/run/{run_key(folder)}/live"
        with opened(browser, viewer, path) as page:
            page.evaluate("window.same = true")
            state = page.locator("[data-part=state]")
            expect(state).to_contain_text("Running")
            expect(page.locator("[data-part=trouble]")).to_contain_text("connections")
            refuse_violations(page)
            served.endpoint.latency = 0.1
            expect(page.locator(".newest tbody a").nth(2)).to_be_visible()
            assert (
                page.locator(".newest a").first.get_attribute("href").startswith(f"/run/{run_key(folder)}/scenario/s-")
            )
            expect(state).to_contain_text("Ended")
            assert process.wait(PATIENCE) == 0
            expect(page.locator("[data-part=done]")).to_contain_text("24 of 24 scenarios")
            assert state.get_by_role("link", name="Open the run").get_attribute("href") == f"/run/{run_key(folder)}"
            assert page.evaluate("window.same")
            refuse_violations(page)


def test_a_killed_run_is_stopped_and_the_page_names_what_continues_it(tmp_path: Path, browser: Browser):
    """The open page finds out by itself once the picture is old."""
    folder = tmp_path / "run"
    path = f"/run/{run_key(folder)}/live"
    with (
        planted_run(folder, 40) as (process, _),
        serving_app(tmp_path) as viewer,
        opened(browser, viewer, path) as page,
    ):
        expect(page.locator("[data-part=state]")).to_contain_text("Running")
        process.kill()
        process.wait()
        os.utime(status_path(folder), (time.time(), time.time() - FRESH))
        expect(page.locator("[data-part=state]")).to_contain_text("Stopped")
        typed = page.locator("pre.command").inner_text()
        assert typed.startswith("unmask run --data")
        assert typed.count(str(folder)) == 1
        refuse_violations(page)


@pytest.mark.parametrize("content", [b"", b'{"done":', b"\xff" * 50, None])
def test_a_run_without_a_picture_that_can_be_read(tmp_path: Path, content: bytes | None):
    made(tmp_path / "run", ["lie"] * 3)
    if content is None:
        status_path(tmp_path / "run").unlink()
    else:
        status_path(tmp_path / "run").write_bytes(content)
    with serving_app(tmp_path) as viewer:
        answer = viewer.ask(f"/run/{run_key(tmp_path / 'run')}/live")
    assert answer.status == 200
    assert "Nothing to see" in answer.text
    assert f'href="/run/{run_key(tmp_path / "run")}"' in answer.text


def test_a_folder_that_is_deleted_while_it_is_followed(tmp_path: Path, browser: Browser):
    folder = tmp_path / "run"
    made(folder, ["lie"] * 3)
    put_picture(folder, ended=None)
    with serving_app(tmp_path) as viewer, opened(browser, viewer, f"/run/{run_key(folder)}/live") as page:
        expect(page.locator("[data-part=state]")).to_contain_text("Running")
        shutil.rmtree(folder)
        expect(page.locator("[data-part=state]")).to_contain_text("Gone")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("This page cannot be shown")


def test_pauses_and_errors_are_text_whatever_they_hold(tmp_path: Path, browser: Browser):
    """Markup in an id, an address or an error of an endpoint does nothing."""
    folder = tmp_path / "run"
    made(folder, ["lie"] * 3)
    status = read_status(folder).status
    assert status is not None
    hostile = "</script><img src=x onerror='window.pwned=1'>"
    endpoint = msgspec.structs.replace(status.endpoints[0], name=hostile, error=hostile, pause=30.0)
    newest = msgspec.structs.replace(status.newest[0], id=hostile)
    put_picture(folder, ended=None, endpoints=(endpoint,), newest=(newest,), judge=hostile, work="judge")
    with serving_app(tmp_path) as viewer, opened(browser, viewer, f"/run/{run_key(folder)}/live") as page:
        trouble = page.locator("[data-part=trouble]")
        expect(trouble).to_contain_text("paused for 30 s")
        expect(trouble).to_contain_text(f"being tried again: {hostile}")
        put_picture(folder, at=status.at + 1, ended=hostile)  # and what comes by event
        expect(page.locator("[data-part=state]")).to_contain_text(hostile)
        assert page.evaluate("window.pwned") is None
        assert page.locator("img").count() == 0


def test_a_list_that_has_the_focus_is_not_taken_away(tmp_path: Path, browser: Browser):
    """Everything else goes on; a hidden page lets its connection go and has it again when it is seen."""
    folder = tmp_path / "run"
    made(folder, ["lie"] * 3)
    put_picture(folder, ended=None)
    status = read_status(folder).status
    assert status is not None
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});" + (
        "document.dispatchEvent(new Event('visibilitychange')) }"
    )
    with serving_app(tmp_path) as viewer, opened(browser, viewer, f"/run/{run_key(folder)}/live") as page:
        expect(page.locator("#fed")).to_have_text("This page follows the run.")
        page.locator(".newest a").first.focus()
        put_picture(folder, ended=None, at=status.at + 1, calls=4711, newest=())
        expect(page.locator("[data-part=tiles]")).to_contain_text("4,711")
        assert page.evaluate("document.activeElement.closest('.newest') !== null")
        page.evaluate(hide, True)
        put_picture(folder, ended=None, at=status.at + 2, calls=4712)
        time.sleep(5 * live.LOOK_INTERVAL)
        expect(page.locator("[data-part=tiles]")).to_contain_text("4,711")
        page.evaluate(hide, False)
        expect(page.locator("[data-part=tiles]")).to_contain_text("4,712")


def test_without_script_a_link_refreshes_the_page(tmp_path: Path, browser: Browser):
    folder = tmp_path / "run"
    made(folder, ["lie"] * 3)
    put_picture(folder, ended=None)
    path = f"/run/{run_key(folder)}/live"
    with serving_app(tmp_path) as viewer, opened(browser, viewer, path, java_script_enabled=False) as page:
        put_picture(folder, ended="done")
        page.get_by_role("link", name="Refresh").click()
        expect(page.locator("[data-part=state]")).to_contain_text("Ended")


def open_stream(viewer: Viewer, folder: Path) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=PATIENCE)
    connection.request("GET", f"/run/{run_key(folder)}/events", headers={"Cookie": viewer.cookie})
    return connection, connection.getresponse()


def test_the_number_of_streams_is_bounded_and_a_closed_one_makes_room(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(live, "MOST_STREAMS", 2)
    folder = tmp_path / "run"
    made(folder, ["lie"] * 3)
    put_picture(folder, ended=None)
    os.utime(status_path(folder), (time.time(), time.time() - FRESH))  # stopped: its streams stay open
    with serving_app(tmp_path) as viewer:
        streams = [open_stream(viewer, folder) for _ in range(2)]
        for _, response in streams:
            assert response.status == 200
            assert response.getheader("Content-Type", "").startswith("text/event-stream")
            assert response.readline() == b"retry: 2000\n"
        refused, answer = open_stream(viewer, folder)
        assert answer.status == 503
        refused.close()
        for connection, _ in streams:
            connection.sock.close() if connection.sock else None
        streams[0][1].close()
        streams[1][1].close()
        until = time.monotonic() + PATIENCE
        while (again := open_stream(viewer, folder))[1].status != 200 and time.monotonic() < until:
            again[0].close()
            time.sleep(0.1)
        assert again[1].status == 200
        again[1].close()


def test_the_head_of_a_stream_ends(tmp_path: Path):
    made(tmp_path / "run", ["lie"] * 3)
    with serving_app(tmp_path) as viewer:
        assert viewer.ask(f"/run/{run_key(tmp_path / 'run')}/events", method="HEAD").status == 200
        assert viewer.ask("/run/000000000000/events").status == 404


def test_ctrl_c_ends_the_viewer_although_a_page_follows_a_run(tmp_path: Path):
    """By the stream's own doing: nothing is cancelled, and nothing is said about it."""
    folder = tmp_path / "runs" / "run"
    made(folder, ["lie"] * 3)
    put_picture(folder, ended=None)
    os.utime(status_path(folder), (time.time(), time.time() - FRESH))
    with running_viewer(tmp_path / "runs", cache=tmp_path / "cache") as viewer:
        _, response = open_stream(viewer, folder)
        assert response.readline() == b"retry: 2000\n"
        assert viewer.process is not None
        viewer.process.send_signal(signal.SIGINT)
        _, complaints = viewer.process.communicate(timeout=PATIENCE)
        response.read()
    assert "Cancel" not in complaints
    assert "Traceback" not in complaints
