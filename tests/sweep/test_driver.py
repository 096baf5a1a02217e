"""`unmask sweep` against planted endpoints: what it makes, continues, adds, lends, refuses and survives."""

from __future__ import annotations

import json
import signal
import socket
import time

import pytest

from bench.planted import expected, plant
from bench.process import serving
from tests.e2e.running import unmask
from tests.patience import PATIENCE
from tests.sweep.sweeping import (
    SCENARIOS,
    bought,
    folders,
    lines,
    result,
    row,
    start,
    sweep,
    write_grid,
)
from unmask.analysis.sides import short_names
from unmask.runs.run import Run

PLANTED = {item.scenario.id: expected(item)[0] for item in plant(SCENARIOS, seed=1, profile="steady")}
TWO_PROMPTS = 'developer_prompt = ["", "plain"]'


def verdicts(folder, judge=None):
    return {outcome.id: outcome.verdict for outcome in Run(folder).rows(judge=judge)}


def test_units_are_run_folders_that_score_as_planted_and_a_changed_grid_makes_what_is_new(tmp_path, endpoint):
    """The same command again asks nothing. Every command on runs takes the folder of the sweep."""
    rows = row("subject", "a", endpoint), row("judge", "judge", endpoint)
    grid = write_grid(tmp_path, *rows, matrix="seed = [1, 2]")
    done = sweep(grid)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 units are complete" in done.stdout
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED, PLANTED]
    assert {Run(folder).definition.subject.sampling.seed for folder in folders(grid)} == {1, 2}
    for verb, *flags in (("board", "--json"), ("compare", "--json"), ("report", "--out", "-")):
        shown = unmask(verb, str(tmp_path / "out"), *flags).stdout
        assert all(name in shown for name in short_names(folders(grid))), verb
    before = endpoint.stats()["calls"]
    assert sweep(grid).returncode == 0
    assert endpoint.stats()["calls"] == before
    first = folders(grid)[0]
    write_grid(tmp_path, *rows, matrix="seed = [2, 3]")
    states = {unit["title"]: unit["state"] for unit in json.loads(sweep(grid, "--status", "--json").stdout)["units"]}
    assert states == {"openai/a, planted, seed 2": "done", "openai/a, planted, seed 3": "missing"}
    assert json.loads(sweep(grid, "--plan", "--json").stdout)["changes"] == [
        "1 unit is new: openai/a, planted, seed 3",
        f"1 unit is no longer in the grid, with the folder kept: {first.name}",
    ]
    assert "1 unit is new: openai/a, planted, seed 3" in sweep(grid).stderr
    assert endpoint.stats()["calls"]["subject"] == 1.5 * before["subject"]
    assert len(folders(grid)) == 3


def test_a_second_judge_reads_the_same_replies(tmp_path, endpoint):
    rows = row("subject", "a", endpoint), row("judge", "judge", endpoint)
    grid = write_grid(tmp_path, *rows)
    result(grid)
    subject_calls = endpoint.stats()["calls"]["subject"]
    write_grid(tmp_path, *rows, row("judge", "judge-2", endpoint, 'name = "second"'))
    assert sweep(grid).returncode == 0
    assert endpoint.stats()["calls"]["subject"] == subject_calls
    (folder,) = folders(grid)
    assert verdicts(folder, "second") == verdicts(folder) == PLANTED
    states = json.loads(sweep(grid, "--status", "--json").stdout)["units"]
    assert [(state["judge"], state["state"]) for state in states] == [("openai_judge", "done"), ("second", "done")]


def test_probes_are_asked_once_and_lent_to_the_treatments_with_their_readings(tmp_path, endpoint):
    judges = row("judge", "judge", endpoint), row("judge", "judge-2", endpoint, 'name = "second"')
    grid = write_grid(tmp_path, row("subject", "a", endpoint), *judges, matrix=TWO_PROMPTS)
    assert sweep(grid).returncode == 0
    lender, borrower = sorted(folders(grid), key=lambda folder: "plain" in folder.name)
    assert Run(borrower).definition.beliefs_from.run == Run(lender).definition.id
    assert {line["slot"] for line in lines(borrower) if "source" not in line} == {"pressured"}
    for judge in ("openai_judge", "second"):
        of_probes = [line for line in lines(borrower, f"readings/{judge}.jsonl") if line["slot"] != "pressured"]
        assert of_probes
        assert all("source" in line for line in of_probes)


def test_a_treatment_that_came_first_lends_to_a_baseline_that_comes_later(tmp_path, endpoint):
    """A run that has asked its own probes keeps them: its folder is continued, not refused."""
    rows = row("subject", "a", endpoint), row("judge", "judge", endpoint)
    grid = write_grid(tmp_path, *rows, matrix='developer_prompt = "plain"')
    result(grid)
    write_grid(tmp_path, *rows, matrix=TWO_PROMPTS)
    assert sweep(grid).returncode == 0
    later, first = sorted(folders(grid), key=lambda folder: "plain" in folder.name)
    assert Run(later).definition.beliefs_from.run == Run(first).definition.id


def test_ctrl_c_keeps_what_was_answered_and_the_same_command_continues(tmp_path, slow_endpoint):
    endpoint = slow_endpoint
    grid = write_grid(tmp_path, row("subject", "a", endpoint), row("judge", "judge", endpoint), matrix="seed = [1, 2]")
    process = start(grid)
    deadline = time.monotonic() + PATIENCE
    while endpoint.stats()["answered"]["judge"] < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "run the same command again" in said
    assert result(grid)["units"][0]["done"] == SCENARIOS
    kept = sum(bought(folder) + bought(folder, "readings/openai_judge.jsonl") for folder in folders(grid))
    assert sum(endpoint.stats()["answered"].values()) == kept


def test_a_unit_that_fails_is_named_and_the_others_finish(tmp_path, endpoint):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        rows = row("subject", "a", endpoint), row("subject", "b", dead), row("judge", "judge", endpoint)
        done = sweep(write_grid(tmp_path, *rows, matrix=TWO_PROMPTS))
    assert done.returncode == 3
    assert "2 of 4 units are complete" in done.stdout
    assert "not complete: openai/b, planted" in done.stdout
    said = " ".join(done.stdout.split())
    assert "cannot connect" in said
    assert "which lends its probes, is not complete" in said


def test_one_purse_is_for_all_units(tmp_path, endpoint):
    price = 'price = "100/100"'
    rows = row("subject", "a", endpoint, price), row("judge", "judge", endpoint, price)
    grid = write_grid(tmp_path, *rows, matrix="seed = [1, 2]")
    full = result(grid)["spent_usd"]
    limited = write_grid(tmp_path, *rows, matrix="seed = [3, 4]", sweep=f"max_cost = {1.5 * full}")
    done = sweep(limited)
    assert done.returncode == 3
    assert "the sweep has cost" in done.stdout
    after = result(limited)
    assert after["spent_usd"] <= 1.5 * full
    assert sum(unit["done"] for unit in after["units"]) < 2 * SCENARIOS
    assert result(limited, "--max-cost", str(3 * full))["units"][0]["done"] == SCENARIOS


def test_a_price_that_nobody_knows_and_a_missing_key_are_said_before_anything_starts(tmp_path, endpoint, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rows = row("subject", "a", endpoint), row("subject", "gpt-4o", "https://api.openai.com/v1")
    done = sweep(write_grid(tmp_path, *rows, row("judge", "judge", endpoint), sweep="max_cost = 1"))
    assert done.returncode == 2
    assert "subject openai/a: --max-cost needs the price" in done.stderr
    assert "subject openai/gpt-4o: openai/gpt-4o needs a key" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_larger_limit_lets_the_units_grow(tmp_path, endpoint):
    rows = row("subject", "a", endpoint), row("judge", "judge", endpoint)
    result(write_grid(tmp_path, *rows, data="limit = 6"))
    grid = write_grid(tmp_path, *rows)
    (folder,) = folders(grid)
    before = bought(folder)
    assert result(grid)["units"][0]["done"] == SCENARIOS
    assert folders(grid) == [folder]
    assert sum(endpoint.stats()["answered"].values()) == bought(folder) + bought(folder, "readings/openai_judge.jsonl")
    assert 0 < before < bought(folder)


def test_the_plan_counts_what_is_left_and_starts_nothing(tmp_path, endpoint):
    rows = row("subject", "a", endpoint), row("judge", "judge", endpoint)
    grid = write_grid(tmp_path, *rows, matrix=TWO_PROMPTS)
    assert "\nall, likely " in sweep(grid, "--plan").stdout
    planned = json.loads(sweep(grid, "--plan", "--json").stdout)
    assert endpoint.stats()["calls"] == {"subject": 0, "judge": 0}
    assert not (tmp_path / "out").exists()
    lender, borrower = planned["units"]
    assert borrower["lender"] == lender["folder"]
    assert borrower["most"]["subject_calls"] <= 1.25 * SCENARIOS < lender["most"]["subject_calls"]
    made = result(grid)
    calls = sum(endpoint.stats()["calls"].values())
    bounds = [planned[end]["subject_calls"] + planned[end]["judge_calls"] for end in ("least", "most")]
    assert bounds[0] <= calls == sum(unit["calls"] for unit in made["units"]) <= bounds[1]
    left = json.loads(sweep(grid, "--plan", "--json").stdout)["most"]
    assert (left["subject_calls"], left["judge_calls"]) == (0, 0)


@pytest.mark.parametrize(("lines_of_subject", "tiers"), [((), {None}), (("batch = true",), {"batch"})])
def test_a_grid_takes_batches(tmp_path, lines_of_subject, tiers):
    """For its judges, or for subjects too: the same verdicts, and each unit has batches of its own."""
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, profile="steady", seed=1) as served:
        prices = 'price = "1/1"'
        grid = write_grid(
            tmp_path,
            row("subject", "a", served, prices, *lines_of_subject),
            row("judge", "judge", served, prices, "batch = true"),
            matrix="seed = [1, 2]",
        )
        done = sweep(grid)
    assert done.returncode == 0, done.stderr
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED, PLANTED]
    for folder in folders(grid):
        assert {line.get("tier") for line in lines(folder)} == tiers
        readings = [
            line for path in (folder / "readings").glob("*.jsonl") for line in lines(folder, f"readings/{path.name}")
        ]
        assert {line["tier"] for line in readings} == {"batch"}


def test_subjects_at_one_address_share_a_limiter_only_if_they_share_a_key(tmp_path, endpoint, monkeypatch):
    monkeypatch.setenv("KEY_OF_A", "secret-a")
    monkeypatch.setenv("KEY_OF_B", "secret-b")
    most = []
    for name, variables in (("shared", ("KEY_OF_A", "KEY_OF_A")), ("own", ("KEY_OF_A", "KEY_OF_B"))):
        (tmp_path / name).mkdir()
        subjects = [
            row("subject", model, endpoint, f'key = "{variable}"', "max_connections = 2")
            for model, variable in zip("ab", variables, strict=True)
        ]
        endpoint.reset()
        grid = write_grid(tmp_path / name, *subjects, '[[judge]]\nmodel = "verbatim"')
        assert sweep(grid, "--max-unjudged", "1").returncode == 0
        most.append(endpoint.stats()["max_in_flight"])
    assert most == [2, 4]
