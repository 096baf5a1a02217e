"""`unmask judge --reader`: a judge may have a reader of its own, and every later step keeps to it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import unmask
from tests.cli.terminal import unmask as command_line
from tests.made_runs import made
from unmask.judges.base import Reader
from unmask.models.scripted import Scripted, open_scripted
from unmask.models.scripted import answer_as_judge as scripted_judge
from unmask.records import Preset
from unmask.runs.commands import judge_command, run_command
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


def test_reader_llm_sends_tagged_answers_to_an_added_judge(run):
    done = unmask.judge(run.path, judge=second(), reader="llm")
    assert "direct" in slots(done, "scripted_second")


def test_an_added_judge_without_the_flag_reads_as_the_run_does(run):
    done = unmask.judge(run.path, judge=second())
    assert "direct" not in slots(done, "scripted_second")


@pytest.mark.parametrize(("flags", "sent"), [(("--reader", "llm"), True), ((), False)])
def test_the_flag_of_the_command_line_is_obeyed(run, flags, sent):
    done = command_line(
        "judge", "run", "--judge", "scripted/judge", "--judge-name", "again", *flags, cwd=run.path.parent
    )
    assert done.returncode == 0, done.stderr
    assert ("direct" in slots(run, "again")) is sent


def test_the_run_and_its_other_judges_keep_their_reader(run):
    done = unmask.judge(run.path, judge=second(), reader="llm")
    assert done.definition.reader is Reader.AUTO
    assert done.definition.settings("scripted_judge").reader is Reader.AUTO


def test_the_score_with_that_judge_counts_its_own_readings_of_tagged_answers(run):
    done = unmask.judge(run.path, judge=second(), reader="llm")
    readings = done.outcome("s-0000", judge="scripted/second").readings["direct"]
    assert {reading.by for reading in readings} == {"judge"}


def test_the_same_judge_again_without_the_flag_keeps_its_reader(run):
    unmask.judge(run.path, judge=second(), reader="llm")
    done = unmask.judge(run.path, judge=second())
    assert done.definition.settings("scripted_second").reader is Reader.LLM


def test_reader_auto_can_be_given_to_a_judge_of_a_run_with_llm(tmp_path):
    made(tmp_path / "run", PLAN, reader="llm")
    done = unmask.judge(tmp_path / "run", judge=second(), reader="auto")
    assert "direct" not in slots(done, "scripted_second")


def test_a_run_continued_with_another_reader_leaves_that_of_its_other_judges(run):
    unmask.judge(run.path, judge=second())
    done = made(run.path, PLAN, reader="llm")
    assert done.definition.settings("scripted_judge").reader is Reader.LLM
    assert done.definition.settings("scripted_second").reader is Reader.AUTO


def test_a_run_json_from_before_judges_had_a_reader_still_loads(run):
    file = run.path / "run.json"
    old = json.loads(file.read_text())
    for spec in old["judges"].values():
        del spec["reader"]
    file.write_text(json.dumps(old))
    assert unmask.open_run(run.path).definition.settings().reader is Reader.AUTO


def test_the_reader_of_the_judge_is_a_setting_that_differs_between_runs(run):
    done = unmask.judge(run.path, judge=second(), reader="llm").definition
    said = [settings_of(done, judge=file, preset=Preset.PAPER)["reader"] for file in done.judges]
    assert said == ["auto", "llm"]


def test_a_panel_whose_judges_differ_in_it_names_the_reader_of_each(run):
    done = unmask.judge(run.path, judge=second(), reader="llm").definition
    assert settings_of(done, judge="panel:scripted_judge,scripted_second", preset=Preset.PAPER)["reader"] == "auto, llm"


@pytest.mark.parametrize("command", [judge_command, run_command])
def test_the_command_that_repeats_a_judge_names_its_reader(run, command):
    done = unmask.judge(run.path, judge=second(), reader="llm").definition
    words = shlex.split(command(done, run.path, judge="scripted_second"))
    assert words[words.index("--reader") + 1] == "llm"
    assert "--reader" not in shlex.split(command(done, run.path, judge="scripted_judge"))


def test_beliefs_are_borrowed_with_their_readings_from_a_judge_with_another_reader(run, tmp_path):
    """The judge's answers are the same, whoever chooses what it is asked."""
    own = open_scripted("scripted/judge")
    unmask.judge(run.path, judge=own, reader="llm")
    done = made(tmp_path / "two", PLAN, reader="llm", beliefs_from=str(run.path))
    lines = [line for line in Folder(done.path).judged("scripted_judge") if line.slot == "direct"]
    assert lines
    assert all(line.source for line in lines)
