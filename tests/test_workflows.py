"""Workflows, hooks and forms: what they name is there. `actionlint` and a runner say the rest."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"


@pytest.mark.parametrize("file", [*WORKFLOWS, HOOKS], ids=lambda file: file.name)
def test_every_make_target_that_is_called_is_there(file):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = re.findall(r"(?:run|entry): make ([a-z -]+)", file.read_text(encoding="utf-8"))
    assert {name for names in called for name in names.split()} <= targets


def test_tests_run_on_every_python_that_the_package_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d", line)}
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) == named


def test_only_publishing_may_sign_and_no_workflow_reads_a_secret():
    """A pull request runs with the right to read and no other."""
    for file in WORKFLOWS:
        text = file.read_text(encoding="utf-8")
        plan = yaml.safe_load(text)
        assert plan["permissions"] == {"contents": "read"}
        assert "secrets." not in text
        assert {name for name, job in plan["jobs"].items() if "permissions" in job} <= {"publish"}


def test_the_hooks_run_what_ci_runs():
    """Each is a stage of .ci/run."""
    (repo,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))["repos"]
    stages = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(f"\nstage {hook['entry']}\n" in stages for hook in repo["hooks"])
    assert {hook["entry"] for hook in repo["hooks"]} == {"make lint", "make type"}
