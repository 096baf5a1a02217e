"""`python -m bench.calibration`: plant truth many times, hold the intervals against it, write docs/calibration.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from bench.calibration import (
    comparisons,
    dead,
    decisions,
    equivalence,
    judges,
    labellers,
    looks,
    page,
    rates,
    unread,
    whole,
)
from bench.calibration.found import Finding, Setting, measured
from unmask import __version__


def settings() -> list[Setting]:
    return [
        *rates.settings(),
        *comparisons.settings(),
        *judges.settings(),
        *labellers.settings(),
        *unread.settings(),
        *looks.settings(),
        *decisions.settings(),
        *whole.settings(),
        *dead.settings(),
        *equivalence.settings(),
    ]


def _measured(number: int, runs: int, seed: int) -> list[Finding]:
    return list(measured(settings()[number], runs=runs, seed=seed))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs for each setting (default 1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="settings whose name contains this; nothing is written then")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--check", action="store_true", help="leave with exit code 1 if a goal is missed")
    parser.add_argument("--no-write", action="store_true", help="print only")
    given = parser.parse_args(arguments)
    begin = time.monotonic()
    chosen = [(number, one) for number, one in enumerate(settings()) if given.only in one.name]
    found: list[Finding] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = [(one, pool.submit(_measured, number, given.runs, given.seed)) for number, one in chosen]
        for setting, result in waiting:
            findings = result.result()
            found += findings
            print(f"\n{setting.name}\n{page.table(findings)}", flush=True)
    print(f"\n{page.summary(found)}")
    if not given.only and not given.no_write:
        made = page.Made(given.runs, given.seed, time.monotonic() - begin, __version__)
        print(f"written: {page.write(found, made)}")
    return 1 if given.check and any(one.met is False for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
