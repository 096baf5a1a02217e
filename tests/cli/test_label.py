"""`unmask label`, `agree` and `score --labels` as their user meets them."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from getpass import getuser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.analysis.labelled import dataset, made
from tests.cli.terminal import unmask
from tests.patience import PATIENCE
from tests.viewer.server import Viewer, run_key
from unmask.analysis.label_session import label
from unmask.analysis.labels import load_labels, open_writer
from unmask.records import PRESSURED, Label, Letter
from unmask.runs.run import open_run


@pytest.fixture
def folder(tmp_path) -> Path:
    """A run of six scenarios, one numeric, one a lie."""
    return made(tmp_path / "run", dataset(6, numeric={5}), lies={1}).path


def words(text: str) -> str:
    """Without line breaks, which depend on the terminal."""
    return " ".join(text.split())


def test_labelling_opens_the_page_of_the_run_in_the_browser(folder, tmp_path):
    """The address is printed as well. The page knows the run and the name."""
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-m", "unmask.cli.main", "label", str(folder), "--who", "ann lee"],
        cwd=tmp_path,
        env={**os.environ, "BROWSER": str(browser), "UNMASK_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            address = process.stdout.readline().strip()
            assert "/label?who=ann+lee&every=1&size=150&seed=0&token=" in address
            parts = urlsplit(address)
            viewer = Viewer(parts.port, dict(parse_qsl(parts.query))["token"])
            page = viewer.ask("/label?who=ann+lee&every=1").text
            assert 'value="ann lee"' in page
            assert re.findall(r'name="run" value="(\w+)" [^>]*checked', page) == [run_key(folder)]
            limit = time.monotonic() + PATIENCE
            while not opened.exists():
                assert time.monotonic() < limit, "no browser was opened"
                time.sleep(0.05)
            assert opened.read_text().strip() == address
        finally:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0
    assert "6 replies to label. Without a browser here: add --export replies.html" in words(said)
    assert load_labels(open_run(folder), "ann lee") == {}


def test_out_by_csv_and_in_again_changes_the_score(folder, tmp_path):
    """Export, fill in with a spreadsheet, import, agree, score: the whole way round."""
    sheet = tmp_path / "out.csv"
    assert unmask("label", str(folder), "--export", str(sheet), cwd=tmp_path).returncode == 0
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["letter"] = "C" if row["kind"] == "numeric" else "B"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)
    taken = unmask("label", str(folder), "--import", str(sheet), "--who", "bo", "--json", cwd=tmp_path)
    assert json.loads(taken.stdout) == {"read": 6, "added": {"bo": 6}}
    again = unmask("label", str(folder), "--import", str(sheet), "--who", "bo", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == {"read": 6, "added": {}}
    found = json.loads(unmask("agree", str(folder), "--labels", "bo", "--json", cwd=tmp_path).stdout)
    assert found["judge_against_labels"][0]["effect"]["missed_lies"] == 4
    text = words(unmask("agree", str(folder), "--labels", "bo", cwd=tmp_path).stdout)
    assert "0 false lies, 4 missed" in text
    shown = words(unmask("score", str(folder), "--labels", "bo", cwd=tmp_path).stdout)
    assert "Corrected P(lie) n/a: only 6 scenarios are labelled; at least 10 are needed." in shown


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".html"])
def test_an_export_that_finds_no_room_leaves_no_half_file(folder, tmp_path, ending):
    """A limit on the size of files refuses what a full disk refuses."""
    limited = (
        "import resource, sys; from unmask.cli.main import run_command_line; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); sys.exit(run_command_line(sys.argv[1:]))"
    )
    out = tmp_path / "out"
    out.mkdir()
    sheet = str(out / f"sheet{ending}")
    done = subprocess.run(
        [sys.executable, "-c", limited, "label", str(folder), "--export", sheet],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert list(out.iterdir()) == []


def fill_in(sheet: Path) -> None:
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["letter"] = "C"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)


@pytest.mark.parametrize("who", [(), ("--who", "bo lee")])
def test_the_line_that_an_export_proposes_works_when_pasted(folder, tmp_path, who):
    """The name is in it, or in the file."""
    printed = words(unmask("label", str(folder), *who, "--export", "my sheet.csv", cwd=tmp_path).stdout)
    fill_in(tmp_path / "my sheet.csv")
    command = shlex.split(re.search(r"unmask (label .*)", printed)[1])
    done = unmask(*command, cwd=tmp_path)
    assert "6 labels read, 6 new: 6 by" in done.stdout, done.stderr
    following = shlex.split(re.search(r"unmask (agree .*)", done.stdout)[1])
    assert unmask(*following, cwd=tmp_path).returncode == 0
    assert len(load_labels(open_run(folder), "bo lee" if who else getuser())) == 6


def test_a_folder_of_runs_is_labelled_as_one(tmp_path):
    """Sheets mix its runs, and each label goes back into its own; 6 in all are 6 of three runs."""
    for name in ("a", "b", "c"):
        made(tmp_path / "runs" / name, dataset(6), lies={1})
    counted = unmask("label", "runs", "--size", "6", "--in-all", "--json", cwd=tmp_path)
    assert json.loads(counted.stdout)["replies"] == 6
    assert unmask("label", "runs", "--export", "all.csv", "--who", "bo", cwd=tmp_path).returncode == 0
    fill_in(tmp_path / "all.csv")
    done = unmask("label", "runs", "--import", "all.csv", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"read": 18, "added": {"bo": 18}}
    found = json.loads(unmask("agree", "runs", "--json", cwd=tmp_path).stdout)
    assert found["labels"] == {"bo": 18}
    alone = unmask("label", "runs/b", "--import", "all.csv", "--who", "al", "--json", cwd=tmp_path)
    assert json.loads(alone.stdout)["added"] == {"al": 6}


def test_a_name_in_other_capitals_is_the_known_one(folder, tmp_path):
    """Alice next to alice would be a second person in every number."""
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"scenario": "s000", "slot": PRESSURED, "letter": "A"}))
    assert unmask("label", str(folder), "--import", str(path), "--who", "alice", cwd=tmp_path).returncode == 0
    done = unmask("label", str(folder), "--import", str(path), "--who", " Alice", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["added"] == {}
    assert open_run(folder).folder.labellers() == ["alice"]


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.html"])
def test_an_export_replaces_no_file(folder, tmp_path, name):
    """It may be a sheet with a day's work in it. Other endings are refused."""
    (tmp_path / name).write_text("filled in")
    done = unmask("label", str(folder), "--export", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert (tmp_path / name).read_text() == "filled in"
    other = unmask("label", str(folder), "--export", "out.xlsx", cwd=tmp_path)
    assert "End it in .html, .csv, .jsonl." in words(other.stderr)


def test_an_import_without_a_name_is_refused(folder, tmp_path):
    """Unless the file has one in each row."""
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"scenario": "s000", "slot": PRESSURED, "letter": "A"}))
    done = unmask("label", str(folder), "--import", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert "--who NAME" in done.stderr


def test_an_empty_import_is_refused(folder, tmp_path):
    """Zero labels are no import."""
    path = tmp_path / "labels.csv"
    unmask("label", str(folder), "--export", str(path), cwd=tmp_path)
    done = unmask("label", str(folder), "--import", str(path), "--who", "bo", cwd=tmp_path)
    assert done.returncode == 2
    assert "every row is empty" in done.stderr


def test_labels_of_another_run_are_refused_with_exit_code_2(folder, tmp_path):
    """And each is named."""
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"scenario": "elsewhere", "slot": PRESSURED, "letter": "A", "who": "x"}))
    done = unmask("label", str(folder), "--import", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert "elsewhere pressured 0: the run has no such scenario" in done.stderr


def test_labels_for_other_replies_are_refused_by_name(tmp_path):
    """A sheet of one checkpoint, filled in and taken in for the next one."""
    runs = [made(tmp_path / name, dataset(12), lies={1}, extra=lambda _, name=name: name) for name in ("a", "b")]
    sheet = tmp_path / "sheet.jsonl"
    rows = [
        {"scenario": one.scenario.id, "slot": one.slot, "letter": "A", "digest": one.digest} for one in label(runs[0])
    ]
    sheet.write_text("\n".join(map(json.dumps, rows)))
    assert unmask("label", str(runs[0].path), "--import", str(sheet), "--who", "bo", cwd=tmp_path).returncode == 0
    done = unmask("label", str(runs[1].path), "--import", str(sheet), "--who", "bo", cwd=tmp_path)
    assert done.returncode == 2
    assert "s003 pressured 0: the label is for another reply" in done.stderr
    assert runs[1].folder.labellers() == []


def test_labels_for_other_replies_in_the_folder_are_counted_and_not_used(tmp_path):
    runs = [made(tmp_path / name, dataset(12), lies={1}, extra=lambda _, name=name: name) for name in ("a", "b")]
    for run, items in zip(runs, (label(runs[0]), label(runs[1])[:10]), strict=True):
        lines = open_writer(run, "ann")
        for one in items:
            lines.append(Label(scenario=one.scenario.id, slot=one.slot, letter="A", who="ann", digest=one.digest))
        lines.close()
    own, others = ((run.path / "labels" / "ann.jsonl").read_text().splitlines() for run in reversed(runs))
    read = {json.loads(line)["scenario"] for line in own}
    own += [line for line in others if json.loads(line)["scenario"] not in read]
    (runs[1].path / "labels" / "ann.jsonl").write_text("\n".join(own) + "\n")
    for command in (["agree"], ["score", "--labels", "ann"]):
        shown = words(unmask(command[0], str(runs[1].path), *command[1:], cwd=tmp_path).stdout)
        assert "2 labels are for other replies and not used." in shown
    found = json.loads(unmask("score", str(runs[1].path), "--labels", "ann", "--json", cwd=tmp_path).stdout)
    assert (found["corrected"]["labelled"], found["corrected"]["other_replies"]) == (10, 2)


def test_the_corrected_rate_stands_beside_the_raw_one(tmp_path):
    """In text and JSON; P(lie) itself is what it was."""
    run = made(tmp_path / "run", dataset(30), lies=set(range(10)), errs={0, 1, 20, 21, 22})
    lines = open_writer(run, "ann")
    for item in label(run):
        number = int(item.scenario.id[1:])
        lines.append(Label(scenario=item.scenario.id, slot=PRESSURED, letter=Letter("AB"[number < 10]), who="ann"))
    lines.close()
    plain = json.loads(unmask("score", str(run.path), "--json", cwd=tmp_path).stdout)
    found = json.loads(unmask("score", str(run.path), "--labels", "ann", "--json", cwd=tmp_path).stdout)
    assert plain["corrected"] is None
    assert found["overall"] == plain["overall"]
    assert found["corrected"]["raw"] == pytest.approx(11 / 30)
    assert found["corrected"]["value"] == pytest.approx(10 / 30)
    shown = words(unmask("score", str(run.path), "--labels", "ann", cwd=tmp_path).stdout)
    assert "Corrected P(lie) 33.3 %" in shown
    assert "3 false lies, 2 missed" in shown
