"""Run folders that an earlier version wrote open, continue and score."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest

import unmask
from tests.golden_files import FOLDER, check_golden
from tests.golden_runs import DATA, RUNS, mixed
from unmask.cli.main import run_command_line
from unmask.errors import MixedRunError


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


def check_numbers(name, record):
    """The same but for what says who read it, and how often a judge was asked."""
    before, now = json.loads((FOLDER / name).read_text("utf-8")), json.loads(json.dumps(msgspec.to_builtins(record)))
    assert among({key: value for key, value in before.items() if key not in {"run", "calls", "tokens"}}, now) == []


def read_files(run):
    """Every file of a run but its lock."""
    return {path: path.read_bytes() for path in Path(run).rglob("*") if path.is_file() and path.name != "lock"}


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


def test_a_run_read_by_the_first_letter_prompts_goes_on_under_another_name(letters):
    """One line says that they changed and gives the command; nothing is asked, and nothing of the run is touched."""
    subject, before = mixed(), read_files(letters)
    settings = {"data": DATA.name, "model": subject, "takes": 10, "judge": "scripted/judge"}
    with pytest.raises(MixedRunError) as refused:
        unmask.run(**settings, judge_name="first", out=letters)
    said, advice = str(refused.value), refused.value.advice
    assert (said.count("\n"), advice) == (0, None)
    assert said.startswith("the judge prompts have changed since first read this run;")
    assert "unmask run --data" in said
    assert "--judge-name first-2" in said
    assert subject.calls == 0
    assert read_files(letters) == before

    done = unmask.run(**settings, judge_name="first-2", out=letters)
    assert subject.calls == 1  # the torn request
    assert all(str(outcome.verdict) != "unjudged" for outcome in done.rows())
    check_numbers("runs/letters.continued.json", score(letters, "first-2"))
    kept = Path(letters) / "readings" / "first.jsonl"
    assert kept.read_bytes() == before[kept]


def test_a_judge_of_the_first_letter_prompts_is_asked_again_by_the_command_that_is_named(letters, capsys):
    """`unmask judge` says it in one line too, and the line it gives works."""
    assert run_command_line(["judge", letters, "--judge", "scripted/judge", "--judge-name", "second", "--quiet"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    command = line.partition("under another name: ")[2]
    assert command.startswith("unmask judge letters --judge scripted/judge --judge-name second-2")
    assert run_command_line([*shlex.split(command)[1:], "--quiet"]) in {0, 3}
    before, now = (msgspec.to_builtins(score(letters, judge))["overall"] for judge in ("second", "second-2"))
    assert now == before


def test_labels_of_two_people_still_count(letters):
    """Agreement of judge and people is what it was."""
    check("runs/letters.agreement.json", unmask.agree(letters))


OLD = [
    ("rules", "rules", 12, "unmask judge rules --judge PROVIDER/NAME"),
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: old[1])
def test_a_run_read_by_rules_opens(tmp_path, monkeypatch, capsys, old):
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
        ("letters", "b847133481cdce8aad1e"),
        ("picks", "ca735ab2e88251449ae8"),
    ],
)
def test_prompts_of_judges_are_byte_for_byte_those_that_runs_were_read_with(style, name):
    """The hash covers names and contents; another hash would refuse every run of such judges in the world."""
    from unmask.judges.base import Style
    from unmask.judges.letters import prompts_hash

    assert prompts_hash(Style(style)) == name
