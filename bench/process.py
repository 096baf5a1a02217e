"""Processes of a measurement: the mock endpoint with its counters, and commands with their time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import ProxyHandler, Request, build_opener

ROOT = Path(__file__).resolve().parent.parent
DIRECT = build_opener(ProxyHandler({}))


class Served(NamedTuple):
    """A listening endpoint: `url` is what `--base-url` takes."""

    url: str
    root: str
    pid: int

    def stats(self) -> dict[str, Any]:
        return self._call("GET", "/stats")

    def reset(self) -> None:
        """Forgets all counters; the next request of every scenario is its first take again."""
        self._call("POST", "/reset")

    def configure(self, **settings: object) -> None:
        """Of `bench.batch_endpoint`: begin anew with these."""
        self._call("POST", "/configure", json.dumps(settings).encode())

    def _call(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        with DIRECT.open(Request(self.root + path, data=body, method=method), timeout=30) as response:
            found: dict[str, Any] = json.load(response)
        return found


@contextmanager
def serving(*, module: str = "bench.endpoint", **options: object) -> Iterator[Served]:
    """Runs `python -m bench.endpoint` with these options: `serving(scenarios=50, latency=0.1, takes=10)`."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", module, *flags]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the endpoint did not start: {' '.join(command)}")
            yield Served(**json.loads(line))
        finally:
            process.terminate()


class Timed(NamedTuple):
    """One finished command: wall and CPU seconds of it and its children, peak memory, and how it ended."""

    started: float
    """Seconds since the epoch."""
    wall: float
    cpu: float
    peak_mb: float
    code: int
    stopped: bool
    """Killed at the time limit; the figures are those until then."""
    said: str
    """The end of what it wrote to stderr."""


def timed(
    command: list[str],
    *,
    core: int | None = None,
    limit: float | None = None,
    env: Mapping[str, str] | None = None,
    out: Path | None = None,
) -> Timed:
    """Run a command to its end, on one core if asked to, and kill it at the limit. What it prints goes to `out`."""
    how = ["-" if value is None else str(value) for value in (core, limit, out)]
    timer = [sys.executable, "-S", "-E", str(ROOT / "bench" / "timer.py"), *how, *command]
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            timer, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **(env or {})}, check=True
        )
        errors.seek(0)
        said = errors.read().decode(errors="replace")[-4000:]
    return Timed(**json.loads(done.stdout), said=said)


def cores() -> tuple[int | None, int | None]:
    """One core for the client and one for the endpoint, where there are two."""
    found = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (found[0], found[1]) if len(found) > 1 else (None, None)
