"""SIGKILL at many points, the same command again: nothing is lost but what was in flight, nothing is bought twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from bench.planted import write_jsonl
from bench.process import ROOT, Served, serving
from tests.cli.forked import ForkedProcess, forker
from tests.e2e.running import planted, rows, run_flags, unmask
from tests.thorough import draw_part

SCENARIOS = 150


def start_run(*flags: str) -> ForkedProcess:
    return forker().start(["run", *flags], cwd=ROOT, env=dict(os.environ))


def until(served: Served, calls: int, process: ForkedProcess) -> None:
    """Wait until the endpoint has seen that many calls, or the process has ended."""
    deadline = time.monotonic() + 60
    while sum(served.stats()["answered"].values()) < calls and process.poll() is None:
        assert time.monotonic() < deadline, "the run made no progress"
        time.sleep(0.005)


def once(out: Path) -> int:
    """The journal holds every take and every judge question exactly once. Returns its number of lines."""
    asked = [json.loads(line) for line in (out / "replies.jsonl").open()]
    takes = [(line["scenario"], line["slot"], take) for line in asked for take in line["takes"]]
    assert len(takes) == len(set(takes))
    judged = [json.loads(line) for file in (out / "readings").glob("*.jsonl") for line in file.open()]
    questions = [tuple(line.get(key) for key in ("scenario", "slot", "digest", "method", "attempt")) for line in judged]
    assert len(questions) == len(set(questions))
    return len(asked) + len(judged)


def score(out: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(unmask("score", str(out), "--json").stdout)
    return {key: found[key] for key in ("overall", "archetypes", "archetype_mean")}


@pytest.mark.parametrize("seed", draw_part(range(3), 1))
def test_killed_again_and_again_a_run_ends_with_the_same_score_and_no_call_twice(tmp_path: Path, seed: int):
    """Five kills at random points; what the endpoint answered to a living client is never asked again."""
    rng = random.Random(seed)
    path = write_jsonl(planted(SCENARIOS, 3, "steady"), tmp_path / "p.jsonl")
    with serving(scenarios=SCENARIOS, seed=1, takes=3, profile="steady", latency=0.02) as served:
        whole = tmp_path / "whole"
        unmask("run", *run_flags(served, path, whole, "--takes", "3"))
        total = sum(served.stats()["answered"].values())
        served.reset()
        out = tmp_path / "killed"
        flags = run_flags(served, path, out, "--takes", "3")
        points = sorted(rng.randrange(5, total - 5) for _ in range(5))
        for point in points:
            process = start_run(*flags)
            until(served, point, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
        unmask("run", *flags)
        stats = served.stats()
        assert score(out) == score(whole)
        kept = once(out)
        # An answer that left the endpoint in the instant of a kill was in flight: at most one per connection.
        assert sum(stats["answered"].values()) - kept <= 50 * len(points)
        served.reset()
        unmask("run", *flags)
        assert sum(served.stats()["calls"].values()) == 0
    assert rows(out).keys() == rows(whole).keys()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_cleanly_says_how_to_continue_and_exits_130(tmp_path: Path, number: signal.Signals):
    """No traceback; what was in flight is waited for and kept; the same command continues."""
    path = write_jsonl(planted(SCENARIOS, 1), tmp_path / "p.jsonl")
    with serving(scenarios=SCENARIOS, seed=1, latency=0.2) as served:
        flags = run_flags(served, path, tmp_path / "out")
        process = start_run(*flags)
        until(served, 100, process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "same command again" in errors
        assert "Traceback" not in errors
        stats = served.stats()
        assert stats["abandoned"] == 0
        unmask("run", *flags)
        assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}


def test_a_second_process_on_one_run_is_refused(tmp_path: Path):
    """The lock names the process that holds the folder; the first run is not disturbed."""
    path = write_jsonl(planted(SCENARIOS, 1), tmp_path / "p.jsonl")
    with serving(scenarios=SCENARIOS, seed=1, latency=0.3) as served:
        flags = run_flags(served, path, tmp_path / "out")
        process = start_run(*flags)
        until(served, 20, process)
        second = unmask("run", *flags, check=False)
        assert second.returncode == 4
        assert f"in use by process {process.pid}" in second.stderr
        assert process.wait(timeout=120) == 0
