"""Runs in batches against the planted batch endpoint: the same verdicts as live, killed wherever it hurts.

    python -m bench.batches --check                  # 1,000 scenarios, one and ten takes, 20 random kills; minutes
    python -m bench.batches --scenarios 60 --kills 4 # a quick look

Each row is one run from its first command to its score. `SIGKILL` comes between each pair of states of `batches.jsonl`,
in the middle of a collection, and at random moments; the same command goes on. With `--check` the exit code is 1 where
a verdict is not the planted one, or the endpoint has answered a request that it had answered before.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from bench.planted import Plant, expected, plant, write_jsonl
from bench.process import ROOT, Served, serving
from unmask.records import Verdict
from unmask.runs.batches import read_batches
from unmask.runs.commands import write_flags
from unmask.runs.folder import BATCHES_FILE
from unmask.runs.run import Run

PROVIDERS = {"azure": "openai"}
"""Of flavours that are no provider of their own."""
KILL_STATES = ("intended", "submitted", "collecting", "collected")
STEP = 0.001


class Looked(NamedTuple):
    """What a finished run shows next to what was planted and what the endpoint counted."""

    scenarios: int
    right: int
    unjudged: int
    wrong: tuple[str, ...]
    reasons: tuple[str, ...]
    """Why scenarios are unjudged, each once."""
    bought_twice: int
    """Takes and questions asked in batches that were answered again without a second attempt being planned."""
    in_flight: int
    """The same of what is asked live: a kill loses at most what is on its way, one answer a connection."""
    rounds: int
    batches: int
    cost: float | None


def look(plants: tuple[Plant, ...], folder: Path, served: Served, *, takes: int, batch: str | None = "all") -> Looked:
    done, stats = Run(folder), served.stats()
    again = {
        "subject": sum(len(asked.takes) * (asked.attempt > 1) for asked in done.folder.asked()),
        "judge": sum(
            line.attempt > 1 for judge in done.folder.definition().judges for line in done.folder.judged(judge)
        ),
    }
    wanted = {one.scenario.id: expected(one, takes=takes) for one in plants}
    rows = {row.id: row for row in done.rows()}
    unjudged = {name: row for name, row in rows.items() if row.verdict is Verdict.UNJUDGED and row.why}
    right = {name for name, row in rows.items() if (row.verdict, row.accuracy) == wanted[name]}
    batches = read_batches(folder)
    twice = {role: max(0, stats["duplicates"][role] - again[role]) for role in ("subject", "judge")}
    return Looked(
        scenarios=len(plants),
        right=len(right),
        unjudged=len(unjudged.keys() - right),
        wrong=tuple(sorted(wanted.keys() - unjudged.keys() - right)),
        reasons=tuple(sorted({str(row.why) for row in unjudged.values()})),
        bought_twice=twice["judge"] + (twice["subject"] if batch == "all" else 0),
        in_flight=0 if batch == "all" else twice["subject"],
        rounds=max((batch.round for batch in batches.values()), default=0),
        batches=len(batches),
        cost=done.score().spent.cost_usd,
    )


def run_arguments(
    served: Served, data: Path, out: Path, *, flavour: str = "openai", takes: int = 1, batch: str | None
) -> dict[str, object]:
    """The arguments of `unmask.run` for a run against the endpoint."""
    provider = PROVIDERS.get(flavour, flavour)
    url = served.root if flavour == "anthropic" else served.url
    return {
        "data": str(data),
        "model": f"{provider}/mock",
        "judge": f"{provider}/judge",
        "out": str(out),
        "base_url": url,
        "judge_base_url": url,
        "takes": takes,
        "set": {"price": "1/1", "judge.price": "1/1"},
        "batch": batch,
    }


def client_flags(arguments: dict[str, object]) -> list[str]:
    """What follows `unmask` on the command line."""
    return ["run", *write_flags(arguments), "--quiet"]


def start_client(arguments: dict[str, object]) -> subprocess.Popen[bytes]:
    """`unmask run` in a process of its own, with the code of this tree."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "unmask", *client_flags(arguments)]
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def kill_when(
    arguments: dict[str, object],
    is_due: Callable[[], bool],
    *,
    start: Callable[[dict[str, object]], Any] = start_client,
) -> bool:
    """Start the run, and kill it as soon as it is due. False where it ended before."""
    client = start(arguments)
    while client.poll() is None:
        if is_due():
            client.send_signal(signal.SIGKILL)
            client.communicate()
            return True
        time.sleep(STEP)
    client.communicate()
    return False


def reached(out: Path, state: str, *, before: int = 0) -> Callable[[], bool]:
    """Whether `batches.jsonl` has more than `before` lines of a state. `collecting`: answers of an open batch are in
    the journal already. Files that have not grown since the last look are not read again."""
    sizes: list[int] = []

    def is_due() -> bool:
        files = [out / BATCHES_FILE, out / "replies.jsonl", *(out / "readings").glob("*.jsonl")]
        grown = [file.stat().st_size for file in files if file.exists()]
        if grown == sizes:
            return False
        sizes[:] = grown
        text = (out / BATCHES_FILE).read_text(errors="replace") if (out / BATCHES_FILE).exists() else ""
        if state != "collecting":
            return text.count(f'"state":"{state}"') > before
        submitted, collected = (text.count(f'"state":"{name}"') for name in ("submitted", "collected"))
        answers = [file.read_bytes().count(b'"tier":"batch"') for file in files[1:] if file.exists()]
        return submitted > collected == before and sum(answers) > 0

    return is_due


def finish(arguments: dict[str, object]) -> str:
    """Run to the end; what the run says."""
    client = start_client(arguments)
    text = client.communicate()[0].decode(errors="replace")
    if client.returncode not in (0, 3):
        raise RuntimeError(f"exit code {client.returncode}: {text[-2000:]}")
    return text


def check_kills(
    served: Served, plants: tuple[Plant, ...], folder: Path, *, takes: int, batch: str, kills: int, seed: int
) -> Iterator[tuple[str, Looked]]:
    """A run that is killed in every state, then one that is killed at random moments."""
    data = write_jsonl(plants, folder / "planted.jsonl")
    served.configure(polls=1, upload_delay=0.1, create_delay=0.1)
    out = folder / f"states-{batch}-{takes}"
    arguments = run_arguments(served, data, out, takes=takes, batch=batch)
    hit = [state for state in KILL_STATES if kill_when(arguments, reached(out, state))]
    finish(arguments)
    yield f"--batch {batch}, killed in {', '.join(hit)}", look(plants, out, served, takes=takes, batch=batch)
    dice, left, number = random.Random(seed), kills, 0
    while left:  # a run that is done takes no more kills: the next one does
        served.configure(polls=1, upload_delay=0.05, create_delay=0.05, latency=0.05)
        number += 1
        out = folder / f"random-{batch}-{takes}-{number}"
        arguments = run_arguments(served, data, out, takes=takes, batch=batch)
        hits = 0
        while left and kill_when(arguments, wait_until(time.monotonic() + dice.uniform(0.5, 5.0))):
            left, hits = left - 1, hits + 1
        finish(arguments)
        yield f"--batch {batch}, killed at {hits} random moments", look(plants, out, served, takes=takes, batch=batch)


def wait_until(moment: float) -> Callable[[], bool]:
    return lambda: time.monotonic() > moment


def check_all(wanted: argparse.Namespace) -> Iterator[tuple[str, Looked]]:
    """Whole runs, then killed ones. Of these every take says the same: a kill may lose one that was asked live, and the
    endpoint then hands out the next."""
    for takes, profile in product(wanted.takes, ("mixed", "steady")):
        plants = plant(wanted.scenarios, seed=wanted.seed, takes=takes, direct=3, profile=profile)
        settings = {"scenarios": wanted.scenarios, "takes": takes, "seed": wanted.seed, "profile": profile}
        endpoint = serving(module="bench.batch_endpoint", **settings)
        with tempfile.TemporaryDirectory() as name, endpoint as served:
            folder = Path(name)
            data = write_jsonl(plants, folder / "planted.jsonl")
            for batch in (None, "judge", "all") if profile == "mixed" else ():
                served.configure()
                out = folder / f"plain-{batch}-{takes}"
                finish(run_arguments(served, data, out, takes=takes, batch=batch))
                label = "live" if batch is None else f"--batch {batch}"
                yield f"{takes} takes, {label}", look(plants, out, served, takes=takes, batch=batch)
            for batch in ("judge", "all") if profile == "steady" else ():
                for label, looked in check_kills(
                    served, plants, folder, takes=takes, batch=batch, kills=wanted.kills, seed=wanted.seed
                ):
                    yield f"{takes} takes, {label}", looked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--takes", type=lambda text: [int(part) for part in text.split(",")], default=[1, 10])
    parser.add_argument("--kills", type=int, default=20, help="random kills of each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="exit code 1 where something is wrong")
    wanted = parser.parse_args()
    failed = False
    print("| run | as planted | bought twice | live, in flight at a kill | rounds | batches | cost |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for label, row in check_all(wanted):
        cost = "" if row.cost is None else f"${row.cost:.2f}"
        counts = f"{row.right:,} of {row.scenarios:,} | {row.bought_twice} | {row.in_flight}"
        print(f"| {label} | {counts} | {row.rounds} | {row.batches} | {cost} |", flush=True)
        failed = failed or row.right < row.scenarios or row.bought_twice > 0
    return int(failed and wanted.check)


if __name__ == "__main__":
    sys.exit(main())
