"""Many planted subjects behind a few servers, through one driver.

    python -m bench.sweep                                   # 30 subjects x 1,000 scenarios x 10 takes behind 8 servers
    python -m bench.sweep --scenarios 50 --latency 0.2      # a quick look
    python -m bench.sweep --die-every 20                    # servers that the driver starts; one of them is killed

The ideal time is that of the endpoint with the most work: its calls times the latency, over its connections. Wall, CPU
a call and peak memory are those of `unmask sweep` as a process of its own. Leaves with exit code 1 where a goal of the
project is missed, or a verdict is not as planted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.planted import expected, plant, write_jsonl
from bench.process import Served, serving, timed
from unmask.runs.folder import Folder
from unmask.runs.run import Run

PID = re.compile(rb'"pid": ?(\d+)')

WALL_GOAL, DYING_GOAL, MEMORY_GOAL = 1.10, 1.5, 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag, default in (("--subjects", 30), ("--scenarios", 1000), ("--takes", 10), ("--servers", 8)):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--connections", type=int, default=50, help="to each server")
    parser.add_argument("--judge-connections", type=int, default=400)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--die-every", type=float, help="seconds between two kills of a server that the driver started")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    figures = measure_dying(given) if given.die_every else measure(given)
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    return int(not figures["met"])


def measure(given: argparse.Namespace) -> dict[str, Any]:
    plants = plant(given.scenarios, seed=1, takes=given.takes, profile="steady")
    options = {"scenarios": given.scenarios, "takes": given.takes, "latency": given.latency, "profile": "steady"}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        write_jsonl(plants, folder / "planted.jsonl")
        subjects = [stack.enter_context(serving(**options)) for _ in range(given.servers)]
        judge = stack.enter_context(serving(**options))
        grid = write_grid(folder, subjects, judge, given)
        command = [sys.executable, "-m", "unmask.cli.main", "sweep", str(grid), "--out", str(folder / "out"), "--quiet"]
        done = timed([*command, "--max-unjudged", "1"], out=folder / "said")
        calls = {
            "judge": sum(judge.stats()["calls"].values()),
            **{f"server {number}": sum(served.stats()["calls"].values()) for number, served in enumerate(subjects)},
        }
        wrong = count_wrong(folder / "out", {item.scenario.id: expected(item, takes=given.takes)[0] for item in plants})
    connections = {name: given.judge_connections if name == "judge" else given.connections for name in calls}
    ideal = max(count * given.latency / connections[name] for name, count in calls.items())
    total = sum(calls.values())
    return {
        "subjects": given.subjects,
        "scenarios": given.scenarios,
        "takes": given.takes,
        "servers": given.servers,
        "latency": given.latency,
        "calls": total,
        "ideal_s": round(ideal, 1),
        "wall_s": round(done.wall, 1),
        "ratio": round(done.wall / ideal, 3),
        "cpu_ms_a_call": round(1000 * done.cpu / total, 3),
        "peak_mb": round(done.peak_mb),
        "exit_code": done.code,
        "wrong_verdicts": wrong,
        "said": done.said[-500:],
        "met": done.wall <= WALL_GOAL * ideal and done.peak_mb <= MEMORY_GOAL and not wrong and done.code == 0,
    }


def measure_dying(given: argparse.Namespace) -> dict[str, Any]:
    """Every subject has a server of its own, eight at a time, and one of them is killed every so many seconds."""
    plants = plant(given.scenarios, seed=1, takes=given.takes, profile="steady")
    options = {"scenarios": given.scenarios, "takes": given.takes, "latency": given.latency, "profile": "steady"}
    with tempfile.TemporaryDirectory() as name, serving(**options) as judge:
        folder = Path(name)
        write_jsonl(plants, folder / "planted.jsonl")
        grid = write_grid(folder, [], judge, given)
        command = [sys.executable, "-m", "unmask.cli.main", "sweep", str(grid), "--out", str(folder / "out"), "--quiet"]
        ended, kills = threading.Event(), list[int]()
        killer = threading.Thread(target=kill_servers, args=(folder / "out" / "servers", given.die_every, ended, kills))
        killer.start()
        try:
            done = timed([*command, "--max-unjudged", "1"], out=folder / "said")
        finally:
            ended.set()
            killer.join()
        asked = [len(list(Folder(path).asked())) for path in sorted((folder / "out" / "runs").iterdir())]
        judged = sum(judge.stats()["calls"].values())
        wrong = count_wrong(folder / "out", {item.scenario.id: expected(item, takes=given.takes)[0] for item in plants})
    rounds = -(-given.subjects // given.servers)
    ideal = max(
        rounds * max(asked) * given.latency / given.connections, judged * given.latency / given.judge_connections
    )
    return {
        "subjects": given.subjects,
        "scenarios": given.scenarios,
        "takes": given.takes,
        "servers": given.servers,
        "latency": given.latency,
        "die_every_s": given.die_every,
        "killed": len(kills),
        "calls": sum(asked) + judged,
        "ideal_s": round(ideal, 1),
        "wall_s": round(done.wall, 1),
        "ratio": round(done.wall / ideal, 3),
        "exit_code": done.code,
        "wrong_verdicts": wrong,
        "said": done.said[-500:],
        "met": done.wall <= DYING_GOAL * ideal and not wrong and done.code == 0,
    }


def kill_servers(logs: Path, every: float, ended: threading.Event, kills: list[int]) -> None:
    """Kill one of the servers whose logs are here, again and again. Each has written its process id into its log."""
    rng = random.Random(1)
    while not ended.wait(every):
        pids = {int(pid) for log in logs.rglob("*") if log.is_file() for pid in PID.findall(log.read_bytes())}
        running = sorted(pid for pid in pids - set(kills) if b"bench.endpoint" in _read_command(pid))
        if running:
            kills.append(rng.choice(running))
            os.kill(kills[-1], signal.SIGKILL)


def _read_command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def write_grid(folder: Path, subjects: list[Served], judge: Served, given: argparse.Namespace) -> Path:
    """Subjects at these addresses, or, without any, on servers to be placed."""
    command = [sys.executable, "-m", "bench.endpoint", "--host", "{host}", "--port", "{port}", "--profile", "steady"]
    command += [f"--{name}={getattr(given, name)}" for name in ("scenarios", "takes", "latency")]
    rows = [
        f'[[subject]]\nmodel = "openai/mock-{number}"\nbase_url = "{subjects[number % len(subjects)].url}"\n'
        if subjects
        else f'[[subject]]\nname = "mock-{number}"\nserve = {{ command = {json.dumps(command)}, gpus = 1 }}\n'
        for number in range(given.subjects)
    ]
    path = folder / "grid.toml"
    local = "" if subjects else f"[local]\ngpus = {list(range(given.servers))}\n"
    path.write_text(
        f"{local}[options]\nmax_connections = {given.connections}\n"
        f'[[data]]\nsource = "planted.jsonl"\n{"".join(rows)}'
        f'[[judge]]\nmodel = "openai/judge"\nbase_url = "{judge.url}"\nmax_connections = {given.judge_connections}\n'
        f"[matrix]\ntakes = {given.takes}\n"
    )
    return path


def count_wrong(out: Path, planted: dict[str, Any]) -> int:
    """Scenarios of all units whose verdict is not the planted one."""
    return sum(
        outcome.verdict is not planted[outcome.id]
        for folder in (out / "runs").iterdir()
        for outcome in Run(folder).rows()
    )


if __name__ == "__main__":
    sys.exit(main())
