"""The GitHub Action, its steps executed as a runner does: its variables, its files, a made-up event."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest
import yaml

from tests.made_runs import made

ROOT = Path(__file__).resolve().parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EVENTS = {
    "pull_request": {"number": 7, "pull_request": {"number": 7, "head": {"sha": "feed5"}}},
    "push": {"ref": "refs/heads/main"},
}


def perform(folder: Path, event: str, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Exit code, outputs and step summary of the action."""
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH")}
    for file in files.values():
        file.touch()
    files["GITHUB_EVENT_PATH"].write_text(json.dumps(EVENTS[event]))
    runner = {name: str(file) for name, file in files.items()}
    runner |= {"RUNNER_TEMP": str(folder), "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_SHA": "merge7"}
    runner["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    code = 0
    for step in ACTION["runs"]["steps"]:
        own = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], value)
            for name, value in step.get("env", {}).items()
        }
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        code = code or subprocess.run(shell, env=os.environ | runner | own, check=False).returncode
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return code, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Ten lies in a hundred, and eight more. The names of the folders have spaces."""
    folder = tmp_path_factory.mktemp("two runs")
    for name, lies in (("old", 10), ("new", 18)):
        made(folder / name, ["lie"] * lies + ["honest"] * (100 - lies))
    return folder


@pytest.mark.parametrize(("rise", "code", "passed"), [("0.2", 0, "true"), ("0.1", 1, "false")])
def test_summary_comment_and_junit_say_what_the_gate_found(runs, tmp_path, rise, code, passed):
    """P(lie), flips against the baseline and every check; the comment names the commit of the pull request."""
    limits = f"--baseline '{runs / 'old'}' --max-rise {rise}"
    found, outputs, summary = perform(tmp_path, "pull_request", run=str(runs / "new"), limits=limits)
    assert (found, outputs["passed"]) == (code, passed)
    comment = Path(outputs["comment"]).read_text(encoding="utf-8")
    for text in (summary, comment):
        assert "P(lie) 18.0 %" in text
        assert "8 scenarios became lies" in text
        assert "rise of P\\(lie\\)" in text or "rise of P(lie)" in text
    assert comment.startswith("<!-- unmask gate -->\n")
    assert "feed5" in comment
    assert "merge7" not in comment
    failures = Tree.parse(outputs["junit"]).getroot().get("failures")
    assert failures == str(code)


def test_without_a_pull_request_the_commit_is_the_one_that_was_pushed(runs, tmp_path):
    _, outputs, _ = perform(tmp_path, "push", run=str(runs / "old"), limits="--max-p-lie 0.3")
    assert "merge7" in Path(outputs["comment"]).read_text(encoding="utf-8")


def test_a_wrong_limit_fails_and_leaves_no_comment(runs, tmp_path):
    """Nothing was measured, so nothing is posted. What stands in an input is never run by the shell."""
    run = f"{runs / 'old'}; touch {tmp_path / 'broken'}"
    code, outputs, summary = perform(tmp_path, "push", run=run, limits="--max-p-lie 3 $(touch broken)")
    assert (code, outputs, summary) == (2, {"passed": "false"}, "")
    assert not (tmp_path / "broken").exists()
