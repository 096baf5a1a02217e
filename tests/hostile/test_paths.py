"""Names that strangers choose (scenarios, judges, people, members of archives) never become paths of their choosing."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import msgspec
import pytest

from bench.fuzz import seeds
from unmask.bridge.importing import import_run
from unmask.cli.main import call
from unmask.data import load
from unmask.data.jsonl import write_jsonl
from unmask.definition import judge_file
from unmask.errors import JournalError, UnmaskError, UsageError
from unmask.export import export
from unmask.folder import Folder
from unmask.journal import is_file_name
from unmask.labels import label_file
from unmask.models.scripted import Scripted
from unmask.opened import Run
from unmask.options import given
from unmask.records import Scenario
from unmask.stages import run as run_it

NAMES = (
    "../../evil",
    "..\\..\\evil",
    "/etc/evil",
    "C:\\evil",
    "evil\0.jsonl",
    "..",
    ".",
    ".hidden",
    "con",
    "NUL.txt",
    "a/b/c",
    "~/evil",
    "evil\n",
    "\x1b[2Jevil",
    "evil:stream",
    "\u202elive",
    "e" * 5000,
    "-rf",
    "$(evil)",
    "`evil`",
    "<script>evil()</script>",
)


def scenario(name: str) -> Scenario:
    return msgspec.structs.replace(seeds.SUPPLIED, id=name)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_ids_of_scenarios_are_text_wherever_they_are_written(name: str, tmp_path: Path):
    """A run, every export, the report and a label file: all of it lies in the folder it was told to."""
    home = tmp_path / "home"
    home.mkdir()
    write_jsonl([scenario(name)], path=home / "set.jsonl")
    model = Scripted(lambda _: "The bell rings at noon.", name="scripted/x")
    done = run_it(data=load(home / "set.jsonl"), model=model, judge="rules", out=home / "run", max_unjudged=1.0)
    assert [row.id for row in done.rows()] == [name]
    for format_ in ("csv", "jsonl", "parquet", "reference-csv"):
        export(done, format=format_, out=home / format_)
    export(done, format="inspect", out=home / "x.eval")
    assert call(["report", str(home / "run"), "--out", str(home / "report.html")]) == 0
    assert "<script>evil" not in (home / "report.html").read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"home"}
    made = {"set.jsonl", "run", "csv", "jsonl", "parquet", "reference-csv", "x.eval", "report.html"}
    assert {path.name for path in home.iterdir()} == made
    with zipfile.ZipFile(home / "x.eval") as archive:
        for member in archive.namelist():
            assert ".." not in Path(member).parts, member
            assert not member.startswith(("/", "\\")), member


def test_ids_that_differ_only_in_case_stay_two_scenarios(tmp_path: Path):
    """No file is named after a scenario, so a disk that knows no case cannot join them."""
    write_jsonl([scenario("Case"), scenario("case")], path=tmp_path / "set.jsonl")
    model = Scripted(lambda _: "The bell rings at noon.", name="scripted/x")
    done = run_it(data=load(tmp_path / "set.jsonl"), model=model, judge="rules", out=tmp_path / "run", max_unjudged=1.0)
    assert {row.id for row in done.rows()} == {"Case", "case"}
    assert not any("case" in path.name.lower() for path in (tmp_path / "run").rglob("*"))


# --- judges and people ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_the_file_of_a_judge_or_person_is_one_plain_name(name: str, tmp_path: Path):
    """Whatever a model or a labeller is called; and a file name gives itself, so that either can be typed."""
    file = judge_file(name)
    assert is_file_name(file)
    assert judge_file(file) == file
    (tmp_path / f"{file}.jsonl").touch()
    assert len(list(tmp_path.iterdir())) == 1


def test_long_names_that_differ_at_their_end_have_files_of_their_own():
    """Cutting a name must not join two judges."""
    assert judge_file("m" * 500 + "a") != judge_file("m" * 500 + "b")


@pytest.mark.parametrize("name", [name for name in NAMES if not is_file_name(name)])
def test_a_judge_name_that_is_a_path_is_refused(name: str):
    """`--judge-name` is taken as it is, so it has to be a name."""
    with pytest.raises(UsageError, match="--judge-name"):
        given({"judge_name": name})


def test_labels_stay_in_their_folder(tmp_path: Path):
    """`--who ../../evil` is a person with an odd name."""
    for name in NAMES:
        run = made(tmp_path / f"run{NAMES.index(name)}")
        assert label_file(run, name).parent == run.path / "labels"


def made(out: Path) -> Run:
    folder = Folder(out)
    folder.write_scenarios((seeds.SUPPLIED,))
    (out / "run.json").write_bytes(seeds.definitions()[0])
    return Run(out)


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "a/b", "..\\evil"])
def test_a_run_folder_cannot_send_its_reader_elsewhere(name: str, tmp_path: Path):
    """`run.json` of a stranger names its judges; they are read, and written to, only in `readings/`."""
    (tmp_path / "evil.jsonl").write_text("not ours\n")
    run = made(tmp_path / "in" / "run")
    stored = json.loads((run.path / "run.json").read_text())
    stored["judges"] = {name: stored["judges"]["rules"]}
    stored["judge"] = name
    (run.path / "run.json").write_text(json.dumps(stored))
    with pytest.raises(JournalError, match="no name of a file"):
        Run(run.path).score()
    assert call(["judge", str(run.path), "--judge", "rules", "--judge-name", name]) == 2
    assert (tmp_path / "evil.jsonl").read_text() == "not ours\n"


def test_two_judges_whose_names_differ_only_in_case_are_refused(tmp_path: Path):
    """On many disks they would be one file, and their readings one heap."""
    write_jsonl([seeds.SUPPLIED], path=tmp_path / "set.jsonl")
    model = Scripted(lambda _: "Answer: A", name="scripted/x")
    flags = {"data": load(tmp_path / "set.jsonl"), "model": model, "out": tmp_path / "run", "max_unjudged": 1.0}
    run_it(**flags, judge=model, judge_name="First")
    with pytest.raises(UnmaskError, match="judge name: the run has First, the command says first"):
        run_it(**flags, judge=model, judge_name="first")


# --- archives ---------------------------------------------------------------------------------------------


def ours(name: str) -> bytes:
    """A log as unmask exports it, whose definition names this judge."""
    header, sample = (json.loads(part) for part in seeds.samples()[1].split(b"\0"))
    definition = header["eval"]["metadata"]["unmask"]
    definition["judges"] = {name: definition["judges"]["rules"]}
    definition["judge"] = name
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("samples/x_epoch_1.json", json.dumps(sample))
    return file.getvalue()


@pytest.mark.parametrize("name", ["../../../evil", "/tmp/evil", "a/b"])
def test_an_imported_log_cannot_write_outside_its_folder(name: str, tmp_path: Path):
    """The judge's name of an exported run becomes a file name."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.eval").write_bytes(ours(name))
    with pytest.raises(UnmaskError):
        import_run(tmp_path / "in" / "x.eval", out=tmp_path / "in" / "run")
    assert not list(tmp_path.rglob("*evil*"))
    assert not (tmp_path / "in" / "run" / "run.json").exists()


def test_links_in_archives_are_not_followed(tmp_path: Path):
    """A member marked as a symbolic link is bytes like any other."""
    (tmp_path / "secret.json").write_text('{"eval": {"task": "secret"}}')
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        link = zipfile.ZipInfo("header.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(tmp_path / "secret.json"))
    with pytest.raises(UnmaskError) as caught:
        import_run(tmp_path / "x.eval", out=tmp_path / "run")
    assert "task" not in str(caught.value)
