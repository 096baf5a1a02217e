"""`python -m bench.calibration`: plant truth many times, hold what unmask says against it, write the results page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from bench.calibration import differences, gates, labels, page, rates
from bench.calibration.goals import Finding, World, measure_world

SEED = 1


def list_worlds() -> dict[str, World]:
    worlds = [world for part in (rates, differences, gates, labels) for world in part.list_worlds()]
    return {f"{world.about}: {world.name}": world for world in worlds}


def _measure(name: str, runs: int) -> list[Finding]:
    return measure_world(list_worlds()[name], runs=runs, seed=SEED)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__)
    parser.add_argument("--runs", type=int, default=4000, help="simulated runs of each world (default 4000)")
    parser.add_argument("--only", default="", help="worlds whose name contains this; the results of others stay")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--check", action="store_true", help="leave with exit code 1 if a goal is missed")
    parser.add_argument("--no-write", action="store_true", help="print only")
    given = parser.parse_args(arguments)
    names = list(list_worlds())
    found: dict[str, list[Finding]] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = {name: pool.submit(_measure, name, given.runs) for name in names if given.only in name}
        for name, result in waiting.items():
            found[name] = result.result()
            print("\n".join(list(page.list_lines({name: found[name]}))[4:]), flush=True)
            if not given.no_write:
                kept = page.read_kept() | found
                page.write_kept({one: kept[one] for one in names if one in kept})
    print(page.summarise(found))
    if not given.no_write:
        page.write_page(page.read_kept())
    missed = any(one.met is False for findings in found.values() for one in findings)
    return 1 if given.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
