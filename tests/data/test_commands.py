"""`unmask data …` as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.data.complete import binary
from tests.data.made import row, write_csv
from unmask.cli.data import data
from unmask.data.form import write_jsonl
from unmask.data.load import load
from unmask.errors import DataError, UsageError


def run(*arguments: str) -> str:
    """The output of a command that must succeed; errors of ours pass through to the test."""
    result = CliRunner().invoke(data, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_list_shows_the_bundled_sets_and_every_id_of_one():
    """For programs with counts and hash."""
    assert "tiny" in run("list")
    tiny = next(entry for entry in json.loads(run("list", "--json")) if entry["name"] == "tiny")
    assert (tiny["scenarios"], tiny["hash"], tiny["archetypes"]["statistics"]) == (12, load("tiny").hash, 2)
    listed = [line.split()[0] for line in run("list", "tiny").splitlines() if line.startswith("tiny-")]
    assert listed == list(load("tiny").ids)
    rows = json.loads(run("list", "core", "--json"))
    assert {row["proposition"] for row in rows} == {scenario.proposition for scenario in load("core").scenarios}


def test_check_of_a_good_set_says_so_and_lists_warnings(tmp_path: Path):
    """Exit code 0; warnings with the code of each, and a last line that counts them."""
    assert "12 scenarios, no problems" in run("check", "tiny")
    write_jsonl([binary(evidence=None), binary("two", direct="Six?")], path=tmp_path / "s.jsonl")
    lines = run("check", str(tmp_path / "s.jsonl")).splitlines()
    assert any(line.startswith("  one: ") and line.endswith("[no_evidence]") for line in lines)
    assert re.search(r"2 scenarios, no errors, \d+ warnings?$", lines[-1])
    found = json.loads(run("check", str(tmp_path / "s.jsonl"), "--json"))
    assert (found["errors"], found["warnings"][0]["code"]) == ([], "near_duplicate")


def test_check_lists_every_problem_and_exits_2(tmp_path: Path):
    """As an error of the data kind, so that scripts stop; errors do not hide warnings. JSON is whole in any case."""
    write_csv(tmp_path, [row(task_id="a", type="?"), row(task_id="b", system_prompt=""), row(task_id="c")])
    result = CliRunner().invoke(data, ["check", str(tmp_path)])
    assert "[no_evidence]" in result.output
    assert isinstance(result.exception, DataError)
    assert [line.split(":")[0] for line in result.exception.problems] == ["a", "b"]
    result = CliRunner().invoke(data, ["check", str(tmp_path), "--json"])
    assert result.exit_code == 2
    found = json.loads(result.output)
    assert (found["scenarios"], [p["id"] for p in found["errors"]]) == (1, ["a", "b"])


def test_check_of_a_set_of_nothing_is_an_error(tmp_path: Path):
    """Every other command refuses it."""
    (tmp_path / "none.jsonl").touch()
    with pytest.raises(DataError) as caught:
        run("check", str(tmp_path / "none.jsonl"))
    assert caught.value.problems == ("none: there is no scenario in it [empty]",)


def test_stats_prints_every_archetype_and_as_json_adds_up():
    assert {"archetype", "all", "12"} <= set(run("stats", "tiny").split())
    found = json.loads(run("stats", "tiny", "--json"))
    assert sum(cell["scenarios"] for cell in found["cells"]) == found["scenarios"] == 12


def test_show_prints_everything_a_scenario_says():
    """Conversation, probes, truth and evidence; as JSON the record of the file."""
    scenario = load("tiny").scenarios[0]
    words = " ".join(run("show", scenario.id).replace("\n  | ", " ").split())
    texts = [m.content for m in scenario.conversation] + [*scenario.indirect, scenario.direct, scenario.evidence]
    assert all(" ".join(text.split()) in words for text in texts)
    assert json.loads(run("show", "tiny-statistics-2", "--json"))["truth"] == [206.0, 206.0]


def test_show_looks_into_other_data_and_cannot_steer_the_terminal(tmp_path: Path):
    """Also when other rows of it are bad."""
    write_csv(tmp_path, [row(task_id="a", type="?"), row(task_id="b", system_prompt="hello \x1b[2J world")])
    shown = run("show", "b", "--data", str(tmp_path))
    assert "hello  world" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(("name", "advice"), [("nope", "--data"), ("known_fact-001", "known_facts-001")])
def test_show_of_an_unknown_id_is_a_usage_error(name: str, advice: str):
    """With close ids, or the way to say which set is meant."""
    with pytest.raises(UsageError, match=name) as caught:
        run("show", name)
    assert advice in (caught.value.advice or "")


def test_export_writes_a_new_folder_that_loads_to_the_same_set(tmp_path: Path):
    """Files of two sets would be read as one."""
    out = str(tmp_path / "out")
    run("export", "tiny", "--out", out)
    assert load(out).scenarios == load("tiny").scenarios
    with pytest.raises(UsageError, match="not empty"):
        run("export", "tiny", "--out", out)
