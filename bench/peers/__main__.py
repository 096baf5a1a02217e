"""`python -m bench.peers`: measure unmask and its peers side by side; bench/RESULTS.md has what came out.

    python -m bench.peers                                     # every cell: about an hour and a half
    python -m bench.peers --peer unmask --latency 500 --connections 200 --takes 1

Each cell is printed when it is measured, and all of them with the goals at the end. Measure on an idle machine with at
least two cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.machine import describe
from bench.peers.cells import Cell, Peer, measure
from bench.peers.environment import default_work, python
from bench.peers.goals import list_lines
from bench.process import ROOT

LATENCIES = {"0": (0.0, "fixed"), "500": (0.5, "fixed"), "500-lognormal": (0.5, "lognormal")}
SHORT = {
    "unmask": Peer.UNMASK,
    "full": Peer.FULL,
    "inspect": Peer.INSPECT,
    "reference-10": Peer.SCRIPT_10,
    "reference-50": Peer.SCRIPT_50,
}


def list_cells(given: argparse.Namespace) -> Iterator[Cell]:
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


def main(arguments: Sequence[str] | None = None) -> int:
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
    parser.add_argument("--work", type=Path, default=default_work(), metavar="DIR", help="for the peers' packages")
    given = parser.parse_args(arguments)
    interpreter = python(given.work) if {*given.peer} - {"unmask", "full"} else ROOT
    found = []
    for cell in list_cells(given):
        each = []
        for _ in range(max(1, given.repeat)):
            each.append(measure(cell, python=interpreter, limit=given.time_limit))
            print(msgspec.json.encode(each[-1]).decode(), flush=True)
        found.append(min(each, key=lambda one: one.wall))
    print("", *list_lines(found), "", describe(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
