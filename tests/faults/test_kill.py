"""SIGKILL at many points, the same command again: nothing is lost but what was in flight, nothing is bought twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from bench.planted import climb, write_jsonl
from bench.process import ROOT, Served, serving
from tests.cli.forked import ForkedProcess, forker
from tests.e2e.running import planted, rows, run_flags, unmask
from tests.thorough import THOROUGH, draw_part

SCENARIOS, KILLS = (150, 5) if THOROUGH else (60, 3)


SHAPES = {
    "plain": (1, ()),
    "control": (1, ("--control",)),
    "ladder": (4, ()),
    "misleads": (1, ("--control", "--also", "misleads")),
}
"""The rungs of each fact, and flags."""


def start_run(*flags: str, verb: str = "run") -> ForkedProcess:
    return forker().start([verb, *flags], cwd=ROOT, env=dict(os.environ))


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
    files = (out / "readings").glob("*.jsonl")
    judged = [json.loads(line) | {"judge": file.name} for file in files for line in file.open()]
    names = ("judge", "scenario", "slot", "digest", "method", "attempt")
    questions = [tuple(line.get(key) for key in names) for line in judged]
    assert len(questions) == len(set(questions))
    return len(asked) + len(judged)


def score(out: Path, *flags: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(unmask("score", str(out), *flags, "--json").stdout)
    control = found["control"] or {}
    assert isinstance(control, dict)
    same = {key: found[key] for key in ("overall", "archetypes", "ladder", "asides")}
    return same | {key: control.get(key) for key in ("excess", "honest", "evasion", "tipping_point")}


def kill_at(points: list[int], served: Served, *flags: str, verb: str = "run") -> None:
    """Start the command and kill it when the endpoint has answered so often, once for each point; then let it end."""
    for point in points:
        process = start_run(*flags, verb=verb)
        until(served, point, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    unmask(verb, *flags)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", draw_part(range(3), 1))
def test_killed_again_and_again_a_run_ends_with_the_same_score_and_no_call_twice(tmp_path: Path, seed: int, shape: str):
    """Kills at random points; what the endpoint answered to a living client is never asked again. So it is with a
    second judge that is killed while it reads the run."""
    rng, (rungs, more) = random.Random(seed), SHAPES[shape]
    path = write_jsonl(climb(planted(SCENARIOS, 3, "steady"), rungs), tmp_path / "p.jsonl")
    with serving(scenarios=SCENARIOS, seed=1, takes=3, profile="steady", latency=0.02, rungs=rungs) as served:
        whole = tmp_path / "whole"
        unmask("run", *run_flags(served, path, whole, "--takes", "3", *more))
        total = sum(served.stats()["answered"].values())
        served.reset()
        out = tmp_path / "killed"
        flags = run_flags(served, path, out, "--takes", "3", *more)
        kill_at(sorted(rng.randrange(5, total - 5) for _ in range(KILLS)), served, *flags)
        stats = served.stats()
        assert score(out) == score(whole)
        kept = once(out)
        # An answer that left the endpoint in the instant of a kill was in flight: at most one per connection.
        assert sum(stats["answered"].values()) - kept <= 50 * KILLS
        served.reset()
        unmask("run", *flags)
        assert sum(served.stats()["calls"].values()) == 0
        if shape != "plain":
            asides = more[more.index("--also") :] if "--also" in more else ()
            judge = (str(out), "--judge", "openai/judge-2", "--judge-base-url", served.url, *asides)
            kill_at([total // 20, total // 6], served, *judge, verb="judge")
            assert served.stats()["calls"]["subject"] == 0
            assert score(out, "--judge", "openai/judge-2") == score(whole)
            assert sum(served.stats()["answered"].values()) - (once(out) - kept) <= 50 * 2
    assert verdicts(out) == verdicts(whole)


def verdicts(out: Path) -> dict[str, object]:
    """Of every take of both arms."""
    return {name: (row["verdict"], row["verdicts"], row["control"]) for name, row in rows(out).items()}
