"""What `unmask run` costs besides waiting: wall time against the ideal, client CPU per call, peak memory.

    python -m bench.overhead [--scenarios 1000] [--latency 0.5] [--connections 200] [--repeat 5] [--check]

The mock endpoint has the second core, the client the first. The ideal wall time is calls × latency / connections: all
connections busy from the first moment to the last, and no time spent on anything but waiting. CPU and memory are those
of the whole client process, start-up and scoring included; the package is compiled before, as an installed one is. It
is measured five times, and the quickest counts: whatever else the machine and its host do only adds. All are shown.
"""

from __future__ import annotations

import argparse
import compileall
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import unmask
from bench.planted import expected, plant, write_jsonl
from bench.process import ROOT, Served, cores, serving, timed

LIMITS = {"ratio": 1.15, "cpu_ms_per_call": 0.8, "peak_mb": 100.0}
"""What issue and docs promise; `--check` exits 1 above any of them."""


class Overhead(NamedTuple):
    """One measurement. Times in seconds unless the name says otherwise."""

    calls: int
    duplicates: int
    wall: float
    ideal: float
    ratio: float
    cpu_ms_per_call: float
    peak_mb: float
    as_planted: bool
    """Whether every verdict is."""


def measure(*, scenarios: int, latency: float, connections: int, flags: tuple[str, ...] = ()) -> Overhead:
    """Runs the whole benchmark once against a fresh endpoint and a fresh run folder."""
    core, other = cores()
    pinned: dict[str, Any] = {} if other is None else {"cpu": other}
    plants = plant(scenarios)
    with tempfile.TemporaryDirectory() as place, serving(scenarios=scenarios, latency=latency, **pinned) as endpoint:
        data, out = write_jsonl(plants, Path(place, "planted.jsonl")), Path(place, "run")
        client = command(data, out, endpoint, ["--max-connections", str(connections), *flags])
        done = timed(client, core=core)
        if done.code:
            raise SystemExit(f"the client failed with {done.code}:\n{done.said}")
        stats = endpoint.stats()
        found = verdicts(out)
    calls = sum(stats["answered"].values())
    ideal = calls * latency / connections
    return Overhead(
        calls=calls,
        duplicates=sum(stats["duplicates"].values()),
        wall=done.wall,
        ideal=ideal,
        ratio=done.wall / ideal if ideal else float("inf"),
        cpu_ms_per_call=1000 * done.cpu / calls,
        peak_mb=done.peak_mb,
        as_planted=all(found.get(item.scenario.id) == expected(item)[0] for item in plants),
    )


def command(data: Path, out: Path, endpoint: Served, flags: list[str]) -> list[str]:
    client = [sys.executable, "-m", "unmask.cli.start", "run", "--data", str(data), "--out", str(out), "--quiet"]
    subject = ["openai/mock", "--base-url", endpoint.url]
    judge = ["--judge", "openai/judge", "--judge-base-url", endpoint.url]
    return [*client, *subject, *judge, *flags]


def verdicts(out: Path) -> dict[str, str]:
    command = [sys.executable, "-m", "unmask.cli.main", "score", str(out), "--rows"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {row["id"]: row["verdict"] for row in map(json.loads, done.stdout.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measure N times; the quickest counts")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is not met")
    parser.add_argument("flags", nargs="*", help="further flags of unmask run, after --")
    given = parser.parse_args()
    # Where Python is told to keep no bytecode, a checkout would compile itself in every run: 0.05 ms a call.
    compileall.compile_dir(Path(unmask.__file__).parent, quiet=2)
    each = [
        measure(
            scenarios=given.scenarios, latency=given.latency, connections=given.connections, flags=tuple(given.flags)
        )
        for _ in range(max(1, given.repeat))
    ]
    print("| calls | sent twice | wall, s | ideal, s | wall / ideal | client CPU a call, ms | peak, MB | as planted |")
    print("|--:" * 8 + "|")
    for one in each:
        times = f"{one.wall:.2f} | {one.ideal:.2f} | {one.ratio:.3f} | {one.cpu_ms_per_call:.3f}"
        print(f"| {one.calls} | {one.duplicates} | {times} | {one.peak_mb:.0f} | {one.as_planted} |")
    quickest = min(each, key=lambda one: one.wall)
    missed = [name for name, limit in LIMITS.items() if getattr(quickest, name) > limit]
    print("missed by the quickest: " + (", ".join(missed) or "nothing"))
    wrong = any(not one.as_planted or one.duplicates > 0 for one in each)
    if given.check and (missed or wrong):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
