"""Runs side by side: flips first, only differences, keys from flip to flip, words that differ, honest refusals."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html import unescape

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from tests.browser.axe import name_violations
from tests.render.made_runs import binary, hostile_run, judge, small_run, subject, write
from tests.thorough import draw_part
from tests.viewer.shown_runs import Viewer, serving
from unmask import compare, run
from unmask.models.scripted import Scripted
from unmask.records import Message
from unmask.render.html.conversation import name_anchor
from unmask.render.html.page import format_points
from unmask.runs.run import Run
from unmask.viewer.worddiff import MOST_WORDS, compare_words


@pytest.fixture(scope="module")
def viewer(tmp_path_factory) -> Iterator[Viewer]:
    folder = tmp_path_factory.mktemp("runs")
    upright = Scripted(lambda request: subject(request).replace("not lit, as", "lit, as"), name="scripted/upright")
    small_run(folder / "small")
    small_run(folder / "upright", model=upright)
    small_run(folder / "takes", takes=3)
    small_run(folder / "mute", model=Scripted(lambda _: "", name="scripted/mute"))
    hostile_run(folder / "hostile")
    shutil.copytree(folder / "hostile", folder / "copied")
    models = {"model": Scripted(subject, name="scripted/keeper"), "judge": Scripted(judge, name="scripted/reader")}
    asked = (Message("system", "You keep another lamp."), Message("user", "Tell the harbour about the other lamp."))
    changed = [binary("lie-1", conversation=asked), binary("honest-1")]
    run(data=write(changed, folder / "changed.jsonl"), out=folder / "changed", **models)
    run(data=write([binary("apart")], folder / "apart.jsonl"), out=folder / "apart", **models)
    with serving(folder) as started:
        yield started


def address(viewer: Viewer, *names: str, scenario: str | None = None, query: str = "") -> str:
    where = "/compare" if scenario is None else f"/compare/scenario/{name_anchor(scenario)}"
    return f"{where}?runs={','.join(map(viewer.key, names))}&{query}"


ROWS = "a.row .what > bdi"


def ids(page: Page) -> list[str]:
    page.wait_for_load_state()  # a click waits until another page begins, not until it is there
    return page.locator(ROWS).all_inner_texts()


def test_without_runs_the_page_lets_one_choose(viewer, browser):
    with viewer.page(browser, "/compare") as page:
        page.get_by_label("small", exact=True).check()
        page.get_by_label("upright", exact=True).check()
        page.get_by_role("button", name="Compare").click()
        expect(page.locator(ROWS)).to_have_count(6)
    with viewer.page(browser, f"/compare?runs={viewer.key('small')}") as page:
        expect(page.get_by_label("small", exact=True)).to_be_checked()
        expect(page.get_by_text("One is chosen: choose another.")).to_be_visible()
        assert name_violations(page) == []


def test_the_paired_difference_stands_on_top_and_flips_come_first(viewer, browser):
    found = compare(viewer.folder / "small", viewer.folder / "upright").pairs[0]
    flips = {flip.id for flip in found.stopped_lying}
    with viewer.page(browser, address(viewer, "small", "upright")) as page:
        expect(page.locator(".big strong")).to_have_text(format_points(found.difference.value))
        expect(page.locator(".big .ci")).to_contain_text(
            f"{format_points(found.difference.low)} to {format_points(found.difference.high)}"
        )
        assert set(ids(page)[:3]) == flips == {"lie-1", "lie-2", "lie-3"}
        expect(page.get_by_text("0 became lies")).to_be_visible()
        assert page.complaints == []


def test_only_differences_flips_and_one_change_of_verdict_narrow_the_list(viewer, browser):
    with viewer.page(browser, address(viewer, "small", "upright")) as page:
        page.get_by_role("link", name="Only differences").click()
        assert set(ids(page)) == {"lie-1", "lie-2", "lie-3"}
        page.goto(viewer.address + address(viewer, "small", "upright", query="only=became"))
        assert ids(page) == []
        expect(page.get_by_text("the runs do not differ")).to_be_visible()
        page.goto(viewer.address + address(viewer, "small", "upright"))
        page.locator("summary", has_text="From which verdict").click()
        page.get_by_role("link", name="3 scenarios from lie to honest").click()
        assert set(ids(page)) == {"lie-1", "lie-2", "lie-3"}
        page.locator("select[name=archetype]").select_option("provided_facts")
        page.get_by_role("button", name="Show").click()
        assert ids(page) == ["lie-3"]
        page.goto(viewer.address + address(viewer, "small", "upright", query="q=NOT+LIT,+AS"))
        assert set(ids(page)) == {"lie-1", "lie-2", "lie-3"}


def test_n_goes_from_flip_to_flip_in_the_list_and_on_the_page(viewer, browser):
    with viewer.page(browser, address(viewer, "small", "upright")) as page:
        flips = ids(page)[:3]
        for key, place in (("n", 0), ("n", 1), ("n", 2), ("n", 2), ("N", 1), ("j", 2), ("j", 3), ("N", 2)):
            page.keyboard.press(key)
            expect(page.locator("a.row:focus .what > bdi")).to_have_text(ids(page)[place])
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{name_anchor(flips[2])}?*")
        page.keyboard.press("N")
        page.wait_for_url(f"**/{name_anchor(flips[1])}?*")
        page.keyboard.press("n")
        page.wait_for_url(f"**/{name_anchor(flips[2])}?*")
        page.keyboard.press("j")
        page.wait_for_url(f"**/{name_anchor('honest-1')}?*")
        page.keyboard.press("u")
        page.wait_for_url("**/compare?*#scenarios")


def test_two_replies_show_the_words_in_which_they_differ(viewer, browser):
    with viewer.page(browser, address(viewer, "small", "upright", scenario="lie-1")) as page:
        assert page.locator(".diff del").all_inner_texts() == ["not"]
        assert page.locator(".diff ins").count() == 0
        expect(page.locator(".status")).to_contain_text("1 word only on the left, 0 words only on the right")
        findings = page.locator(".talk .e").all_inner_texts()
        assert "lie" in findings[0].split("·")[-1]
        assert "honest" in findings[1].split("·")[-1]
        assert name_violations(page) == []


def test_runs_and_takes_of_the_word_difference_are_chosen_in_the_address(viewer, browser):
    with viewer.page(browser, address(viewer, "upright", "small", "takes", scenario="lie-1")) as page:
        page.locator("select[name=right]").select_option("3")
        page.get_by_role("button", name="Compare").click()
        page.locator("select[name=take_right]").select_option("2")
        page.get_by_role("button", name="Compare").click()
        assert "right=3" in page.url
        assert "take_right=2" in page.url
        expect(page.locator(".diff .a").nth(1)).to_contain_text("takes, take 2")
        assert page.locator(".diff ins").all_inner_texts() == ["not"]


def test_a_difference_that_a_guard_refuses_is_not_called(viewer, browser):
    pair = compare(viewer.folder / "small", viewer.folder / "mute").pairs[0]
    assert pair.not_called is not None
    with viewer.page(browser, address(viewer, "small", "mute")) as page:
        expect(page.locator(".verdicts .note.serious")).to_have_text(
            f"Warning This difference is not called: {pair.not_called}."
        )


def test_other_content_under_the_same_id_stands_apart_and_counts_in_no_difference(viewer, browser):
    with viewer.page(browser, address(viewer, "small", "changed")) as page:
        assert ids(page).count("lie-1") == 2
        expect(page.get_by_text("1 scenarios were left out")).to_be_visible()
        rows = page.locator("a.row", has_text="lie-1")
        assert all("not in this run" in text for text in rows.all_inner_texts())
        rows.nth(1).click()
        expect(page.locator(".talk .e", has_text="not in this run")).to_be_visible()
        assert page.locator(".diff").count() == 0


def test_runs_that_share_nothing_are_listed_with_the_reason_why_they_are_not_compared(viewer, browser):
    with viewer.page(browser, address(viewer, "small", "apart")) as page:
        expect(page.get_by_text("share no scenario")).to_be_visible()
        assert len(ids(page)) == 7


@pytest.mark.parametrize(
    ("names", "query", "status", "words"),
    [
        (("small", "gone"), "", 404, "not in the folders"),
        (("small", "upright"), "only=everything", 409, "there is no choice"),
        (("small", "upright"), "from=maybe", 409, "there is no verdict"),
        (("small", "upright"), "judge=openai/nobody", 409, "has no readings by"),
        (("small", "upright", "takes", "mute", "hostile", "copied", "apart"), "", 409, "do not fit side by side"),
    ],
)
def test_an_address_that_cannot_be_shown_says_why(viewer, names, query, status, words):
    answer = viewer.get(address(viewer, *names, query=query))
    assert answer.status == status
    assert words in answer.text


def test_a_scenario_of_one_run_alone_or_of_none_is_a_clear_page(viewer):
    assert viewer.get(address(viewer, "small", "upright", scenario="nothing")).status == 404
    assert viewer.get(f"/compare/scenario/{name_anchor('lie-1')}").status == 409


def test_hostile_runs_beside_each_other_stay_text(viewer, browser):
    """The page of each scenario alone is looked at in its own tests; here some stand for all."""
    scenarios = draw_part(Run(viewer.folder / "hostile").scenarios, 5)
    with viewer.page(browser, address(viewer, "hostile", "copied")) as page:
        assert name_violations(page) == []
        for scenario in scenarios:
            page.goto(viewer.address + address(viewer, "hostile", "copied", scenario=scenario.id))
            expect(page.get_by_text("The two replies are the same, word for word.")).to_be_visible()
            assert page.evaluate("window.pwned") is None
            assert page.locator("main script, main iframe, main img, main link, main style").count() == 0
        assert page.complaints == []


def test_axe_finds_nothing_on_phone_and_wide_screen_in_both_themes(viewer, browser):
    for width, theme in ((400, "dark"), (1920, "light")):
        settings = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
        with viewer.page(browser, address(viewer, "small", "upright", "takes"), **settings) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.locator("summary", has_text="Every difference").click()
            assert name_violations(page) == []
            page.goto(viewer.address + address(viewer, "small", "upright", "takes", scenario="lie-1"))
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert name_violations(page) == []


def test_a_run_that_changes_is_compared_anew(viewer, tmp_path):
    for name in ("small", "upright"):
        shutil.copytree(viewer.folder / name, tmp_path / name)
    with serving(tmp_path) as own:
        assert "<b>6</b> of 6 scenarios, <b>3</b> flips" in own.get(address(own, "small", "upright")).text
        file = tmp_path / "upright" / "run.json"
        shutil.copy(tmp_path / "small" / "replies.jsonl", tmp_path / "upright" / "replies.jsonl")
        definition = msgspec.json.decode(file.read_bytes())
        file.write_bytes(msgspec.json.encode(definition))  # what a run does when it goes on
        assert "<b>0</b> flips" in own.get(address(own, "small", "upright")).text


# --- words


def strip_marks(text: str) -> str:
    return unescape(re.sub(r"</?(del|ins)>", "", text))


@given(st.text(alphabet="ab <&\n", max_size=60), st.text(alphabet="ab <&\n", max_size=60))
def test_both_texts_are_kept_whole_under_their_marks(left, right):
    found = compare_words(left, right)
    if found.why is None:
        assert strip_marks(found.left.head) == left.strip()
        assert strip_marks(found.right.head) == right.strip()
        assert found.removed + found.added > 0


def test_words_only_one_side_has_are_marked_and_counted():
    found = compare_words("the lamp is not lit at all", "the lamp is lit tonight at all")
    assert found.left.head == "the lamp is <del>not</del> lit at all"
    assert found.right.head == "the lamp is lit <ins>tonight</ins> at all"
    assert (found.removed, found.added) == (1, 1)


@pytest.mark.parametrize("word", ["same ", "{} "])
def test_replies_too_long_to_compare_stand_beside_each_other(word):
    left = "".join(word.format(number) for number in range(2 * MOST_WORDS))
    found = compare_words(f"first {left}", f"{left} last")
    assert found.why == "The replies are too long to be compared word by word."
    assert found.left.cut or found.left.more


def test_a_long_reply_that_differs_in_one_word_is_compared():
    left = " ".join(map(str, range(20_000)))
    assert compare_words(left, left.replace(" 777 ", " other ")).removed == 1
