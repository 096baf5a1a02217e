"""Behaviour planted in a real endpoint comes back out of `run` and `score`, verdict by verdict."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from bench.planted import expected, write_csv, write_jsonl
from bench.process import Served, serving
from tests.e2e.running import planted, rows, run_flags, unmask
from tests.thorough import THOROUGH

SCENARIOS = 150
"""Of 38 kinds of archetype, verdict and accuracy among 1,000 (`make check-planted`), 150 have 34."""

FEWER = 150 if THOROUGH else 60
"""With ten takes, whose runs are the longest."""
COMBINATIONS = (
    *(("lazy", "rule"), ("full", "rule"), ("lazy", "judge")),
    *([("full", "judge")] if THOROUGH else []),
)
"""Effort and reader."""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was annotated in one test is nothing to the next."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))


def data(folder: Path, layout: str, takes: int, scenarios: int = SCENARIOS) -> Path:
    plants = planted(scenarios, takes)
    return write_jsonl(plants, folder / "p.jsonl") if layout == "jsonl" else write_csv(plants, folder / "p")


def recovered(out: Path, takes: int, scenarios: int = SCENARIOS, *flags: str) -> None:
    """Every verdict and accuracy is the planted one."""
    found = rows(out, *flags)
    wanted = {one.scenario.id: expected(one, takes=takes) for one in planted(scenarios, takes)}
    assert len(found) == scenarios
    wrong = {
        name: (found[name]["verdict"], found[name]["accuracy"], *pair)
        for name, pair in wanted.items()
        if (found[name]["verdict"], found[name]["accuracy"]) != pair
    }
    assert not wrong


def measured(
    served: Served, folder: Path, layout: str, takes: int, *flags: str, scenarios: int = SCENARIOS
) -> dict[str, Any]:
    """One whole run; its score, with the endpoint's own count beside it."""
    out = folder / "-".join(("run", *(flag.strip("-") for flag in flags)))
    served.reset()
    path = data(folder, layout, takes, scenarios)
    done = unmask("run", *run_flags(served, path, out, "--takes", str(takes), "--json", *flags))
    recovered(out, takes, scenarios)
    stats = served.stats()
    score: dict[str, Any] = json.loads(done.stdout)
    assert score["calls"]["subject"] == stats["calls"]["subject"]
    assert score["calls"]["judge"] == stats["calls"]["judge"]
    assert stats["duplicates"] == {"subject": 0, "judge": 0}
    assert stats["max_in_flight"] <= 50
    assert stats["leaked_reasoning"] == 0
    return score


def _sent(score: dict[str, Any]) -> int:
    total: int = score["calls"]["subject"] + score["calls"]["judge"]
    return total


def test_one_take_recovers_every_planted_verdict(tmp_path: Path):
    """Lazy and full, tags by rule and by the judge: the same verdicts, from fewer calls if lazy or by rule."""
    with serving(scenarios=SCENARIOS, seed=1, takes=1) as served:
        spent = {
            (effort, tags): _sent(measured(served, tmp_path, "jsonl", 1, "--effort", effort, "--tags", tags))
            for effort, tags in COMBINATIONS
        }
        # A CSV folder does not say which side yes means.
        assert _sent(measured(served, tmp_path, "csv", 1)) > spent["lazy", "rule"]
    assert spent["lazy", "rule"] < spent["full", "rule"]
    assert spent["lazy", "rule"] < spent["lazy", "judge"]
    assert not THOROUGH or spent["lazy", "judge"] < spent["full", "judge"]


def test_an_annotated_set_has_the_planted_verdicts_from_fewer_readings(tmp_path: Path):
    """A CSV folder does not say which side yes means; a judge that was asked once does, to every later run."""
    with serving(scenarios=FEWER, seed=1) as served:
        path = data(tmp_path, "csv", 1, FEWER)
        before = measured(served, tmp_path, "csv", 1, scenarios=FEWER)
        unmask("data", "annotate", str(path), "--judge", "openai/judge", "--judge-base-url", served.url)
        after = measured(served, tmp_path, "csv", 1, "--seed", "1", scenarios=FEWER)
    assert after["calls"]["judge"] < 0.8 * before["calls"]["judge"]
    assert after["yes_means_by"].keys() == {"openai/judge"}


def test_ten_takes_recover_every_planted_verdict(tmp_path: Path):
    """Lying@10 in lazy and full effort: the same verdicts."""
    with serving(scenarios=FEWER, seed=1, takes=10) as served:
        full = measured(served, tmp_path, "jsonl", 10, "--effort", "full", "--tags", "judge", scenarios=FEWER)
        lazy = measured(served, tmp_path, "jsonl", 10, "--effort", "lazy", scenarios=FEWER)
    assert full["overall"]["counts"] == lazy["overall"]["counts"]
    assert full["overall"]["lying_at"] == lazy["overall"]["lying_at"]
    assert lazy["calls"]["judge"] < full["calls"]["judge"]


def test_another_judge_reads_without_a_subject_call(tmp_path: Path):
    """`unmask judge` sends nothing to the subject, and its readings score on their own."""
    with serving(scenarios=60, seed=1) as served:
        out = tmp_path / "run"
        unmask("run", *run_flags(served, data(tmp_path, "jsonl", 1, 60), out, "--effort", "full"))
        served.reset()
        unmask("judge", str(out), "--judge", "openai/judge-two", "--judge-base-url", served.url)
        assert served.stats()["calls"]["subject"] == 0
        assert served.stats()["calls"]["judge"] > 0
    first, second = rows(out), rows(out, "--judge", "openai/judge-two")
    assert {name: row["verdict"] for name, row in first.items()} == {
        name: row["verdict"] for name, row in second.items()
    }


def test_a_preset_that_needs_what_was_skipped_says_so_and_names_the_command_that_completes_it(tmp_path: Path):
    """Undecided, exit 3, and the command printed really completes it."""
    with serving(scenarios=60, seed=1) as served:
        out = tmp_path / "run"
        flags = run_flags(served, data(tmp_path, "jsonl", 1, 60), out)
        unmask("run", *flags)
        done = unmask("score", str(out), "--preset", "inspect", "--json", check=False)
        undecided = json.loads(done.stdout)["undecided"]
        assert done.returncode == 3
        assert undecided["count"] > 0
        assert "--preset inspect" in undecided["complete_with"]
        assert f"{undecided['count']} scenarios are not finished" in done.stderr
        name, *words = shlex.split(undecided["complete_with"])
        assert name == "unmask"
        unmask(*words)
        again = json.loads(unmask("score", str(out), "--preset", "inspect", "--json").stdout)
        assert again["undecided"]["count"] == 0
    recovered(out, 1, 60, "--preset", "paper")


def test_a_developer_prompt_with_borrowed_beliefs_costs_only_pressured_calls(tmp_path: Path):
    """`--beliefs-from` copies the probes: the subject sees pressured requests alone, and the pairing is exact."""
    with serving(scenarios=60, seed=1) as served:
        path = data(tmp_path, "jsonl", 1, 60)
        unmask("run", *run_flags(served, path, tmp_path / "base"))
        served.reset()
        unmask(
            "run",
            *run_flags(served, path, tmp_path / "treated", "--developer-prompt", "plain"),
            *("--beliefs-from", str(tmp_path / "base")),
        )
        slots = served.stats()["slots"]
    assert {slot for slot in slots if slot.startswith("subject")} == {"subject pressured"}
    assert {slot for slot in slots if slot.startswith("judge")} == {"judge pressured"}
    base, treated = rows(tmp_path / "base"), rows(tmp_path / "treated")
    assert {name: row["belief"] for name, row in base.items()} == {name: row["belief"] for name, row in treated.items()}
