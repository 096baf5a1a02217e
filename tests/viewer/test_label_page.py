"""Labelling in the browser: blind, by keyboard, several people at once, and no label is ever lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.analysis.labelled import dataset, reader, subject
from tests.browser.axe import find_violations
from tests.patience import MILLISECONDS
from tests.thorough import draw_part
from tests.viewer.server import Answer, Viewer, run_key, running_viewer, serving_app
from unmask.analysis.agreement import agree
from unmask.analysis.corrected import corrected_p_lie
from unmask.analysis.labels import labellers, load_labels, load_skips, open_writer
from unmask.analysis.sampling import label
from unmask.data.dataset import Dataset, content_hash
from unmask.engine.run import run as make_run
from unmask.records import PRESSURED, Interval, Kind
from unmask.render.html.conversation import name_anchor
from unmask.runs.run import Run
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.templating import render_template


def lamps(count: int, *, numeric: set[int] = frozenset()) -> Dataset:
    """Lamps, those with figures in watts."""
    scenarios = tuple(
        msgspec.structs.replace(scenario, unit="watts") if scenario.kind is Kind.NUMERIC else scenario
        for scenario in dataset(count, numeric=numeric).scenarios
    )
    name = content_hash(scenarios)
    return Dataset(name="lamps", source="lamps", scenarios=scenarios, hash=name, full_hash=name)


def made(out: Path, count: int = 6, *, numeric: set[int] = frozenset(), model: str = "quasar", **settings) -> Run:
    """A run whose replies do not name their model."""
    answering = subject({1, 4}, extra=settings.pop("extra", str))
    answering.name = answering.endpoint = f"scripted/{model}"
    data = lamps(count, numeric=numeric)
    return make_run(data=data, model=answering, judge=reader(name="scripted/owl"), out=out, **settings)


def start(viewer: Viewer, who: str, *folders: Path, **wishes) -> str:
    """The address of a session."""
    answer = viewer.post(
        "/label", json.dumps({"runs": [run_key(folder) for folder in folders], "who": who, **wishes}).encode()
    )
    assert answer.status == 200, answer.text
    return f"/label/{json.loads(answer.text)['session']}"


def shown(html: str) -> tuple[int | None, str]:
    """Which reply a page shows, and what it has seen of its label."""
    at = re.search(r'data-at="(\d*)"', html)[1]
    seen = re.search(r'data-seen="(\w*)"', html)
    return (int(at) if at else None), (seen[1] if seen else "")


def press(viewer: Viewer, address: str, html: str, key: str, **typed: str) -> Answer:
    at, seen = shown(html)
    return viewer.post(address, json.dumps({"key": key, "at": at, "seen": seen, **typed}).encode())


def lines(run: Run | Path, who: str) -> list[dict]:
    path = (run if isinstance(run, Path) else run.path) / "labels" / f"{who}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- what the browser gets


def test_no_byte_of_a_session_names_a_run(tmp_path):
    """Two runs mixed: addresses, headers, pages, answers and errors hold neither key, folder, id, model, judge nor
    developer prompt; and each label lands in its own run."""
    prompt = tmp_path / "nebula-prompt.txt"
    prompt.write_text("Be brief.")
    runs = [
        made(tmp_path / "runs" / "zebra-run", model="quasar"),
        made(tmp_path / "runs" / "gnu-run", model="pulsar", developer_prompt=str(prompt)),
    ]
    secrets = {"zebra", "gnu-run", "quasar", "pulsar", "owl", "nebula", "scripted", "runs/", str(tmp_path)}
    secrets |= {run_key(run.path) for run in runs} | {run.definition.id for run in runs}
    received: list[Answer] = []
    with serving_app(tmp_path / "runs") as viewer:
        first = viewer.post(
            "/label", json.dumps({"runs": [run_key(run.path) for run in runs], "who": "ann", "size": 6}).encode()
        )
        address = f"/label/{json.loads(first.text)['session']}"
        page = viewer.ask(address)
        received += [
            first,
            page,
            *(viewer.ask(path) for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)),
        ]
        html = page.text
        for number in range(12):
            received.append(press(viewer, address, html, "x"))
            received.append(press(viewer, address, html, "a", note=f"note {number}"))
            html = json.loads(received[-1].text)["html"]
        received.append(viewer.ask(f"{address}?at=3"))
        (runs[0].path / "labels" / "ann.jsonl").write_text("damaged\ndamaged\n")
        received += [viewer.ask(address), press(viewer, address, received[-1].text, "b")]
        for run in runs:
            run.path.rename(run.path.with_name(run.path.name + "-moved"))
        received += [press(viewer, address, received[-3].text, "b"), viewer.ask("/label/unknown")]
    assert [answer.status for answer in received[-4:]] == [409, 409, 409, 404]
    for answer in received:
        text = f"{answer.status} {answer.headers} {answer.text} {address}".lower()
        assert [secret for secret in secrets if secret.lower() in text] == []


def test_replies_of_several_runs_are_mixed_and_each_label_lands_in_its_run(tmp_path):
    """The replies of two runs differ by a word; what was said of them is in the file of the run that has the word."""
    for name in ("first", "second"):
        made(tmp_path / name, 8, extra=lambda place, word=name: f"{place} {word}")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", tmp_path / "first", tmp_path / "second")
        html, order = viewer.ask(address).text, []
        while shown(html)[0] is not None:
            word, place = re.search(r"lamp (\d+) pressured \w+ \d+ (first|second)", html).group(2, 1)
            order.append((word, f"s{int(place):03}"))
            before = len(lines(tmp_path / word, "ann"))
            answer = press(viewer, address, html, "a" if word == "first" else "b")
            assert len(lines(tmp_path / word, "ann")) == before + 1
            html = json.loads(answer.text)["html"]
        again = viewer.ask(start(viewer, "bo", tmp_path / "second", tmp_path / "first")).text
        assert re.search(r"pressured \w+ \d+ (first|second)", again)[1] == order[0][0]
    for name, letter in (("first", "A"), ("second", "B")):
        assert {(line["scenario"], line["letter"]) for line in lines(tmp_path / name, "ann")} == {
            (scenario, letter) for word, scenario in order if word == name
        }
    words = [word for word, _ in order]
    assert len(order) == 16
    assert words != sorted(words)
    assert words != sorted(words, reverse=True)


def test_the_size_is_where_a_session_stops(tmp_path):
    """The replies are those of `unmask label`, in its order; a larger size goes on."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        page = viewer.ask(start(viewer, "ann", run.path, size=4)).text
        assert "0 of 4 labelled" in page
        assert label(run, size=4)[0].texts[0] in page
        assert "0 of 5 labelled" in viewer.ask(start(viewer, "ann", run.path, size=5)).text
        wish = {"runs": [run_key(run.path)], "who": "ann", "size": 0}
        refusal = viewer.post("/label", json.dumps(wish).encode())
        assert refusal.status == 409
        assert "--size 0 is too small" in json.loads(refusal.text)["problem"]


# --- nothing is lost


def test_a_label_is_on_disk_before_the_answer(tmp_path):
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", run.path)
        html = viewer.ask(address).text
        for count in range(1, 7):
            answer = press(viewer, address, html, "a", note="sure" if count == 2 else "")
            assert len(lines(run, "ann")) == count
            html = json.loads(answer.text)["html"]
    assert "All 6 replies are labelled" in html
    assert lines(run, "ann")[1]["note"] == "sure"


def test_undo_leaves_things_as_if_nothing_was_said(tmp_path):
    """A label, a skip and a changed label are taken back one after the other; what stood before stands again."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", run.path)
        html = viewer.ask(address).text
        for key in ("a", "s"):
            html = json.loads(press(viewer, address, html, key).text)["html"]
        first = viewer.ask(f"{address}?at=1").text
        press(viewer, address, first, "b", note="no")
        assert [label.letter for label in load_labels(run, "ann").values()] == ["B"]
        answer = json.loads(press(viewer, address, html, "u").text)
        assert (answer["at"], answer["message"]) == (1, "Taken back.")
        assert [(label.letter, label.note) for label in load_labels(run, "ann").values()] == [("A", None)]
        press(viewer, address, html, "u")
        assert load_skips(run, "ann") == set()
        press(viewer, address, html, "u")
        assert load_labels(run, "ann") == {}
        assert "Nothing was given" in json.loads(press(viewer, address, html, "u").text)["message"]
    assert [line.get("taken_back", False) for line in lines(run, "ann")] == [False, False, False, False, True, True]
    assert agree(run).labels == {"ann": 0}


def test_a_second_window_does_not_write_over_what_it_has_not_seen(tmp_path):
    """The same name twice: one session knows of the other's label, and shows it before it takes another."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        one, two = (start(viewer, "ann", run.path) for _ in range(2))
        page = viewer.ask(two).text
        press(viewer, one, viewer.ask(one).text, "a", note="first window")
        answer = json.loads(press(viewer, two, page, "b").text)
        assert "another window" in answer["message"]
        assert "first window" in answer["html"]
        assert [line["letter"] for line in lines(run, "ann")] == ["A"]
        press(viewer, two, answer["html"], "b")
        assert [line["letter"] for line in lines(run, "ann")] == ["A", "B"]
        assert shown(viewer.ask(one).text)[0] == 2


def test_another_process_that_writes_under_the_same_name_keeps_the_browser_out(tmp_path, monkeypatch):
    monkeypatch.setattr("unmask.viewer.desk.LONGEST_WAIT", 0.05)
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", run.path)
        html = viewer.ask(address).text
        other = open_writer(run, "ann")
        answer = press(viewer, address, html, "a")
        assert answer.status == 409
        assert "Another program is writing labels under your name" in answer.text
        other.close()
        assert press(viewer, address, html, "a").status == 200
    assert len(lines(run, "ann")) == 1


def test_four_people_at_once_lose_nothing(tmp_path):
    """Four names and two hundred labels over two runs: every one is there once, as it was given."""
    folders = [made(tmp_path / name, 25).path for name in ("one", "two")]
    with serving_app(tmp_path) as viewer:

        def label_all(who: str) -> list[str]:
            address = start(viewer, who, *folders)
            html, sent = viewer.ask(address).text, []
            while shown(html)[0] is not None:
                sent.append("abcd"[(len(sent) + len(who)) % 4])
                answer = press(viewer, address, html, sent[-1], note=f"{who} {len(sent)}")
                assert answer.status == 200, answer.text
                html = json.loads(answer.text)["html"]
            return sent

        people = ("ann", "beth", "carol", "dd")
        with ThreadPoolExecutor(4) as pool:
            sent = dict(zip(people, pool.map(label_all, people), strict=True))
    for who in people:
        written = sorted((line for folder in folders for line in lines(folder, who)), key=lambda line: line["at"])
        by_note = {line["note"]: line["letter"] for line in written}
        assert len(written) == 50
        assert by_note == {f"{who} {number}": letter.upper() for number, letter in enumerate(sent[who], 1)}


def test_four_windows_under_one_name_lose_nothing(tmp_path):
    """Each answers other replies of the same run at the same time: all stand in one file, none torn."""
    run = made(tmp_path / "run", 20)
    with serving_app(tmp_path) as viewer:
        addresses = [start(viewer, "ann", run.path) for _ in range(4)]

        def label_some(window: int) -> list[int]:
            pages = [viewer.ask(f"{addresses[window]}?at={at}").text for at in range(window + 1, 21, 4)]
            return [press(viewer, addresses[window], html, "a").status for html in pages]

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(label_some, range(4))) == [[200] * 5] * 4
    assert len({line["scenario"] for line in lines(run, "ann")}) == 20


def test_kill_9_between_two_labels_loses_none(tmp_path):
    """A real process is killed after three labels; the next one goes on with the fourth reply."""
    run = made(tmp_path / "runs" / "run")
    with running_viewer(tmp_path / "runs", cache=tmp_path / "cache") as viewer:
        address = start(viewer, "ann", run.path)
        html = viewer.ask(address).text
        for _ in range(3):
            html = json.loads(press(viewer, address, html, "a").text)["html"]
        os.killpg(viewer.process.pid, signal.SIGKILL)
        viewer.process.wait()
    assert len(lines(run, "ann")) == 3
    with running_viewer(tmp_path / "runs", cache=tmp_path / "cache") as viewer:
        assert viewer.ask(address).status == 404
        html = viewer.ask(start(viewer, "ann", run.path)).text
        assert "3 of 6 labelled" in html
        assert shown(html)[0] == 4


@pytest.mark.parametrize("fate", ["renamed", "deleted", "another run", "another reply"])
def test_a_label_for_a_reply_that_is_gone_is_refused_and_leaves_no_folder(tmp_path, fate):
    run = made(tmp_path / "runs" / "run")
    with serving_app(tmp_path / "runs") as viewer:
        address = start(viewer, "ann", run.path)
        html = viewer.ask(address).text
        match fate:
            case "renamed":
                run.path.rename(tmp_path / "elsewhere")
            case "deleted":
                shutil.rmtree(run.path)
            case "another run":
                shutil.rmtree(run.path)
                made(run.path)
            case "another reply":
                journal = run.path / "replies.jsonl"
                text = re.sub(r',"sum":"\w+"', "", journal.read_text())
                journal.write_text(text.replace("pressured", "leaned on"))
        answer = press(viewer, address, html, "a", note="typed")
        assert answer.status == 409
        assert "This reply is gone" in json.loads(answer.text)["problem"]
        assert run.path.exists() == (fate in {"another run", "another reply"})
        assert lines(run, "ann") == []
        passed = press(viewer, address, html, "s")
        assert passed.status == 200
        assert json.loads(passed.text)["at"] == 2


@pytest.mark.parametrize("who", ["张伟", "../../etc/passwd", "O'Brien <b>&", "a b", "CON"])
def test_a_name_may_have_any_signs(tmp_path, who):
    """It is shown as text, names no other file, and is found again."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, who, run.path)
        page = viewer.ask(address)
        assert "<b>&" not in page.text
        press(viewer, address, page.text, "a")
        assert "1 of 6 labelled" in viewer.ask(start(viewer, who, run.path)).text
        assert viewer.ask("/label").status == 200
    assert len(load_labels(run, who)) == 1
    assert [path.parent for path in tmp_path.rglob("*.jsonl") if path.stem in labellers(run)] == [run.path / "labels"]


@pytest.mark.parametrize("who", ["", "  ", "a\nb", "x" * 101])
def test_what_is_no_name_is_refused(tmp_path, who):
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        answer = viewer.post("/label", json.dumps({"runs": [run_key(run.path)], "who": who}).encode())
        assert answer.status == 409
        assert "Labels need a name" in answer.text
        assert viewer.post("/label", b'{"runs": [], "who": "ann"}').status == 409
        assert viewer.post("/label", b'{"runs": ["../x"], "who": "ann"}').status == 404
        assert viewer.post("/label", b'{"runs": 1}').status == 400
    assert labellers(run) == []


def test_a_full_disk_is_said_and_the_label_can_be_given_again(tmp_path, monkeypatch):
    run = made(tmp_path / "runs" / "run")
    write, full = os.write, True

    def write_unless_full(handle: int, data: bytes) -> int:
        if full and b'"who":"ann"' in bytes(data):
            raise OSError(28, "No space left on device")
        return write(handle, data)

    monkeypatch.setattr("unmask.runs.journal.os.write", write_unless_full)
    with serving_app(tmp_path / "runs") as viewer:
        address = start(viewer, "ann", run.path)
        html = viewer.ask(address).text
        answer = press(viewer, address, html, "a")
        assert answer.status == 507
        assert "The disk is full. This label was not stored." in answer.text
        full = False
        assert press(viewer, address, html, "a").status == 200
    assert len(lines(run, "ann")) == 1


# --- labels that are not blind


def here(viewer: Viewer, run: Run, scenario: str, answer: str, **fields) -> Answer:
    content = {"scenario": name_anchor(scenario), "slot": PRESSURED, "take": 0, "who": "ann", "answer": answer}
    return viewer.post(f"/label/here/{run_key(run.path)}", json.dumps(content | fields).encode())


def test_a_label_from_a_scenario_page_is_not_blind_and_counts_only_where_asked(tmp_path):
    """It is kept beside the blind one of the same person, and moves neither agreement nor corrected score."""
    run = made(tmp_path / "run", 12, numeric={5})
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", run.path)
        html = viewer.ask(address).text
        while shown(html)[0] is not None:
            html = json.loads(press(viewer, address, html, "c").text)["html"]
        before = agree(run), corrected_p_lie(run, ["ann"])
        assert here(viewer, run, "s000", "A", note="looks so").status == 200
        assert here(viewer, run, "s005", "10..20").status == 200
        assert here(viewer, run, "s005", "A").status == 409
        assert here(viewer, run, "s000", "40").status == 409
        assert here(viewer, run, "s000", "A", slot="indirect_9").status == 409
        assert here(viewer, run, "s999", "A").status == 409
    assert [line.get("blind", True) for line in lines(run, "ann")] == [True] * 12 + [False] * 2
    after = agree(run)
    assert (msgspec.structs.replace(after, not_blind=0), corrected_p_lie(run, ["ann"])) == before
    assert after.not_blind == 2
    letters = agree(run, include_not_blind=True).judge_against_labels[0].letters.confusion
    assert letters != after.judge_against_labels[0].letters.confusion
    assert load_labels(run, "ann", not_blind=True)["s005", PRESSURED, 0].interval == Interval(10, 20)


def test_a_reply_labelled_with_the_judge_in_view_is_not_shown_as_a_blind_one(tmp_path):
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        here(viewer, run, "s000", "A")
        assert "0 of 5 labelled" in viewer.ask(start(viewer, "ann", run.path)).text
        assert "0 of 6 labelled" in viewer.ask(start(viewer, "bo", run.path)).text


def test_the_form_of_a_scenario_page_keeps_a_label(browser, tmp_path):
    """The part that scenario pages include: reply, letter, name and note arrive, and a refusal is said beside it."""
    run = made(tmp_path / "run", takes=2)
    with serving_app(tmp_path) as viewer:
        entry = RunEntry(run_key(run.path), run.path, "run")
        form = render_template(
            "label_here.html", entry=entry, scenario=run.scenario("s003"), outcome=run.outcome("s003")
        )
        page = open_page(browser, viewer, "/agreement")
        page.evaluate("(html) => { document.getElementById('content').innerHTML = html }", form.split("<script")[0])
        page.add_script_tag(url="/static/label.js", type="module")
        page.locator(".label-here summary").click()
        assert_accessible(page, ignore=("page-has-heading-one",))
        page.get_by_label("Your name").fill("ann")
        page.get_by_label("Reply").select_option(label="pressured, take 2")
        page.get_by_label("It asserts").select_option("D")
        page.get_by_label("Note").fill("seen the judge")
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_role("status")).to_have_text("Kept for ann: D, not blind.")
        run.path.rename(tmp_path / "moved")
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_role("status")).to_contain_text("may be renamed or deleted")
        page.context.close()
    (line,) = lines(tmp_path / "moved", "ann")
    assert (line["scenario"], line["take"], line["letter"], line["note"], line["blind"]) == (
        *("s003", 1, "D", "seen the judge"),
        False,
    )


# --- the browser


def open_page(browser: Browser, viewer: Viewer, path: str, **settings) -> Page:
    context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | settings))
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    page.goto(f"{viewer.origin}{path}?token={viewer.token}")
    page.wait_for_url(viewer.origin + path)
    return page


def assert_accessible(page: Page, ignore: Sequence[str] = ()) -> None:
    found = [rule for rule in find_violations(page) if rule["id"] not in ignore]
    assert [(rule["id"], [node["html"][:120] for node in rule["nodes"]][:3]) for rule in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def type_answer(page: Page, note: str) -> None:
    """A letter with a note; or a figure, at the second try."""
    if not page.locator("#figure-text").count():
        page.keyboard.press("n")
        page.keyboard.type(note)
        page.keyboard.press("Enter")
        page.keyboard.press("b")
        return
    expect(page.locator("#figure-hint")).to_contain_text("in watts")
    page.keyboard.press("=")
    page.keyboard.type("about forty")
    page.keyboard.press("Enter")
    expect(page.locator("#label-status")).to_contain_text("is no figure")
    expect(page.locator("#figure-text")).to_have_value("about forty")
    page.keyboard.press("Control+a")
    page.keyboard.type("35..45")
    assert_accessible(page)
    page.keyboard.press("Enter")


@pytest.mark.parametrize(
    "settings",
    draw_part([{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 400, "height": 800}}], 1),
)
def test_keyboard_alone_leads_through_a_session(browser, tmp_path, settings):
    """Name, runs, letters, a figure, a note, back, skip, undo, stop and going on: no mouse, and axe finds nothing."""
    run = made(tmp_path / "run", 4, numeric={2})
    with serving_app(tmp_path) as viewer:
        page = open_page(browser, viewer, "/label", **settings)
        assert_accessible(page)
        page.keyboard.press("Tab")  # past the link that skips, brand and pages
        while page.evaluate("document.activeElement.id") != "who":
            page.keyboard.press("Tab")
        page.keyboard.type("ann")
        page.keyboard.press("Enter")
        page.wait_for_url("**/label/*")
        top = page.locator(".desk-top")
        expect(top).to_contain_text("0 of 4 labelled")
        assert_accessible(page)
        for done in range(4):
            type_answer(page, f"abcd, note {done}")  # letters in a note are no answers
            expect(top).to_contain_text(f"{done + 1} of 4 labelled")
        expect(page.locator("#reply-title")).to_have_text("All 4 replies are labelled")
        assert_accessible(page)
        page.keyboard.press("u")
        expect(top).to_contain_text("3 of 4 labelled")
        page.keyboard.press("s")
        expect(page.locator("#reply-title")).to_have_text("Nothing is left but what you skipped")
        page.keyboard.press("u")
        expect(page.locator("#label-status")).to_have_text("Taken back.")
        page.keyboard.press("-")
        expect(top).to_contain_text("reply 3")
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.keyboard.press("a")  # behind the open dialog nothing is answered
        page.keyboard.press("Escape")
        page.keyboard.press("q")
        page.wait_for_url("**/label?who=ann")
        expect(page.locator("#who")).to_have_value("ann")
        page.locator("#who").press("Enter")
        page.wait_for_url("**/label/*")
        expect(top).to_contain_text("3 of 4 labelled · reply 4")
        page.context.close()
    given = load_labels(run, "ann")
    assert len(given) == 3
    figures = [label.interval for label in given.values() if label.interval]
    assert figures in ([Interval(35, 45)], [])
    assert all(re.fullmatch(r"abcd, note \d", label.note) for label in given.values() if label.letter)


def test_two_browsers_label_at_once(browser, tmp_path):
    """Two people, key by key in turn: each sees the own progress, and each label is in the own file."""
    run = made(tmp_path / "run", 5)
    with serving_app(tmp_path) as viewer:
        pages = {who: open_page(browser, viewer, start(viewer, who, run.path)) for who in ("ann", "bo")}
        for number in range(5):
            for who, page in pages.items():
                expect(page.locator(".desk-top")).to_contain_text(f"{number} of 5 labelled")
                page.keyboard.press("a" if who == "ann" else "b")
        for page in pages.values():
            expect(page.locator("#reply-title")).to_have_text("All 5 replies are labelled")
            page.context.close()
    assert [line["letter"] for line in lines(run, "ann")] == ["A"] * 5
    assert [line["letter"] for line in lines(run, "bo")] == ["B"] * 5


def test_an_old_tab_says_so_and_keeps_what_was_typed(browser, tmp_path):
    """The viewer ends, and another starts on the same port with another token: no answer, then a refusal."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        page = open_page(browser, viewer, start(viewer, "ann", run.path))
        page.fill("#note-text", "a long thought")
        page.locator("#reply").focus()
    page.keyboard.press("a")
    status = page.locator("#label-status")
    expect(status).to_contain_text("The viewer does not answer")
    with serving_app(tmp_path, port=viewer.port, token="n" * 43):
        page.keyboard.press("a")
        expect(status).to_contain_text("This tab belongs to a viewer that has ended")
        expect(page.locator("#note-text")).to_have_value("a long thought")
        assert_accessible(page)
    page.context.close()
    assert lines(run, "ann") == []


def test_script_in_a_reply_is_text(browser, tmp_path):
    """In the first page, and in what replaces it after an answer."""
    hostile = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>"
    made(tmp_path / "run", 3, extra=lambda _: hostile)
    with serving_app(tmp_path) as viewer:
        page = open_page(browser, viewer, start(viewer, hostile[:90], tmp_path / "run"))
        for number in range(3):
            expect(page.locator(".desk-top")).to_contain_text(f"{number} of 3 labelled")
            expect(page.locator(".a")).to_contain_text("<script>window.pwned=1</script>")
            page.keyboard.press("a")
        expect(page.locator(".desk-top")).to_contain_text("3 of 3 labelled")
        assert page.evaluate("window.pwned") is None
        page.context.close()
