"""*Board* in a real Chromium: the numbers of `unmask board`, with links to the runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.made_runs import made
from tests.viewer.server import Viewer, opened, refuse_violations, run_key, serving_app
from unmask.analysis import board as boards
from unmask.analysis.board import board
from unmask.render.describe.several import label_model
from unmask.viewer import cache

LIES = {"step-900": 2, "step-1000": 6, "step-2000": 12}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Three checkpoints with one and two takes, and another model."""
    root = tmp_path_factory.mktemp("sweep")
    for name, lies in LIES.items():
        plan = ["lie"] * lies + ["honest"] * (18 - lies)
        made(root / name, plan, model=f"gates-7b-{name}")
        made(root / f"{name}-two", plan, model=f"gates-7b-{name}", takes=2, temperature=0.0)
    made(root / "plain", ["evasion"] * 18, model="plain")
    return root


@pytest.fixture(scope="module")
def viewer(runs: Path) -> Iterator[Viewer]:
    with serving_app(runs) as started:
        yield started


def test_the_board_says_what_the_command_says(runs: Path, viewer: Viewer, browser: Browser):
    """The same rows in the same order with the same places; every row leads to its run."""
    expected = board(sorted(path for path in runs.iterdir()))
    with opened(browser, viewer, "/board") as page:
        text = page.locator("main").inner_text()
        rows = page.locator("main tbody tr").filter(has=page.get_by_role("link"))
        assert rows.count() == len(expected.rows)
        for number, row in enumerate(expected.rows):
            link = rows.nth(number).get_by_role("link")
            assert link.inner_text().startswith(label_model(row.model, row.variant))
            assert link.get_attribute("href") == f"/run/{run_key(runs / row.name)}"
            share = row.rates["p_lie"].value
            assert share is not None
            assert f"{100 * share:.1f}" in rows.nth(number).inner_text()
            assert (row.unranked or "") in text
        warnings = [warning for row in expected.rows for warning in row.warnings]
        assert warnings
        assert [warning for warning in warnings if warning not in text] == []
        refuse_violations(page)


def test_runs_are_chosen_and_published_values_shown_by_a_tick(runs: Path, viewer: Viewer, browser: Browser):
    two = f"{run_key(runs / 'plain')},{run_key(runs / 'step-900')}"
    with opened(browser, viewer, f"/board?runs={two}") as page:
        assert page.locator("main tbody tr").filter(has=page.get_by_role("link")).count() == 2
        assert page.get_by_role("heading", name="Published").count() == 0
        page.get_by_label("with published values").check()
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("heading", name="Published")).to_be_visible()
        assert page.locator("main tbody tr").filter(has=page.get_by_role("link")).count() == 2
        assert page.locator("main tbody").last.locator("tr").count() > 50
        page.evaluate("document.querySelectorAll('tbody tr:nth-child(n+4)').forEach((row) => row.remove())")
        refuse_violations(page)
    assert viewer.ask("/board?runs=000000000000").status == 404


def test_a_run_is_measured_once_until_it_changes(runs: Path, tmp_path: Path, monkeypatch):
    measured: list[str] = []
    real = boards.measure_unjudged

    def count(*arguments, **settings):
        measured.append("run")
        return real(*arguments, **settings)

    monkeypatch.setattr(boards, "measure_unjudged", count)
    monkeypatch.setattr(cache, "FRESH", 0.0)
    shutil.copytree(runs / "plain", tmp_path / "plain")
    shutil.copytree(runs / "step-900", tmp_path / "step-900")
    with serving_app(tmp_path) as viewer:
        first = viewer.ask("/board").text
        assert viewer.ask("/board").text == first
        assert len(measured) == 2
        replies = tmp_path / "plain" / "replies.jsonl"
        replies.write_bytes(b"".join(replies.read_bytes().splitlines(keepends=True)[:-1]))
        assert viewer.ask("/board").text != first
    assert len(measured) == 3


def test_a_damaged_run_and_one_without_replies_keep_no_other_away(runs: Path, tmp_path: Path):
    for name in ("plain", "step-900", "step-1000"):
        shutil.copytree(runs / name, tmp_path / name)
    (tmp_path / "step-900" / "scenarios.jsonl").write_text("{torn\n{more\n")
    (tmp_path / "step-1000" / "replies.jsonl").unlink()
    with serving_app(tmp_path) as viewer:
        answer = viewer.ask("/board")
        assert answer.status == 200
        assert "step-900</bdi> is left out" in answer.text
        assert "nothing was judged" in answer.text
        assert f'href="/run/{run_key(tmp_path / "plain")}"' in answer.text


def test_an_empty_folder_says_what_to_do(tmp_path: Path):
    with serving_app(tmp_path) as viewer:
        answer = viewer.ask("/board")
    assert answer.status == 200
    assert "unmask run" in answer.text
