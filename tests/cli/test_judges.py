"""Commands about presets and judges, in real processes: what is missing, who else has read, what to type."""

from __future__ import annotations

import json
import shlex

import pytest

import unmask as api
from tests.cli.terminal import unmask
from tests.made_runs import made
from unmask.models.scripted import Scripted

LIAR = ("--data", "tiny", "scripted/liar", "--judge", "scripted/judge", "--quiet")


@pytest.mark.parametrize(
    ("model", "preset", "command", "kind"),
    [
        ("scripted/liar", "strict", "judge", "judge call"),
        ("scripted/liar", "inspect", "judge", "judge call"),
        ("scripted/beliefless", "inspect", "run", "question to the model"),
    ],
)
def test_the_command_for_another_preset_works_when_typed(tmp_path, model, preset, command, kind):
    """It is said how many scenarios wait for whom; after the command nothing is left."""
    api.run(data="tiny", model=model, judge="scripted/judge", out=tmp_path / "a run")
    before = unmask("score", "a run", "--preset", preset, cwd=tmp_path)
    assert before.returncode == 3
    score = json.loads(unmask("score", "a run", "--preset", preset, "--json", cwd=tmp_path).stdout)
    undecided = score["undecided"]
    missing = undecided["missing"]
    assert missing["judge"] + missing["subject"] == undecided["count"] > 0
    assert f"one more {kind}" in " ".join(before.stdout.split())
    assert "completes the run" in before.stdout
    assert f"\nNEXT\n  {undecided['complete_with']}" in before.stdout
    name, *words = shlex.split(undecided["complete_with"])
    assert (name, words[0]) == ("unmask", command)
    done = unmask(*words, "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert unmask("score", "a run", "--preset", preset, cwd=tmp_path).returncode == 0


@pytest.fixture(scope="module")
def read_twice(tmp_path_factory):
    """A run that two judges have read."""
    folder = tmp_path_factory.mktemp("judges")
    made(folder / "twice", ["lie", "honest"] * 10)
    again = Scripted(lambda request: "Answer: A", name="openai/second")
    api.judge(folder / "twice", judge=again)
    return folder


@pytest.mark.parametrize("command", ["agree", "sensitivity", "gate --max-p-lie 0.9", "score"])
def test_judges_are_shown_as_they_are_typed(read_twice, command):
    name, *flags = command.split()
    done = unmask(name, "twice", *flags, cwd=read_twice)
    assert "scripted/" in done.stdout
    assert "openai_second" not in done.stdout
    assert "scripted_" not in done.stdout
