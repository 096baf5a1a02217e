"""Labelling in the browser: blind, by keyboard, several people at once, and no label is ever lost."""

from __future__ import annotations

import json
import os
import re
import shlex
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
from tests.cli.terminal import unmask
from tests.patience import MILLISECONDS
from tests.thorough import draw_part
from tests.viewer.server import Answer, Viewer, run_key, running_viewer, serving_app
from unmask.analysis.agreement import agree
from unmask.analysis.label_session import draw_replies, label
from unmask.analysis.labels import load_labels, open_writer
from unmask.data.dataset import Dataset, content_hash
from unmask.engine.run import run as make_run
from unmask.records import Interval, Kind
from unmask.runs.run import Run


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


def given(html: str) -> list[dict | None]:
    """What a session has of the labels of its replies."""
    return json.loads(re.search(r'<script type="application/json" id="label-data">(.*?)</script>', html)[1])["labels"]


def texts(html: str) -> list[str]:
    """The replies of a session in their order."""
    return re.findall(r'<div class="a"><p dir="auto">(.*?)</p>', html)


def answer(viewer: Viewer, address: str, place: int, letter: str | None = "A", **fields) -> Answer:
    return viewer.post(address, json.dumps({"place": place, "letter": letter} | fields).encode())


def lines(run: Run | Path, who: str) -> list[dict]:
    path = (run if isinstance(run, Path) else run.path) / "labels" / f"{who}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- what the browser gets


def test_no_byte_of_a_session_names_a_run(tmp_path):
    """Two runs mixed: addresses, headers, pages, answers and errors hold neither key, folder, id, model, judge nor
    developer prompt."""
    prompt = tmp_path / "nebula-prompt.txt"
    prompt.write_text("Be brief.")
    runs = [
        made(tmp_path / "runs" / "zebra-run", model="quasar"),
        made(tmp_path / "runs" / "gnu-run", model="pulsar", developer_prompt=str(prompt)),
    ]
    secrets = {"zebra", "gnu-run", "quasar", "pulsar", "owl", "nebula", "scripted", "runs/", str(tmp_path)}
    secrets |= {run_key(run.path) for run in runs} | {run.definition.id for run in runs}
    with serving_app(tmp_path / "runs") as viewer:
        first = viewer.post(
            "/label", json.dumps({"runs": [run_key(run.path) for run in runs], "who": "ann", "size": 6}).encode()
        )
        address = f"/label/{json.loads(first.text)['session']}"
        page = viewer.ask(address)
        received = [
            first,
            page,
            *(viewer.ask(path) for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)),
        ]
        received += [answer(viewer, address, place, note=f"note {place}") for place in range(12)]
        received += [viewer.ask(address), answer(viewer, address, 0, "X"), answer(viewer, address, 99)]
        for run in runs:
            (run.path / "labels" / "ann.jsonl").write_text("damaged\ndamaged\n")
        received += [viewer.ask(address), answer(viewer, address, 0)]
        for run in runs:
            run.path.rename(run.path.with_name(run.path.name + "-moved"))
        received += [answer(viewer, address, 0), viewer.ask("/label/unknown")]
    assert [got.status for got in received[-6:]] == [400, 400, 409, 409, 409, 404]
    for got in received:
        text = f"{got.status} {got.headers} {got.text} {address}".lower()
        assert [secret for secret in secrets if secret.lower() in text] == []


def test_replies_of_several_runs_are_mixed_and_each_label_lands_in_its_run(tmp_path):
    """The replies of two runs differ by a word; what was said of them is in the file of the run that has the word."""
    for name in ("first", "second"):
        made(tmp_path / name, 8, extra=lambda place, word=name: f"{place} {word}")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", tmp_path / "first", tmp_path / "second")
        order = texts(viewer.ask(address).text)
        for place, text in enumerate(order):
            assert answer(viewer, address, place, "A" if "first" in text else "B").status == 200
        assert texts(viewer.ask(start(viewer, "bo", tmp_path / "second", tmp_path / "first")).text) == order
    words = [text.rpartition(" ")[2] for text in order]
    assert len(order) == 16
    assert words not in (sorted(words), sorted(words, reverse=True))
    for name, letter in (("first", "A"), ("second", "B")):
        assert [(line["scenario"], line["letter"]) for line in lines(tmp_path / name, "ann")] == [
            (f"s{int(re.search(r'lamp ([0-9]+)', text)[1]):03}", letter) for text in order if text.endswith(name)
        ]


def test_the_size_is_where_a_session_stops(tmp_path):
    """Of each run, or of all together; a larger size goes on."""
    first, second = made(tmp_path / "first"), made(tmp_path / "second")
    with serving_app(tmp_path) as viewer:
        own = texts(viewer.ask(start(viewer, "ann", first.path, size=4)).text)
        assert own == [item.texts[0] for item in label(first, size=4)]
        for size, in_all, count in ((4, False, 8), (5, True, 5), (1, True, 1)):
            address = start(viewer, "ann", first.path, second.path, size=size, in_all=in_all)
            assert len(texts(viewer.ask(address).text)) == count
        wish = {"runs": [run_key(first.path)], "who": "ann", "size": 0, "in_all": True}
        refusal = viewer.post("/label", json.dumps(wish).encode())
        assert refusal.status == 409
        assert "--size 0 is too small" in json.loads(refusal.text)["problem"]


# --- nothing is lost


def test_a_label_is_on_disk_before_the_answer(tmp_path):
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", run.path)
        for place in range(6):
            answer(viewer, address, place, note="sure" if place == 1 else "")
            assert len(lines(run, "ann")) == place + 1
        assert given(viewer.ask(address).text)[:2] == [{"letter": "A"}, {"letter": "A", "note": "sure"}]
    assert lines(run, "ann")[1]["note"] == "sure"


def test_another_process_that_writes_under_the_same_name_keeps_the_browser_out(tmp_path, monkeypatch):
    monkeypatch.setattr("unmask.analysis.label_session.LONGEST_WAIT", 0.05)
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, "ann", run.path)
        other = open_writer(run, "ann")
        refusal = answer(viewer, address, 0)
        assert refusal.status == 409
        assert "another program is writing labels under your name" in refusal.text
        other.close()
        assert answer(viewer, address, 0).status == 200
    assert len(lines(run, "ann")) == 1


@pytest.mark.parametrize("people", [("ann", "beth", "carol", "dd"), ("ann",) * 4])
def test_four_windows_at_once_lose_nothing(tmp_path, people):
    """Two hundred labels over two runs, under four names or one: every one is there, as it was given."""
    folders = [made(tmp_path / name, 25).path for name in ("one", "two")]
    with serving_app(tmp_path) as viewer:

        def label_all(window: int) -> list[int]:
            address = start(viewer, people[window], *folders)
            return [answer(viewer, address, place, note=f"{window} {place}").status for place in range(50)]

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(label_all, range(4))) == [[200] * 50] * 4
    notes = [line["note"] for who in set(people) for folder in folders for line in lines(folder, who)]
    assert sorted(notes) == sorted(f"{window} {place}" for window in range(4) for place in range(50))


def test_kill_9_between_two_labels_loses_none(tmp_path):
    """A real process is killed after three labels; the next one knows them."""
    run = made(tmp_path / "runs" / "run")
    with running_viewer(tmp_path / "runs", cache=tmp_path / "cache") as viewer:
        address = start(viewer, "ann", run.path)
        for place in range(3):
            answer(viewer, address, place)
        os.killpg(viewer.process.pid, signal.SIGKILL)
        viewer.process.wait()
    assert len(lines(run, "ann")) == 3
    with running_viewer(tmp_path / "runs", cache=tmp_path / "cache") as viewer:
        gone = viewer.ask(address)
        assert gone.status == 404
        assert "Every label that was given in it is on disk." in gone.text
        assert given(viewer.ask(start(viewer, "ann", run.path)).text) == [{"letter": "A"}] * 3 + [None] * 3


@pytest.mark.parametrize("fate", ["renamed", "deleted", "another run"])
def test_a_label_for_a_run_that_is_gone_is_refused_and_leaves_no_folder(tmp_path, fate):
    run = made(tmp_path / "runs" / "run")
    with serving_app(tmp_path / "runs") as viewer:
        address = start(viewer, "ann", run.path)
        if fate == "renamed":
            run.path.rename(tmp_path / "elsewhere")
        else:
            shutil.rmtree(run.path)
        if fate == "another run":
            made(run.path)
        refusal = answer(viewer, address, 0, note="typed")
        assert refusal.status == 409
        assert "This label was not stored: its run was changed, moved or damaged" in json.loads(refusal.text)["problem"]
        assert run.path.exists() == (fate == "another run")
        assert lines(run, "ann") == []


@pytest.mark.parametrize("who", ["张伟", "../../etc/passwd", "O'Brien <b>&", "a b", "CON"])
def test_a_name_may_have_any_signs(tmp_path, who):
    """It is shown as text, names no other file, and is found again."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        address = start(viewer, who, run.path)
        assert "<b>&" not in viewer.ask(address).text
        answer(viewer, address, 0)
        assert given(viewer.ask(start(viewer, who, run.path)).text)[0] == {"letter": "A"}
        assert viewer.ask("/label").status == 200
    assert len(load_labels(run, who)) == 1
    assert [path.parent for path in tmp_path.rglob("*.jsonl") if path.stem in run.folder.labellers()] == [
        run.path / "labels"
    ]


@pytest.mark.parametrize("who", ["", "  ", "a\nb", "x" * 101])
def test_what_is_no_name_is_refused(tmp_path, who):
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        refusal = viewer.post("/label", json.dumps({"runs": [run_key(run.path)], "who": who}).encode())
        assert refusal.status == 409
        assert "Labels need a name" in refusal.text
        assert viewer.post("/label", b'{"runs": [], "who": "ann"}').status == 409
        assert viewer.post("/label", b'{"runs": ["../x"], "who": "ann"}').status == 404
        assert viewer.post("/label", b'{"runs": 1}').status == 400
    assert run.folder.labellers() == []


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
        refusal = answer(viewer, address, 0)
        assert refusal.status == 409
        assert "This label was not stored: No space left on device." in refusal.text
        full = False
        assert answer(viewer, address, 0).status == 200
    assert len(lines(run, "ann")) == 1


# --- the browser


def open_page(browser: Browser, address: str, **settings) -> Page:
    context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | settings))
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    page.goto(address)
    page.wait_for_url(lambda url: "token=" not in url)
    return page


def in_viewer(viewer: Viewer, path: str) -> str:
    return f"{viewer.origin}{path}?token={viewer.token}"


def assert_accessible(page: Page, ignore: Sequence[str] = ()) -> None:
    found = [rule for rule in find_violations(page) if rule["id"] not in ignore]
    assert [(rule["id"], [node["html"][:120] for node in rule["nodes"]][:3]) for rule in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def top_of(page: Page, text: str) -> None:
    expect(page.locator(".desk-top")).to_contain_text(text)


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
    expect(page.locator("#label-status")).to_contain_text("is no number")
    expect(page.locator("#figure-text")).to_have_value("about forty")
    page.keyboard.press("Control+a")
    page.keyboard.type("35..45")
    assert_accessible(page)
    page.keyboard.press("Enter")


def go_through(page: Page) -> None:
    """Letters, a figure, a note, back, skip and undo by keyboard alone, over four replies of which one is a figure."""
    top_of(page, "0 of 4 labelled")
    assert_accessible(page)
    for done in range(4):
        type_answer(page, f"abcd, note {done}")  # letters in a note are no answers
        top_of(page, f"{done + 1} of 4 labelled")
    expect(page.locator("#end-title")).to_have_text("All 4 replies are labelled")
    assert_accessible(page)
    page.keyboard.press("u")
    top_of(page, "3 of 4 labelled")
    page.keyboard.press("s")
    expect(page.locator("#end-title")).to_have_text("Nothing is left but what you skipped")
    page.keyboard.press("u")
    expect(page.locator("#label-status")).to_have_text("Taken back.")
    page.keyboard.press("-")
    top_of(page, "reply 3")


def assert_given(run: Run) -> None:
    labels = load_labels(run, "ann")
    assert len(labels) == 3
    assert [one.interval for one in labels.values() if one.interval] in ([Interval(35, 45)], [])
    assert all(re.fullmatch(r"abcd, note \d", one.note) for one in labels.values() if one.letter)


SCREENS = draw_part([{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 400, "height": 800}}], 1)


@pytest.mark.parametrize("settings", SCREENS)
def test_keyboard_alone_leads_through_a_session(browser, tmp_path, settings):
    """Name, runs, answers, stop and going on: no mouse, and axe finds nothing."""
    run = made(tmp_path / "run", 4, numeric={2})
    with serving_app(tmp_path) as viewer:
        page = open_page(browser, in_viewer(viewer, "/label"), **settings)
        assert_accessible(page)
        page.keyboard.press("Tab")  # past the link that skips, brand and pages
        while page.evaluate("document.activeElement.id") != "who":
            page.keyboard.press("Tab")
        page.keyboard.type("ann")
        page.keyboard.press("Enter")
        page.wait_for_url("**/label/*")
        go_through(page)
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.keyboard.press("a")  # behind the open dialog nothing is answered
        page.keyboard.press("Escape")
        page.keyboard.press("q")
        page.wait_for_url("**/label")
        page.locator("#who").fill("ann")
        page.locator("#who").press("Enter")
        page.wait_for_url("**/label/*")
        top_of(page, "3 of 4 labelled, reply 4")
        page.context.close()
    assert_given(run)


def test_undo_leaves_things_as_if_nothing_was_said(browser, tmp_path):
    """A label, a skip and a changed label are taken back one after the other; what was there before counts again."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        page = open_page(browser, in_viewer(viewer, start(viewer, "ann", run.path)))
        for key, text in (("a", "reply 2"), ("s", "1 skipped, reply 3"), ("-", "reply 2"), ("-", "reply 1")):
            page.keyboard.press(key)
            top_of(page, text)
        page.fill("#note-text", "no")
        page.locator("#reply").focus()
        page.keyboard.press("b")
        top_of(page, "reply 3")
        assert [(one.letter, one.note) for one in load_labels(run, "ann").values()] == [("B", "no")]
        page.keyboard.press("u")
        expect(page.locator("#label-given")).to_have_text("Your label: A")
        assert [(one.letter, one.note) for one in load_labels(run, "ann").values()] == [("A", None)]
        assert len(load_labels(run, "ann", skips=True)) == 2
        page.keyboard.press("u")
        top_of(page, "1 of 6 labelled, reply 2")
        assert not any(one.skipped for one in load_labels(run, "ann", skips=True).values())
        page.keyboard.press("u")
        top_of(page, "0 of 6 labelled, reply 1")
        page.keyboard.press("u")
        expect(page.locator("#label-status")).to_contain_text("nothing to take back")
        page.context.close()
    assert load_labels(run, "ann") == {}
    assert agree(run).labels == {"ann": 0}


FIGURES = {
    "40": [40, 40],
    " 1,200.5 ": [1200.5, 1200.5],
    "10..20": [10, 20],
    "10 to 20": [10, 20],
    "7..": [7, None],
    "..10": [None, 10],
    "-3..−1": [-3, -1],
    "1e3": [1000, 1000],
} | dict.fromkeys(("", "..", "many", "10...20", "a..b", "--3", ".", "1,5", "4 0", "20..10", "1e999"))
"""What can be typed, and the interval that it is; None where it is refused."""


def test_typed_figures(browser, tmp_path):
    """A figure, a range or an open range; what is none of these stays in the field."""
    run = made(tmp_path / "run", len(FIGURES), numeric=set(range(len(FIGURES))))
    with serving_app(tmp_path) as viewer:
        page = open_page(browser, in_viewer(viewer, start(viewer, "ann", run.path)))
        for text, interval in FIGURES.items():
            before = len(lines(run, "ann"))
            page.keyboard.press("=")
            page.keyboard.press("Control+a")
            page.keyboard.type(text or "x")
            page.keyboard.press("Enter")
            if interval is None:
                expect(page.locator("#label-status")).to_contain_text("is no number")
                page.keyboard.press("Escape")
            else:
                top_of(page, f"{before + 1} of")
                assert lines(run, "ann")[-1]["interval"] == interval
        page.keyboard.press("c")
        top_of(page, f"{before + 1} of")
        assert lines(run, "ann")[-1]["interval"] == [None, None]
        page.context.close()


def test_the_total_is_said_and_a_known_name_is_found(browser, tmp_path):
    """Before the first reply: how many replies the ticked runs make. Alice is alice."""
    runs = [made(tmp_path / name) for name in ("one", "two")]
    with serving_app(tmp_path) as viewer:
        for place in range(3):
            answer(viewer, start(viewer, "alice", runs[0].path), place)
        page = open_page(browser, in_viewer(viewer, "/label"))
        total = page.locator("#label-total")
        expect(total).to_have_text("no run is chosen")
        assert page.locator("#people option").evaluate_all("found => found.map((one) => one.value)") == ["alice"]
        for name in ("one", "two"):
            page.get_by_label(name, exact=True).check()
        expect(total).to_have_text("12 replies at most")
        page.fill("#size", "5")
        expect(total).to_have_text("2 × 5 = 10 replies")
        page.get_by_label("in all").check()
        expect(total).to_have_text("5 replies at most")
        page.fill("#who", "Alice ")
        page.keyboard.press("Enter")
        page.wait_for_url("**/label/*")
        expect(page.locator(".desk-top")).to_contain_text("you are alice")
        page.context.close()


def test_an_old_tab_says_so_and_keeps_what_was_typed(browser, tmp_path):
    """The viewer ends, and another starts on the same port with another token: no answer, then a refusal."""
    run = made(tmp_path / "run")
    with serving_app(tmp_path) as viewer:
        page = open_page(browser, in_viewer(viewer, start(viewer, "ann", run.path)))
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


HOSTILE = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script></template></script>\u202e"


# --- the page as a file


def exported(run: Run | Sequence[Run], out: Path, *wishes: str) -> str:
    """What the command prints; the page is `replies.html`."""
    paths = [str(one.path) for one in ([run] if isinstance(run, Run) else run)]
    done = unmask("label", *paths, "--export", "replies.html", *wishes, cwd=out)
    assert done.returncode == 0, done.stderr
    return done.stdout


def save(page: Page, out: Path) -> Path:
    with page.expect_download() as download:
        page.keyboard.press("q")
    download.value.save_as(out / download.value.suggested_filename)
    return out / download.value.suggested_filename


@pytest.mark.parametrize("settings", SCREENS)
def test_a_page_as_a_file_is_labelled_saved_and_taken_in(browser, tmp_path, settings):
    """The same keys as in the viewer; the line that the export prints takes the saved file in."""
    run = made(tmp_path / "run", 4, numeric={2})
    printed = exported(run, tmp_path)
    page = open_page(browser, (tmp_path / "replies.html").as_uri(), **settings)
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    go_through(page)
    page.keyboard.press("q")
    expect(page.locator("#label-status")).to_contain_text("Write your name first")
    expect(page.locator("#label-who")).to_be_focused()
    page.keyboard.type("ann")
    page.keyboard.press("Escape")
    assert save(page, tmp_path).name == "replies-labels.jsonl"
    expect(page.locator("#label-status")).to_contain_text("3 labels are in the file replies-labels.jsonl")
    assert_accessible(page)
    assert heard == []
    page.context.close()
    command = re.search(r"unmask (label .*--import .*)", " ".join(printed.split()))[1]
    done = unmask(*shlex.split(command), cwd=tmp_path)
    assert "3 labels read, 3 new: 3 by ann" in done.stdout, done.stderr
    assert_given(run)
    assert {one.digest for one in load_labels(run, "ann").values()} <= {one.digest for one in label(run)}
    assert "token" not in (run.path / "labels" / "ann.jsonl").read_text()


def test_a_page_as_a_file_keeps_labels_when_it_is_closed(browser, tmp_path):
    run = made(tmp_path / "run")
    exported(run, tmp_path, "--who", "ann")
    page = open_page(browser, (tmp_path / "replies.html").as_uri())
    page.keyboard.press("a")
    page.keyboard.press("b")
    top_of(page, "2 of 6 labelled")
    page.reload()
    top_of(page, "2 of 6 labelled, reply 3")
    saved = [json.loads(line) for line in save(page, tmp_path).read_text().splitlines()]
    assert [(line["who"], line["letter"]) for line in saved] == [("ann", "A"), ("ann", "B")]
    page.context.close()


def test_a_page_as_a_file_mixes_runs_names_none_and_its_labels_go_back_into_each(browser, tmp_path):
    """Replies that are alike in two checkpoints too; nothing of a reply runs, and the page asks for nothing."""
    runs = [
        made(tmp_path / folder, 3, model=model, extra=lambda _: HOSTILE)
        for folder, model in (("zebra", "quasar"), ("gnu", "pulsar"))
    ]
    exported(runs, tmp_path)
    text = (tmp_path / "replies.html").read_text()
    secrets = {"zebra", "gnu", "quasar", "pulsar", "owl", "scripted", str(tmp_path)}
    secrets |= {run.definition.id for run in runs} | {run_key(run.path) for run in runs}
    assert [secret for secret in secrets if secret in text] == []
    page = open_page(browser, (tmp_path / "replies.html").as_uri())
    asked: list[str] = []
    page.on("request", lambda sent: sent.url.startswith("blob:") or asked.append(sent.url))
    page.fill("#label-who", "ann")
    page.keyboard.press("Escape")
    for number in range(6):
        top_of(page, f"{number} of 6 labelled")
        expect(page.locator(".a")).to_contain_text("<script>window.pwned=1</script></template></script>")
        page.keyboard.press("ab"[number % 2])
    top_of(page, "6 of 6 labelled")
    saved = save(page, tmp_path)
    assert page.evaluate("window.pwned") is None
    assert asked == []
    page.context.close()
    done = unmask("label", "zebra", "gnu", "--import", saved.name, cwd=tmp_path)
    assert "6 new: 6 by ann" in done.stdout, done.stderr
    order = ["zebra" if run is runs[0] else "gnu" for run, _ in draw_replies(runs)]
    for run, name in zip(runs, ("zebra", "gnu"), strict=True):
        letters = ["AB"[place % 2] for place, one in enumerate(order) if one == name]
        assert [line["letter"] for line in lines(run, "ann")] == letters
    third = made(tmp_path / "third", 3)
    refused = unmask("label", "zebra", "third", "--import", saved.name, cwd=tmp_path)
    assert refused.returncode == 2
    assert "3 of 6 labels are for none of the runs named" in refused.stderr
    assert third.folder.labellers() == []
