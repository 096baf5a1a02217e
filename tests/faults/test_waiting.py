"""Trouble that takes time: silence, long pauses, storms, slow names, a clock that jumps. A run says that it waits."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench import faulty
from bench.fault import Fault, Faults
from bench.planted import write_jsonl
from tests.faults.served import flags, serving, settled
from tests.faults.watched import finished, watched

SCENARIOS = 12
PAUSE = Fault(429, headers=("Retry-After: 500",))

SILENCES: dict[str, tuple[Faults, str]] = {
    "first": (lambda _: Fault(delay=faulty.FOREVER), "waiting for"),
    "middle": (lambda seen: Fault(delay=faulty.FOREVER) if seen.number > 30 else None, "waiting for"),
    "body": (lambda seen: faulty.WAITING["stalled_body"] if seen.number > 30 else None, "waiting"),
    "pause": (lambda seen: PAUSE if seen.number > 30 else None, "paused"),
}


def waited_and_stopped(folder: Path, faults: Faults, said: str) -> None:
    with serving(SCENARIOS, faults) as served:
        command = flags(served, write_jsonl(served.plants, folder / "p.jsonl"), folder / "run")
        with watched("run", *command) as child:
            assert f"/{SCENARIOS} scenarios" in child.until(said)
            child.send(signal.SIGINT)
            if said != "paused":  # nothing is in flight then, so that nothing is waited for
                child.until("in flight")
                child.send(signal.SIGINT)
            assert child.end() == 130
        served.endpoint.faults = None
        finished("run", *command)
        settled(served, folder / "run")


def test_a_run_that_waits_says_so_and_can_be_stopped(tmp_path: Path):
    """A line says what it waits for; Ctrl-C ends it, twice where answers are on their way; the same command continues
    and buys nothing twice."""
    with ThreadPoolExecutor(len(SILENCES)) as pool:  # all at the same time: what they do is wait
        runs = {
            name: pool.submit(waited_and_stopped, tmp_path / name, faults, said)
            for name, (faults, said) in SILENCES.items()
        }
    for name, found in runs.items():
        assert found.exception() is None, name


def test_storms_of_refusals_pass_and_leave_every_verdict_as_it_was(tmp_path: Path):
    """Seconds of 429, 503 and 529 for everybody, again and again, with and without Retry-After."""
    storm = [faulty.PASSING[name] for name in ("http_429", "http_503", "http_529", "http_429_retry_after_ms")]
    with serving(90, faulty.storms(*storm, at=(40, 200, 330), seconds=1.0), latency=0.02) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished("run", *command, "--max-connections", "20")
        assert child.process.returncode == 0
        assert served.stats()["faulted"] > 10
        settled(served, tmp_path / "run")


@pytest.mark.parametrize("seconds", [0.5, 3])
def test_slow_names_only_cost_time(tmp_path: Path, seconds: float):
    """The resolver takes its time; the run ends as planted."""
    with serving(SCENARIOS) as served:
        served.url = served.url.replace("127.0.0.1", "localhost")
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished("run", *command, strange=(f"slow-dns={seconds}",))
        assert child.process.returncode == 0
        settled(served, tmp_path / "run")


def test_a_name_server_that_never_answers_is_reported_and_the_process_ends(tmp_path: Path):
    """No endless wait for a thread that is stuck in the resolver, neither before the message nor after it."""
    with serving(SCENARIOS) as served:
        served.url = served.url.replace("127.0.0.1", "localhost")
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished("run", *command, strange=("slow-dns=300", "impatience=2"))
        assert child.process.returncode == 4
        assert "no connection within" in child.errors
        assert served.stats()["calls"] == {"subject": 0, "judge": 0}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_wall_clock_that_jumps_moves_no_wait_and_no_verdict(tmp_path: Path, seed: int):
    """Waits, retries and progress go by a clock that cannot be set; the date of Retry-After goes by the server's."""
    dates = ("Date: Tue, 03 Mar 2026 10:00:00 GMT", "Retry-After: Tue, 03 Mar 2026 10:00:01 GMT")
    faults = faulty.schedule(["http_500", "dropped", "http_429_retry_after_ms"], rate=0.2, seed=seed)
    with serving(SCENARIOS, lambda seen: Fault(429, headers=dates) if seen.number == 9 else faults(seen)) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished("run", *command, strange=(f"jumping-clock={seed}",))
        assert child.process.returncode == 0
        assert "-" not in child.err[-1].split("·")[-1]
        settled(served, tmp_path / "run")
