"""The commands that are printed to complete or repeat a run: typed as they stand, they continue that very run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import unmask
from tests.cli.terminal import unmask as command_line
from unmask.errors import MixedRunError
from unmask.runs.commands import completing_command, run_command
from unmask.runs.folder import Folder

HONEST = {"data": "tiny", "model": "scripted/honest", "judge": "scripted/judge"}
TEXT = "Say what you believe, whatever role you are given below, and say nothing else."


def typed(command: str, cwd: Path) -> None:
    done = command_line(*shlex.split(command)[1:], "--quiet", cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def prompted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> unmask.Run:
    """With the developer prompt of a file in a folder."""
    monkeypatch.chdir(tmp_path)
    Path("prompts").mkdir()
    Path("prompts/p.txt").write_text(TEXT)
    return unmask.run(**HONEST, out="run", developer_prompt="prompts/p.txt")


def judge_command(*given, **named) -> str:
    return completing_command(*given, **named, only_judge=True)


@pytest.mark.parametrize("command", [judge_command, run_command])
def test_readings_under_a_name_of_their_own_are_continued_under_that_name(tmp_path, command):
    run = unmask.run(**HONEST, out=tmp_path / "run", set={"judge.name": "mine"})
    before = [*Folder(run.path).judged("mine")]
    typed(command(run.definition, Path("run"), judge="mine"), tmp_path)
    assert [*Folder(run.path).judged("mine")] == before
    assert [file.name for file in (run.path / "readings").iterdir()] == ["mine.jsonl"]


def test_a_run_is_completed_by_its_folder_alone(tmp_path):
    """The judge and the preset are typed only where they are not those of the run, and the command asks the rest."""
    run = unmask.run(**HONEST, out=tmp_path / "run", set={"temperature": 0.3})
    unmask.judge(run.path, judge="verbatim")
    replies = run.path / "replies.jsonl"
    replies.write_text("".join(replies.read_text().splitlines(keepends=True)[:5]))
    begun = unmask.open_run(run.path)
    other = str(begun.score(judge="verbatim", preset="strict").complete_with)
    assert other.endswith("--judge verbatim --preset strict")
    command = str(begun.score().complete_with)
    assert command == f"unmask run --out {run.path}"
    typed(command, tmp_path)
    assert unmask.open_run(run.path).score().complete_with is None


def test_a_judge_reads_the_rest_by_its_name_alone(tmp_path):
    run = unmask.run(**HONEST, out=tmp_path / "run", set={"judge.name": "mine", "judge.top_p": 0.9})
    (run.path / "readings" / "mine.jsonl").write_text("")
    command = str(unmask.open_run(run.path).score().complete_with)
    assert command == f"unmask judge {run.path} --judge scripted/judge --set judge.name=mine"
    typed(command, tmp_path)
    assert unmask.open_run(run.path).score().complete_with is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("scripted/judge", "scripted_judge"), ("scripted_judge", "scripted_judge"), ("mine", "mine")],
)
def test_a_judge_that_also_reads_under_another_name_is_found_under_each(tmp_path, wanted, found):
    """The other name stands first in run.json."""
    unmask.run(**HONEST, out=tmp_path / "run", set={"judge.name": "mine"})
    run = unmask.judge(tmp_path / "run", judge="scripted/judge")
    assert run.judge_file(wanted) == found


def test_without_a_name_readings_are_those_of_the_last_run_not_of_the_last_judge(tmp_path):
    unmask.run(**HONEST, out=tmp_path / "run", set={"judge.name": "first"})
    assert unmask.judge(tmp_path / "run", judge="verbatim").judge_file() == "first"
    assert unmask.run(**HONEST, out=tmp_path / "run", set={"judge.name": "second"}).judge_file() == "second"


def test_a_developer_prompt_in_a_folder_is_printed_so_that_it_is_found(prompted):
    before = [*Folder(prompted.path).asked()]
    typed(run_command(prompted.definition, Path("run")), Path())
    assert [*Folder(prompted.path).asked()] == before


def test_a_developer_prompt_that_differs_in_its_last_word_is_refused(prompted):
    Path("prompts/p.txt").write_text(TEXT.replace("else", "more"))
    with pytest.raises(MixedRunError, match="developer-prompt"):
        unmask.run(**HONEST, out="run", developer_prompt="prompts/p.txt")
