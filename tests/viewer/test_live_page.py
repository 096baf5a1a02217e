"""*Live* in a real Chromium: it follows a real run, and says what became of one that was killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect

from bench.planted import write_jsonl
from bench.process import ROOT
from tests.faults.served import Served, flags, serving
from tests.patience import PATIENCE
from tests.viewer.server import opened, refuse_violations, run_key, serving_app


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
            journal = folder / "replies.jsonl"
            while not (journal.exists() and journal.stat().st_size) and time.monotonic() < until:
                time.sleep(0.05)
            yield process, served
        finally:
            process.kill()
            process.wait()


def test_a_real_run_is_followed_to_its_end(tmp_path: Path, browser: Browser):
    """Without a reload: done grows, and at the end it says so and leads to the run."""
    folder = tmp_path / "run"
    with (
        planted_run(folder, 24) as (process, served),
        serving_app(tmp_path) as viewer,
        opened(browser, viewer, f"/run/{run_key(folder)}/live") as page,
    ):
        page.evaluate("window.same = true")
        live = page.locator("#live")
        expect(live).to_contain_text("Running")
        expect(live).to_contain_text("Last answer")
        refuse_violations(page)
        served.endpoint.latency = 0.1
        expect(live).to_contain_text("Done")
        assert process.wait(PATIENCE) == 0
        expect(live).to_contain_text("24 of 24 scenarios")
        assert live.get_by_role("link", name="Open the run").get_attribute("href") == f"/run/{run_key(folder)}"
        assert page.evaluate("window.same")
        refuse_violations(page)


def test_a_killed_run_is_stopped_and_the_page_names_what_continues_it(tmp_path: Path, browser: Browser):
    """The open page finds out by itself: nobody holds the lock."""
    folder = tmp_path / "run"
    with (
        planted_run(folder, 40) as (process, _),
        serving_app(tmp_path) as viewer,
        opened(browser, viewer, f"/run/{run_key(folder)}/live") as page,
    ):
        expect(page.locator("#live")).to_contain_text("Running")
        process.kill()
        process.wait()
        expect(page.locator("#live")).to_contain_text("Stopped")
        typed = page.locator("pre.command").inner_text()
        assert typed.startswith("unmask run ")
        assert typed.count(str(folder)) == 1
        refuse_violations(page)
