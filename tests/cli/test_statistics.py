"""The commands about numbers, in real processes."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.terminal import unmask
from tests.made_runs import made
from unmask.models.scripted import Scripted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("statistics")
    made(found / "old", ["lie"] * 4 + ["honest"] * 26, model="old")
    made(found / "new", ["honest"] * 2 + ["lie"] * 20 + ["honest"] * 8, model="new")
    return found


def test_compare_prints_the_difference_and_what_differs(folder):
    """The headline, the table and the flips."""
    done = unmask("compare", "old", "new", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "over 30 scenarios known in both: +53.3 points" in " ".join(done.stdout.split())
    assert "scripted/new" in done.stdout
    assert "18 scenarios became lies (10 listed, all with --all)" in done.stdout


def test_compare_of_a_run_read_by_a_judge_with_one_letter_exits_3(folder):
    blind = Scripted(lambda _: "Answer: A", name="scripted/blind")
    made(folder / "blind", ["lie"] * 60, judge=blind)
    done = unmask("compare", "old", "blind", cwd=folder)
    assert done.returncode == 3
    assert "blind: the judge gave A for every one of the 60 replies" in done.stderr


def test_a_share_of_unjudged_that_is_none_is_refused(folder):
    done = unmask("score", "old", "--max-unjudged", "1.5", cwd=folder)
    assert done.returncode == 2
    assert "1.5 is not in the range 0<=x<=1" in done.stderr


@pytest.mark.parametrize("limits", ["belief=2", "empty", "beliefs=0.1", "empty=0.1,"])
@pytest.mark.parametrize("line", [("gate", "old", "--max-p-lie", "1"), ("compare", "old", "new"), ("board", "old")])
def test_limits_of_guards_that_are_none_are_refused(folder, line, limits):
    done = unmask(*line, "--guards", limits, cwd=folder)
    assert done.returncode == 2
    assert limits in done.stderr or "min_belief 2 is out of range" in done.stderr


def test_one_limit_of_the_guards_is_changed_and_the_others_stay(folder):
    """29 of 30 replies are refusals: too little engagement, which the limit allows or not."""
    made(folder / "meek", ["evasion"] * 29 + ["honest"], model="meek")
    line = ("gate", "meek", "--max-p-lie", "1", "--guards")
    assert unmask(*line, "default", cwd=folder).returncode == 1
    assert unmask(*line, "belief=0.1,empty=0.2", cwd=folder).returncode == 1
    assert unmask(*line, "engagement=0.01", cwd=folder).returncode == 0


def test_sensitivity_marks_the_runs_own_choices(folder):
    """Once per axis."""
    done = unmask("sensitivity", "old", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r" \* +\d", done.stdout)) == 7
    found = json.loads(unmask("sensitivity", "old", "--json", cwd=folder).stdout)
    assert found["own"]["p_lie"]["value"] == pytest.approx(4 / 30)


def test_power_plans_scenarios_for_a_gap(folder):
    """As a table and as JSON."""
    assert "scenarios needed" in unmask("power", "--gap", "0.05", cwd=folder).stdout
    found = json.loads(unmask("power", "--gap", "0.05", "--scenarios", "500", "--json", cwd=folder).stdout)
    assert found["rows"][0]["needed"] == 693
    assert 0 < found["rows"][0]["power"] < 0.8


def test_gate_exits_1_and_writes_its_files_all_the_same(folder, tmp_path):
    """A build server needs the file most where the gate fails."""
    files = ("--out", str(tmp_path / "g.xml"), "--out", str(tmp_path / "g.md"))
    done = unmask("gate", "new", "--max-p-lie", "0.3", *files, cwd=folder)
    assert done.returncode == 1
    assert "the gate is not met" in done.stderr
    assert "<failure" in (tmp_path / "g.xml").read_text()
    assert "not met" in (tmp_path / "g.md").read_text()


def test_a_gate_that_lacks_scenarios_names_the_command_that_counts_them(folder):
    """As it can be typed."""
    done = unmask("gate", "old", "--max-p-lie", "0.2", cwd=folder)
    assert done.returncode == 1
    command = "power --max-p-lie 0.2 --p 0.133"
    assert f"unmask {command} says" in done.stderr
    assert "scenarios needed" in unmask(*command.split(), cwd=folder).stdout


def test_gate_exits_0_where_it_is_met(folder):
    """On the limit and on the rise over a baseline."""
    flags = ("--max-p-lie", "0.4", "--baseline", "new", "--max-rise", "0.02")
    done = unmask("gate", "old", *flags, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["passed"] is True


@pytest.mark.parametrize(
    ("name", "begins"), [("b.md", "P(lie) is lowest"), ("b.csv", "kind,"), ("b.json", "{"), ("b.html", "<!doc")]
)
def test_board_takes_its_form_from_the_file_name(folder, tmp_path, name, begins):
    """Markdown, CSV, JSON and HTML."""
    done = unmask("board", "old", "new", "--out", str(tmp_path / name), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_text().startswith(begins)


def test_board_relates_the_published_table_to_compute_without_a_file(folder):
    """In one paragraph below it."""
    done = unmask("board", "--with-published", "--compute", "published", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "rank correlation with training compute: accuracy +0.85 [+0.64, +0.94]" in done.stdout
