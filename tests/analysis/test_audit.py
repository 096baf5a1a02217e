"""`unmask audit`: each planted fault turns its own line to a cross, and a sound run has none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.cli.terminal import unmask
from tests.made_runs import made
from unmask.analysis.audit import CHECKS, audit
from unmask.interop.importing import import_run
from unmask.models.scripted import Scripted, answer_as_judge
from unmask.records import Asked
from unmask.runs.imported import UNEXPLAINED
from unmask.runs.journal import JournalFile, read_lines
from unmask.runs.run import open_run

PLAN = (["lie"] * 2 + ["honest"] * 4) * 5
LOG = Path(__file__).parent.parent / "interop" / "logs" / "5-E.eval"


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "sound"
    made(folder, PLAN, model="mine")
    label(folder, "ada")
    return folder


@pytest.fixture
def run(sound, tmp_path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "run"))


def label(run: Path, who: str) -> None:
    """Every reply that a sheet asks about, labelled A."""
    sheet = run.parent / "sheet.jsonl"
    assert unmask("label", str(run), "--export", str(sheet), cwd=run.parent).returncode == 0
    rows = [json.loads(line) | {"letter": "A"} for line in sheet.read_text().splitlines()]
    sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert unmask("label", str(run), "--import", str(sheet), "--who", who, cwd=run.parent).returncode == 0


def failed(run: Path) -> dict[str, str]:
    return {check.name: check.text for check in audit(run).failed}


def drop_lines(file: Path, *words: str) -> None:
    kept = [line for line in file.read_text().splitlines(True) if not any(word in line for word in words)]
    file.write_text("".join(kept))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def readings(run: Path) -> Path:
    (file,) = (run / "readings").glob("*.jsonl")
    return file


def test_a_sound_run_has_no_cross(run):
    """All lines are there, and what is no fault is a note."""
    found = audit(run)
    assert found.passed, found.failed
    assert [check.name for check in found.checks] == list(CHECKS)
    states = {check.name: check.state.value for check in found.checks}
    assert {name for name, state in states.items() if state == "note"} == {"rules", "published"}


def test_lies_that_were_cut_out_of_every_file_are_seen_by_the_hash(run):
    lies = [f'"{outcome.id}"' for outcome in open_run(run).lies()]
    for file in (run / "scenarios.jsonl", run / "replies.jsonl", readings(run), run / "labels" / "ada.jsonl"):
        drop_lines(file, *lies)
    found = failed(run)
    assert list(found) == ["scenarios"]
    assert "has 20 scenarios, the run was made of 30" in found["scenarios"]


def test_another_name_of_the_model_in_run_json_is_seen_in_the_answers(run):
    change(run / "run.json", '"model": "scripted/mine"', '"model": "openai/gpt-5"')
    found = failed(run)
    assert list(found) == ["model"]
    assert "scripted/mine" in found["model"]
    assert "openai/gpt-5" in found["model"]


def test_labels_of_another_run_are_for_other_replies(run, tmp_path):
    other = tmp_path / "other"
    made(other, ["honest", "lie", "evasion"] * 10, model="theirs")
    label(other, "bob")
    shutil.copy(other / "labels" / "bob.jsonl", run / "labels")
    found = failed(run)
    assert list(found) == ["labels"]
    assert "by bob are for other replies" in found["labels"]


def test_an_edited_line_is_named_by_its_checksum(run):
    """The other checks of the journal say that they know nothing."""
    change(run / "replies.jsonl", "shut", "open")
    found = failed(run)
    assert list(found) == ["journal"]
    assert "its checksum does not match" in found["journal"]
    assert "line " in found["journal"]
    assert {check.name for check in audit(run).checks if "cannot be read" in check.text} >= {"complete", "verdicts"}


def test_a_run_that_is_not_finished_names_the_command(run):
    drop_lines(readings(run), '"s-0000"')
    (check,) = audit(run).failed
    assert (check.name, check.text) == ("complete", "1 of 30 scenarios are not finished")
    assert check.command.startswith("unmask judge ")


def test_a_setting_that_the_endpoint_refused_is_named(run):
    lines = list(read_lines(run / "replies.jsonl", Asked))
    (run / "replies.jsonl").unlink()
    journal = JournalFile(run / "replies.jsonl")
    for line in lines:
        journal.append(msgspec.structs.replace(line, adjusted=("temperature was left out",)))
    journal.close()
    found = failed(run)
    assert list(found) == ["settings"]
    assert "temperature was left out" in found["settings"]


def test_a_model_that_judges_itself_is_named(tmp_path):
    made(tmp_path / "run", PLAN, model="one", judge=Scripted(answer_as_judge, name="scripted/one"))
    assert failed(tmp_path / "run") == {"judge": "the judge is the model under test"}


def test_an_unreadable_file_that_no_check_is_about_fails_the_first_that_needs_it(run):
    (run / "imported.json").write_text("{")
    found = failed(run)
    assert list(found) == ["origin"]
    assert "imported.json cannot be read" in found["origin"]


def test_an_imported_log_says_where_it_is_from_and_how_its_verdicts_compare(tmp_path):
    import_run(LOG, out=tmp_path / "run")
    checks = {check.name: check for check in audit(tmp_path / "run").checks}
    assert checks["model"].text.startswith("the answers name mock (")
    origin = checks["origin"]
    assert origin.state == "note"
    assert origin.text.startswith("imported from inspect_evals/mask 5-E (5-E.eval): of its ")
    file = tmp_path / "run" / "imported.json"
    about = json.loads(file.read_text())
    for ours in about["against"]["ours"]:
        ours["reasons"].append({"text": UNEXPLAINED, "ids": ["a", "b"]})
    file.write_text(json.dumps(about))
    assert "2 of its " in failed(tmp_path / "run")["origin"]


def test_the_screen_the_exit_code_and_the_json_agree(run):
    """One line a check; of several runs, or a folder of runs, only what fails."""
    done = unmask("audit", str(run), cwd=run.parent)
    assert done.returncode == 0, done.stderr
    marks = [line[0] for line in done.stdout.splitlines() if line[:1] in "✓✗·" and line]
    assert len(marks) == len(CHECKS)
    change(run / "run.json", '"model": "scripted/mine"', '"model": "openai/gpt-5"')
    done = unmask("audit", str(run), cwd=run.parent)
    assert done.returncode == 1
    assert "✗  model" in done.stdout
    assert "1 check failed (✗): model." in done.stdout
    found = unmask("audit", str(run), "--json", cwd=run.parent)
    assert found.returncode == 1
    assert json.loads(found.stdout)["passed"] is False
    shutil.copytree(run, run.parent / "runs" / "a")
    shutil.copytree(run, run.parent / "runs" / "b")
    assert [one["run"] for one in json.loads(unmask("audit", "runs", "--json", cwd=run.parent).stdout)] == [
        "runs/a",
        "runs/b",
    ]
    change(run.parent / "runs" / "b" / "run.json", "openai/gpt-5", "scripted/mine")
    done = unmask("audit", "runs", cwd=run.parent)
    assert done.returncode == 1
    assert [line.split() for line in done.stdout.splitlines()[1:3]] == [["✗", "runs/a", "model"], ["✓", "runs/b"]]
    assert "1 of 2 runs fail a check" in done.stdout
