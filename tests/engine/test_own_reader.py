"""`unmask judge --tags`: who reads tagged answers for a judge, and every later step keeps to it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import unmask
from tests.cli.terminal import unmask as command_line
from tests.made_runs import made
from unmask.judges.base import Tags
from unmask.models.scripted import Scripted, open_scripted
from unmask.models.scripted import answer_as_judge as scripted_judge
from unmask.records import Preset
from unmask.runs.commands import run_command
from unmask.runs.differences import settings_of
from unmask.runs.folder import Folder

PLAN = ("lie", "honest", "lie", "honest", "evasion", "lie")


def second(name: str = "scripted/second") -> Scripted:
    return Scripted(scripted_judge, name=name)


def slots(run: unmask.Run, judge: str) -> set[str]:
    return {line.slot for line in Folder(run.path).judged(judge)}


@pytest.fixture
def run(tmp_path: Path) -> unmask.Run:
    """Read by rule where a direct answer is tagged, as all of them are."""
    return made(tmp_path / "run", PLAN)


def test_tags_judge_sends_tagged_answers_to_an_added_judge(run):
    done = unmask.judge(run.path, judge=second(), tags="judge")
    assert "direct" in slots(done, "scripted_second")


def test_an_added_judge_without_the_flag_reads_as_the_run_does(run):
    done = unmask.judge(run.path, judge=second())
    assert "direct" not in slots(done, "scripted_second")


@pytest.mark.parametrize(("flags", "sent"), [(("--tags", "judge"), True), ((), False)])
def test_the_flag_of_the_command_line_is_obeyed(run, flags, sent):
    done = command_line(
        "judge", "run", "--judge", "scripted/judge", "--set", "judge.name=again", *flags, cwd=run.path.parent
    )
    assert done.returncode == 0, done.stderr
    assert ("direct" in slots(run, "again")) is sent


def test_the_run_and_its_other_judges_keep_who_reads_tags(run):
    done = unmask.judge(run.path, judge=second(), tags="judge")
    assert done.definition.tags is Tags.RULE
    assert done.definition.settings("scripted_judge").tags is Tags.RULE


def test_the_same_judge_again_without_the_flag_keeps_who_reads_tags(run):
    unmask.judge(run.path, judge=second(), tags="judge")
    done = unmask.judge(run.path, judge=second())
    assert done.definition.settings("scripted_second").tags is Tags.JUDGE


def test_a_run_continued_with_other_tags_leaves_that_of_its_other_judges(run):
    unmask.judge(run.path, judge=second())
    done = made(run.path, PLAN, tags="judge")
    assert done.definition.settings("scripted_judge").tags is Tags.JUDGE
    assert done.definition.settings("scripted_second").tags is Tags.RULE


def test_who_reads_tags_is_a_setting_that_differs_between_runs(run):
    done = unmask.judge(run.path, judge=second(), tags="judge").definition
    said = [settings_of(done, judge=file, preset=Preset.PAPER)["tags"] for file in done.judges]
    assert said == ["rule", "judge"]


def test_the_command_that_repeats_a_judge_names_who_reads_tags(run):
    done = unmask.judge(run.path, judge=second(), tags="judge").definition
    words = shlex.split(run_command(done, run.path, judge="scripted_second"))
    assert words[words.index("--tags") + 1] == "judge"
    assert "--tags" not in shlex.split(run_command(done, run.path, judge="scripted_judge"))


def test_beliefs_are_borrowed_with_their_readings_from_a_judge_with_other_tags(run, tmp_path):
    """The judge's answers are the same, whoever chooses what it is asked."""
    own = open_scripted("scripted/judge")
    unmask.judge(run.path, judge=own, tags="judge")
    done = made(tmp_path / "two", PLAN, tags="judge", beliefs_from=str(run.path))
    lines = [line for line in Folder(done.path).judged("scripted_judge") if line.slot == "direct"]
    assert lines
    assert all(line.source for line in lines)
