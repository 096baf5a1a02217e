"""Run folders that an earlier version wrote open, continue and score."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil

import msgspec
import pytest

import unmask
from tests.golden_files import FOLDER, check_golden
from tests.golden_runs import DATA, RUNS, mixed
from unmask.cli.main import run_command_line


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """A copy of the folder whose judges write letters, beside its data, in the current folder."""
    shutil.copytree(RUNS / "letters", tmp_path / "letters")
    shutil.copy(DATA, tmp_path)
    monkeypatch.chdir(tmp_path)
    return "letters"


def check(name, record):
    """Every number of the golden file is the same; a newer version may say more."""
    said = msgspec.to_builtins(record)
    if os.environ.get("UNMASK_UPDATE_GOLDEN"):
        check_golden(name, json.dumps(said) + "\n")
    assert among(json.loads((FOLDER / name).read_text("utf-8")), json.loads(json.dumps(said))) == []


def among(old, new, where=""):
    """The places where `new` differs from `old` in what `old` has."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [place for key in old for place in among(old[key], new.get(key), f"{where}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            place
            for number, pair in enumerate(zip(old, new, strict=True))
            for place in among(*pair, f"{where}[{number}]")
        ]
    same = old == pytest.approx(new, abs=1e-12) if isinstance(old, float) and isinstance(new, float) else old == new
    return [] if same else [f"{where}: {old!r} before, {new!r} now"]


def score(run, judge):
    return unmask.open_run(run).score(judge=judge).to_json()


@pytest.mark.parametrize("judge", ["first", "second"])
def test_a_run_read_by_letters_scores_as_before(letters, judge):
    """A torn last line costs one scenario, which stays undecided."""
    check(f"runs/letters.{judge}.json", score(letters, judge))


def test_a_run_read_by_letters_continues(letters):
    """The torn request is asked again, the learnt polarity is known, and nothing else is asked."""
    subject = mixed()
    settings = {"data": DATA.name, "model": subject, "takes": 10, "judge": "scripted/judge", "judge_name": "first"}
    done = unmask.run(**settings, out=letters)
    assert subject.calls == 1
    assert all(str(outcome.verdict) != "unjudged" for outcome in done.rows())
    check("runs/letters.continued.json", score(letters, "first"))


def test_labels_of_two_people_still_count(letters):
    """Agreement of judge and people is what it was."""
    check("runs/letters.agreement.json", unmask.agree(letters))


OLD = [
    ("rules", "rules", 12, "unmask judge rules --judge PROVIDER/NAME"),
    ("embedded", "embedded_smollm2-135m", 10, "unmask judge embedded --judge embedded/smollm2-135m --preset paper"),
    ("embedded", "embedded_judge-1.5b", 10, "unmask judge embedded --judge embedded/judge-1.5b --preset paper"),
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: old[1])
def test_a_run_read_by_rules_or_an_embedded_judge_opens(tmp_path, monkeypatch, capsys, old):
    """One line says how many replies are no longer read by rule and what reads them; the exit code is 3."""
    folder, judge, replies, command = old
    shutil.copytree(RUNS / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    check(f"runs/{folder}.{judge}.json", score(folder, judge))
    assert run_command_line(["score", folder, "--judge", judge]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"unmask: {replies} replies are no longer read by rule; a judge reads them: {command}"]


def test_a_judge_reads_what_rules_read_before(tmp_path, monkeypatch):
    """The command that is named, with a judge of one's own: every scenario has a verdict."""
    shutil.copytree(RUNS / "rules", tmp_path / "rules")
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["judge", "rules", "--judge", "scripted/judge", "--quiet"]) == 0
    assert run_command_line(["judge", "rules", "--judge", "verbatim", "--quiet"]) == 3
    assert unmask.open_run("rules").score(judge="verbatim").no_longer_read is None


def test_the_old_name_of_the_judge_is_refused_with_the_new_one(tmp_path, capsys):
    settings = ["--data", "tiny", "--model", "scripted/honest", "--judge", "rules"]
    assert run_command_line(["run", *settings, "--out", str(tmp_path / "run")]) == 2
    assert "--judge verbatim" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_public_signatures():
    """What people call: names, parameters and defaults of all public functions, classes and their methods."""
    lines = []
    for name in sorted(set(unmask.__all__) - {"__version__"}):
        public = getattr(unmask, name)
        if inspect.isclass(public):
            lines.append(f"class {name}")
            for member, value in sorted(vars(public).items()):
                if member.startswith("_") or member in {"with_traceback", "add_note"}:
                    continue
                call = inspect.signature(value) if inspect.isfunction(value) else ""
                lines.append(f"  {member}{call}")
        else:
            lines.append(f"{name}{inspect.signature(public)}")
    check_golden("public_names.txt", re.sub(r" at 0x\w+", "", "\n".join(lines)) + "\n")


@pytest.mark.parametrize(
    ("style", "name"),
    [
        ("letters", "a87d4996fa5e37d91244"),
        ("entailment", "a3eaf0be9365e2e98b23"),
        ("picks", "07378e407f874313ca49"),
    ],
)
def test_prompts_of_judges_are_byte_for_byte_those_that_runs_were_read_with(style, name):
    """The hash covers names and contents; another hash would refuse every run of such judges in the world."""
    from unmask.judges.base import Style
    from unmask.judges.wording import prompts_hash

    assert prompts_hash(Style(style)) == name
