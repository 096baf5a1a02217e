"""Names that strangers choose (scenarios, judges, people, members of archives) never become paths of their choosing."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from pathlib import Path

import msgspec
import pytest

from bench.fuzz import seeds
from unmask.analysis import labels
from unmask.analysis.mitigation import read_fluency
from unmask.cli.main import run_command_line
from unmask.data.dataset import Dataset, content_hash
from unmask.data.form import write_jsonl
from unmask.data.load import load
from unmask.engine.run import run as run_it
from unmask.errors import JournalError, UnmaskError, UsageError
from unmask.files import is_file_name
from unmask.interop.export import export
from unmask.interop.importing import import_run
from unmask.models.scripted import Scripted
from unmask.records import Scenario
from unmask.runs.definition import judge_file
from unmask.runs.folder import Folder
from unmask.runs.options import options_from
from unmask.runs.run import Run

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


def test_ids_of_scenarios_are_text_wherever_they_are_written(tmp_path: Path):
    """A run, every export, the report and a label file: all of it lies in the folder it was told to."""
    home = tmp_path / "home"
    home.mkdir()
    write_jsonl([scenario(name) for name in NAMES], path=home / "set.jsonl")
    model = Scripted(lambda _: "The bell rings at noon.", name="scripted/x")
    done = run_it(data=load(home / "set.jsonl"), model=model, judge="verbatim", out=home / "run")
    assert sorted(row.id for row in done.rows()) == sorted(NAMES)
    for format_ in ("csv", "jsonl", "parquet"):
        export(done, format=format_, out=home / format_)
    export(done, format="inspect", out=home / "x.eval")
    assert run_command_line(["report", str(home / "run"), "--out", str(home / "report.html")]) == 0
    assert "<script>evil" not in (home / "report.html").read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"home"}
    made = {"set.jsonl", "run", "csv", "jsonl", "parquet", "x.eval", "report.html"}
    assert {path.name for path in home.iterdir()} == made
    with zipfile.ZipFile(home / "x.eval") as archive:
        for member in archive.namelist():
            assert ".." not in Path(member).parts, member
            assert not member.startswith(("/", "\\")), member


# --- judges and people ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_the_file_of_a_judge_or_person_is_one_plain_name(name: str, tmp_path: Path):
    """Whatever a model or a labeller is called; and a file name gives itself, so that either can be typed."""
    file = judge_file(name)
    assert is_file_name(file)
    assert judge_file(file) == file
    (tmp_path / f"{file}.jsonl").touch()
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", [name for name in NAMES if not is_file_name(name)])
def test_a_judge_name_that_is_a_path_is_refused(name: str):
    """The name of readings is taken as it is, so it has to be a name."""
    with pytest.raises(UsageError, match=r"--set judge\.name="):
        options_from({"set": {"judge.name": name}})


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
    stored["judges"] = {name: next(iter(stored["judges"].values()))}
    stored["judge"] = name
    (run.path / "run.json").write_text(json.dumps(stored))
    with pytest.raises(JournalError, match="no name of a file"):
        Run(run.path).score()
    assert run_command_line(["judge", str(run.path), "--judge", "verbatim", "--set", f"judge.name={name}"]) == 2
    assert (tmp_path / "evil.jsonl").read_text() == "not ours\n"


def test_two_judges_whose_names_differ_only_in_case_are_refused(tmp_path: Path):
    """On many disks they would be one file, and their readings one heap."""
    write_jsonl([seeds.SUPPLIED], path=tmp_path / "set.jsonl")
    model = Scripted(lambda _: "Answer: A", name="scripted/x")
    flags = {"data": load(tmp_path / "set.jsonl"), "model": model, "out": tmp_path / "run"}
    run_it(**flags, judge=model, set={"judge.name": "First"})
    with pytest.raises(UnmaskError, match="judge name: the run has First, the command says first"):
        run_it(**flags, judge=model, set={"judge.name": "first"})


# --- links, pipes, devices --------------------------------------------------------------------------------


def finished(out: Path, **more: object) -> Run:
    """A run of one scenario, read by a judge with a file of its own."""
    judge = Scripted(lambda _: "Answer: A", name="scripted/judge")
    model = Scripted(lambda _: "The bell rings at noon.", name="scripted/x")
    name = content_hash([seeds.SUPPLIED])
    dataset = Dataset(name="one", source="one", hash=name, full_hash=name, scenarios=(seeds.SUPPLIED,))
    return run_it(data=dataset, model=model, judge=judge, out=out, **more)


HELD = ("run.json", "scenarios.jsonl", "replies.jsonl", "readings/scripted_judge.jsonl")


@pytest.mark.parametrize("name", HELD)
def test_a_link_in_place_of_a_file_of_a_run_is_followed_by_no_reader_and_no_writer(name: str, tmp_path: Path):
    """What it points to, torn as it is, is neither mended nor extended nor emptied."""
    run = finished(tmp_path / "in" / "run")
    elsewhere = tmp_path / "elsewhere"
    (run.path / name).rename(elsewhere)
    (run.path / name).symlink_to(elsewhere)
    with pytest.raises(JournalError, match=f"{re.escape(str(run.path / name))} is a symbolic link") as caught:
        Run(run.path).score()
    assert "itself in its place" in (caught.value.advice or "")
    before = elsewhere.read_bytes() + b'{"torn'
    elsewhere.write_bytes(before)
    with pytest.raises(JournalError, match="is a symbolic link"):
        finished(run.path, takes=2)
    assert elsewhere.read_bytes() == before


@pytest.mark.parametrize("name", HELD)
def test_a_link_to_nothing_makes_no_file_elsewhere(name: str, tmp_path: Path):
    """`open` would make what it points to."""
    run = tmp_path / "run"
    (run / "readings").mkdir(parents=True)
    (run / name).symlink_to(tmp_path / "elsewhere")
    with contextlib.suppress(JournalError):
        finished(run)
    assert not (tmp_path / "elsewhere").exists()


LOCKS = ("replies.jsonl.lock", "run.json.lock", "readings/scripted_judge.jsonl.lock")


@pytest.mark.parametrize("name", [*LOCKS, "replies.jsonl.lock.holder"])
def test_a_link_in_place_of_a_lock_is_refused_and_not_written_through(name: str, tmp_path: Path):
    """Nor is one in place of the file that names its holder."""
    run = finished(tmp_path / "run")
    (tmp_path / "elsewhere").write_text("not ours\n")
    (run.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match=rf"{name}.*( is a symbolic link|: Too many levels of symbolic links)"):
        finished(run.path, takes=2)
    assert (tmp_path / "elsewhere").read_text() == "not ours\n"


@pytest.mark.parametrize("name", ["run.json.new"])
def test_a_link_in_place_of_a_file_that_is_written_anew_is_replaced(name: str, tmp_path: Path):
    """The run goes on beside it, and what it points to stays as it was."""
    run = tmp_path / "run"
    (run / "readings").mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("not ours\n")
    (run / name).symlink_to(tmp_path / "elsewhere")
    assert [row.id for row in finished(run).rows()] == ["pf-1"]
    assert (tmp_path / "elsewhere").read_text() == "not ours\n"
    assert not (run / name).exists()


@pytest.mark.parametrize("name", ["readings", "labels"])
def test_a_link_in_place_of_a_folder_of_a_run_is_refused(name: str, tmp_path: Path):
    """Judges and people write inside the run, or not at all."""
    run = finished(tmp_path / "in" / "run")
    elsewhere = tmp_path / "elsewhere"
    (run.path / name).rename(elsewhere) if name == "readings" else elsewhere.mkdir()
    (run.path / name).symlink_to(elsewhere)
    held = sorted(elsewhere.iterdir())
    attempts = {
        "readings": (lambda: Run(run.path).score(), lambda: finished(run.path, takes=2)),
        "labels": (
            lambda: labels.open_writer(run, "me"),
            run.folder.labellers,
        ),
    }
    for attempt in attempts[name]:
        with pytest.raises(JournalError, match=f"{name} is a symbolic link, not a folder"):
            attempt()
    assert sorted(elsewhere.iterdir()) == held


@pytest.mark.parametrize("name", ["labels/me.jsonl", "fluency.json"])
def test_a_link_in_place_of_a_file_beside_a_run_is_refused(name: str, tmp_path: Path):
    """What people and measurements leave there is the run's own as well."""
    run = finished(tmp_path / "run")
    (run.path / "labels").mkdir()
    (tmp_path / "elsewhere").write_text("not ours\n")
    (run.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match=rf"{name}.*( is a symbolic link|: Too many levels of symbolic links)"):
        labels.load_labels(run, "me") if name == "labels/me.jsonl" else read_fluency(run)


def test_a_run_folder_may_itself_be_a_link(tmp_path: Path):
    """Whoever names it knows where it leads: large runs are kept on another disk."""
    (tmp_path / "large").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "large")
    finished(tmp_path / "run")
    assert len(finished(tmp_path / "run", takes=2).rows()) == 1
    assert (tmp_path / "large" / "readings" / "scripted_judge.jsonl").is_file()


# --- archives ---------------------------------------------------------------------------------------------


def ours(name: str) -> bytes:
    """A log as unmask exports it, whose definition names this judge."""
    header, sample = (json.loads(part) for part in seeds.samples()[1].split(b"\0"))
    definition = header["eval"]["metadata"]["unmask"]
    definition["judges"] = {name: next(iter(definition["judges"].values()))}
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
