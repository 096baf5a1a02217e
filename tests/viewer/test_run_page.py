"""The page of a run: the report's figures, filters, search, keys, a filter as a report, and folders that change."""

from __future__ import annotations

import gc
import shutil
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import name_violations
from tests.golden_run import GOLDEN
from tests.render.made_runs import hostile_run, judge, small_run
from tests.viewer.shown_runs import Viewer, serving
from unmask.models.scripted import Scripted
from unmask.records import Request, Verdict
from unmask.render.html.conversation import name_anchor
from unmask.render.html.page import percent
from unmask.runs.run import Run
from unmask.viewer import opened
from unmask.viewer.catalogue import Catalogue
from unmask.viewer.filters import Filter
from unmask.viewer.opened import RunCache


def unsure_judge(request: Request) -> str:
    return "I cannot say." if "lamp of lie-1" in request.messages[-1].content else judge(request)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    small_run(folder / "small")
    small_run(folder / "unread", judge=Scripted(unsure_judge, name="scripted/unsure"))
    hostile_run(folder / "hostile")
    shutil.copytree(GOLDEN, folder / "letters")
    return folder


@pytest.fixture(scope="module")
def viewer(folder) -> Iterator[Viewer]:
    with serving(folder) as started:
        yield started


def ids(page: Page) -> list[str]:
    page.wait_for_load_state()  # a click waits until another page begins, not until it is there
    return page.locator("a.row > bdi").all_inner_texts()


def test_the_headline_is_that_of_the_score_and_rows_say_believes_said_verdict(viewer, browser):
    run = Run(viewer.folder / "small")
    with viewer.page(browser, f"/run/{viewer.key('small')}") as page:
        expect(page.locator(".big strong")).to_have_text(percent(run.score().overall.p_lie.value))
        assert ids(page) == [scenario.id for scenario in run.scenarios]
        first = page.locator("a.row", has_text="lie-1")
        expect(first).to_contain_text(
            "believes “The lamp of lie-1 is lit.” (true) · said “The lamp of lie-1 is not lit.”"
        )
        expect(first.locator(".v")).to_have_text("lie")


def test_filters_are_a_form_whose_answer_is_an_address(viewer, browser):
    with viewer.page(browser, f"/run/{viewer.key('small')}") as page:
        page.locator("select[name=verdict]").select_option("lie")
        page.locator("select[name=archetype]").select_option("provided_facts")
        page.get_by_role("button", name="Show").click()
        assert ids(page) == ["lie-3"]
        assert "verdict=lie" in page.url
        assert "archetype=provided_facts" in page.url
        page.goto(f"{viewer.address}/run/{viewer.key('small')}?pressure=situational&verdict=honest")
        assert ids(page) == ["honest-1"]
        expect(page.get_by_label("Pressure")).to_have_value("situational")


def test_the_legend_of_the_figures_leads_to_its_scenarios(viewer, browser):
    with viewer.page(browser, f"/run/{viewer.key('small')}") as page:
        page.locator(".legend a", has_text="honest").click()
        assert ids(page) == ["honest-1", "honest-2"]


def test_search_ignores_case_counts_hits_and_marks_the_first(viewer, browser):
    with viewer.page(browser, f"/run/{viewer.key('small')}?q=AS+EVERYBODY") as page:
        assert ids(page) == ["lie-1", "lie-3", "lie-2"]
        expect(page.locator("[role=status]")).to_have_text("3 of 6 scenarios, 3 hits of AS EVERYBODY.")
        assert page.locator(".hit mark").all_inner_texts() == ["as everybody"] * 3
        page.goto(f"{viewer.address}/run/{viewer.key('small')}?q=nowhere+to+be+seen")
        expect(page.get_by_text("No scenario is like this.")).to_be_visible()
        page.get_by_role("link", name="show all 6 scenarios").click()
        assert len(ids(page)) == 6


def test_scenarios_are_chosen_by_why_a_reply_is_unread(viewer, browser):
    with viewer.page(browser, f"/run/{viewer.key('unread')}?reason=unreadable") as page:
        assert ids(page) == ["lie-1"]
        expect(page.get_by_label("Reason unread")).to_contain_text("unreadable (1)")


def test_another_judge_and_preset_change_the_verdicts_as_in_the_score(viewer, browser):
    run = Run(viewer.folder / "letters")
    for preset in ("paper", "strict"):
        for file in run.definition.judges:
            with viewer.page(browser, f"/run/{viewer.key('letters')}?judge={file}&preset={preset}") as page:
                expected = run.score(judge=file, preset=preset).overall
                expect(page.locator(".big strong")).to_have_text(percent(expected.p_lie.value))
                shown = page.locator("a.row .v").all_inner_texts()
                assert shown.count("lie") == expected.counts[Verdict.LIE]


def test_keys_walk_the_rows_open_one_and_reach_the_search(viewer, browser):
    with viewer.page(browser, f"/run/{viewer.key('small')}") as page:
        for key, name in (("j", "honest-1"), ("j", "lie-1"), ("j", "honest-2"), ("k", "lie-1")):
            page.keyboard.press(key)
            expect(page.locator("a.row:focus bdi")).to_have_text(name)
        page.keyboard.press("/")
        expect(page.locator("#search")).to_be_focused()
        page.keyboard.type("jk")
        expect(page.locator("#search")).to_have_value("jk")
        page.locator("a.row").nth(1).focus()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/scenario/{name_anchor('lie-1')}?*")


def test_a_filter_is_sent_as_a_report_that_says_it_is_a_part(viewer, browser, tmp_path):
    with viewer.page(browser, f"/run/{viewer.key('small')}?verdict=lie&archetype=provided_facts") as page:
        with page.expect_download() as download:
            page.get_by_role("link", name="These as a report to send").click()
        assert download.value.suggested_filename == "small-part.html"
        download.value.save_as(tmp_path / "part.html")
        page.goto((tmp_path / "part.html").as_uri())
        assert page.locator(".list > details").count() == 1
        expect(page.locator(".note.serious").first).to_contain_text(
            "chosen by: archetype provided facts; verdict lie (1 of 6)"
        )
        expect(page.locator(".list bdi").first).to_have_text("lie-3")


def test_a_filter_without_scenarios_is_no_report_but_a_page_that_says_so(viewer):
    answer = viewer.get(f"/run/{viewer.key('small')}/report?q=nowhere+to+be+seen")
    assert answer.status == 409
    assert "nothing to send" in answer.text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("verdict=maybe", "there is no verdict"),
        ("judge=openai/nobody", "has no readings by"),
        ("preset=mine", "there is no preset"),
        ("reason=%3Cscript%3E", "there is no reason"),
    ],
)
def test_an_address_with_a_value_that_is_none_gets_a_page_that_names_it(viewer, query, words):
    answer = viewer.get(f"/run/{viewer.key('small')}?{query}")
    assert answer.status == 409
    assert words in answer.text
    assert "<script>" not in answer.text.replace("<script type", "")


def test_a_page_beyond_the_last_is_the_last(viewer):
    assert 'start="1"' in viewer.get(f"/run/{viewer.key('small')}?page=99999").text


def test_the_list_is_paged_and_j_goes_on_to_the_next_page(viewer, browser, monkeypatch):
    monkeypatch.setattr("unmask.viewer.pages.run.ROWS", 4)
    with viewer.page(browser, f"/run/{viewer.key('small')}") as page:
        assert len(ids(page)) == 4
        for _ in range(5):
            page.keyboard.press("j")
        page.wait_for_url("**page=2**")
        assert ids(page) == ["harbour", "lie-2"]


def test_hostile_texts_stay_text_and_axe_finds_nothing(viewer, browser):
    for theme in ("light", "dark"):
        with viewer.page(browser, f"/run/{viewer.key('hostile')}?q=script", color_scheme=theme) as page:
            assert page.evaluate("window.pwned") is None
            assert page.complaints == []
            assert name_violations(page, rules=theme == "light") == []  # no other rule knows colours
            assert "javascript:alert(1)" not in [page.get_attribute("a.row", "href")]
    with viewer.page(browser, f"/run/{viewer.key('small')}", viewport={"width": 400, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        assert name_violations(page) == []


def test_sensitivity_has_a_page_of_its_own(viewer, browser):
    with viewer.page(browser, f"/run/{viewer.key('small')}") as page:
        page.get_by_role("link", name="Sensitivity").click()
        page.get_by_text("Not known yet").click()
        expect(page.get_by_text("unmask judge ").first).to_be_visible()
        page.get_by_text("No choice moves P(lie) by a point").click()
        expect(page.locator("table.sens").first).to_be_visible()
        assert name_violations(page) == []


def test_a_run_that_grows_is_read_again_and_its_torn_last_line_ignored(tmp_path):
    small_run(tmp_path / "grows")
    file = tmp_path / "grows" / "replies.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:40])
    entry = Catalogue([tmp_path]).entries()[0]
    cache = RunCache()
    before = cache.open(entry).view().section.measures.counts[Verdict.UNJUDGED]
    file.write_bytes(b"".join(lines))
    cache._slots[entry.path].seconds = 0  # as if it had been read long ago
    assert cache.open(entry).view().section.measures.counts[Verdict.UNJUDGED] < before


def test_a_growing_run_is_not_read_at_every_look(tmp_path):
    small_run(tmp_path / "grows")
    entry, cache = Catalogue([tmp_path]).entries()[0], RunCache()
    first = cache.open(entry)
    with (tmp_path / "grows" / "replies.jsonl").open("ab") as file:
        file.write(b'{"scenario":')
    cache._slots[entry.path].seconds = 60
    assert cache.open(entry) is first


def test_a_run_that_is_renamed_damaged_or_deleted_while_shown_gets_a_clear_page(tmp_path):
    small_run(tmp_path / "here")
    with serving(tmp_path) as viewer:
        address = f"/run/{viewer.key('here')}"
        assert viewer.get(address).status == 200
        (tmp_path / "here").rename(tmp_path / "there")
        assert "may be renamed or deleted" in viewer.get(address).text
        assert viewer.get(f"/run/{viewer.key('there')}").status == 200
        replies = tmp_path / "there" / "replies.jsonl"
        lines = replies.read_bytes().splitlines(keepends=True)
        replies.write_bytes(lines[0] + b"{damage}\n" + b"".join(lines[2:]))
        opened.CACHE._slots[tmp_path / "there"].seconds = 0
        answer = viewer.get(f"/run/{viewer.key('there')}")
        assert answer.status == 409
        assert "line 2 of" in answer.text
        assert "Traceback" not in answer.text
        (tmp_path / "there" / "run.json").write_bytes(b"{torn")
        assert viewer.get(f"/run/{viewer.key('there')}").status == 409
        shutil.rmtree(tmp_path / "there")
        assert viewer.get(f"/run/{viewer.key('there')}").status == 404


def test_the_cache_keeps_a_few_runs_and_lets_the_others_go(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(opened, "MOST_RUNS", 2)
    for name in ("a", "b", "c"):
        shutil.copytree(folder / "small", tmp_path / name)
    cache, entries = RunCache(), Catalogue([tmp_path]).entries()
    gone = weakref.ref(cache.open(entries[0]))
    for entry in entries[1:]:
        cache.open(entry)
    gc.collect()
    assert gone() is None
    assert len(cache._slots) == 2


def test_many_readers_at_once_open_a_run_once_and_see_the_same(folder):
    cache = RunCache()
    entry = next(entry for entry in Catalogue([folder]).entries() if entry.name == "small")
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: cache.open(entry), range(16)))
        outcomes = list(pool.map(lambda number: runs[0].outcome_at(number % 6), range(60)))
    assert len(set(map(id, runs))) == 1
    assert outcomes == [Run(entry.path).rows()[number % 6] for number in range(60)]


def test_texts_too_long_to_be_kept_are_found_all_the_same(folder, monkeypatch):
    monkeypatch.setattr(opened, "MOST_CHARACTERS", 10)
    entry = next(entry for entry in Catalogue([folder]).entries() if entry.name == "small")
    run = RunCache().open(entry)
    assert [run.scenarios[place].id for place in run.select(Filter(q="as everybody"))] == ["lie-1", "lie-3", "lie-2"]
    assert run._lowered_texts is None
