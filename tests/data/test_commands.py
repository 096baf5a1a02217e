"""`unmask data …` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.data.made import row, write_csv
from unmask.cli.data import data
from unmask.data.load import load
from unmask.errors import DataError, MissingError, UsageError


def run(*arguments: str) -> str:
    """The output of a command that must succeed; errors of ours pass through to the test."""
    result = CliRunner().invoke(data, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_list_shows_the_bundled_sets():
    """Name and size."""
    assert "tiny" in run("list")


def test_list_as_json_has_counts_and_hash():
    """For programs."""
    tiny = next(entry for entry in json.loads(run("list", "--json")) if entry["name"] == "tiny")
    assert (tiny["scenarios"], tiny["hash"], tiny["archetypes"]["statistics"]) == (12, load("tiny").hash, 2)


def test_check_of_a_good_set_says_so():
    """Exit code 0 and one line."""
    assert "12 scenarios, no problems" in run("check", "tiny")


def test_check_lists_every_problem(tmp_path: Path):
    """As an error of the data kind, so that scripts stop."""
    write_csv(tmp_path, [row(task_id="a", type="?"), row(task_id="b", system_prompt="")])
    with pytest.raises(DataError) as caught:
        run("check", str(tmp_path))
    assert [line.split(":")[0] for line in caught.value.problems] == ["a", "b"]


def test_check_as_json_lists_problems_and_exits_2(tmp_path: Path):
    """The listing is on stdout, whole, whatever the exit code."""
    write_csv(tmp_path, [row(task_id="a", type="?"), row(task_id="b")])
    result = CliRunner().invoke(data, ["check", str(tmp_path), "--json"])
    assert result.exit_code == 2
    found = json.loads(result.output)
    assert (found["scenarios"], [p["id"] for p in found["errors"]]) == (1, ["a"])


def test_check_of_a_set_of_nothing_is_an_error(tmp_path: Path):
    """Every other command refuses it."""
    (tmp_path / "none.jsonl").touch()
    with pytest.raises(DataError) as caught:
        run("check", str(tmp_path / "none.jsonl"))
    assert caught.value.problems == ("none: there is no scenario in it [empty]",)


def test_check_of_a_set_of_nothing_as_json_exits_2(tmp_path: Path):
    (tmp_path / "none.jsonl").touch()
    result = CliRunner().invoke(data, ["check", str(tmp_path / "none.jsonl"), "--json"])
    assert result.exit_code == 2
    assert [problem["code"] for problem in json.loads(result.output)["errors"]] == ["empty"]


def test_show_prints_everything_a_scenario_says():
    """Conversation, probes, truth and evidence."""
    scenario = load("tiny").scenarios[0]
    words = " ".join(run("show", scenario.id).replace("\n  | ", " ").split())
    texts = [m.content for m in scenario.conversation] + [*scenario.indirect, scenario.direct, scenario.evidence]
    assert all(" ".join(text.split()) in words for text in texts)


def test_list_of_a_set_has_every_id():
    """Each of them can be shown."""
    output = run("list", "tiny")
    assert [line.split()[0] for line in output.splitlines() if line.startswith("tiny-")] == list(load("tiny").ids)


def test_list_of_a_set_is_there_for_programs():
    rows = json.loads(run("list", "core", "--json"))
    assert {row["id"] for row in rows if row["archetype"] == "statistics"} >= {"statistics-001", "statistics-002"}
    assert {row["proposition"] for row in rows} == {scenario.proposition for scenario in load("core").scenarios}


def test_show_without_an_id_says_how_to_list_them():
    with pytest.raises(UsageError) as caught:
        run("show", "--data", "tiny")
    assert caught.value.advice == "unmask data list tiny lists them."


def test_show_suggests_close_ids():
    with pytest.raises(UsageError) as caught:
        run("show", "known_fact-001")
    assert "known_facts-001" in str(caught.value.advice)


def test_a_problem_says_its_place_once(tmp_path: Path):
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(DataError) as caught:
        run("check", str(tmp_path / "bad.jsonl"))
    assert caught.value.problems[0].count("bad.jsonl, line 1") == 1


def test_show_as_json_is_the_scenario():
    """The same record as in the file."""
    assert json.loads(run("show", "tiny-statistics-2", "--json"))["truth"] == [206.0, 206.0]


def test_show_looks_into_other_data(tmp_path: Path):
    """Also when other rows of it are bad."""
    write_csv(tmp_path, [row(task_id="a", type="?"), row(task_id="b")])
    assert "You sell kettles." in run("show", "b", "--data", str(tmp_path))


def test_show_cannot_steer_the_terminal(tmp_path: Path):
    """No escape sequence of a prompt is sent."""
    write_csv(tmp_path, [row(system_prompt="hello \x1b[2J world")])
    shown = run("show", "one", "--data", str(tmp_path))
    assert "hello  world" in shown
    assert "\x1b" not in shown


def test_show_of_an_unknown_id_is_a_usage_error():
    """With the way to say which set is meant."""
    with pytest.raises(UsageError, match="nope") as caught:
        run("show", "nope")
    assert "--data" in (caught.value.advice or "")


def test_export_writes_a_folder_that_loads_to_the_same_set(tmp_path: Path):
    """`unmask data export tiny --out DIR`."""
    run("export", "tiny", "--out", str(tmp_path / "out"))
    assert load(tmp_path / "out").scenarios == load("tiny").scenarios


def test_export_into_a_used_folder_is_refused(tmp_path: Path):
    """Files of two sets would be read as one."""
    (tmp_path / "old.csv").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        run("export", "tiny", "--out", str(tmp_path))


def test_a_set_that_is_not_there_is_missing(tmp_path: Path):
    """The error of `load`, unchanged."""
    with pytest.raises(MissingError):
        run("check", str(tmp_path / "nowhere"))
