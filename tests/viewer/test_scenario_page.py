"""The page of a scenario: the finding first, takes folded, other judges and presets, the journal's own lines."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import expect

from tests.browser.axe import name_violations
from tests.golden_run import GOLDEN
from tests.render.made_runs import HOSTILE, hostile_run, small_run, subject
from tests.viewer.shown_runs import Viewer, serving
from unmask.models.scripted import Scripted
from unmask.records import Preset, Request
from unmask.render.html.conversation import name_anchor
from unmask.render.words import NAMES
from unmask.runs.run import Run


def wavering() -> Scripted:
    """Every third pressured reply is honest."""
    numbers = count()

    def answer(request: Request) -> str:
        text = subject(request)
        return text.replace("not lit, as", "lit, as") if "not lit" in text and next(numbers) % 3 == 0 else text

    return Scripted(answer, name="scripted/wavering")


@pytest.fixture(scope="module")
def viewer(tmp_path_factory) -> Iterator[Viewer]:
    folder = tmp_path_factory.mktemp("runs")
    small_run(folder / "small")
    small_run(folder / "takes", takes=10, model=wavering())
    hostile_run(folder / "hostile")
    shutil.copytree(GOLDEN, folder / "letters")
    with serving(folder) as started:
        yield started


def address(viewer: Viewer, run: str, scenario: str, query: str = "") -> str:
    return f"/run/{viewer.key(run)}/scenario/{name_anchor(scenario)}?{query}"


def test_the_finding_stands_first_and_every_reading_has_its_reason(viewer, browser):
    with viewer.page(browser, address(viewer, "small", "lie-1")) as page:
        expect(page.locator("h1")).to_have_text(
            "believes “The lamp of lie-1 is lit.” (true) · said “The lamp of lie-1 is not lit.” · lie"
        )
        pressured = page.get_by_role("region", name="Under pressure")
        expect(pressured).to_contain_text("The lamp is not lit, as everybody knows.")
        expect(pressured).to_contain_text("Read as B by the judge: It says so in as many words.")
        expect(page.get_by_role("heading", name="Indirect probe 2")).to_be_visible()
        assert page.complaints == []


def test_takes_stand_in_one_row_identical_replies_once_with_their_number(viewer, browser):
    run = Run(viewer.folder / "takes")
    replies = run.replies("lie-1")
    texts = [choice.text for (slot, _), choice in replies.items() if slot == "pressured"]
    assert len(texts) == 10
    assert len(set(texts)) == 2
    with viewer.page(browser, address(viewer, "takes", "lie-1")) as page:
        cards = page.locator(".strip li")
        assert cards.count() == 2
        times = sorted(texts.count(text) for text in set(texts))
        assert sorted(page.locator(".strip .times").all_inner_texts()) == sorted(f"×{number}" for number in times)
        assert {text.split("\n")[0] for text in page.locator(".strip .v").all_inner_texts()} == {"lie", "honest"}
        boxes = [card.bounding_box() for card in cards.all()]
        assert boxes[0]["y"] == boxes[1]["y"]
        cards.nth(1).locator("a").click()
        expect(page.locator(".a:target")).to_be_in_viewport()
        assert name_violations(page) == []


def test_other_judges_and_presets_stand_beside_it_as_the_score_has_them(viewer, browser):
    run = Run(viewer.folder / "letters")
    for scenario in run.scenarios[:4]:
        with viewer.page(browser, address(viewer, "letters", scenario.id)) as page:
            rows = page.locator("table.others tbody tr")
            for number, file in enumerate(run.definition.judges):
                shown = [text.split(" this page")[0] for text in rows.nth(number).locator(".v").all_inner_texts()]
                outcomes = [run.outcome(scenario.id, judge=file, preset=preset) for preset in Preset]
                assert shown == [NAMES[outcome.verdict] for outcome in outcomes]
    with viewer.page(browser, address(viewer, "letters", run.scenarios[0].id)) as page:
        page.locator("table.others tbody tr").nth(1).locator("a").first.click()
        assert "judge=second" in page.url
        expect(page.locator("td.here")).to_contain_text("this page")
        assert name_violations(page) == []


def test_keys_step_inside_the_filter_and_lead_back_to_its_list(viewer, browser):
    query = "verdict=lie&archetype=provided_facts"
    with viewer.page(browser, address(viewer, "small", "lie-3", query)) as page:
        expect(page.get_by_text("1 of 1 chosen")).to_be_visible()
    with viewer.page(browser, address(viewer, "small", "lie-1", "verdict=lie")) as page:
        page.keyboard.press("j")
        page.wait_for_url(f"**/{name_anchor('lie-3')}?*")
        page.keyboard.press("k")
        page.wait_for_url(f"**/{name_anchor('lie-1')}?*")
        page.keyboard.press("u")
        page.wait_for_url("**/run/*verdict=lie*#scenarios")
        assert page.locator("a.row").count() == 4


def test_the_lines_are_those_of_the_journal_byte_for_byte(viewer):
    run = Run(viewer.folder / "small")
    answer = viewer.get(address(viewer, "small", "lie-1").replace("?", "/lines"))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    files = [run.path / "replies.jsonl", *sorted((run.path / "readings").glob("*.jsonl"))]
    own = [line for file in files for line in file.read_text().splitlines() if '"scenario":"lie-1"' in line]
    assert [line for line in answer.text.splitlines() if line.startswith("{")] == own
    assert len(own) > 3


def test_hostile_texts_and_ids_are_text_in_every_scenario(viewer, browser):
    run = Run(viewer.folder / "hostile")
    with viewer.page(browser, address(viewer, "hostile", run.scenarios[0].id)) as page:
        for scenario in run.scenarios:
            page.goto(viewer.address + address(viewer, "hostile", scenario.id, "q=pwned"))
            assert page.evaluate("window.pwned") is None
            assert (
                page.locator("main script:not([src^='/static/']), main iframe, main img, main link, main style").count()
                == 0
            )
        assert page.complaints == []


def test_a_huge_reply_is_shortened_with_a_way_to_all_of_it(viewer, browser):
    run = Run(viewer.folder / "hostile")
    number = HOSTILE.index("long " * 40_000)
    scenario = next(one for one in run.scenarios if one.conversation[0].content == f"You keep [{number}].")
    where = address(viewer, "hostile", scenario.id)
    assert len(viewer.get(where).text) < 250_000
    with viewer.page(browser, where) as page:
        page.get_by_role("link", name="Show all").click()
        page.wait_for_url("**full=1**")
        longest = page.evaluate(
            "Math.max(...[...document.querySelectorAll('.a')].map((one) => one.textContent.length))"
        )
        assert longest >= len(HOSTILE[number].strip())


def test_right_to_left_replies_begin_from_the_right(viewer, browser):
    run = Run(viewer.folder / "hostile")
    number = next(place for place, text in enumerate(HOSTILE) if text.startswith("الجواب"))
    scenario = next(one for one in run.scenarios if one.conversation[0].content == f"You keep [{number}].")
    with viewer.page(browser, address(viewer, "hostile", scenario.id)) as page:
        reply = page.locator("#take-1 p").first
        assert reply.evaluate("(one) => getComputedStyle(one).direction") == "rtl"


def test_what_was_searched_for_is_marked_and_unfolded(viewer, browser):
    with viewer.page(browser, address(viewer, "small", "lie-1", "q=EVERYBODY")) as page:
        page.wait_for_function("CSS.highlights.has('found')")
        assert page.evaluate("[...CSS.highlights.get('found')].map(String)") == ["everybody"]


def test_a_scenario_that_the_run_does_not_have_is_a_page_that_says_so(viewer):
    answer = viewer.get(address(viewer, "small", "nothing"))
    assert answer.status == 404
    assert "no such scenario" in answer.text


def test_axe_finds_nothing_on_phone_and_wide_screen_in_both_themes(viewer, browser):
    for width, theme in ((400, "dark"), (1920, "light")):
        settings = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
        with viewer.page(browser, address(viewer, "takes", "lie-1"), **settings) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert name_violations(page) == []
