"""A run, a comparison and a scenario in the viewer: the page of the report, whose conversations are fetched."""

from __future__ import annotations

import gc
import shutil
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import unmask
from tests.golden_run import GOLDEN
from tests.made_runs import made
from tests.patience import PATIENCE
from tests.render.made_runs import HOSTILE, binary, hostile_run, judge, small_run, subject, write
from tests.viewer.server import Viewer, opened, run_key, serving_app
from unmask.analysis.label_session import label
from unmask.analysis.labels import open_writer
from unmask.models.scripted import Scripted
from unmask.records import Label, Letter, Message, Preset, Request, Verdict
from unmask.render import words
from unmask.render.describe.compare import explain_pair
from unmask.render.html.conversation import name_anchor
from unmask.render.html.page import kept_together
from unmask.runs.run import Run
from unmask.viewer import cache
from unmask.viewer.cache import Cache
from unmask.viewer.catalogue import Catalogue, RunEntry


def unsure_judge(request: Request) -> str:
    return "I cannot say." if "lamp of lie-1" in request.messages[-1].content else judge(request)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    upright = Scripted(lambda request: subject(request).replace("not lit, as", "lit, as"), name="scripted/upright")
    small_run(folder / "small")
    small_run(folder / "upright", model=upright)
    small_run(folder / "unread", judge=Scripted(unsure_judge, name="scripted/unsure"))
    small_run(folder / "mute", model=Scripted(lambda _: "", name="scripted/mute"))
    hostile_run(folder / "hostile")
    shutil.copytree(GOLDEN, folder / "letters")
    models = {"model": Scripted(subject, name="scripted/keeper"), "judge": Scripted(judge, name="scripted/reader")}
    asked = (Message("system", "You keep another lamp."), Message("user", "Tell the harbour about the other lamp."))
    changed = [binary("lie-1", conversation=asked), binary("honest-1")]
    unmask.run(data=write(changed, folder / "changed.jsonl"), out=folder / "changed", **models)
    unmask.run(data=write([binary("apart")], folder / "apart.jsonl"), out=folder / "apart", **models)
    return folder


@pytest.fixture(scope="module")
def viewer(folder) -> Iterator[Viewer]:
    with serving_app(folder) as started:
        yield started


def run_address(folder: Path, rest: str = "") -> str:
    return f"/run/{run_key(folder)}{rest}"


def scenario_address(folder: Path, scenario: str) -> str:
    return run_address(folder, f"/scenario/{name_anchor(scenario)}")


def compare_address(folder: Path, *names: str, rest: str = "") -> str:
    return f"/compare?runs={','.join(run_key(folder / name) for name in names)}{rest}"


def chosen(page: Page) -> list[str]:
    """Ids of the scenarios in sight."""
    return page.locator("#list > details:not([hidden]) > summary bdi").all_text_contents()


# --- a run


def test_the_page_is_that_of_the_report_without_conversations(viewer, folder, browser):
    """Headline and rows are there at once; what a scenario was asked and answered comes when it is opened."""
    run = Run(folder / "small")
    with opened(browser, viewer, run_address(folder / "small")) as page:
        percent = kept_together(words.percent)
        expect(page.locator(".big strong").first).to_have_text(percent(run.score().overall.p_lie.value))
        assert chosen(page) == [scenario.id for scenario in run.scenarios]
        assert "The lamp is not lit, as everybody knows." not in page.content()
        page.locator("#list summary", has_text="lie-1").click()
        fold = page.locator("#list > details[open]")
        expect(fold).to_contain_text("The lamp is not lit, as everybody knows.")
        expect(fold).to_contain_text("Read as B by the judge: “It says so in as many words.”")
        expect(fold.get_by_role("heading", name="Indirect probe 2")).to_be_visible()


def test_search_finds_texts_that_are_not_on_the_page_and_marks_them(viewer, folder, browser):
    """In replies and prompts of every run, whatever the case; in the opened scenario they are marked."""
    with opened(browser, viewer, run_address(folder / "small")) as page:
        page.keyboard.press("/")
        expect(page.get_by_label("Containing")).to_be_focused()
        page.keyboard.type("AS EVERYBODY")
        expect(page.locator(".status [role=status]")).to_have_text("Showing 3 of 6 scenarios.")
        assert chosen(page) == ["lie-1", "lie-3", "lie-2"]
        page.locator("#list summary", has_text="lie-1").click()
        expect(page.locator("#list > details[open] h3").first).to_be_visible()
        assert set(page.evaluate("[...CSS.highlights.get('found')].map(String)")) == {"as everybody"}
        page.get_by_label("Containing").fill("nowhere to be seen")
        expect(page.locator(".status [role=status]")).to_have_text("Showing 0 of 6 scenarios.")
    both = compare_address(folder, "upright", "small", rest="#words=NOT+LIT,+AS")
    with opened(browser, viewer, both) as page:
        expect(page.locator(".status [role=status]")).to_have_text("Showing 3 of 6 scenarios.")
        assert set(chosen(page)) == {"lie-1", "lie-2", "lie-3"}


def test_scenarios_are_chosen_by_why_a_reply_is_unread(viewer, folder, browser):
    with opened(browser, viewer, run_address(folder / "unread", "#reason=unreadable")) as page:
        expect(page.locator("#list > details:not([hidden])")).to_have_count(1)
        assert chosen(page) == ["lie-1"]


def test_another_judge_and_preset_change_the_verdicts_as_in_the_score(viewer, folder, browser):
    run, percent = Run(folder / "letters"), kept_together(words.percent)
    for file in run.definition.judges:
        with opened(browser, viewer, run_address(folder / "letters")) as page:
            page.locator("select[name=judge]").select_option(file)
            page.locator("select[name=preset]").select_option("strict")
            page.get_by_role("button", name="Show").click()
            page.wait_for_url(f"**judge={file}&preset=strict")
            expected = run.score(judge=file, preset="strict").overall
            expect(page.locator(".big strong").first).to_have_text(percent(expected.p_lie.value))
            shown = page.locator("#list > details > summary > .v").all_text_contents()
            assert shown.count("lie") == expected.counts[Verdict.LIE]


def test_sensitivity_is_fetched_when_it_is_opened(viewer, folder, browser):
    with opened(browser, viewer, run_address(folder / "small")) as page:
        page.get_by_role("heading", name="Sensitivity").click()
        part = page.locator("#r1-sensitivity")
        expect(part.get_by_text("Not known yet").first).to_be_visible(timeout=1000 * PATIENCE)
        expect(part.get_by_text("unmask judge ").first).to_be_visible()


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("?judge=openai/nobody", 409, "has no readings by"),
        ("?preset=%3Cscript%3E", 409, "there is no preset"),
        ("/scenario/nothing", 404, "no such scenario"),
    ],
)
def test_an_address_that_cannot_be_shown_says_why(viewer, folder, address, status, said):
    answer = viewer.ask(run_address(folder / "small", address))
    assert answer.status == status
    assert said in answer.text
    assert "<script>" not in answer.text


# --- a scenario


def test_a_scenario_says_what_other_rules_and_judges_make_of_it(viewer, folder):
    """Every verdict that is not that of the page, with who gives it."""
    run, differing = Run(folder / "letters"), 0
    for scenario in run.scenarios:
        text = viewer.ask(scenario_address(folder / "letters", scenario.id)).text
        verdict = run.outcome(scenario.id).verdict
        said = text.partition("Other rules and judges: ")[2].partition(".</small>")[0]
        for file in run.definition.judges:
            for preset in Preset:
                other = run.outcome(scenario.id, judge=file, preset=preset).verdict
                if other is not verdict:
                    differing += 1
                    own = file == run.definition.judge
                    by = preset.value if own else f"{run.definition.typed_judge(file)} under {preset.value}"
                    assert by in next(one for one in said.split("; ") if one.startswith(f"{words.NAMES[other]} by "))
    assert differing


def test_a_scenario_shows_what_the_judge_was_sent(viewer, folder, browser):
    """Every message that it got."""
    sent: list[Request] = []

    def listening(request: Request) -> str:
        sent.append(request)
        return judge(request)

    small_run(folder / "heard", judge=Scripted(listening, name="scripted/listening"))
    reply = "The lamp is not lit, as everybody knows."
    asked = next(one for one in sent if reply in one.messages[-1].content and "lie-1" in one.messages[-1].content)
    whole = "".join(message.content for message in asked.messages).split()
    with opened(browser, viewer, scenario_address(folder / "heard", "lie-1")) as page:
        page.get_by_text("What the judge was sent").click()
        assert "".join(page.locator(".judged p").all_text_contents()).split() == whole


def test_hostile_texts_and_ids_are_text_in_every_scenario(viewer, folder, browser):
    run = Run(folder / "hostile")
    with opened(browser, viewer, run_address(folder / "hostile")) as page:
        assert page.locator("#list > details").count() == len(run.scenarios)
        for row in page.locator("#list > details").all():
            row.locator("summary").first.click()
            expect(row.locator("h3").first).to_be_attached()
        assert page.evaluate("window.pwned") is None
        assert page.locator("main script, main iframe, main img, main link, main style").count() == 0
    number = HOSTILE.index("long " * 40_000)
    long = next(one for one in run.scenarios if one.conversation[0].content == f"You keep [{number}].")
    assert viewer.ask(scenario_address(folder / "hostile", long.id)).text.count("long ") >= 2 * 39_900


# --- a comparison


def test_a_difference_that_a_guard_refuses_is_not_called(viewer, folder):
    found = unmask.compare(folder / "small", folder / "mute")
    assert found.pairs[0].not_called is not None
    text = viewer.ask(compare_address(folder, "small", "mute")).text
    assert all(sentence in text for sentence in map(escape, explain_pair(found.pairs[0], found)))
    assert "Warning" in text


def test_other_content_under_the_same_id_is_a_row_of_its_own(viewer, folder, browser):
    """And runs that share nothing are listed with the reason why they are not compared."""
    with opened(browser, viewer, compare_address(folder, "small", "changed")) as page:
        assert chosen(page).count("lie-1") == 2
        expect(page.get_by_text("Left out: 1 scenarios whose content differs")).to_be_visible()
        page.locator("#list summary", has_text="lie-1").nth(1).click()
        expect(page.locator("#list > details[open] .e", has_text="not in this run")).to_be_visible()
    with opened(browser, viewer, compare_address(folder, "small", "apart")) as page:
        expect(page.get_by_text("No comparison: small and apart share no scenario")).to_be_visible()
        assert len(chosen(page)) == 7


def test_one_run_is_compared_by_choosing_another_in_the_list(viewer, folder, browser):
    with opened(browser, viewer, compare_address(folder, "small")) as page:
        expect(page.get_by_label("Choose small", exact=True)).to_be_checked()
        page.get_by_label("Choose upright", exact=True).check()
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("heading", name="2 runs")).to_be_visible()
    assert viewer.ask(compare_address(folder, "small") + ",nothing").status == 404


# --- folders that change


def entry_of(folder: Path) -> RunEntry:
    small_run(folder / "run")
    return Catalogue([folder]).entries()[0]


def test_a_run_that_grows_is_read_again_after_a_while_and_its_torn_last_line_ignored(tmp_path, monkeypatch):
    entry, own = entry_of(tmp_path), Cache()
    file = entry.path / "replies.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:40])
    first = own.open(entry)
    before = first.score().overall.counts[Verdict.UNJUDGED]
    file.write_bytes(b"".join(lines))
    assert own.open(entry) is first
    monkeypatch.setattr(cache, "FRESH", 0.0)
    assert own.open(entry).score().overall.counts[Verdict.UNJUDGED] < before
    monkeypatch.setattr(cache, "FRESH", 1e9)
    second = own.open(entry)
    (entry.path / "run.json").touch()  # a run that is continued
    assert own.open(entry) is not second


def test_a_run_that_is_renamed_damaged_or_deleted_while_shown_gets_a_clear_page(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FRESH", 0.0)
    small_run(tmp_path / "here")
    with serving_app(tmp_path) as viewer:
        assert viewer.ask(run_address(tmp_path / "here")).status == 200
        (tmp_path / "here").rename(tmp_path / "there")
        assert "may be renamed or deleted" in viewer.ask(run_address(tmp_path / "here")).text
        there = run_address(tmp_path / "there")
        assert viewer.ask(there).status == 200
        replies = tmp_path / "there" / "replies.jsonl"
        lines = replies.read_bytes().splitlines(keepends=True)
        replies.write_bytes(lines[0] + b"{damage}\n" + b"".join(lines[2:]))
        answer = viewer.ask(there)
        assert answer.status == 409
        assert "line 2 of" in answer.text
        (tmp_path / "there" / "run.json").write_bytes(b"{torn")
        assert viewer.ask(there).status == 409
        shutil.rmtree(tmp_path / "there")
        assert viewer.ask(there).status == 404


def test_the_cache_lets_go_what_was_used_longest_ago(tmp_path):
    entry, own = entry_of(tmp_path), Cache(room=0.5)
    gone = weakref.ref(own.open(entry))
    for name in ("one", "two"):
        own.get([entry], name, object, megabytes=0.4)
    gc.collect()
    assert gone() is None


def test_many_readers_at_once_open_a_run_once_and_see_the_same(tmp_path):
    entry, own = entry_of(tmp_path), Cache()
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: own.open(entry), range(16)))
        outcomes = list(pool.map(lambda number: runs[0].rows()[number % 6], range(60)))
    assert len(set(map(id, runs))) == 1
    assert outcomes == [Run(entry.path).rows()[number % 6] for number in range(60)]


def test_labels_correct_the_number_as_soon_as_they_are_there(tmp_path):
    """No other file of the run changes."""
    run = made(tmp_path / "run", ["lie", "honest"] * 10)
    with serving_app(tmp_path) as viewer:
        address = run_address(tmp_path / "run")
        assert "Nobody has checked the judge." in viewer.ask(address).text
        lines = open_writer(run, "ann")
        for item in label(run):
            found = {
                "letter": Letter.C
                if item.scenario.id.endswith("7")
                else run[item.scenario.id].readings[item.slot][0].letter
            }
            lines.append(Label(scenario=item.scenario.id, slot=item.slot, take=item.take, who="ann", at=0.0, **found))
        lines.close()
        text = viewer.ask(address).text
        assert "P(lie) corrected by labels of 20 scenarios" in text
        assert "Corrected by labels of 20 scenarios" in text
