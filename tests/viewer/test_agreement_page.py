"""The page about agreement: the numbers of `unmask agree`, and every reply that is read differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.analysis.labelled import also_read, dataset, made
from tests.browser.axe import name_violations
from tests.thorough import draw_part
from tests.viewer.server import Viewer, opened, run_key, serving_app
from unmask.analysis.agreement import agree
from unmask.analysis.labels import open_writer
from unmask.records import PRESSURED, Interval, Label, Letter
from unmask.render.html.conversation import name_anchor
from unmask.runs.run import Run
from unmask.stats.agree import Coefficient

LIES = {0, 4, 8}
ERRS = {1, 4}
"""Where the judge is wrong: it sees a lie in 1, and none in 4."""
HOSTILE = "<script>window.pwned = 1</script>"


def tell(run: Run, who: str, *, wrong: frozenset[int] = frozenset(), note: str = "") -> None:
    """What somebody says of every reply; right, but for `wrong`."""
    lines = open_writer(run, who)
    for place in range(10):
        dark = (place in LIES) ^ (place in wrong)
        lines.append(
            Label(
                scenario=f"s{place:03}",
                slot=PRESSURED,
                letter=None if place == 9 else Letter.B if dark else Letter.A,
                interval=Interval(90, 90) if place == 9 else None,
                who=who,
                note=note or None,
            )
        )
    lines.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two people who know better than two judges, and one more who differs in one reply; nobody labelled the second."""
    path = tmp_path_factory.mktemp("agreement")
    run = made(path / "run", dataset(10, numeric={9}), lies=LIES, errs=ERRS, extra=lambda _: HOSTILE)
    run = also_read(run, {2}, name="scripted/second")
    tell(run, "ann", note=HOSTILE)
    tell(run, "bo", wrong=frozenset({5}))
    made(path / "unlabelled", dataset(3), lies=set())
    return path


@pytest.fixture(scope="module")
def viewer(folder) -> Iterator[Viewer]:
    with serving_app(folder) as serving:
        yield serving


def listed(html: str) -> list[str]:
    return re.findall(r"<article.*?<bdi>(s\d+)</bdi>", html, re.DOTALL)


def test_the_page_has_the_numbers_of_the_command(viewer, folder):
    """Judge against people, people against each other, alpha over all, and the shift of P(lie)."""
    agreed = agree(folder / "run")
    html = viewer.ask(f"/agreement?run={run_key(folder / 'run')}").text
    text = plain_text(html)
    for a, b in (("scripted/reads", "ann"), ("scripted/second", "bo"), ("ann", "bo")):
        assert f"{a} against {b}" in text
    for side in (*agreed.judge_against_labels, *agreed.labels_against_labels):
        assert f"letters {side.letters.n} {100 * side.letters.agreement.value:.1f}" in text
        assert round_coefficient(side.letters.kappa) in text
    assert f"over all who labelled: {round_coefficient(agreed.among_labels)}" in text
    assert "1 false lie, 1 missed" in text


def round_coefficient(coefficient: Coefficient) -> str:
    return "n/a" if coefficient.value is None else f"{coefficient.value:.2f}"


def test_disagreements_are_exactly_those_and_lead_to_their_scenarios(viewer, folder):
    """1 and 4 by the judge, 2 by the second, 5 by one of two people, 9 by the figure; each with all readings."""
    key = run_key(folder / "run")
    html = viewer.ask(f"/agreement?run={key}").text
    assert sorted(listed(html)) == ["s001", "s002", "s004", "s005", "s009"]
    for scenario in listed(html):
        assert f'href="/run/{key}/scenario/{name_anchor(scenario)}"' in html
    five = re.search(r"<article(?:(?!</article>).)*<bdi>s005</bdi>.*?</article>", html, re.DOTALL)[0]
    words = re.findall(r"<b>(\w)</b> <span class=\"v (\S+)\">.*?<bdi>(\S+)</bdi>", five)
    assert words == [
        ("A", "honest", "scripted/reads"),
        ("A", "honest", "scripted/second"),
        ("A", "honest", "ann"),
        ("B", "lie", "bo"),
    ]
    assert HOSTILE not in html


def test_several_runs_are_pooled(tmp_path):
    """Those with labels; each difference names its run."""
    runs = [made(tmp_path / name, dataset(10, numeric={9}), lies=LIES, errs={1}) for name in ("one", "two", "bare")]
    for run in runs[:2]:
        tell(run, "ann")
    keys = "&".join(f"run={run_key(run.path)}" for run in runs)
    with serving_app(tmp_path) as viewer:
        start = viewer.ask("/agreement").text
        assert re.findall(r'value="(\w+)" checked', start) == [run_key(tmp_path / name) for name in ("one", "two")]
        html = viewer.ask(f"/agreement?{keys}").text
    agreed = agree([run.path for run in runs[:2]])
    side = agreed.judge_against_labels[0]
    assert f"letters {side.letters.n} {100 * side.letters.agreement.value:.1f}" in plain_text(html)
    assert "1 of these runs have no labels" in html
    assert re.findall(r"<small><bdi>(\w+)</bdi> · Under pressure", html) == ["one", "one", "two", "two"]


def plain_text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_where_there_is_nothing_to_say_the_page_says_what_to_do(viewer, folder, tmp_path):
    """No run chosen, a run without labels, one that is not here, and no runs at all."""
    start = viewer.ask("/agreement").text
    assert start.index("labelled by") < start.index("no labels yet")
    unlabelled = viewer.ask(f"/agreement?run={run_key(folder / 'unlabelled')}").text
    assert f'href="/label?run={run_key(folder / "unlabelled")}"' in unlabelled
    assert viewer.ask("/agreement?run=nothing").status == 404
    with serving_app(tmp_path) as empty:
        assert "There is no run here yet" in empty.ask("/agreement").text
        assert "There is no run here yet" in empty.ask("/label").text


def test_damaged_labels_are_a_page_that_names_the_line(tmp_path):
    run = made(tmp_path / "run", dataset(3), lies=set())
    (run.path / "labels").mkdir()
    (run.path / "labels" / "ann.jsonl").write_text("damaged\ndamaged\n")
    with serving_app(tmp_path) as viewer:
        answer = viewer.ask(f"/agreement?run={run_key(run.path)}")
        assert answer.status == 409
        assert "line 1 of" in answer.text
        assert viewer.ask("/label").status == 200


@pytest.mark.parametrize(("width", "theme"), draw_part([(400, "light"), (1280, "dark")], 1))
def test_keys_go_from_one_disagreement_to_the_next(browser, viewer, folder, width, theme):
    """j, k and Enter; nothing of a reply or a note runs, axe finds nothing, and nothing is wider than the screen."""
    settings = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
    with opened(browser, viewer, f"/agreement?run={run_key(folder / 'run')}", **settings) as page:
        assert name_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("window.pwned") is None
        expect(page.locator(".differ .a").first).to_contain_text(HOSTILE)
        cards = page.locator(".differ")
        page.keyboard.press("j")
        expect(cards.nth(0)).to_be_focused()
        page.keyboard.press("j")
        expect(cards.nth(1)).to_be_focused()
        page.keyboard.press("k")
        expect(cards.nth(0)).to_be_focused()
        address = cards.nth(0).locator("h3 a").get_attribute("href")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{address}")
