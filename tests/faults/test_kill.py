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
from tests.thorough import THOROUGH, draw_part

SCENARIOS, KILLS = (150, 5) if THOROUGH else (60, 3)


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
    """Kills at random points; what the endpoint answered to a living client is never asked again."""
    rng = random.Random(seed)
    path = write_jsonl(planted(SCENARIOS, 3, "steady"), tmp_path / "p.jsonl")
    with serving(scenarios=SCENARIOS, seed=1, takes=3, profile="steady", latency=0.02) as served:
        whole = tmp_path / "whole"
        unmask("run", *run_flags(served, path, whole, "--takes", "3"))
        total = sum(served.stats()["answered"].values())
        served.reset()
        out = tmp_path / "killed"
        flags = run_flags(served, path, out, "--takes", "3")
        points = sorted(rng.randrange(5, total - 5) for _ in range(KILLS))
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
