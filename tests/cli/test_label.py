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


def fill_in(sheet: Path, letter: str = "C") -> None:
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["letter"] = "C" if row["kind"] == "numeric" else letter
    with sheet.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)


def write_label(path: Path, **fields: str) -> str:
    path.write_text(json.dumps({"scenario": "s000", "slot": PRESSURED, "letter": "A"} | fields))
    return str(path)


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
    """Export, fill in with a spreadsheet, import, agree, score: the whole way round. Labels count once."""
    sheet = tmp_path / "out.csv"
    assert unmask("label", str(folder), "--export", str(sheet), cwd=tmp_path).returncode == 0
    fill_in(sheet, "B")
    for added in ({"bo": 6}, {}):
        taken = unmask("label", str(folder), "--import", str(sheet), "--who", "bo", "--json", cwd=tmp_path)
        assert json.loads(taken.stdout) == {"read": 6, "added": added}
    found = json.loads(unmask("agree", str(folder), "--labels", "bo", "--json", cwd=tmp_path).stdout)
    assert found["judge_against_labels"][0]["effect"]["missed_lies"] == 4
    text = words(unmask("agree", str(folder), "--labels", "bo", cwd=tmp_path).stdout)
    assert "0 false lies, 4 missed" in text
    shown = words(unmask("score", str(folder), "--labels", "bo", cwd=tmp_path).stdout)
    assert "Corrected P(lie) n/a: only 6 scenarios are labelled; at least 10 are needed." in shown


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


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".html"])
def test_an_export_is_whole_and_replaces_no_file(folder, tmp_path, ending):
    """It may be a sheet with a day's work in it. A limit on the size of files refuses what a full disk refuses."""
    limited = (
        "import resource, sys; from unmask.cli.main import run_command_line; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); sys.exit(run_command_line(sys.argv[1:]))"
    )
    sheet = tmp_path / "out" / f"sheet{ending}"
    sheet.parent.mkdir()
    command = [sys.executable, "-c", limited, "label", str(folder), "--export", str(sheet)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert list(sheet.parent.iterdir()) == []
    sheet.write_text("filled in")
    done = unmask("label", str(folder), "--export", str(sheet), cwd=tmp_path)
    assert (done.returncode, "is there already" in done.stderr, sheet.read_text()) == (2, True, "filled in")


def test_a_folder_of_runs_is_labelled_as_one(tmp_path):
    """Sheets mix its runs, and each label goes back into its own; 6 in all are 6 of three runs."""
    for name in ("a", "b", "c"):
        made(tmp_path / "runs" / name, dataset(6), lies={1})
    counted = unmask("label", "runs", "--size", "6", "--in-all", "--json", cwd=tmp_path)
    assert json.loads(counted.stdout) == {"scenarios": 6, "replies": 6, "labelled": {}}
    assert unmask("label", "runs", "--export", "all.csv", "--who", "bo", cwd=tmp_path).returncode == 0
    fill_in(tmp_path / "all.csv")
    done = unmask("label", "runs", "--import", "all.csv", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"read": 18, "added": {"bo": 18}}
    assert json.loads(unmask("agree", "runs", "--json", cwd=tmp_path).stdout)["labels"] == {"bo": 18}
    alone = unmask("label", "runs/b", "--import", "all.csv", "--who", "al", "--json", cwd=tmp_path)
    assert json.loads(alone.stdout)["added"] == {"al": 6}


@pytest.mark.parametrize(
    ("fields", "flags", "said"),
    [
        ({}, (), "--who NAME"),
        ({"letter": ""}, ("--who", "bo"), "every row is empty"),
        ({"scenario": "elsewhere"}, ("--who", "bo"), "elsewhere pressured 0: the run has no such scenario"),
        ({"digest": "of another reply"}, ("--who", "bo"), "s000 pressured 0: the label is for another reply"),
    ],
)
def test_labels_that_belong_to_nobody_or_nothing_here_are_refused_by_name(folder, tmp_path, fields, flags, said):
    """As a sheet of one checkpoint, taken in for the next one."""
    path = write_label(tmp_path / "labels.jsonl", **fields)
    done = unmask("label", str(folder), "--import", path, *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert said in words(done.stderr)
    assert open_run(folder).folder.labellers() == []


def test_a_name_in_other_capitals_is_the_known_one(folder, tmp_path):
    """Alice next to alice would be a second person in every number."""
    path = write_label(tmp_path / "labels.jsonl")
    for who in ("alice", "Alice"):
        assert unmask("label", str(folder), "--import", path, "--who", who, cwd=tmp_path).returncode == 0
    assert open_run(folder).folder.labellers() == ["alice"]


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
