"""What fuzzing has come to so far: added up in bench/results/fuzz.json, and written into bench/RESULTS.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from bench.machine import RESULTS, write_section

KEPT = RESULTS.with_name("results") / "fuzz.json"
_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """All recorded runs of one target. A run that breaks is counted up to there."""

    target: str
    seconds: int
    executions: int
    broken: int = 0
    last: str
    """The day of the last run."""


def executed(said: str) -> int:
    """How many inputs libFuzzer says it has tried; 0 where it was killed before it could say."""
    found = _EXECUTED.search(said)
    return int(found.group(1)) if found else 0


def added(totals: Iterable[Total], new: Total) -> list[Total]:
    """The totals with one more run in them."""
    found = {one.target: one for one in totals}
    before = found.get(new.target)
    if before is not None:
        new = msgspec.structs.replace(
            new,
            seconds=before.seconds + new.seconds,
            executions=before.executions + new.executions,
            broken=before.broken + new.broken,
        )
    return [*(one for one in found.values() if one.target != new.target), new]


def read(path: Path = KEPT) -> list[Total]:
    return msgspec.json.decode(path.read_bytes(), type=list[Total]) if path.exists() else []


def record(new: Total, *, order: Sequence[str], kept: Path = KEPT, page: Path = RESULTS) -> None:
    """Add a run, and write the table anew, its rows in this order of targets."""
    totals = sorted(added(read(kept), new), key=lambda one: order.index(one.target) if one.target in order else -1)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(msgspec.json.format(msgspec.json.encode(totals), indent=1) + b"\n")
    write_section("fuzz", told(totals), path=page)


def told(totals: Sequence[Total]) -> str:
    from bench.peers.page import table  # not above: atheris must see `unmask` imported for the first time

    rows = [[one.target, f"{one.seconds:,}", f"{one.executions:,}", str(one.broken), one.last] for one in totals]
    everything = [sum(one.seconds for one in totals), sum(one.executions for one in totals)]
    rows.append(["all", *(f"{number:,}" for number in everything), str(sum(one.broken for one in totals)), ""])
    what = "Runs with `--record`, added up. What ended a run that broke was fixed and became a test."
    shown = table(("target", "seconds", "inputs tried", "runs that broke", "last"), rows)
    return f"## Fuzzing\n\n{what}\n\n{shown}"
