"""How time and memory grow with the journal: finished runs of planted replies, read by commands.

    python -m bench.scale                                  # public MASK with ten takes, less, and three times that
    python -m bench.scale --replies 15000 --reasoning 40000 --what score

Each command runs in a process of its own. Time is that of the processor. Exits 1 where more than 300 MB are needed, or
a score is not as planted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.grown import JUDGE, NOWHERE, SUBJECT, Grown, Shape, grow
from bench.process import timed

RUNS = {"resume": 1, "score": 1, "compare": 2, "board": 30, "report": 1}
MEMORY_MB = 300.0


def command(what: str, runs: Sequence[Grown]) -> list[str]:
    client = [sys.executable, "-m", "unmask.cli.start"]
    folders = [str(one.run) for one in runs]
    match what:
        case "resume":
            urls = ["--base-url", NOWHERE, "--judge-base-url", NOWHERE]
            data = ["--data", str(runs[0].data), "--out", folders[0]]
            settings = ["--takes", "10", "--effort", "full", "--quiet"]
            return [*client, "run", SUBJECT, "--judge", JUDGE, *data, *urls, *settings]
        case "score":
            return [*client, "score", *folders, "--json"]
        case "report":
            return [*client, "report", *folders, "--out", f"{folders[0]}.html"]
        case _:
            return [*client, what, *folders]


def measure(replies: int, reasoning: int, wanted: Sequence[str]) -> bool:
    """Prints a row for each command; whether all went well."""
    fine = True
    with tempfile.TemporaryDirectory(prefix="scale") as name:
        first = grow(Path(name, "1"), Shape(replies, reasoning=reasoning))
        seeds = range(2, 1 + max(RUNS[what] for what in wanted))
        shapes = (Shape(replies, seed=seed, reasoning=reasoning) for seed in seeds)
        runs = [first, *(grow(Path(name, str(shape.seed)), shape, data=first.data) for shape in shapes)]
        for what in wanted:
            printed = Path(name, "printed")
            done = timed(command(what, runs[: RUNS[what]]), out=printed)
            if done.code:
                raise SystemExit(f"{what} failed with {done.code}:\n{done.said}")
            right = what != "score" or json.loads(printed.read_bytes())["overall"]["counts"] == first.counts
            fine = fine and right and done.peak_mb <= MEMORY_MB
            planted = "" if right else ", NOT as planted"
            print(f"| {what}{planted} | {first.replies:,} | {done.cpu:.1f} | {done.peak_mb:.0f} |", flush=True)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", nargs="+", type=int, default=[4_000, 15_000, 50_000])
    parser.add_argument("--reasoning", type=int, default=0, metavar="CHARACTERS", help="before each reply")
    parser.add_argument("--what", nargs="+", choices=RUNS, default=list(RUNS))
    given = parser.parse_args()
    print("| command | replies of a run | seconds | MB |\n|---|--:|--:|--:|")
    fine = [measure(size, given.reasoning, given.what) for size in given.replies]
    return int(not all(fine))


if __name__ == "__main__":
    sys.exit(main())
