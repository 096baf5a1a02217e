"""`python -m bench.calibration`: plant truth many times, compare the intervals with it, write the results page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from bench.calibration import (
    comparisons,
    dead,
    decisions,
    equivalence,
    estimate,
    judges,
    labellers,
    looks,
    page,
    rates,
    unread,
    whole,
)
from bench.calibration.found import Finding, Setting, measure_twice, repeat_close
from bench.calibration.kept import Kept, read_kept, write_kept
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
        *estimate.settings(),
    ]


def _measured(number: int, runs: int, seed: int) -> Kept:
    return Kept(runs, seed, __version__, measure_twice(settings()[number], runs=runs, seed=seed))


def _repeated(number: int, kept: Kept) -> Kept:
    findings = repeat_close(settings()[number], kept.findings, runs=kept.runs, seed=kept.seed)
    return kept._replace(findings=findings)


def _write_page() -> None:
    """From the results of all settings, whenever each was simulated."""
    kept = read_kept()
    results = {one.name: kept[one.name] for one in settings() if one.name in kept}
    if missing := [one.name for one in settings() if one.name not in kept]:
        print(f"{len(missing)} settings have no results yet, as {missing[0]!r}")
    write_kept(results)
    last = max(results.values(), key=lambda one: one.runs)
    made = page.Made(last.runs, last.seed, __version__)
    print(f"written: {page.write([finding for one in results.values() for finding in one.findings], made)}")


def _list_findings(kept: Mapping[str, Kept], setting: Setting) -> list[Finding]:
    return kept[setting.name].findings if setting.name in kept else []


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs for each setting (default 1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="settings whose name contains this; nothing is written then")
    parser.add_argument(
        "--keep", action="store_true", help="with --only: put the results into the page, beside the others"
    )
    parser.add_argument(
        "--pending", action="store_true", help="only the second rounds that are due among the results kept"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--check", action="store_true", help="leave with exit code 1 if a goal is missed")
    parser.add_argument("--no-write", action="store_true", help="print only")
    given = parser.parse_args(arguments)
    chosen = [(number, one) for number, one in enumerate(settings()) if given.only in one.name]
    found: list[Finding] = []
    kept: dict[str, Kept] = {}
    writes = (not given.only or given.keep) and not given.no_write
    before = read_kept() if given.pending else {}
    if given.pending:
        chosen = [one for one in chosen if any(finding.pending for finding in _list_findings(before, one[1]))]
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = [
            (one, pool.submit(_repeated, number, before[one.name]))
            if given.pending
            else (one, pool.submit(_measured, number, given.runs, given.seed))
            for number, one in chosen
        ]
        for setting, result in waiting:
            kept[setting.name] = result.result()
            findings = kept[setting.name].findings
            found += findings
            print(f"\n{setting.name}\n{page.table(findings)}", flush=True)
            if writes:
                write_kept(read_kept() | kept)
    print(f"\n{page.summary(found)}")
    if writes:
        _write_page()
    return 1 if given.check and any(one.met is False for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
