"""A folder of runs in place of a run: what each command makes of it, where some of them cannot be used."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from tests.cli.terminal import unmask

BROKEN = "left out: many/broken/run.json cannot be read"
UNASKED = "left out: many/unasked has no reply that a label could change"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two whole runs; one that nobody was asked in, and one without a readable run.json."""
    work = tmp_path_factory.mktemp("folders")
    for name, model in (("liar", "scripted/liar"), ("sound", "scripted/honest")):
        made = unmask(
            "run", model, *["--data", "tiny", "--judge", "scripted/judge", "--quiet", "--out"], f"many/{name}", cwd=work
        )
        assert made.returncode == 0, made.stderr
    shutil.copytree(work / "many" / "liar", work / "many" / "unasked")
    (work / "many" / "unasked" / "replies.jsonl").unlink()
    shutil.rmtree(work / "many" / "unasked" / "readings")
    shutil.copytree(work / "many" / "liar", work / "many" / "broken")
    (work / "many" / "broken" / "run.json").write_text("{")
    for name in ("broken", "unasked"):
        shutil.copytree(work / "many" / name, work / "bad" / name)
    return work


@pytest.mark.parametrize(
    ("line", "left_out"),
    [
        ("label many --size 3 --json", (BROKEN, UNASKED)),
        ("label many --size 3 --in-all --export sheet.csv", (BROKEN, UNASKED)),
        ("agree many --json", (BROKEN,)),
        ("board many --json", (BROKEN,)),
        ("compare many --json", (BROKEN,)),
        ("report many", (BROKEN,)),
        ("figure forest many --out forest.svg", (BROKEN,)),
    ],
)
def test_a_run_that_cannot_be_used_is_left_out_in_one_line(folder, line, left_out):
    done = unmask(*line.split(), cwd=folder)
    told = [text for text in done.stderr.splitlines() if "left out" in text]
    assert [text.removeprefix("unmask: ").partition(":")[0] for text in told] == ["left out"] * len(left_out)
    assert all(any(each in text for text in told) for each in left_out)
    assert done.returncode == (2 if line.startswith("agree") else 3 if line.startswith("compare") else 0), done.stderr


def test_labels_are_drawn_over_the_runs_that_have_replies(folder):
    """`--in-all` counts them all together, so none of the size is lost to a run without a reply."""
    drawn = unmask("label", "many", "--size", "5", "--in-all", "--json", cwd=folder)
    assert msgspec.json.decode(drawn.stdout)["scenarios"] == 5


@pytest.mark.parametrize("command", ["label", "agree", "board", "report"])
def test_where_no_run_can_be_used_the_command_fails(folder, command):
    done = unmask(command, "bad/unasked", "bad/broken", cwd=folder)
    assert done.returncode not in (0, 70)
    assert len(done.stderr.splitlines()) <= 4


def test_an_audit_fails_for_a_run_that_cannot_be_opened(folder):
    done = unmask("audit", "many", cwd=folder)
    assert done.returncode == 1
    assert "many/broken   run.json" in done.stdout
    assert "many/broken/run.json cannot be read" in unmask("audit", "many/broken", cwd=folder).stdout


def test_a_wrong_name_is_told_from_a_folder_without_a_run(folder):
    """And a folder that holds one run only says which."""
    (folder / "empty").mkdir()
    shutil.copytree(folder / "many" / "liar", folder / "one" / "liar")
    for name, why in (
        ("nowhere", "there is nothing of this name"),
        ("empty", "it has no run.json"),
        ("one", "it holds one\nName it: one/liar"),
    ):
        done = unmask("score", name, cwd=folder)
        assert done.returncode == 4
        assert f"{name} is not a run folder" in done.stderr
        assert why in done.stderr


def test_a_mistyped_run_is_told_its_nearest(folder):
    done = unmask("score", "many/lair", cwd=folder)
    assert done.returncode == 4
    assert done.stderr == "unmask: many/lair does not exist\nDid you mean many/liar?\n"


def test_a_run_folder_is_not_imported(folder):
    done = unmask("import", "many/liar", "--out", "again", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == "unmask: many/liar is a run folder already\nunmask score many/liar\n"


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
        ("2", "-2 or tiny-"),
    ],
)
def test_a_scenario_is_found_by_its_number(folder, typed, meant):
    done = unmask("show", "many/liar", typed, cwd=folder)
    assert "Did you mean tiny-" in done.stderr
    assert meant in done.stderr.splitlines()[1]


@pytest.mark.parametrize("line", ["score", "show", "gate --max-p-lie 1", "sensitivity", "export --out rows.csv"])
def test_a_command_about_one_run_says_how_many_there_are(folder, line):
    command, *flags = line.split()
    done = unmask(command, "many", *flags, cwd=folder)
    assert done.returncode == 4
    assert "many is not a run folder, it holds 4 runs\nName one, as in many/broken" in done.stderr
