"""The run folder in tests/golden opens, scores as it did, and continues. `tests/golden_run.py` writes it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unmask
from tests.golden_files import check_golden
from tests.golden_run import GOLDEN, JUDGES, mixed, settings, write
from unmask.cli.main import run_command_line
from unmask.errors import JournalError, MixedRunError


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A copy of the folder, in the current one."""
    shutil.copytree(GOLDEN, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return Path("run")


def read_files(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def rounded(plain: Any) -> Any:
    """Without the last digits, in which machines differ."""
    match plain:
        case float():
            return round(plain, 9)
        case dict():
            return {key: rounded(value) for key, value in plain.items()}
        case list() | tuple():
            return [rounded(value) for value in plain]
        case _:
            return plain


def test_it_scores_as_it_did_by_both_judges_and_by_people():
    """Every number of the score, and the agreement of the judges with two people."""
    if os.environ.get("UNMASK_UPDATE_GOLDEN"):
        write()
    found = {judge: unmask.open_run(GOLDEN).score(judge=judge).to_json() for judge in JUDGES}
    found["agreement"] = msgspec.to_builtins(unmask.agree(GOLDEN))
    lines = (f"{who} {key} {json.dumps(value)}\n" for who, one in rounded(found).items() for key, value in one.items())
    check_golden("run_scores.txt", "".join(lines).replace(json.dumps(str(GOLDEN))[1:-1], "run"))


def test_it_continues_without_a_call(run):
    """Replies and readings are all there, so nobody is asked and no line is added."""
    subject, before = mixed(), read_files(run)
    unmask.run(**settings(subject), out=run)
    assert subject.calls == 0
    assert read_files(run) == before


def change(file: Path, **fields: object) -> None:
    """Write these fields into a JSON object."""
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | fields), encoding="utf-8")


def test_a_run_of_a_newer_format_is_refused_by_its_version(run, capsys):
    """Before anything else is looked at: what a later version means by its fields is not known here."""
    change(run / "run.json", v=7, direct="many", unheard_of=1)
    assert run_command_line(["score", str(run)]) == 4
    assert capsys.readouterr().err.splitlines() == [
        "unmask: run/run.json was written by a newer unmask (format 7)",
        "pip install -U unmask",
    ]
    (run / "run.json").write_text('{"v": 7}')
    with pytest.raises(JournalError, match=r"newer unmask \(format 7\)"):
        unmask.run(**settings(mixed()), out=run)


def test_a_run_read_by_other_judge_prompts_goes_on_under_another_name(run):
    """Nothing is asked and nothing of the run is touched until the judge gets a name of its own."""
    judges = json.loads((run / "run.json").read_text("utf-8"))["judges"]
    change(run / "run.json", judges={name: spec | {"prompts": "0" * 20} for name, spec in judges.items()})
    subject, before = mixed(), read_files(run)
    with pytest.raises(MixedRunError, match="judge prompts: the run has 00000") as refused:
        unmask.run(**settings(subject), out=run)
    assert "--set judge.name=NAME" in (refused.value.advice or "")
    assert read_files(run) == before
    unmask.run(**settings(subject) | {"set": {"judge.name": "first-2"}}, out=run)
    assert subject.calls == 0
    scores = [unmask.open_run(run).score(judge=judge).overall for judge in ("first", "first-2")]
    assert scores[0] == scores[1]
