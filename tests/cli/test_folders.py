"""A folder of runs in place of a run: what each command makes of it, where some of them cannot be used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import unmask

BROKEN = "left out: many/broken/run.json cannot be read"
UNASKED = "left out: many/unasked has no reply that a label could change"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two whole runs; one that nobody was asked in, and one without a readable run.json."""
    work = tmp_path_factory.mktemp("folders")
    for name, model in (("liar", "scripted/liar"), ("sound", "scripted/honest")):
        flags = ("--data", "tiny", "--judge", "scripted/judge", "--quiet", "--out", f"many/{name}")
        assert unmask("run", model, *flags, cwd=work).returncode == 0
    shutil.copytree(work / "many" / "liar", work / "many" / "unasked")
    (work / "many" / "unasked" / "replies.jsonl").unlink()
    shutil.rmtree(work / "many" / "unasked" / "readings")
    shutil.copytree(work / "many" / "liar", work / "many" / "broken")
    (work / "many" / "broken" / "run.json").write_text("{")
    shutil.copytree(work / "many" / "liar", work / "one" / "liar")
    (work / "empty").mkdir()
    return work


@pytest.mark.parametrize(
    ("line", "left_out", "code"),
    [
        ("label many --size 3 --in-all --json", (BROKEN, UNASKED), 0),
        ("agree many --json", (BROKEN,), 2),
        ("board many --json", (BROKEN,), 0),
        ("compare many --json", (BROKEN,), 3),
        ("report many", (BROKEN,), 0),
        ("figure forest many --out forest.svg", (BROKEN,), 0),
    ],
)
def test_a_run_that_cannot_be_used_is_left_out_in_one_line(folder, line, left_out, code):
    done = unmask(*line.split(), cwd=folder)
    told = [text for text in done.stderr.splitlines() if "left out" in text]
    assert len(told) == len(left_out)
    assert all(any(each in text for text in told) for each in left_out)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("command", ["label", "agree", "report"])
def test_where_no_run_can_be_used_the_command_fails(folder, command):
    done = unmask(command, "many/unasked", "many/broken", cwd=folder)
    assert done.returncode not in (0, 70)
    assert len(done.stderr.splitlines()) <= 4


def test_an_audit_fails_for_a_run_that_cannot_be_opened(folder):
    done = unmask("audit", "many", cwd=folder)
    assert done.returncode == 1
    assert "many/broken   run.json" in done.stdout
    assert "many/broken/run.json cannot be read" in unmask("audit", "many/broken", cwd=folder).stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("score nowhere", "nowhere is not a run folder: there is nothing of this name\nMake one: unmask run"),
        ("score empty", "empty is not a run folder: it has no run.json\nMake one: unmask run"),
        ("score one", "one is not a run folder, it holds 1 run\nName one, as in one/liar"),
        ("show many", "many is not a run folder, it holds 4 runs\nName one, as in many/broken"),
        ("gate many --max-p-lie 1", "it holds 4 runs\nName one"),
        ("export many --out rows.csv", "it holds 4 runs\nName one"),
        ("score many/lair", "many/lair is not a run folder: there is nothing of this name\nDid you mean many/liar"),
    ],
)
def test_a_command_about_one_run_says_what_is_there_instead(folder, line, said):
    done = unmask(*line.split(), cwd=folder)
    assert done.returncode == 4
    assert said in done.stderr


def test_a_run_folder_is_not_imported(folder):
    done = unmask("import", "many/liar", "--out", "again", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "unmask: many/liar is a run folder already\nunmask score many/liar\n")


def test_next_is_about_the_score_that_was_asked_for(folder):
    """Judge, rules, labels and takes of this command are those of the commands that it ends with."""
    line = "score many/liar --judge scripted/judge --preset strict --takes 1"
    shown = " ".join(unmask(*line.split(), cwd=folder).stdout.split())
    assert "report many/liar --judge scripted/judge --preset strict #" in shown
    assert "score many/liar --judge scripted/judge --preset strict --takes 1 --all" in shown


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("tiny-known-facts-001", "tiny-known-facts-1"),
        ("tiny_known_facts-2", "tiny-known-facts-2"),
        ("known-facts-2", "tiny-known-facts-2?"),
        ("2", "tiny-known-facts-2 or tiny-"),
    ],
)
def test_a_mistyped_scenario_gets_the_one_that_was_meant(folder, typed, meant):
    assert f"Did you mean {meant}" in unmask("show", "many/liar", typed, cwd=folder).stderr
