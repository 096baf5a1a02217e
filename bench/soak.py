"""A long run through bad weather: hundreds of thousands of calls, a fifth of which go wrong.

    python -m bench.soak --calls 200000 --faults 0.2      # writes its section of bench/RESULTS.md
    python -m bench.soak --calls 5000 --no-docs           # a quick look, nothing is written

Runs of planted scenarios follow each other in one process, so that memory which is not given back shows, against the
mock endpoint in another. All of `bench.faulty` happens: refusals, resets, half answers, stalls, withheld answers.
Afterwards every verdict is compared with what was planted, and what the endpoint counted with what the journals hold.
Leaves with exit code 1 if a verdict is wrong, an answer was lost or bought twice, or memory grew.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import machine
from bench.planted import Plant, expected, plant, write_jsonl
from bench.process import Served, serving
from unmask.engine.run import run
from unmask.records import Verdict
from unmask.render.terminal.progress import ProgressLine
from unmask.runs.folder import Folder
from unmask.runs.run import Run

TIMEOUT = 10.0
"""Seconds for one answer. What stalls holds a connection for so long."""

ALLOWED_GROWTH = 1.25
"""Memory after the last run over memory after the first: what a cache may take, and a leak may not."""


class Round(NamedTuple):
    """What one run of the soak showed."""

    scenarios: int
    calls: int
    faulted: int
    answers: int
    """What the endpoint sent in full to a client that was still there."""
    kept: int
    """What the journal holds."""
    bought_twice: int
    as_planted: int
    unjudged: int
    wrong: tuple[str, ...]
    seconds: float
    cpu: float
    memory: float
    """MiB of this process after the run."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200_000, help="requests the endpoint has to see in all")
    parser.add_argument("--faults", type=float, default=0.2, help="share of them that go wrong")
    parser.add_argument("--scenarios", type=int, default=2000, help="of one run")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-docs", action="store_true", help="write nothing into bench/RESULTS.md")
    given = parser.parse_args()
    rounds: list[Round] = []
    for found in soak(given):
        rounds.append(found)
        print(line(len(rounds), rounds), flush=True)
    text = report(rounds, given)
    print(text)
    if not given.no_docs:
        machine.write_section("soak", f"## The soak\n\n{text}")
    return int(any(failures(rounds)))


def soak(given: argparse.Namespace) -> Iterator[Round]:
    """Run after run until the endpoint has seen enough requests."""
    seen, number = 0, 0
    while seen < given.calls:
        seed = given.seed + number
        # A last run of the right size, at five to six requests a scenario, instead of a whole one too many.
        size = min(given.scenarios, max(100, (given.calls - seen) // 5))
        found = one_round(plant(size, seed=seed), seed, given)
        yield found
        seen, number = seen + found.calls, number + 1


def one_round(plants: tuple[Plant, ...], seed: int, given: argparse.Namespace) -> Round:
    faults = f"bench.faulty:mixed:rate={given.faults},seed={seed},only=everything,late={1.5 * TIMEOUT}"
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(scenarios=len(plants), seed=seed, faults=faults) as served,
    ):
        begun, cpu = time.monotonic(), time.process_time()
        out = Path(folder) / "run"
        done = run(
            data=write_jsonl(plants, Path(folder) / "planted.jsonl"),
            model="openai/mock",
            judge="openai/judge",
            out=out,
            base_url=served.url,
            judge_base_url=served.url,
            set={"timeout": TIMEOUT, "judge.timeout": TIMEOUT},
            max_connections=given.connections,
            progress=ProgressLine(live=False),
        )
        spent = time.monotonic() - begun, time.process_time() - cpu
        return looked_at(plants, done, served, spent)


def looked_at(plants: tuple[Plant, ...], done: Run, served: Served, spent: tuple[float, float]) -> Round:
    """The endpoint's counts beside the journal's, and every verdict beside the planted one."""
    stats = served.stats()
    kept, again = journal(done.folder)
    wanted = {one.scenario.id: expected(one) for one in plants}
    rows = {row.id: row for row in done.rows()}
    unjudged = [name for name, row in rows.items() if row.verdict is Verdict.UNJUDGED and row.why]
    right = [name for name, row in rows.items() if (row.verdict, row.accuracy) == wanted[name]]
    wrong = sorted(wanted.keys() - set(unjudged) - set(right))
    del rows
    gc.collect()
    return Round(
        scenarios=len(plants),
        calls=sum(stats["calls"].values()),
        faulted=stats["faulted"] + stats["abandoned"],
        answers=sum(stats["answered"].values()),
        kept=kept,
        bought_twice=sum(max(0, stats["duplicates"][role] - again[role]) for role in ("subject", "judge")),
        as_planted=len(right),
        unjudged=len(unjudged),
        wrong=tuple(wrong),
        seconds=spent[0],
        cpu=spent[1],
        memory=resident(),
    )


def journal(folder: Folder) -> tuple[int, Counter[str]]:
    """How many answers the journal holds, and how many takes and questions were second attempts by plan."""
    kept, again = 0, Counter[str]()
    for asked in folder.asked():
        kept += asked.error is None
        again["subject"] += len(asked.takes) * (asked.attempt > 1)
    for judged in (line for judge in folder.definition().judges for line in folder.judged(judge)):
        kept += judged.error is None
        again["judge"] += judged.attempt > 1
    return kept, again


def resident() -> float:
    """MiB of this process now; its peak where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


def failures(rounds: list[Round]) -> Iterator[str]:
    """What must not happen, and did."""
    wrong = [name for found in rounds for name in found.wrong]
    if wrong:
        yield f"{len(wrong)} verdicts are not the planted ones, first {wrong[0]}"
    lost = sum(found.answers - found.kept for found in rounds)
    if lost:
        yield f"{lost} answers the endpoint sent are not in a journal"
    if twice := sum(found.bought_twice for found in rounds):
        yield f"{twice} answers were bought twice"
    full = [found for found in rounds if found.scenarios == rounds[0].scenarios]
    if full[-1].memory > ALLOWED_GROWTH * full[0].memory:
        yield f"memory grew from {full[0].memory:.0f} to {full[-1].memory:.0f} MiB"


def line(number: int, rounds: list[Round]) -> str:
    found = rounds[-1]
    return (
        f"run {number}: {found.calls:,} calls in {found.seconds:.0f} s,"
        f" {found.as_planted} of {found.scenarios} verdicts as planted,"
        f" {found.unjudged} unjudged, {len(found.wrong)} wrong, {found.memory:.0f} MiB;"
        f" {sum(each.calls for each in rounds):,} calls in all"
    )


def report(rounds: list[Round], given: argparse.Namespace) -> str:
    """The section of bench/RESULTS.md."""
    total = {name: sum(getattr(found, name) for found in rounds) for name in Round._fields if name != "wrong"}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    troubles = list(failures(rounds))
    rows = [
        ("calls", f"{total['calls']:,}"),
        ("of which met by a fault", f"{total['faulted']:,} ({total['faulted'] / total['calls']:.1%})"),
        ("runs, scenarios", f"{len(rounds)}, {total['scenarios']:,}"),
        ("verdicts as planted", f"{total['as_planted']:,}"),
        ("unjudged, each with its reason", f"{total['unjudged']:,}"),
        ("wrong verdicts", f"{sum(len(found.wrong) for found in rounds):,}"),
        ("answers sent in full, answers in the journals", f"{total['answers']:,}, {total['kept']:,}"),
        ("answers bought twice", f"{total['bought_twice']:,}"),
        ("wall time, CPU time of the client", f"{total['seconds']:.0f} s, {total['cpu']:.0f} s"),
        ("memory after the first run, after the last, peak", _memory(rounds, peak)),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    verdict = "Nothing was lost, bought twice or judged wrong." if not troubles else "FAILED: " + "; ".join(troubles)
    command = f"python -m bench.soak --calls {given.calls} --faults {given.faults:g} --seed {given.seed}"
    return f"`{command}` on {machine.described()}:\n\n| | |\n|---|--:|\n{table}\n\n{verdict}\n"


def _memory(rounds: list[Round], peak: float) -> str:
    return f"{rounds[0].memory:.0f}, {rounds[-1].memory:.0f}, {peak:.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
