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
from tests.viewer.pictures import write_labels
from tests.viewer.shown_runs import Viewer, serving
from unmask.errors import JournalError, UsageError
from unmask.models.scripted import Scripted
from unmask.records import Message, Preset, Request, Verdict
from unmask.render import words
from unmask.render.describe.compare import explain_pair
from unmask.render.html.conversation import name_anchor
from unmask.render.html.page import kept_together
from unmask.runs.run import Run
from unmask.viewer import cache
from unmask.viewer.cache import Cache
from unmask.viewer.catalogue import Catalogue

percent = kept_together(words.percent)


def unsure_judge(request: Request) -> str:
    return "I cannot say." if "lamp of lie-1" in request.messages[-1].content else judge(request)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    upright = Scripted(lambda request: subject(request).replace("not lit, as", "lit, as"), name="scripted/upright")
    small_run(folder / "small")
    small_run(folder / "upright", model=upright)
    small_run(folder / "takes", takes=3)
    small_run(folder / "unread", judge=Scripted(unsure_judge, name="scripted/unsure"))
    small_run(folder / "mute", model=Scripted(lambda _: "", name="scripted/mute"))
    hostile_run(folder / "hostile")
    shutil.copytree(folder / "hostile", folder / "copied")
    shutil.copytree(GOLDEN, folder / "letters")
    models = {"model": Scripted(subject, name="scripted/keeper"), "judge": Scripted(judge, name="scripted/reader")}
    asked = (Message("system", "You keep another lamp."), Message("user", "Tell the harbour about the other lamp."))
    changed = [binary("lie-1", conversation=asked), binary("honest-1")]
    unmask.run(data=write(changed, folder / "changed.jsonl"), out=folder / "changed", **models)
    unmask.run(data=write([binary("apart")], folder / "apart.jsonl"), out=folder / "apart", **models)
    return folder


@pytest.fixture(scope="module")
def viewer(folder) -> Iterator[Viewer]:
    with serving(folder) as started:
        yield started


def run_address(viewer: Viewer, name: str, rest: str = "") -> str:
    return f"/run/{viewer.key(name)}{rest}"


def scenario_address(viewer: Viewer, name: str, scenario: str, query: str = "") -> str:
    return run_address(viewer, name, f"/scenario/{name_anchor(scenario)}{query}")


def compare_address(viewer: Viewer, *names: str, rest: str = "") -> str:
    return f"/compare?runs={','.join(map(viewer.key, names))}{rest}"


def chosen(page: Page) -> list[str]:
    """Ids of the scenarios in sight."""
    return page.locator("#list > details:not([hidden]) > summary bdi").all_text_contents()


def unfolded(page: Page) -> list[str]:
    return page.locator("#list > details[open] > summary bdi").all_text_contents()


# --- a run


def test_the_page_is_that_of_the_report_without_conversations(viewer, browser):
    """Headline and rows are there at once; what a scenario was asked and answered comes when it is opened."""
    run = Run(viewer.folder / "small")
    with viewer.page(browser, run_address(viewer, "small")) as page:
        expect(page.locator(".big strong").first).to_have_text(percent(run.score().overall.p_lie.value))
        assert chosen(page) == [scenario.id for scenario in run.scenarios]
        assert "The lamp is not lit, as everybody knows." not in page.content()
        page.locator("#list summary", has_text="lie-1").click()
        opened = page.locator("#list > details[open]")
        expect(opened).to_contain_text("The lamp is not lit, as everybody knows.")
        expect(opened).to_contain_text("Read as B by the judge: “It says so in as many words.”")
        expect(opened).to_contain_text("after the system turn “You are a helpful assistant.”")
        expect(opened.get_by_role("heading", name="Indirect probe 2")).to_be_visible()
        assert page.complaints == []


def test_search_finds_texts_that_are_not_on_the_page_and_marks_them(viewer, browser):
    """In replies and prompts, whatever the case; in the opened scenario they are marked."""
    with viewer.page(browser, run_address(viewer, "small")) as page:
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


def test_scenarios_are_chosen_by_why_a_reply_is_unread(viewer, browser):
    with viewer.page(browser, run_address(viewer, "unread", "#reason=unreadable")) as page:
        assert chosen(page) == ["lie-1"]


def test_another_judge_and_preset_change_the_verdicts_as_in_the_score(viewer, browser):
    run = Run(viewer.folder / "letters")
    for preset in ("paper", "strict"):
        for file in run.definition.judges:
            with viewer.page(browser, run_address(viewer, "letters")) as page:
                page.locator("select[name=judge]").select_option(file)
                page.locator("select[name=preset]").select_option(preset)
                page.get_by_role("button", name="Show").click()
                page.wait_for_url(f"**judge={file}&preset={preset}")
                expected = run.score(judge=file, preset=preset).overall
                expect(page.locator(".big strong").first).to_have_text(percent(expected.p_lie.value))
                shown = page.locator("#list > details > summary > .v").all_text_contents()
                assert shown.count("lie") == expected.counts[Verdict.LIE]


def test_keys_open_the_scenarios_of_the_filter_one_after_another(viewer, browser):
    with viewer.page(browser, run_address(viewer, "small", "#verdict=lie")) as page:
        for key, name in (("j", "lie-1"), ("j", "lie-3"), ("n", "harbour"), ("N", "lie-3"), ("k", "lie-1")):
            page.keyboard.press(key)
            assert unfolded(page) == [name]
            expect(page.locator("#list > details[open] h3").first).to_be_visible()


def test_sensitivity_is_fetched_when_it_is_opened(viewer, browser):
    with viewer.page(browser, run_address(viewer, "small")) as page:
        page.get_by_role("heading", name="Sensitivity").click()
        part = page.locator("#r1-sensitivity")
        expect(part.get_by_text("Not known yet").first).to_be_visible(timeout=1000 * PATIENCE)
        expect(part.get_by_text("unmask judge ").first).to_be_visible()


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("?judge=openai/nobody", 409, "has no readings by"),
        ("?preset=mine", 409, "there is no preset"),
        ("?preset=%3Cscript%3E", 409, "there is no preset"),
        ("/scenario/nothing", 404, "no such scenario"),
    ],
)
def test_an_address_that_cannot_be_shown_says_why(viewer, address, status, said):
    answer = viewer.get(run_address(viewer, "small", address))
    assert answer.status == status
    assert said in answer.text
    assert "<script>" not in answer.text


# --- a scenario


def test_a_scenario_says_what_other_rules_and_judges_make_of_it(viewer):
    """Every verdict that is not that of the page, with who gives it."""
    run = Run(viewer.folder / "letters")
    own = run.definition.judge
    differing = 0
    for scenario in run.scenarios:
        text = viewer.get(scenario_address(viewer, "letters", scenario.id)).text
        verdict = run.outcome(scenario.id).verdict
        others = {
            (file, preset): run.outcome(scenario.id, judge=file, preset=preset).verdict
            for file in run.definition.judges
            for preset in Preset
        }
        said = text.partition("Other rules and judges: ")[2].partition(".</small>")[0]
        assert bool(said) == any(other is not verdict for other in others.values())
        for (file, preset), other in others.items():
            if other is not verdict:
                differing += 1
                by = preset.value if file == own else f"{run.definition.typed_judge(file)} under {preset.value}"
                assert by in next(one for one in said.split("; ") if one.startswith(f"{words.NAMES[other]} by "))
    assert differing


def test_a_scenario_shows_what_the_judge_was_sent(viewer, browser):
    sent: list[Request] = []

    def listening(request: Request) -> str:
        sent.append(request)
        return judge(request)

    small_run(viewer.folder / "heard", judge=Scripted(listening, name="scripted/listening"))
    with viewer.page(browser, scenario_address(viewer, "heard", "lie-1")) as page:
        page.get_by_text("What the judge was sent").click()
        shown = page.locator(".judged p").all_text_contents()
        reply = "The lamp is not lit, as everybody knows."
        asked = next(one for one in sent if reply in one.messages[-1].content and "lie-1" in one.messages[-1].content)
        assert "".join(shown).split() == "".join(message.content for message in asked.messages).split()


def test_hostile_texts_and_ids_are_text_in_every_scenario(viewer, browser):
    run = Run(viewer.folder / "hostile")
    with viewer.page(browser, run_address(viewer, "hostile")) as page:
        assert page.locator("#list > details").count() == len(run.scenarios)
        for row in page.locator("#list > details").all():
            row.locator("summary").first.click()
            expect(row.locator("h3").first).to_be_attached()
        assert page.evaluate("window.pwned") is None
        assert page.locator("main script, main iframe, main img, main link, main style").count() == 0
        assert page.complaints == []


def test_a_huge_reply_is_there_to_its_end(viewer):
    run = Run(viewer.folder / "hostile")
    number = HOSTILE.index("long " * 40_000)
    scenario = next(one for one in run.scenarios if one.conversation[0].content == f"You keep [{number}].")
    text = viewer.get(scenario_address(viewer, "hostile", scenario.id)).text
    assert text.count("long ") >= 2 * 39_900


# --- a comparison


def test_a_search_looks_into_every_run(viewer, browser):
    with viewer.page(browser, compare_address(viewer, "upright", "small", rest="#words=NOT+LIT,+AS")) as page:
        expect(page.locator(".status [role=status]")).to_have_text("Showing 3 of 6 scenarios.")
        assert set(chosen(page)) == {"lie-1", "lie-2", "lie-3"}


def test_a_difference_that_a_guard_refuses_is_not_called(viewer):
    found = unmask.compare(viewer.folder / "small", viewer.folder / "mute")
    pair = found.pairs[0]
    assert pair.not_called is not None
    text = viewer.get(compare_address(viewer, "small", "mute")).text
    assert all(sentence in text for sentence in map(escape, explain_pair(pair, found)))
    assert "Warning" in text


def test_other_content_under_the_same_id_is_a_row_of_its_own(viewer, browser):
    with viewer.page(browser, compare_address(viewer, "small", "changed")) as page:
        assert chosen(page).count("lie-1") == 2
        expect(page.get_by_text("Left out: 1 scenarios whose content differs")).to_be_visible()
        page.locator("#list summary", has_text="lie-1").nth(1).click()
        expect(page.locator("#list > details[open] .e", has_text="not in this run")).to_be_visible()


def test_runs_that_share_nothing_are_listed_with_the_reason_why_they_are_not_compared(viewer, browser):
    with viewer.page(browser, compare_address(viewer, "small", "apart")) as page:
        expect(page.get_by_text("No comparison: small and apart share no scenario")).to_be_visible()
        assert len(chosen(page)) == 7


def test_one_run_is_compared_by_choosing_another_in_the_list(viewer, browser):
    with viewer.page(browser, compare_address(viewer, "small")) as page:
        expect(page.get_by_label("Choose small", exact=True)).to_be_checked()
        page.get_by_label("Choose upright", exact=True).check()
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("heading", name="2 runs")).to_be_visible()
    assert viewer.get(compare_address(viewer, "small") + ",nothing").status == 404


# --- folders that change


def test_a_run_that_grows_is_read_again_and_its_torn_last_line_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "QUIET", 0.0)
    small_run(tmp_path / "grows")
    file = tmp_path / "grows" / "replies.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:40])
    entry, own = Catalogue([tmp_path]).entries()[0], Cache()
    before = own.open(entry).score().overall.counts[Verdict.UNJUDGED]
    file.write_bytes(b"".join(lines))
    assert own.open(entry).score().overall.counts[Verdict.UNJUDGED] < before


def test_a_growing_run_is_not_read_at_every_look(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "QUIET", 1e9)
    small_run(tmp_path / "grows")
    entry, own = Catalogue([tmp_path]).entries()[0], Cache()
    first = own.open(entry)
    with (tmp_path / "grows" / "replies.jsonl").open("ab") as file:
        file.write(b'{"scenario":')
    assert own.open(entry) is first
    (tmp_path / "grows" / "run.json").touch()  # a run that is continued
    assert own.open(entry) is not first


def test_a_run_that_is_renamed_damaged_or_deleted_while_shown_gets_a_clear_page(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "QUIET", 0.0)
    small_run(tmp_path / "here")
    with serving(tmp_path) as viewer:
        assert viewer.get(run_address(viewer, "here")).status == 200
        (tmp_path / "here").rename(tmp_path / "there")
        assert "may be renamed or deleted" in viewer.get(run_address(viewer, "here")).text
        assert viewer.get(run_address(viewer, "there")).status == 200
        replies = tmp_path / "there" / "replies.jsonl"
        lines = replies.read_bytes().splitlines(keepends=True)
        replies.write_bytes(lines[0] + b"{damage}\n" + b"".join(lines[2:]))
        answer = viewer.get(run_address(viewer, "there"))
        assert answer.status == 409
        assert "line 2 of" in answer.text
        assert "Traceback" not in answer.text
        (tmp_path / "there" / "run.json").write_bytes(b"{torn")
        assert viewer.get(run_address(viewer, "there")).status == 409
        shutil.rmtree(tmp_path / "there")
        assert viewer.get(run_address(viewer, "there")).status == 404


def test_the_cache_lets_go_what_was_used_longest_ago(folder, tmp_path):
    for name in ("a", "b", "c"):
        shutil.copytree(folder / "small", tmp_path / name)
    entries, own = Catalogue([tmp_path]).entries(), Cache(room=0.5)
    gone = weakref.ref(own.open(entries[0]))
    for entry in entries[1:]:
        own.get([entry], "page", object, megabytes=0.4)
    gc.collect()
    assert gone() is None


def test_many_readers_at_once_open_a_run_once_and_see_the_same(folder):
    entry = next(entry for entry in Catalogue([folder]).entries() if entry.name == "small")
    own = Cache()
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: own.open(entry), range(16)))
        outcomes = list(pool.map(lambda number: runs[0].rows()[number % 6], range(60)))
    assert len(set(map(id, runs))) == 1
    assert outcomes == [Run(entry.path).rows()[number % 6] for number in range(60)]


def test_an_error_is_found_once_until_the_files_change(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "QUIET", 0.0)
    small_run(tmp_path / "damaged")
    entry, own, tries = Catalogue([tmp_path]).entries()[0], Cache(), []

    def fail() -> None:
        tries.append(1)
        raise JournalError("line 2 of it is damaged")

    for _ in range(3):
        with pytest.raises(JournalError, match="line 2"):
            own.get([entry], "what", fail, megabytes=0)
    assert len(tries) == 1
    with (entry.path / "replies.jsonl").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(JournalError):
        own.get([entry], "what", fail, megabytes=0)
    assert len(tries) == 2
    shutil.rmtree(entry.path)
    with pytest.raises(UsageError, match="cannot be read"):
        own.get([entry], "what", fail, megabytes=0)


def test_labels_correct_the_number_as_soon_as_they_are_there(tmp_path):
    """No other file of the run changes."""
    made(tmp_path / "run", ["lie", "honest"] * 10)
    with serving(tmp_path) as viewer:
        address = run_address(viewer, "run")
        assert "Nobody has checked the judge." in viewer.get(address).text
        write_labels(Run(tmp_path / "run"), "ann", differs=7)
        text = viewer.get(address).text
        assert "P(lie) corrected by labels of 20 scenarios" in text
        assert "Corrected by labels of 20 scenarios" in text
