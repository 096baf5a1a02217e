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


def second() -> Scripted:
    return Scripted(scripted_judge, name="scripted/second")


def slots(run: unmask.Run, judge: str) -> set[str]:
    return {line.slot for line in Folder(run.path).judged(judge)}


@pytest.fixture
def run(tmp_path: Path) -> unmask.Run:
    """Read by rule where a direct answer is tagged, as all of them are."""
    return made(tmp_path / "run", PLAN)


def test_an_added_judge_reads_tagged_answers_itself_and_keeps_to_it(run):
    """Also when it is asked again without the flag; the run and its other judges keep theirs. It is a setting that
    differs, and the command that repeats it names it."""
    for more in ({"tags": "judge"}, {}):
        done = unmask.judge(run.path, judge=second(), **more)
        assert "direct" in slots(done, "scripted_second")
        assert (done.definition.tags, done.definition.settings("scripted_judge").tags) == (Tags.RULE, Tags.RULE)
        assert done.definition.settings("scripted_second").tags is Tags.JUDGE
    readings = done.outcome("s-0000", judge="scripted/second").readings["direct"]
    assert {reading.by for reading in readings} == {"judge"}
    judges = done.definition.judges
    assert [settings_of(done.definition, judge=file, preset=Preset.PAPER)["tags"] for file in judges] == [
        "rule",
        "judge",
    ]
    words = shlex.split(run_command(done.definition, run.path, judge="scripted_second"))
    assert words[words.index("--tags") + 1] == "judge"
    assert "--tags" not in shlex.split(run_command(done.definition, run.path, judge="scripted_judge"))


@pytest.mark.parametrize(("flags", "sent"), [(("--tags", "judge"), True), ((), False)])
def test_the_flag_of_the_command_line_is_obeyed(run, flags, sent):
    """Without it an added judge reads as the run does."""
    done = command_line(
        "judge", "run", "--judge", "scripted/judge", "--set", "judge.name=again", *flags, cwd=run.path.parent
    )
    assert done.returncode == 0, done.stderr
    assert ("direct" in slots(run, "again")) is sent


def test_a_run_continued_with_other_tags_leaves_that_of_its_other_judges(run):
    unmask.judge(run.path, judge=second())
    done = made(run.path, PLAN, tags="judge")
    assert done.definition.settings("scripted_judge").tags is Tags.JUDGE
    assert done.definition.settings("scripted_second").tags is Tags.RULE


def test_beliefs_are_borrowed_with_their_readings_from_a_judge_with_other_tags(run, tmp_path):
    """The judge's answers are the same, whoever chooses what it is asked."""
    own = open_scripted("scripted/judge")
    unmask.judge(run.path, judge=own, tags="judge")
    done = made(tmp_path / "two", PLAN, tags="judge", beliefs_from=str(run.path))
    lines = [line for line in Folder(done.path).judged("scripted_judge") if line.slot == "direct"]
    assert lines
    assert all(line.source for line in lines)
