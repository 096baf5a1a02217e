"""Many planted subjects behind a few servers, through one driver.

    python -m bench.sweep                                   # 30 subjects x 1,000 scenarios x 10 takes behind 8 servers
    python -m bench.sweep --scenarios 50 --latency 0.2      # a quick look

The ideal time is that of the endpoint with the most work: its calls times the latency, over its connections. Wall, CPU
a call and peak memory are those of `unmask sweep` as a process of its own. Leaves with exit code 1 where a goal of the
project is missed, or a verdict is not as planted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.planted import expected, plant, write_jsonl
from bench.process import Served, serving, timed
from unmask.runs.run import Run

WALL_GOAL, MEMORY_GOAL = 1.10, 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag, default in (("--subjects", 30), ("--scenarios", 1000), ("--takes", 10), ("--servers", 8)):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--connections", type=int, default=50, help="to each server")
    parser.add_argument("--judge-connections", type=int, default=400)
    parser.add_argument("--latency", type=float, default=1.0)
    given = parser.parse_args()
    figures = measure(given)
    print(json.dumps(figures, indent=2))
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


def write_grid(folder: Path, subjects: list[Served], judge: Served, given: argparse.Namespace) -> Path:
    rows = [
        f'[[subject]]\nmodel = "openai/mock-{number}"\nbase_url = "{subjects[number % len(subjects)].url}"\n'
        for number in range(given.subjects)
    ]
    path = folder / "grid.toml"
    path.write_text(
        f"[options]\nmax_connections = {given.connections}\n"
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
