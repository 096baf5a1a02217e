"""What the live page costs a run: wall time with the page open in a real Chromium, against the same run without it.

    python -m bench.live [--scenarios 1000] [--latency 0.5] [--connections 200] [--pairs 6] [--check]

The viewer runs all the time; in every second run a browser follows it. Runs with and without alternate, the first of
each pair in turn, so that whatever else the machine does meets both. The ratio is the mean over pairs, of logarithms,
with its 95 % interval. `--check` exits 1 where the upper end of the interval is above the limit, so a noisy machine
needs more pairs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from urllib.parse import urlsplit

from bench.overhead import command
from bench.planted import plant, write_jsonl
from bench.process import ROOT, Served, Timed, cores, serving, timed

LIMIT = 1.02
"""Wall time with the page open, as a multiple of that without."""


def measure_run(data: Path, out: Path, endpoint: Served, *, connections: int, address: str | None) -> Timed:
    """One run, followed in a browser where an address of the viewer is given. The browser is started before."""
    endpoint.reset()
    flags = ["--max-connections", str(connections)]
    ready, ended = threading.Event(), threading.Event()
    looks: list[str] = []
    watcher = threading.Thread(target=_follow, args=(address, out, ready, ended, looks)) if address else None
    if watcher:
        watcher.start()
        ready.wait(60)
    done = timed(command(data, out, endpoint, flags), core=cores()[0])
    ended.set()
    if watcher:
        watcher.join()
        if not looks or looks[-1] == looks[0]:
            raise SystemExit(f"the page did not follow the run: {looks}")
    if done.code:
        raise SystemExit(f"the client failed with {done.code}:\n{done.said}")
    return done


def _follow(address: str, out: Path, ready: threading.Event, ended: threading.Event, looks: list[str]) -> None:
    """Keep the live page of a run open until it has ended, and note what it says of the scenarios that are done."""
    from tests.browser.chromium import browser
    from unmask.viewer.catalogue import make_key

    parts = urlsplit(address)
    with browser() as started:
        page = started.new_page()
        ready.set()
        while not (out / "replies.jsonl").exists() and not ended.is_set():
            time.sleep(0.05)
        page.goto(f"{parts.scheme}://{parts.netloc}/run/{make_key(out)}/live?{parts.query}")
        page.wait_for_selector("#live")
        looks.append(page.inner_text("label[for=progress]"))
        # A person reads; asking the browser every second would be work of the measurement and not of the page.
        ended.wait()
        deadline = time.monotonic() + 10
        while looks[-1] == looks[0] and time.monotonic() < deadline:
            time.sleep(0.5)
            looks.append(page.inner_text("label[for=progress]"))


@contextmanager
def viewing(folder: Path) -> Iterator[str]:
    """The address of a viewer of this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    view = [sys.executable, "-m", "unmask.cli.main", "view", str(folder), "--no-open"]
    with subprocess.Popen(view, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def describe_ratio(ratios: list[float]) -> tuple[float, float, float]:
    """The mean of the ratios and its 95 % interval, of logarithms."""
    from scipy.stats import t

    logs = [log(ratio) for ratio in ratios]
    half = float(t.ppf(0.975, len(logs) - 1)) * stdev(logs) / sqrt(len(logs)) if len(logs) > 1 else float("inf")
    return exp(mean(logs)), exp(mean(logs) - half), exp(mean(logs) + half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=6, metavar="N", help="runs with and without the page, N of each")
    parser.add_argument("--check", action="store_true", help="exit 1 if the limit is not met")
    settings = parser.parse_args()
    pinned: dict[str, Any] = {} if cores()[1] is None else {"cpu": cores()[1]}
    ratios, cpu = [], []
    with (
        tempfile.TemporaryDirectory() as place,
        serving(scenarios=settings.scenarios, latency=settings.latency, **pinned) as endpoint,
        viewing(Path(place, "runs")) as address,
    ):
        data = write_jsonl(plant(settings.scenarios), Path(place, "planted.jsonl"))
        for pair in range(settings.pairs):
            runs: dict[bool, Timed] = {}
            for followed in (pair % 2 == 0, pair % 2 == 1):
                out = Path(os.path.realpath(place), "runs", f"{pair}-{followed}")
                runs[followed] = measure_run(
                    data, out, endpoint, connections=settings.connections, address=address if followed else None
                )
            ratios.append(runs[True].wall / runs[False].wall)
            cpu.append(runs[True].cpu / runs[False].cpu)
            print(
                f"{runs[False].wall:.2f} s without, {runs[True].wall:.2f} s with the page: {ratios[-1]:.4f}", flush=True
            )
    ratio, low, high = describe_ratio(ratios)
    print(f"wall ratio {ratio:.4f} [{low:.4f}, {high:.4f}], limit {LIMIT}")
    print("CPU of the client, ratio {:.4f} [{:.4f}, {:.4f}]".format(*describe_ratio(cpu)))
    if settings.check and high > LIMIT:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
