"""`python -m bench.peers`: measure unmask and its peers side by side, and write bench/RESULTS.md.

    python -m bench.peers                                     # every cell: about an hour and a half
    python -m bench.peers --peer unmask --latency 500 --connections 200 --takes 1
    python -m bench.peers --page                              # only write the page from what was measured

Cells that were measured before stay in bench/results/peers.json until they are measured again. Measure on an idle
machine with at least two cores.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.machine import RESULTS, described, write_section
from bench.peers.cells import Cell, Found, Peer, measure
from bench.peers.environment import default_work, python
from bench.peers.page import page
from bench.process import ROOT, cores

KEPT = RESULTS.with_name("results") / "peers.json"
LATENCIES = {"0": (0.0, "fixed"), "500": (0.5, "fixed"), "500-lognormal": (0.5, "lognormal")}
SHORT = {
    "unmask": Peer.UNMASK,
    "full": Peer.FULL,
    "inspect": Peer.INSPECT,
    "reference-10": Peer.SCRIPT_10,
    "reference-50": Peer.SCRIPT_50,
}


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured so far."""

    machine: str = ""
    help_ms: float | None = None
    found: tuple[Found, ...] = ()


def cells(given: argparse.Namespace) -> Iterator[Cell]:
    """The cells asked for, the cheap ones first."""
    for peer in (SHORT[name] for name in given.peer):
        for takes in given.takes:
            for latency, shape in (LATENCIES[name] for name in given.latency):
                for connections in given.connections:
                    yield Cell(
                        takes=takes,
                        latency=latency,
                        shape="fixed" if shape == "fixed" else "lognormal",
                        connections=connections,
                        peer=peer,
                        scenarios=given.limit,
                    )


def merged(before: Kept, found: Found) -> Kept:
    others = tuple(one for one in before.found if one.cell != found.cell)
    return msgspec.structs.replace(before, found=(*others, found), machine=found.machine)


def help_ms(runs: int = 7) -> float:
    """The median time until `unmask --help` has printed."""
    core, _ = cores()
    pin = [] if core is None else ["taskset", "-c", str(core)]
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run([*pin, sys.executable, "-m", "unmask.cli.main", "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append(1000 * (time.perf_counter() - begin))
    return round(statistics.median(times), 1)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    kept = msgspec.json.decode(given.kept.read_bytes(), type=Kept) if given.kept.exists() else Kept()
    if not given.page:
        interpreter = python(given.work) if {"inspect", "reference-10", "reference-50"} & {*given.peer} else ROOT
        kept = _remember(given, msgspec.structs.replace(kept, help_ms=help_ms()))
        for cell in cells(given):
            each = []
            for _ in range(max(1, given.repeat)):
                each.append(measure(cell, python=interpreter, limit=given.time_limit, machine=described()))
                print(msgspec.json.encode(each[-1]).decode(), flush=True)
            found = msgspec.structs.replace(min(each, key=lambda one: one.wall), times=len(each))
            kept = _remember(given, merged(kept, found))
    write_section("peers", page(_full_cells(kept), help_ms=kept.help_ms, machine=kept.machine), path=given.results)
    return 0


def _full_cells(kept: Kept) -> list[Found]:
    return [one for one in kept.found if one.cell.scenarios == 1000] or list(kept.found)


def _remember(given: argparse.Namespace, kept: Kept) -> Kept:
    given.kept.parent.mkdir(parents=True, exist_ok=True)
    given.kept.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    return kept


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", nargs="+", choices=SHORT, default=list(SHORT))
    parser.add_argument("--latency", nargs="+", choices=LATENCIES, default=list(LATENCIES), help="milliseconds")
    parser.add_argument("--connections", nargs="+", type=int, default=[50, 200])
    parser.add_argument("--takes", nargs="+", type=int, default=[1, 10])
    parser.add_argument("--limit", type=int, default=1000, metavar="N", help="scenarios (default 1000)")
    parser.add_argument("--time-limit", type=float, default=900.0, metavar="S", help="stop a cell after this long")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="measure each cell N times; quickest counts")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--work", type=Path, default=default_work(), metavar="DIR", help="for the peers' packages")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FILE", help="what was measured before")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="the page to write")
    return parser


if __name__ == "__main__":
    sys.exit(main())
