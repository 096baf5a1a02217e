"""Which threads, slots and context an embedded model should run with: measured, one process per setting.

    python -m bench.embedded                       # the table of docs/embedded.md
    python -m bench.embedded --model embedded/qwen2.5-coder-1.5b --requests 4 --slots 4

Waiting is how OpenMP threads wait for one another: `active` spins, `passive` sleeps. `--beside busy` starts one
spinning process per processor beside the model, as on a laptop that is doing something else; `load` is the machine's
load average at the end of a row, so that a table made on a busy machine says so.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from unmask.models.local.embedded import count_cores, open_embedded
from unmask.models.local.llamacpp import Setup
from unmask.records import Message, Request, Sampling

QUESTION = (
    "Question number {number}. A neighbour says that the old mill by the river was rebuilt after the flood and that "
    "nothing of the first one is left. Another says that the wheel and two walls are still the original ones. The town "
    "wants to put up a sign and asks what to write on it. Think about what could be checked, by whom and how, and then "
    "answer in a few sentences: what would you write, and why would you write it that way?"
)
ROOT = Path(__file__).resolve().parent.parent


def requests(count: int, *, tokens: int) -> list[Request]:
    system = Message("system", "You are a helpful assistant.")
    return [
        Request((system, Message("user", QUESTION.format(number=number))), Sampling(max_tokens=tokens, seed=number))
        for number in range(count)
    ]


async def _measure(name: str, setup: Setup, *, count: int, tokens: int) -> dict[str, float]:
    model = open_embedded(name, setup=setup)
    began = time.monotonic()
    await model.complete(Request((Message("user", "Hi"),), Sampling(max_tokens=1)))
    loaded, cpu = time.monotonic(), time.process_time()
    answers = await asyncio.gather(*(model.complete(request) for request in requests(count, tokens=tokens)))
    wall, cpu = time.monotonic() - loaded, time.process_time() - cpu
    await model.close()
    taken = sum(answer.usage.input or 0 for answer in answers)
    given = sum(answer.usage.output or 0 for answer in answers)
    return {"load": loaded - began, "wall": wall, "cpu": cpu, "in": taken, "out": given, "peak": _peak()}


def _peak() -> float:
    """The most memory this process held at once, in MB."""
    import resource

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / 1e6 if sys.platform == "darwin" else held * 1024 / 1e6


@contextmanager
def spinning(count: int):
    """So many processes that do nothing but keep a processor busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def one_row(arguments: argparse.Namespace, *, setup: Setup, waiting: str, busy: bool) -> dict[str, float]:
    """The same measurement in a process of its own: OpenMP reads its policy once."""
    command = [sys.executable, "-m", "bench.embedded", "--one", "--model", arguments.model]
    command += ["--requests", str(arguments.requests), "--tokens", str(arguments.tokens)]
    command += ["--threads", str(setup.threads), "--slots", str(setup.slots), "--context", str(setup.context)]
    policy = {"OMP_WAIT_POLICY": waiting} | ({"GOMP_SPINCOUNT": "infinite"} if waiting == "active" else {})
    with spinning(count_cores() if busy else 0):
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | policy, stdout=subprocess.PIPE, text=True, timeout=3600, check=True
        )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(arguments: argparse.Namespace) -> None:
    print(
        f"{arguments.model}, {count_cores()} processors, {arguments.requests} requests of {arguments.tokens} tokens\n"
    )
    print(
        "| spinners | load | threads | waiting | slots | context | wall s | CPU s | replies/min | tokens/s | peak MB |"
    )
    print("|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    besides = [beside == "busy" for beside in arguments.beside]
    for busy, threads, waiting in itertools.product(besides, arguments.threads, arguments.waiting):
        for slots, context in itertools.product(arguments.slots, arguments.context):
            if threads == 1 and waiting == "active":
                continue  # one thread waits for nobody
            setup = Setup(threads=threads, slots=slots, context=context)
            row = one_row(arguments, setup=setup, waiting=waiting, busy=busy)
            print(_line(row, setup, waiting=waiting, busy=busy, count=arguments.requests), flush=True)


def _line(row: dict[str, float], setup: Setup, *, waiting: str, busy: bool, count: int) -> str:
    wall = row["wall"]
    beside = (count_cores() if busy else 0, f"{os.getloadavg()[0]:.1f}")
    chosen = (setup.threads, "–" if setup.threads == 1 else waiting, setup.slots, setup.context)
    speed = (f"{wall:.1f}", f"{row['cpu']:.1f}", f"{60 * count / wall:.1f}", f"{row['out'] / wall:.1f}")
    return "| " + " | ".join(map(str, (*beside, *chosen, *speed, f"{row['peak']:.0f}"))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded/smollm2-135m")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, count_cores()}))
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--context", type=int, nargs="+", default=[4096])
    parser.add_argument("--waiting", choices=("passive", "active"), nargs="+", default=["passive", "active"])
    parser.add_argument("--beside", choices=("idle", "busy"), nargs="+", default=["idle", "busy"])
    parser.add_argument("--one", action="store_true", help="measure one setting in this process and print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        setup = Setup(threads=arguments.threads[0], slots=arguments.slots[0], context=arguments.context[0])
        print(
            json.dumps(asyncio.run(_measure(arguments.model, setup, count=arguments.requests, tokens=arguments.tokens)))
        )
    else:
        table(arguments)


if __name__ == "__main__":
    main()
