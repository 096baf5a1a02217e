"""`unmask run --out RUN` and `unmask judge RUN --judge NAME`: the folder knows its settings."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import unmask as api
from tests.cli.terminal import unmask
from unmask.runs.commands import run_command

ODD = (
    *("--data", "tiny", "--judge", "scripted/judge", "--limit", "6", "--sample-seed", "3", "--takes", "2"),
    *("--temperature", "0.5", "--max-tokens", "900", "--seed", "7", "--effort", "full", "--tags", "judge"),
    *("--also", "self-report,role-play", "--preset", "strict", "--direct", "2", "--archetype", "known_facts"),
    *("--set", "top_p=0.9", "--set", "price=1/2", "--set", "judge.max_tokens=500", "--set", "judge.name=mine"),
    *("--set", "judge.timeout=60", "--set", "takes_per_call=1"),
)


@pytest.fixture
def run(tmp_path: Path) -> api.Run:
    """With a value other than the default wherever a scripted model takes one, and a developer prompt in a file."""
    (tmp_path / "p.txt").write_text("Say what you believe.")
    made = unmask("run", "scripted/liar", *ODD, "--developer-prompt", "p.txt", "--out", "run", "--quiet", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    return api.open_run(tmp_path / "run")


def stored(run: api.Run) -> dict[str, bytes]:
    files = ("run.json", "scenarios.jsonl", "replies.jsonl", "readings/mine.jsonl")
    return {name: (run.path / name).read_bytes() for name in files}


def test_the_folder_alone_continues_a_run(run):
    """Nothing is asked, and no setting changes, also where the file of the developer prompt is gone."""
    before = stored(run)
    (run.path.parent / "p.txt").unlink()
    done = unmask("run", "--out", "run", "--quiet", cwd=run.path.parent)
    assert done.returncode == 0, done.stderr
    assert stored(run) == before


def test_a_plan_of_the_folder_alone_says_that_nothing_is_left(run):
    done = unmask("run", "--out", "run", "--plan", "--json", cwd=run.path.parent)
    assert (json.loads(done.stdout)["most"]["calls"], json.loads(done.stdout)["model"]) == (0, "scripted/liar")


def test_the_command_that_repeats_a_run_continues_it(run):
    """Typed as it stands, it means the same settings."""
    before = stored(run)
    command = run_command(run.definition, Path("run"))
    done = unmask(*shlex.split(command)[1:], "--quiet", cwd=run.path.parent)
    assert done.returncode == 0, done.stderr
    assert stored(run) == before


def test_what_is_given_takes_the_place_of_what_is_recorded(run):
    """More takes extend the run; a setting that defines it is refused by name."""
    more = unmask("run", "--out", "run", "--takes", "3", "--quiet", cwd=run.path.parent)
    assert more.returncode == 0, more.stderr
    definition = api.open_run(run.path).definition
    assert (definition.takes, definition.subject.temperature, definition.subject.price) == (3, 0.5, "1/2")
    other = unmask("run", "--out", "run", "--set", "temperature=0.1", cwd=run.path.parent)
    assert (other.returncode, "temperature: the run has 0.5, the command says 0.1" in other.stderr) == (2, True)


def test_a_larger_selection_grows_the_run(run):
    before, names = len(run.scenarios), ("known_facts", "statistics")
    flags = [word for name in names for word in ("--archetype", name)]
    grown = unmask("run", "--out", "run", *flags, "--quiet", cwd=run.path.parent)
    assert grown.returncode == 0, grown.stderr
    assert len(api.open_run(run.path).scenarios) > before


def test_a_judge_is_asked_as_it_was_before(run):
    before = stored(run)
    done = unmask("judge", "run", "--judge", "scripted/judge", "--set", "judge.name=mine", cwd=run.path.parent)
    assert done.returncode == 0, done.stderr
    assert stored(run) == before
    other = unmask(
        *("judge", "run", "--judge", "scripted/judge", "--set", "judge.name=mine", "--set", "judge.max_tokens=9"),
        cwd=run.path.parent,
    )
    assert other.returncode == 2
    assert "judge max tokens: the run has 500, the command says 9" in other.stderr
    assert "--set judge.name=NAME" in other.stderr


def test_a_second_reading_by_the_same_judge_is_kept_apart_by_its_name(run):
    done = unmask("judge", "run", "--judge", "scripted/judge", "--set", "judge.name=again", cwd=run.path.parent)
    assert done.returncode == 0, done.stderr
    judges = api.open_run(run.path).definition.judges
    assert (judges["mine"].max_tokens, judges["again"].max_tokens) == (500, None)


def test_settings_that_come_from_variables_are_said_in_one_line(tmp_path):
    flags = ("scripted/liar", "--data", "tiny", "--judge", "scripted/judge", "--out", "run", "--quiet")
    done = unmask("run", *flags, cwd=tmp_path, env={"UNMASK_LIMIT": "6", "UNMASK_SET": "judge.max_tokens=50 price=1/1"})
    assert "From the environment: UNMASK_LIMIT=6 UNMASK_SET=judge.max_tokens=50 price=1/1\n" in done.stderr
    definition = api.open_run(tmp_path / "run").definition
    judge = definition.judges["scripted_judge"]
    assert (sum(definition.data.counts.values()), judge.max_tokens, definition.subject.price) == (6, 50, "1/1")
    assert "From the environment" not in unmask("run", *flags, "--limit", "6", cwd=tmp_path).stderr


@pytest.mark.parametrize("other", [(), ("--judge", "scripted/judge", "--preset", "strict")])
def test_the_command_of_a_lazy_runs_placebo_completes_it(tmp_path: Path, other):
    """It is printed with the upper limit, works as it is typed, and the run then has the difference."""
    made = unmask(
        "run", "scripted/beliefless", "--data", "tiny", "--judge", "scripted/judge", "--out", "a run", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    score = ("score", "a run", *other)
    shown = " ".join(unmask(*score, "--all", cwd=tmp_path).stdout.split())
    placebo = json.loads(unmask(*score, "--json", cwd=tmp_path).stdout)["placebo"]
    assert (placebo["complete"], placebo["difference"]) == (False, None)
    assert f"At most {100 * placebo['placebo']['value']:.1f} % of neutral answers contradict" in shown
    assert placebo["complete_with"] in shown
    done = unmask(*shlex.split(placebo["complete_with"])[1:], "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = json.loads(unmask(*score, "--json", cwd=tmp_path).stdout)["placebo"]
    assert (after["complete"], after["complete_with"], after["difference"]["n"] > 0) == (True, None, True)
