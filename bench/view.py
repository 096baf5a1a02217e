"""`python -m bench.view`: how fast `unmask view` is with a folder of 30 runs of 1,000 scenarios.

    python -m bench.view --check            # exit 1 if a goal is missed
    python -m bench.view --check --tenth    # 30 runs of 100 scenarios, for CI
    python -m bench.view --folder KEPT      # makes the runs there once, and uses them again

Every number is that of a client on this machine, so HTTP is part of it. Of several measurements the slowest after the
first has to meet the goal; the first also reads the run.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from bench.grown import Shape, grow
from bench.process import ROOT
from unmask.render.html.conversation import name_anchor
from unmask.runs.folder import Folder
from unmask.viewer.catalogue import make_key

RUNS = 30
REPLIES = 16_000
"""Of one run: 1,000 scenarios with some 16 each."""
TAKES = 13
PATIENCE = 300.0


class Figure(NamedTuple):
    """One measurement. `limit` is `None` where no goal is set."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def is_met(self) -> bool:
        return self.limit is None or self.value < self.limit

    def __str__(self) -> str:
        goal = "" if self.limit is None else f"  < {self.limit:g} {self.unit}: {'met' if self.is_met else 'MISSED'}"
        return f"{self.name:<55} {self.value:8.3g} {self.unit}{goal}"


class Server(NamedTuple):
    """A running viewer."""

    port: int
    token: str
    pid: int
    started: float

    def get(self, path: str) -> tuple[int, str, float]:
        """Status, text, and seconds from the request to the last byte."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        begin = time.perf_counter()
        connection.request("GET", path, headers={"Cookie": f"unmask-view-{self.port}={self.token}"})
        answer = connection.getresponse()
        text = answer.read().decode()
        taken = time.perf_counter() - begin
        connection.close()
        return answer.status, text, taken

    def peak_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def make_runs(folder: Path, size: float) -> Path:
    """30 runs of three kinds of answers; each has files, an id and a model of its own."""
    runs = folder / "runs"
    if runs.is_dir():
        return runs
    building = folder / "building"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    shape = Shape(round(REPLIES * size), takes=TAKES)
    first = grow(building / "run-00", shape)
    for number in range(1, RUNS):
        path = building / f"run-{number:02d}"
        if number < 3:
            grow(path, shape._replace(seed=number + 1), data=first.data)
        else:
            shutil.copytree(building / f"run-{number % 3:02d}", path)
        run = Folder(path)
        definition = run.definition()
        subject = msgspec.structs.replace(definition.subject, model=f"openai/mock-{number:02d}")
        run.write_definition(msgspec.structs.replace(definition, id=f"{number:012d}", subject=subject))
    building.rename(runs)
    return runs


@contextmanager
def serving_runs(runs: Path, cache: Path) -> Iterator[Server]:
    """`unmask view RUNS`, from the moment at which it is typed."""
    command = [sys.executable, "-m", "unmask.cli.main", "view", str(runs), "--no-open"]
    env = {**os.environ, "UNMASK_CACHE": str(cache)}
    begin = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            parts = urlsplit(process.stdout.readline().strip())
            if parts.port is None:
                raise SystemExit("unmask view did not start")
            yield Server(parts.port, parts.query.removeprefix("token="), process.pid, begin)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)


def measure_lists(runs: Path, cache: Path) -> Iterator[Figure]:
    """A folder that was never seen before, and the same in a new process."""
    with serving_runs(runs, cache) as server:
        _, text, taken = server.get("/?sort=name")
        assert text.count("<tr data-run") == RUNS
        yield Figure("all rows with name, model and data, never seen before", taken, "s", 2.0)
        begin = time.perf_counter()
        server.get(f"/row/{make_key(runs / 'run-00')}")
        yield Figure("the first row with its numbers, never seen before", taken + time.perf_counter() - begin, "s", 2.0)
        for number in range(1, RUNS):
            server.get(f"/row/{make_key(runs / f'run-{number:02d}')}")
        yield Figure("all rows with their numbers, never seen before", taken + time.perf_counter() - begin, "s")
    with serving_runs(runs, cache) as server:
        _, text, taken = server.get("/")
        assert "data-pending>" not in text
        yield Figure("the list when seen before", taken, "s", 0.3)
        yield Figure("the same, from typing the command", time.perf_counter() - server.started, "s")
        yield Figure("memory of the server after it", server.peak_mb(), "MB", 300.0)


def measure_pages(runs: Path, cache: Path) -> Iterator[Figure]:
    """Pages of one run, each for 30 scenarios or words, after one that reads the run."""
    run = runs / "run-01"
    key = make_key(run)
    anchors = [name_anchor(scenario.id) for scenario in Folder(run).scenarios()][:30]
    words = [f"answer {take} to the {slot}" for take in range(10) for slot in ("pressured", "direct", "indirect_1")]
    with serving_runs(runs, cache) as server:
        _, _, taken = server.get(f"/run/{key}")
        yield Figure("the page of a run, never seen before", taken, "s", 2.0)
        for name, paths, limit in (
            ("the page of a run, again", [f"/run/{key}"] * 30, 0.1),
            ("a scenario page", [f"/run/{key}/scenario/{at}" for at in anchors], 0.02),
            (
                f"text search over {REPLIES:,} replies",
                [f"/run/{key}/search?q={quote(text)}" for text in words],
                1.0,
            ),
        ):
            server.get(paths[0])
            answers = [server.get(path) for path in paths[1:]]
            assert {status for status, _, _ in answers} == {200}
            yield Figure(f"{name}, the slowest of {len(answers)}", max(taken for _, _, taken in answers), "s", limit)
        yield Figure("memory of the server after these pages", server.peak_mb(), "MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    parser.add_argument("--tenth", action="store_true", help="30 runs of 100 scenarios")
    parser.add_argument("--folder", type=Path, help="where to make the runs, and to find them again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="view") as scratch:
        runs = make_runs(given.folder or Path(scratch), 0.1 if given.tenth else 1.0)
        cache = Path(scratch) / "cache"
        figures = [*measure_lists(runs, cache), *measure_pages(runs, cache)]
    print(*figures, sep="\n")
    if given.check and not all(figure.is_met for figure in figures):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
