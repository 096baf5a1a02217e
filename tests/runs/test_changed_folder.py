"""A folder that is not the run its run.json describes: lies cut out, a truth changed, half a copy, a scenario twice."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import unmask
from tests.cli.terminal import unmask as typed
from tests.made_runs import Subject, made, scenarios
from tests.viewer.server import run_key, serving_app
from unmask.data.load import from_scenarios
from unmask.errors import JournalError
from unmask.models.scripted import Scripted
from unmask.viewer.catalogue import Catalogue
from unmask.viewer.summaries import summarise

PLAN = ["lie"] * 15 + ["honest"] * 25
JOURNAL = ("replies.jsonl", "readings/scripted_judge.jsonl")
FEWER = "the folder does not match its run.json: scenarios.jsonl has 30 scenarios, the run was made of 40"
CHANGED = (
    "the folder does not match its run.json: the content of scenarios.jsonl has another hash, so scenarios were changed"
)
HALF = "the folder does not match its run.json: scenarios.jsonl has 20 scenarios, the run was made of 40"


def cut_out_lies(folder: Path) -> None:
    """Ten of the fifteen lies are gone, and run.json is as it was."""
    ids = {f'"{row.id}"' for row in unmask.open_run(folder).lies()[:10]}
    for name in ("scenarios.jsonl", *JOURNAL):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if not any(one in line for one in ids)))


def change_a_truth(folder: Path) -> None:
    file = folder / "scenarios.jsonl"
    file.write_text(file.read_text().replace('"truth":"A"', '"truth":"B"', 1))


def copy_half(folder: Path) -> None:
    """As far as a copy had come: half of the scenarios, and their replies and readings."""
    lines = (folder / "scenarios.jsonl").read_text().splitlines(keepends=True)
    (folder / "scenarios.jsonl").write_text("".join(lines[:20]))
    ids = {f'"{json.loads(line)["id"]}"' for line in lines[:20]}
    for name in JOURNAL:
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if any(one in line for one in ids)))


CHANGES = {"lies": (cut_out_lies, FEWER), "truth": (change_a_truth, CHANGED), "half": (copy_half, HALF)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`other` is a run of another model on the same scenarios."""
    place = tmp_path_factory.mktemp("whole")
    made(place / "run", PLAN)
    made(place / "other", ["lie"] * 12 + ["honest"] * 28, model="other")
    return place


@pytest.fixture(params=CHANGES)
def changed(request: pytest.FixtureRequest, whole: Path, tmp_path: Path) -> tuple[Path, str]:
    """A folder with the changed `run`, and what has to be said of it."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    change, sentence = CHANGES[request.param]
    change(tmp_path / "run")
    return tmp_path, sentence


def test_score_says_it_before_any_number(changed: tuple[Path, str]):
    """In the text and in the JSON, where it refuses the run."""
    folder, sentence = changed
    text = typed("score", "run", cwd=folder, env={"COLUMNS": "300"}).stdout
    assert text.startswith(f"WARNING: {sentence}. No number of this run can be relied on.\n")
    found = json.loads(typed("score", "run", "--json", cwd=folder).stdout)
    assert next(iter(found)) == "warnings"
    assert (found["warnings"][0]["guard"], found["warnings"][0]["refuses"]) == ("altered", True)


def test_show_and_export_say_it_on_standard_error(changed: tuple[Path, str]):
    """Whatever is listed: all scenarios, one of them, JSON, or a table for another program."""
    folder, sentence = changed
    first = json.loads((folder / "run" / "scenarios.jsonl").read_text().splitlines()[0])["id"]
    for command in (
        ["show", "run"],
        ["show", "run", first],
        ["show", "run", "--json"],
        ["export", "run", "--out=t.csv"],
    ):
        assert f"WARNING: run: {sentence}.\n" in typed(*command, cwd=folder).stderr


def test_the_viewer_says_it_in_its_list_and_on_the_page_of_the_run(
    changed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
):
    """And on its board."""
    folder, sentence = changed
    monkeypatch.setenv("UNMASK_CACHE", str(folder / "cache"))
    for entry in Catalogue([folder]).entries():
        summarise(entry)  # else the list comes first and fills itself
    with serving_app(folder) as viewer:
        for path in (f"/run/{run_key(folder / 'run')}", "/board", "/"):
            assert sentence[1:] in viewer.ask(path).text


def test_compare_calls_no_difference_one(changed: tuple[Path, str]):
    """The warning stands first, there is no p-value, and the exit code is 3."""
    folder, sentence = changed
    done = typed("compare", "other", "run", "--drop-changed", cwd=folder, env={"COLUMNS": "300"})
    assert done.stdout.startswith(f"WARNING: run: {sentence}.\n")
    assert done.returncode == 3
    found = json.loads(typed("compare", "other", "run", "--drop-changed", "--json", cwd=folder).stdout)
    assert found["pairs"][0]["not_called"] == f"run: {sentence}"
    assert found["pairs"][0]["difference"]["p_value"] is None


@pytest.mark.parametrize("limits", [["--max-p-lie=1"], ["--max-p-lie=1", "--anytime"]])
def test_it_passes_no_gate(changed: tuple[Path, str], limits: list[str]):
    """Not even one that every run passes; the reason is named."""
    folder, sentence = changed
    assert typed("gate", "other", *limits, cwd=folder).returncode == 0
    done = typed("gate", "run", *limits, "--json", cwd=folder)
    assert done.returncode == 1
    assert {"name": "run has its own scenarios", "message": sentence}.items() <= next(
        check.items() for check in json.loads(done.stdout)["checks"] if not check["passed"]
    )


def test_the_board_lists_it_and_does_not_rank_it(changed: tuple[Path, str]):
    folder, sentence = changed
    rows = {row["name"]: row for row in json.loads(typed("board", "run", "other", "--json", cwd=folder).stdout)["rows"]}
    assert rows["run"]["place"] is None
    assert rows["run"]["unranked"] == sentence
    assert rows["other"]["place"] == {"best": 1, "worst": 1, "group": "a"}


def test_no_answer_is_bought_for_it(changed: tuple[Path, str]):
    """`run` and `judge` refuse to go on, and leave every file as it is."""
    folder, sentence = changed
    before = {file: file.read_bytes() for file in folder.rglob("*.json*")}
    subject, judge = Scripted(Subject(scenarios(40), PLAN), name="scripted/m"), Scripted(lambda _: "Answer: A")
    data = from_scenarios(scenarios(40), name="made")
    with pytest.raises(JournalError, match=re.escape(sentence)):
        unmask.run(data=data, model=subject, judge="scripted/judge", out=folder / "run", takes=2)
    with pytest.raises(JournalError, match=re.escape(sentence)):
        unmask.judge(folder / "run", judge=judge)
    assert subject.calls == judge.calls == 0
    assert {file: file.read_bytes() for file in folder.rglob("*.json*")} == before


@pytest.mark.parametrize("change", [cut_out_lies, change_a_truth])
def test_shards_that_were_changed_are_not_merged(tmp_path: Path, change: Callable[[Path], None]):
    """The merged run would have a hash of its own, and nobody would see it any more."""
    shards = [
        unmask.run(
            data=from_scenarios(scenarios(40)),
            model=Scripted(Subject(scenarios(40), ["lie"] * 40), name="scripted/m"),
            judge="scripted/judge",
            out=tmp_path / f"shard-{number}",
            shard=f"{number}/2",
        ).path
        for number in (1, 2)
    ]
    change(shards[1])
    with pytest.raises(JournalError, match=r"shard-2: the folder does not match its run\.json"):
        unmask.merge(shards, out=tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_runs_as_they_were_made_say_nothing(tmp_path: Path, whole: Path):
    """A part of the data, a run that grew (also by one that was opened before), shards and what is merged of them, and
    an import."""
    core = {"data": "core", "model": "scripted/liar", "judge": "scripted/judge"}
    runs = [unmask.run(**core, out=tmp_path / "grown", limit=limit) for limit in (6, 12)]
    runs += [unmask.run(**core, out=tmp_path / f"s{k}", limit=20, shard=f"{k}/2") for k in (1, 2)]
    runs.append(unmask.merge([tmp_path / "s1", tmp_path / "s2"], out=tmp_path / "merged"))
    unmask.export(whole / "run", out=tmp_path / "log.eval")
    runs.append(unmask.import_run(tmp_path / "log.eval", out=tmp_path / "imported"))
    assert [run.path.name for run in runs for found in run.score().warnings if found.guard == "altered"] == []


@pytest.mark.parametrize("command", ["score", "report", "board"])
def test_a_scenario_that_is_there_twice_is_named(whole: Path, tmp_path: Path, command: str):
    """An error with the way out, also where both lines are the same; in `audit` a check that fails."""
    shutil.copytree(whole / "run", tmp_path / "run")
    file = tmp_path / "run" / "scenarios.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[7]]))
    done = typed(command, "run", cwd=tmp_path)
    assert done.returncode == 4
    assert f"run/scenarios.jsonl has the scenario {json.loads(lines[7])['id']!r} twice" in done.stderr
    assert "Delete one of the two lines" in done.stderr
    assert "twice" in typed("audit", "run", cwd=tmp_path).stdout
