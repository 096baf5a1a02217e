"""The report in a real Chromium: hostile replies do nothing, controls work by keyboard, axe finds nothing serious."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import find_violations
from tests.browser.chromium import opened
from tests.patience import PATIENCE
from tests.render.made_runs import hostile_run, small_run, subject
from tests.thorough import THOROUGH, draw_part
from unmask.models.scripted import Scripted
from unmask.render.html.report import report

OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true })"
THEMES = ("light", "dark")
FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  if (!one.dataset.met) one.dataset.met = String(document.querySelectorAll('[data-met]').length + 1);
  return [one.tagName, one.dataset.met, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0,
          box.width * box.height > 0];
}"""
FOCUSABLE = "a[href], summary, select, input, button, [tabindex='0']"


INJECT = """(address) => {
  document.body.insertAdjacentHTML('beforeend',
    `<img src="${address}/x.png" onerror="window.pwned = 1"><iframe src="${address}/"></iframe>` +
    `<link rel=stylesheet href="${address}/x.css"><p id="painted" style="color: rgb(1, 2, 3)">x</p>`);
  const made = document.createElement('script');
  made.textContent = 'window.pwned = 1';
  document.body.append(made);
}"""


class Pages(NamedTuple):
    hostile: Path
    small: Path
    takes: Path
    two: Path
    four: Path
    redacted: Path


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Pages:
    folder = tmp_path_factory.mktemp("pages")
    small = small_run(folder / "small")
    honest = Scripted(lambda request: subject(request).replace("not lit, as", "lit, as"), name="scripted/upright")
    runs = {
        "hostile": [hostile_run(folder / "hostile")],
        "small": [small],
        "takes": [small_run(folder / "takes", takes=4)],
        "two": [small, small_run(folder / "upright", model=honest)],
    }
    runs["four"] = [*runs["two"], *(small_run(folder / name) for name in ("third", "fourth"))]
    made = {name: report(listed) for name, listed in runs.items()} | {"redacted": report([small], redact=True)}
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return Pages(**{name: folder / f"{name}.html" for name in made})


def shown(page: Page) -> int:
    """Scenarios in sight."""
    return page.locator(".list > details:not([hidden])").count()


def status(page: Page) -> str:
    return page.locator("[role=status]").first.inner_text()


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """A real server on loopback, and every path that was asked of it."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", heard
        server.shutdown()


# --- hostile replies


@pytest.mark.parametrize("theme", draw_part(THEMES, 1))
def test_hostile_replies_do_nothing(browser, pages, theme):
    """With every fold open nothing runs, is loaded or is said on the console. One script and one style, both ours."""
    with opened(browser, pages.hostile, color_scheme=theme) as one:
        one.page.evaluate(OPEN_ALL)
        one.page.mouse.move(400, 400)
        one.page.wait_for_timeout(300)
        assert one.page.evaluate("window.pwned") is None
        assert one.said == []
        assert one.asked == [pages.hostile.as_uri()]
        count = one.page.locator
        assert count("script").count() == count("style").count() == count("h1").count() == 1
        assert count("img, iframe, link, object, embed, base, video, audio, [style], [onerror], [onload]").count() == 0
        assert one.page.get_by_text("* { display: none !important }").first.is_visible()


def test_injected_markup_would_be_stopped_by_the_policy(browser, pages):
    """Even markup that got into the page could neither run, load nor restyle: the second line of defence holds."""
    with listening() as (address, heard), opened(browser, pages.small) as one:
        one.page.evaluate(INJECT, address)
        one.page.wait_for_timeout(500)
        assert one.page.evaluate("window.pwned") is None
        assert one.page.evaluate("getComputedStyle(document.getElementById('painted')).color") != "rgb(1, 2, 3)"
        assert heard == []
        with urlopen(f"{address}/really", timeout=PATIENCE):  # the server does hear what is sent
            assert heard == ["/really"]


def test_nothing_is_hidden_or_turned_round(browser, pages):
    """Direction marks and zero-width characters are not in the page; their numbers are. Arabic begins at the right, and
    of 200,000 characters the page says how many it leaves out."""
    with opened(browser, pages.hostile) as one:
        one.page.evaluate(OPEN_ALL)
        text = one.page.evaluate("document.documentElement.textContent")
        assert not {"\u202e", "\u202c", "\u2066", "\u200b", "\ufeff", "\U000e0041", "\x1b", "\x00"} & set(text)
        assert one.page.get_by_text("U+202E", exact=True).first.is_visible()
        assert one.page.get_by_text("U+200B ×3", exact=True).first.is_visible()
        arabic = one.page.locator(".a p[dir=auto]").first
        assert arabic.evaluate("(one) => getComputedStyle(one).direction") == "rtl"
        gap = one.page.locator(".a em").first
        assert 180_000 < int(gap.text_content().replace(",", "")) < 200_000
        assert "characters left out" in gap.evaluate("(one) => getComputedStyle(one, '::after').content")


def test_replies_stay_in_their_boxes(browser, pages):
    """Neither 5,000 letters in a row nor 500 accents on one widen the page or paint over what stands above."""
    with opened(browser, pages.hostile) as one:
        one.page.evaluate(OPEN_ALL)
        for width in (320, 390, 1280):
            one.page.set_viewport_size({"width": width, "height": 800})
            assert one.page.evaluate("document.documentElement.scrollWidth") <= width
            kept = one.page.evaluate(
                "[...document.querySelectorAll('.q, .a')].every((e) => getComputedStyle(e).contain === 'paint')"
            )
            assert kept


# --- reading without script


def test_readable_without_script(browser, pages):
    """With scripts switched off everything is there, folds open by click, and no dead control is shown."""
    with opened(browser, pages.small, java_script_enabled=False) as one:
        assert one.page.locator(".big strong").is_visible()
        assert not one.page.locator("form.filters").is_visible()
        assert shown(one.page) == 6
        first = one.page.locator(".list > details").first
        first.locator("summary").first.click()
        assert first.get_by_role("heading", name="Under pressure").is_visible()
        one.page.locator(".legend").get_by_role("link", name="honest").click()
        assert one.page.url.endswith("#scenarios")


# --- controls


def test_every_control_is_reached_by_tab(browser, pages):
    """Tab stops at each visible link, fold, filter and scrolling table once, and each stop can be seen."""
    with opened(browser, pages.two) as one:
        page = one.page
        wanted = page.locator(FOCUSABLE).evaluate_all("(all) => all.filter((one) => one.checkVisibility()).length")
        met = []
        for _ in range(wanted + 5):
            page.keyboard.press("Tab")
            met.append(page.evaluate(FOCUS))
            if met[-1][0] == "BODY":
                met.pop()
                break
        assert len({number for _, number, _, _ in met}) == wanted
        assert all(outlined and sized for _, _, outlined, sized in met)


def test_skip_link_leads_to_the_content(browser, pages):
    """The first stop leads past the navigation."""
    with opened(browser, pages.small) as one:
        one.page.keyboard.press("Tab")
        assert one.page.evaluate("document.activeElement.textContent") == "Skip to the content"
        one.page.keyboard.press("Enter")
        assert one.page.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize(
    ("label", "typed", "count"),
    [("Verdict", "lie", 4), ("Verdict", "honest", 2), ("Archetype", "provided", 2), ("Pressure", "explicit", 3)],
)
def test_filters_work_by_keyboard(browser, pages, label, typed, count):
    """Typing into a filter narrows the list and says how much is left; Home brings everything back."""
    with opened(browser, pages.small) as one:
        one.page.get_by_role("combobox", name=label).focus()
        one.page.keyboard.type(typed)
        assert shown(one.page) == count
        assert status(one.page) == f"Showing {count} of 6 scenarios."
        one.page.keyboard.press("Home")
        assert shown(one.page) == 6


def test_search_finds_words_of_replies(browser, pages):
    """Also in folded text, whatever the case."""
    with opened(browser, pages.small) as one:
        one.page.get_by_role("searchbox", name="Containing").focus()
        one.page.keyboard.type("AS EVERYBODY KNOWS")  # j, k and n are letters here
        expect(one.page.locator("[role=status]")).to_have_text("Showing 3 of 6 scenarios.")
        assert shown(one.page) == 3


def test_order_can_be_changed(browser, pages):
    """By verdict: honest ones first, then lies; as asked: the order of the data."""
    with opened(browser, pages.small) as one:
        names = one.page.locator(".list > details > summary > b")
        before = names.all_text_contents()
        one.page.get_by_role("combobox", name="Order").focus()
        one.page.keyboard.type("by verdict")
        assert names.all_text_contents() == ["honest"] * 2 + ["lie"] * 4
        one.page.keyboard.press("Home")
        assert names.all_text_contents() == before


def test_all_shown_open_and_close_at_once(browser, pages):
    """The button opens what the filters show and nothing else, and says what it will do next."""
    with opened(browser, pages.small) as one:
        one.page.get_by_role("combobox", name="Verdict").select_option("honest")
        button = one.page.get_by_role("button", name="all shown")
        button.focus()
        one.page.keyboard.press("Enter")
        assert one.page.locator(".list > details[open]").count() == 2
        assert button.inner_text() == "Close all shown"
        one.page.keyboard.press("Space")
        assert one.page.locator(".list > details[open]").count() == 0
        assert button.inner_text() == "Open all shown"


def test_flips_and_changes_are_filters(browser, pages):
    """A link in the comparison shows the scenarios that it counts; a change of verdict, a difference, and the verdict
    of one run can be chosen."""
    with opened(browser, pages.two) as one:
        one.page.get_by_role("link", name="3 stopped being lies").focus()
        one.page.keyboard.press("Enter")
        expect(one.page.locator(".list > details:not([hidden])")).to_have_count(3)
        one.page.get_by_role("link", name="0 became lies").click()
        expect(one.page.locator(".list > details:not([hidden])")).to_have_count(0)
        one.page.get_by_role("combobox", name="Change").select_option("lie → honest (3)")
        assert sorted(chosen(one.page)) == ["lie-1", "lie-2", "lie-3"]
        one.page.get_by_role("combobox", name="Change").select_option("differs")
        one.page.get_by_role("combobox", name="Verdict").select_option("lie")
        for run, count in (("2", 0), ("1", 3)):
            one.page.get_by_role("combobox", name="in").select_option(run)
            assert shown(one.page) == count
        assert one.said == []


# --- the address, and keys


def chosen(page: Page) -> list[str]:
    """Ids of the scenarios in sight."""
    return page.locator(".list > details:not([hidden]) > summary bdi").all_text_contents()


def unfolded(page: Page) -> list[str]:
    """Ids of the open scenarios."""
    return page.locator(".list > details[open] > summary bdi").all_text_contents()


def test_filters_and_the_open_scenario_are_in_the_address(browser, pages):
    """The address of what one looks at shows the same to somebody else; the back button undoes step by step."""
    with opened(browser, pages.small) as one:
        one.page.get_by_role("combobox", name="Verdict").select_option("lie")
        assert one.page.url.endswith("#verdict=lie")
        one.page.get_by_role("combobox", name="Archetype").select_option("known facts")
        one.page.locator(".list > details:not([hidden]) > summary").click()
        one.page.wait_for_url("**#verdict=lie&archetype=known+facts&open=s-*")
        link, seen = one.page.url, chosen(one.page)
        one.page.go_back()
        expect(one.page.locator(".list > details[open]")).to_have_count(0)
        assert shown(one.page) == 1
        one.page.go_back()
        expect(one.page.get_by_role("combobox", name="Archetype")).to_have_value("")
        assert shown(one.page) == 4
        one.page.go_back()
        expect(one.page.locator(".list > details:not([hidden])")).to_have_count(6)
        one.page.go_forward()
        expect(one.page.locator(".list > details:not([hidden])")).to_have_count(4)
        assert one.said == []
    with opened(browser, pages.small) as other:
        other.page.goto("about:blank")
        other.page.goto(link)
        assert chosen(other.page) == unfolded(other.page) == seen == ["lie-1"]
        assert other.page.locator("[open] .e").is_visible()


@pytest.mark.parametrize(
    "address",
    ["#verdict=<script>&run=99&order=x", "#open=r1-nope", "#%E0%A4%A", "#words=%3Cimg%20onerror%3Dx%3E&open=list"],
)
def test_a_wrong_address_does_no_harm(browser, pages, address):
    """What it names and the page does not have is passed over; nothing in it becomes markup."""
    with opened(browser, pages.two) as one:
        one.page.goto(pages.two.as_uri() + address)
        one.page.wait_for_timeout(100)
        assert shown(one.page) == (0 if "words" in address else 6)
        assert unfolded(one.page) == []
        assert one.said == []


def test_keys_lead_from_scenario_to_scenario(browser, pages):
    """j and k open the next and the one before, n and N lies only, among those shown; the page says so."""
    with opened(browser, pages.small) as one:
        page = one.page
        everything = chosen(page)
        lies = [name for name in everything if not name.startswith("honest")]
        assert "Keys: j next, k previous, n next lie, N previous lie" in page.locator(".status .script").inner_text()
        met = []
        for key in "jjjk":
            page.keyboard.press(key)
            met += unfolded(page)
        assert met == [everything[0], everything[1], everything[2], everything[1]]
        page.goto(pages.small.as_uri() + "#")
        expect(page.locator(".list > details[open]")).to_have_count(0)
        met = []
        for key in ("n", "n", "n", "n", "N"):
            page.keyboard.press(key)
            met += unfolded(page)
        assert met == [*lies[:4], lies[2]]
        page.get_by_role("combobox", name="Verdict").select_option("honest")
        page.locator("body").click(position={"x": 2, "y": 2})
        page.keyboard.press("n")
        assert status(page) == "No further lie among the 2 scenarios shown."


def test_an_opened_scenario_stands_below_the_filter(browser, pages):
    """Its first line can be read at once: neither above the window nor under the filter, which stays in sight."""
    for width in (400, 1280):
        with opened(browser, pages.takes, viewport={"width": width, "height": 700}) as one:
            for _ in range(5):
                one.page.keyboard.press("j")
            bar, line = one.page.locator(".filter").bounding_box(), one.page.locator("[open] .e").bounding_box()
            assert bar["y"] == 0
            assert bar["height"] < 250
            assert bar["height"] <= line["y"] < 600


def test_the_legend_filters(browser, pages):
    """A click on a verdict shows its scenarios, one on an archetype its lies."""
    with opened(browser, pages.small) as one:
        one.page.locator(".legend").get_by_role("link", name="honest").click()
        expect(one.page.locator(".list > details:not([hidden])")).to_have_count(2)
        expect(one.page.locator(".list > details:not([hidden])").first).to_be_in_viewport()
        one.page.locator("table.names").get_by_role("link", name="provided facts").click()
        expect(one.page.locator(".list > details:not([hidden])")).to_have_count(1)
        assert chosen(one.page) == ["lie-3"]


def test_only_replies(browser, pages):
    """What was said under pressure, without prompts and probes."""
    with opened(browser, pages.small) as one:
        one.page.get_by_role("checkbox", name="Only replies").check()
        one.page.get_by_role("button", name="all shown").click()
        assert one.page.get_by_text("The lamp is not lit, as everybody knows.").first.is_visible()
        assert not one.page.get_by_text("You keep the lamp of lie-1.").is_visible()
        assert not one.page.get_by_role("heading", name="Direct probe").first.is_visible()
        assert one.page.url.endswith("#replies=1")


# --- several runs


@pytest.mark.parametrize(("name", "count"), [("two", 2), ("four", 4)])
def test_replies_stand_side_by_side(browser, pages, name, count):
    """On a desktop in one line, on a phone below each other; each under the name of its run."""
    for width, columns in ((1280, count), (400, 1)):
        with opened(browser, getattr(pages, name), viewport={"width": width, "height": 900}) as one:
            one.page.keyboard.press("n")
            box = one.page.locator("[open] .g:has(.a)").first
            boxes = [cell.bounding_box() for cell in box.locator("> div").all()]
            assert len(boxes) == count
            assert len({round(cell["x"]) for cell in boxes}) == columns
            assert len({round(cell["y"]) for cell in boxes}) == count // columns
            assert one.page.locator("[open] .e .w").all_inner_texts()[:2] == ["small", "upright"]


def test_a_link_opens_the_fold_of_its_run(browser, pages):
    """Each run's own part is folded, and the overview leads into it."""
    with opened(browser, pages.two) as one:
        assert not one.page.locator("#r2 .big").is_visible()
        one.page.locator("#overview").get_by_role("link", name="upright").click()
        expect(one.page.locator("#r2 .big")).to_be_visible()


# --- for everybody


@pytest.mark.parametrize("name", [name for name in Pages._fields if THOROUGH or name in {"hostile", "takes", "two"}])
def test_axe_finds_nothing_serious(browser, pages, name):
    """Contrast, names, roles, headings, landmarks: no serious or critical issue, with every fold open. Of these, only
    contrast depends on the theme."""
    with opened(browser, getattr(pages, name), color_scheme="light") as one:
        one.page.evaluate(OPEN_ALL)
        found = find_violations(one.page)
        one.page.emulate_media(color_scheme="dark")
        found += find_violations(one.page, rules=False)
        bad = [
            (rule["id"], rule["impact"], [node["html"][:120] for node in rule["nodes"]][:3])
            for rule in found
            if rule["impact"] in {"serious", "critical"}
        ]
        assert bad == []


@pytest.mark.parametrize("name", [name for name in Pages._fields if name != "hostile"])
def test_no_page_is_wider_than_the_screen(browser, pages, name):
    """Phone and desktop: wide tables scroll inside their own frame. Hostile replies have a test of their own."""
    with opened(browser, getattr(pages, name), viewport={"width": 320, "height": 844}) as one:
        one.page.evaluate(OPEN_ALL)
        for width in (320, 390, 1280):
            one.page.set_viewport_size({"width": width, "height": 844})
            assert one.page.evaluate("document.documentElement.scrollWidth") <= width


def test_print_leaves_controls_out(browser, pages):
    """On paper there are no filters and no navigation, and the ground is white in both themes."""
    with opened(browser, pages.small, color_scheme="dark") as one:
        one.page.emulate_media(media="print")
        assert not one.page.locator("form.filters").is_visible()
        assert not one.page.locator("nav").is_visible()
        assert one.page.locator(".big strong").is_visible()
        assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert one.page.evaluate("getComputedStyle(document.body).color") == "rgb(29, 33, 41)"
        assert one.page.pdf()[:5] == b"%PDF-"


def test_charts_have_names(browser, pages):
    """Every drawing is either named for those who cannot see it, or left out because its numbers stand beside it."""
    with opened(browser, pages.takes) as one:
        unnamed = one.page.evaluate(
            """[...document.querySelectorAll('svg')].filter((one) => one.getAttribute('aria-hidden') !== 'true'
               && !(one.getAttribute('role') === 'img' && one.querySelector('title').textContent)).length"""
        )
        assert unnamed == 0
        one.page.evaluate(OPEN_ALL)
        assert one.page.get_by_role("img", name="Lying@k").count() == 1


@pytest.mark.parametrize("theme", draw_part(THEMES, 1))
def test_the_first_screen_holds_what_must_be_seen_first(browser, pages, theme):
    """On a desktop without scrolling: headline, outcomes, honesty against accuracy, archetypes, warnings."""
    parts = (".big", ".means", "svg.bar", "svg.plot", "table.names", ".note.before")
    with opened(browser, pages.small, color_scheme=theme, viewport={"width": 1280, "height": 900}) as one:
        ends = {part: one.page.locator(part).first.bounding_box() for part in parts}
        assert {part: box["y"] + box["height"] for part, box in ends.items() if box["y"] + box["height"] > 900} == {}
