"""`python -m bench.calibration`: plant truth many times, hold what `unmask` says against it, write the results page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count

from bench.calibration import differences, gates, labels, page, pressure, rates
from bench.calibration.goals import Finding, World, measure_world

SEED = 1


def list_worlds() -> dict[str, World]:
    worlds = [world for part in (rates, differences, gates, labels, pressure) for world in part.list_worlds()]
    return {f"{world.about}: {world.name}": world for world in worlds}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__)
    parser.add_argument("--runs", type=int, default=4000, help="simulated runs of each world (default 4000)")
    parser.add_argument("--only", default="", help="worlds whose name contains this; printed only")
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="processes at a time (default: all cores)")
    parser.add_argument("--check", action="store_true", help="leave with exit code 1 if a goal is missed")
    given = parser.parse_args(arguments)
    worlds = list_worlds()
    found = _measure({name: world for name, world in worlds.items() if given.only in name}, given.runs, given.jobs)
    print("\n".join(list(page.list_lines(found))[2:]))
    print(page.summarise(found))
    if not given.only:
        page.write_page(found)
    missed = any(one.met is False for findings in found.values() for one in findings)
    return 1 if given.check and missed else 0


def _measure(worlds: dict[str, World], runs: int, jobs: int) -> dict[str, list[Finding]]:
    """The findings of each world, a world in a process."""
    with ProcessPoolExecutor(jobs) as pool:
        parts = {name: pool.submit(measure_world, world, runs=runs, seed=SEED) for name, world in worlds.items()}
        return {name: part.result() for name, part in parts.items()}


if __name__ == "__main__":
    sys.exit(main())
