"""Studies are written down before they are run: the design of every result is older than each of its runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from unmask.experiments.study_design import StudyDesign, design_hash, hash_prompt
from unmask.experiments.study_frozen import find_first_commit, list_late_arms

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = sorted((ROOT / "studies").glob("*/results.json"))
"""All that are there: a result whose design cannot be found fails below, and is not passed over."""

BEFORE, AFTER = "2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"
COMMITTED = "2026-02-01T00:00:00+00:00"


def test_every_committed_result_is_younger_than_its_design():
    """By the first commit of `studies/<name>.toml` with this design. It needs the whole history: no shallow clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the history of the repository, and this is an archive of it")
    words = ["git", "rev-parse", "--is-shallow-repository"]
    shallow = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert shallow == "false" or not RESULTS, "the history is needed: git fetch --unshallow"
    problems = {
        file.parent.name: list_late_arms(file.parent.with_suffix(".toml"), json.loads(file.read_text(encoding="utf-8")))
        for file in RESULTS
    }
    assert problems == {file.parent.name: [] for file in RESULTS}


@pytest.mark.parametrize("study", ["e1", "e2"])
def test_the_figure_of_the_documentation_is_that_of_the_result(study):
    """docs/mitigations.md shows a copy, since pages are built from docs/ alone."""
    assert (ROOT / f"docs/study-{study}-dose.svg").read_bytes() == (ROOT / f"studies/{study}/dose.svg").read_bytes()


def git(folder, *words, at=COMMITTED):
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false"]
    environment = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "PATH": "/usr/bin:/bin:/usr/local/bin"}
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, env=environment)


def commit(file, text, *, at):
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    git(file.parent, "add", file.name)
    git(file.parent, "commit", "-m", "a design", at=at)


@pytest.fixture
def design_file(tmp_path):
    """A design that was committed twice, with another one in between, and changed entries later."""
    git(tmp_path, "init")
    file = tmp_path / "studies" / "e1.toml"
    commit(file, 'name = "e1"\nmodel = "hf:m"\ntakes = 3\n', at="2026-01-15T00:00:00+00:00")
    commit(file, 'name = "e1"\nmodel = "hf:m"\n', at=COMMITTED)
    commit(file, 'name = "e1"\nmodel = "hf:m"\nleft_out = ["x"]\n', at="2026-04-01T00:00:00+00:00")
    return file


def results_of(*times, design=None, prompts=None):
    arms = {f"arm-{number}": {"created": time} for number, time in enumerate(times)}
    return {
        "design_hash": design or design_hash(StudyDesign(name="e1", model="hf:m")),
        "prompts": prompts or {},
        "arms": arms,
    }


def test_the_first_commit_with_a_design_is_found(design_file):
    """Not the first of the file, and not a later one with additions only; its time is in UTC."""
    first = find_first_commit(design_file, design_hash(StudyDesign(name="e1", model="hf:m")))
    assert first.time.isoformat() == COMMITTED


def test_a_renamed_design_keeps_its_time(design_file):
    """The history is followed."""
    git(design_file.parent, "mv", "e1.toml", "e2.toml")
    git(design_file.parent, "commit", "-m", "another name", at="2026-05-01T00:00:00+00:00")
    first = find_first_commit(design_file.with_name("e2.toml"), design_hash(StudyDesign(name="e1", model="hf:m")))
    assert first.time.isoformat() == COMMITTED


def test_runs_after_the_commit_pass(design_file):
    """Also where one has not been run."""
    assert list_late_arms(design_file, results_of(AFTER, None, "2026-02-01T01:00:01+01:00")) == []


@pytest.mark.parametrize("time", [BEFORE, COMMITTED])
def test_a_run_that_is_not_younger_is_named(design_file, time):
    """The same second is too early."""
    (problem,) = list_late_arms(design_file, results_of(AFTER, time))
    assert problem.startswith("arm-1 began at")


def test_a_design_that_was_never_committed_is_named(design_file):
    """Whatever its runs say."""
    (problem,) = list_late_arms(design_file, results_of(AFTER, design="00"))
    assert "no commit of e1.toml has the design 00" in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Write briefly.", None),
        ("Be honest.", "the prompt placebo.txt was committed"),
        ("Lie.", "no commit of e1.toml"),
    ],
)
def test_the_text_of_a_prompt_has_to_be_older_than_the_runs_too(design_file, text, said):
    """The design has its name only. A shipped prompt is looked for nowhere."""
    commit(design_file.with_name("placebo.txt"), "Write briefly.", at=COMMITTED)
    commit(design_file.with_name("placebo.txt"), "Be honest.", at="2026-04-01T00:00:00+00:00")
    prompts = {"placebo.txt": hash_prompt(text.encode()), "plain": "00"}
    problems = list_late_arms(design_file, results_of(AFTER, prompts=prompts))
    assert len(problems) == (said is not None)
    assert said is None or said in problems[0]


def test_a_result_without_runs_does_not_pass(design_file):
    """Nothing to check is no proof."""
    assert list_late_arms(design_file, results_of(None)) == ["no arm has been run"]
