"""`python -m bench.scale`: how time and memory grow with the journal; writes its section of bench/RESULTS.md.

    python -m bench.scale                                  # public MASK with ten takes, less, and three times that
    python -m bench.scale --replies 15000 --reasoning 40000 --what score

Measurements made before stay in bench/results/scale.json until they are made again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.machine import RESULTS, described, write_section
from bench.process import timed
from bench.scale.grown import Grown, Shape, grow
from bench.scale.page import WHAT, Row, page
from bench.scale.work import command

KEPT = RESULTS.with_name("results") / "scale.json"
SIZES = (4_000, 15_000, 50_000)
NEEDED = {"compare": 2, "board": 30}
"""Runs; one where nothing is said."""


def measured(size: int, given: argparse.Namespace) -> Iterator[Row]:
    """Every measurement of one size; the folders are removed afterwards."""
    if given.work is not None:
        given.work.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="scale", dir=given.work))
    try:
        first = grow(place / "a", Shape(size, reasoning=given.reasoning))
        seeds = range(2, 1 + max(NEEDED.get(what, 1) for what in given.what))
        shapes = (Shape(size, seed=seed, reasoning=given.reasoning) for seed in seeds)
        others = [grow(place / str(shape.seed), shape, data=first.data) for shape in shapes]
        for what in given.what:
            yield _one(what, [first, *others][: NEEDED.get(what, 1)], given)
    finally:
        shutil.rmtree(place)


def _one(what: str, runs: Sequence[Grown], given: argparse.Namespace) -> Row:
    load = os.getloadavg()[0]
    printed = runs[0].run.with_suffix(".json")
    done = timed(command(what, [run.run for run in runs], runs[0].data), limit=given.time_limit, out=printed)
    if done.code and not done.stopped:
        raise SystemExit(f"{what} failed with {done.code}:\n{done.said}")
    return Row(
        what=what,
        replies=runs[0].replies,
        scenarios=runs[0].scenarios,
        reasoning=given.reasoning,
        megabytes=round(sum(run.bytes for run in runs) / 1e6, 1),
        seconds=None if done.stopped else round(done.cpu, 2),
        wall=round(done.wall, 2),
        peak_mb=round(done.peak_mb, 1),
        right=_right(runs[0], printed) if what == "score" and not done.stopped else None,
        load=round(load, 1),
        machine=described(),
    )


def _right(run: Grown, printed: Path) -> bool:
    found: dict[str, dict[str, dict[str, int]]] = msgspec.json.decode(printed.read_bytes())
    return found["overall"]["counts"] == run.counts


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    kept = msgspec.json.decode(given.kept.read_bytes(), type=list[Row]) if given.kept.exists() else []
    for size in given.replies:
        for row in measured(size, given):
            print(msgspec.json.encode(row).decode(), flush=True)
            kept = [one for one in kept if one.key != row.key] + [row]
            given.kept.parent.mkdir(parents=True, exist_ok=True)
            given.kept.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
        write_section("scale", page(kept, limit=given.time_limit, machine=kept[-1].machine), path=given.results)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replies", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--reasoning", type=int, default=0, metavar="CHARACTERS", help="before each reply")
    parser.add_argument("--what", nargs="+", choices=WHAT, default=list(WHAT))
    parser.add_argument("--time-limit", type=float, default=1800.0, metavar="S", help="stop a command after this long")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where the run folders are written")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FILE", help="what was measured before")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="the page to write")
    return parser


if __name__ == "__main__":
    sys.exit(main())
