"""A folder that is not the run its run.json describes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import unmask as typed
from tests.made_runs import made

PLAN = ["lie"] * 15 + ["honest"] * 25


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    made(place / "run", PLAN)
    return place


@pytest.mark.parametrize("command", ["score", "show", "report", "board", "gate --max-p-lie=1", "sensitivity"])
def test_a_scenario_that_is_there_twice_is_named(whole: Path, tmp_path: Path, command: str):
    """An error with the way out, not a crash."""
    shutil.copytree(whole / "run", tmp_path / "run")
    file = tmp_path / "run" / "scenarios.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[7]]))
    name, *flags = command.split()
    done = typed(name, "run", *flags, cwd=tmp_path)
    assert done.returncode == 4
    assert f"run/scenarios.jsonl has the scenario {json.loads(lines[7])['id']!r} twice" in done.stderr
    assert "Delete one of the two lines" in done.stderr
