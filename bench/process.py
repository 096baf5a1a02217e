"""Starts the mock endpoint in a process of its own and talks to its counters."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
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

    def _call(self, method: str, path: str) -> dict[str, Any]:
        with DIRECT.open(Request(self.root + path, method=method), timeout=30) as response:
            found: dict[str, Any] = json.load(response)
        return found


@contextmanager
def serving(**options: object) -> Iterator[Served]:
    """Runs `python -m bench.endpoint` with these options: `serving(scenarios=50, latency=0.1, takes=10)`."""
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "bench.endpoint", *flags]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the endpoint did not start: {' '.join(command)}")
            yield Served(**json.loads(line))
        finally:
            process.terminate()
