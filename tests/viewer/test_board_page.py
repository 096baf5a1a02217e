"""*Board* and *Grid* in a real Chromium: the numbers of `unmask board`, sorted by address, with links to the runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.made_runs import made
from tests.viewer.server import Viewer, run_key, serving_app
from tests.viewer.shown_runs import make_unit
from tests.viewer.test_live_page import opened, refuse_violations
from unmask.analysis import board as boards
from unmask.analysis.board import board
from unmask.files import Lock
from unmask.render.describe.several import label_model
from unmask.sweep.state import store_sweep
from unmask.viewer.pages.grid import name_columns

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
        rows = page.locator("table.board tbody tr")
        assert rows.count() == len(expected.rows)
        for number, row in enumerate(expected.rows):
            text, link = rows.nth(number).inner_text(), rows.nth(number).get_by_role("link").first
            assert link.inner_text() == label_model(row.model, row.variant)
            assert link.get_attribute("href") == f"/run/{run_key(runs / row.name)}"
            honesty = row.rates["honesty"].value
            assert honesty is not None
            assert f"{100 * honesty:.1f}\N{NO-BREAK SPACE}%" in text
            assert (row.unranked or "") in text
        warnings = [warning for row in expected.rows for warning in row.warnings]
        assert warnings
        assert [warning for warning in warnings if warning not in page.locator("main").inner_text()] == []
        refuse_violations(page)


def test_a_column_sorts_by_its_address(viewer: Viewer, browser: Browser):
    """Down first, then up; what was chosen stays chosen."""
    with opened(browser, viewer, "/board") as page:
        heading = page.get_by_role("columnheader", name="P(honest)").first
        for order in ("descending", "ascending"):
            heading.get_by_role("link").click()
            expect(heading).to_have_attribute("aria-sort", order)
            assert "sort=p_honest" in page.url
            shares = page.locator("table.board").first.locator("tbody tr td:nth-child(6)").all_inner_texts()
            values = [float(re.match(r"[\d.]+", share)[0]) for share in shares]
            assert len(set(values)) > 2
            assert values == sorted(values, reverse=order == "descending")


def test_runs_are_chosen_and_published_values_shown_by_a_tick(runs: Path, viewer: Viewer, browser: Browser):
    two = f"{run_key(runs / 'plain')},{run_key(runs / 'step-900')}"
    with opened(browser, viewer, f"/board?runs={two}") as page:
        assert page.locator("table.board tbody tr").count() == 2
        assert page.get_by_role("heading", name="Published").count() == 0
        page.get_by_label("with published values").check()
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("heading", name="Published")).to_be_visible()
        assert page.locator("table.board tbody tr").count() == 2
        assert page.locator(".published tbody tr").count() > 50
        page.evaluate("document.querySelectorAll('.published tbody tr:nth-child(n+4)').forEach((row) => row.remove())")
        refuse_violations(page)
    assert viewer.ask("/board?runs=000000000000").status == 404


def test_a_run_is_measured_once_until_it_changes(runs: Path, tmp_path: Path, monkeypatch):
    measured: list[str] = []
    real = boards.measure_unjudged

    def count(*arguments, **settings):
        measured.append("run")
        return real(*arguments, **settings)

    monkeypatch.setattr(boards, "measure_unjudged", count)
    shutil.copytree(runs / "plain", tmp_path / "plain")
    shutil.copytree(runs / "step-900", tmp_path / "step-900")
    with serving_app(tmp_path) as viewer:
        first = viewer.ask("/board").text
        assert viewer.ask("/board").text == first
        assert viewer.ask("/grid").status == 200
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
        for path in ("/board", "/grid"):
            answer = viewer.ask(path)
            assert answer.status == 200
            assert "step-900</bdi> is left out" in answer.text
            assert "without any reply" in answer.text
            assert f'href="/run/{run_key(tmp_path / "plain")}"' in answer.text or path == "/grid"


def test_no_page_tries_a_lock_or_writes_into_a_run(runs: Path, viewer: Viewer, monkeypatch):
    """A run at work is never in a reader's way, nor a reader in a run's."""

    def refuse(lock: Lock) -> None:
        raise AssertionError(f"{lock.path} was tried")

    before = {file: file.stat().st_mtime_ns for file in runs.rglob("*")}
    monkeypatch.setattr(Lock, "take", refuse)
    for path in ("/board", "/grid", f"/run/{run_key(runs / 'plain')}/live", f"/run/{run_key(runs / 'plain')}/events"):
        assert viewer.ask(path).status == 200
    assert {file: file.stat().st_mtime_ns for file in runs.rglob("*")} == before


@pytest.mark.parametrize("path", ["/board", "/grid"])
def test_an_empty_folder_says_what_to_do(tmp_path: Path, path: str):
    with serving_app(tmp_path) as viewer:
        answer = viewer.ask(path)
    assert answer.status == 200
    assert "unmask run" in answer.text


def test_the_grid_has_models_down_and_what_differs_across(runs: Path, viewer: Viewer, browser: Browser):
    """Checkpoints in the order of their numbers, each cell with its run."""
    with opened(browser, viewer, "/grid") as page:
        table = page.locator("table.runs-grid")
        assert table.locator("thead th").all_inner_texts() == ["model", "takes 1", "takes 2"]
        rows = table.locator("tbody th").all_inner_texts()
        assert rows == [*(f"scripted/gates-7b-step-{number}" for number in (900, 1000, 2000)), "scripted/plain"]
        cell = table.locator("tbody tr").nth(2).locator("td").nth(1)
        assert cell.get_by_role("link").get_attribute("href") == f"/run/{run_key(runs / 'step-2000-two')}"
        assert "66.7" in cell.inner_text()
        assert table.locator("tbody tr").last.locator("td").last.inner_text() == "not run"
        refuse_violations(page)


def test_checkpoints_are_a_curve_with_a_table_beside_it(viewer: Viewer, browser: Browser):
    with opened(browser, viewer, "/grid") as page:
        series = page.locator("section.checkpoints")
        assert series.count() == 2
        assert series.first.get_by_role("heading").inner_text() == "P(lie) over step"
        assert series.first.locator("svg.plot circle").count() == 3
        assert series.first.locator("tbody th").all_inner_texts() == ["900", "1000", "2000"]
        assert series.first.locator("tbody td:nth-child(2)").first.inner_text() == "11.1\N{NO-BREAK SPACE}%"


def test_one_run_is_no_grid(runs: Path, viewer: Viewer):
    answer = viewer.ask(f"/grid?runs={run_key(runs / 'plain')}")
    assert "nothing to lay out" in answer.text
    assert "<table" not in answer.text


def test_a_column_names_only_settings_that_tell_more_runs_apart():
    """The hash of the data says nothing that its name has not said."""
    columns = name_columns(
        {
            "a": {"data": "core", "data hash": "1", "takes": "1"},
            "b": {"data": "core", "data hash": "1", "takes": "5"},
            "c": {"data": "other", "data hash": "2", "takes": "5"},
        }
    )
    assert columns == {"a": "data core, takes 1", "b": "data core, takes 5", "c": "data other, takes 5"}


def test_who_lends_probes_makes_no_column():
    """In a sweep each model has a lender of its own, and its treatments stand in one column all the same."""
    columns = name_columns(
        {
            "a": {"developer prompt": None, "beliefs from": None},
            "a treated": {"developer prompt": "stakes", "beliefs from": "run-1"},
            "b treated": {"developer prompt": "stakes", "beliefs from": "run-2"},
        }
    )
    assert columns["a treated"] == columns["b treated"] == "developer prompt stakes"


def test_a_sweep_is_a_grid_that_names_units_without_a_reply(runs: Path, tmp_path: Path):
    """A model that was never begun has its row; the list of runs leads to the grid of the sweep."""
    sweep = tmp_path / "nov"
    for name in ("step-900", "step-1000"):
        shutil.copytree(runs / name, sweep / "runs" / name)
    shutil.copytree(runs / "plain", tmp_path / "elsewhere")
    names = ("step-900", "step-1000", "step-5000")
    store_sweep(sweep, tuple(make_unit(name, f"scripted/gates-7b-{name}") for name in names))
    with serving_app(tmp_path) as viewer:
        address = f"/grid?sweep={run_key(sweep)}"
        assert f'href="{address}"' in viewer.ask("/").text
        text = viewer.ask(address).text
        assert "1 of 3 units of <bdi>nov</bdi> have no reply yet" in text
        assert '<th scope="row"><bdi>scripted/gates-7b-step-5000</bdi>' in text
        assert "scripted/plain" not in text
        assert "scripted/plain" in viewer.ask("/grid").text
        (sweep / "sweep.json").write_text("{torn")
        damaged = viewer.ask(address)
        assert damaged.status == 200
        assert "sweep.json cannot be read" in damaged.text
        assert viewer.ask("/grid?sweep=000000000000").status == 404


@pytest.mark.parametrize("path", ["/board?published=1", "/grid"])
def test_no_page_is_wider_than_the_screen(viewer: Viewer, browser: Browser, path: str):
    with opened(browser, viewer, path, viewport={"width": 400, "height": 900}) as page:
        for width in (400, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
