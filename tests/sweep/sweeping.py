"""A grid over planted endpoints, and `unmask sweep` as its user calls it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from bench.planted import plant, write_jsonl
from bench.process import ROOT, Served
from tests.cli.forked import ForkedProcess, forker

SCENARIOS = 12


def write_data(folder: Path) -> Path:
    return Path(write_jsonl(plant(SCENARIOS, seed=1, profile="steady"), folder / "planted.jsonl"))


def write_grid(folder: Path, *rows: str, matrix: str = "", sweep: str = "", data: str = "") -> Path:
    """A grid with one data set. `rows` are subjects and judges, as `row` makes them."""
    if not (folder / "planted.jsonl").exists():
        write_data(folder)
    path = folder / "grid.toml"
    head = f'[sweep]\n{sweep}\n[options]\nmax_connections = 8\n[[data]]\nsource = "planted.jsonl"\n{data}\n'
    path.write_text(head + "\n".join(rows) + f"\n[matrix]\n{matrix}\n")
    return path


def row(kind: str, model: str, served: Served | str, *lines: str) -> str:
    url = served if isinstance(served, str) else served.url
    return "\n".join([f"[[{kind}]]", f'model = "openai/{model}"', f'base_url = "{url}"', *lines])


def sweep(grid: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """`unmask sweep` in a process of its own."""
    return forker().run(["sweep", str(grid), "--out", str(grid.parent / "out"), *flags], cwd=ROOT, env=dict(os.environ))


def start(grid: Path) -> ForkedProcess:
    """The same, left to itself, to be killed. All that it says is in its stdout."""
    command = ["sweep", str(grid), "--out", str(grid.parent / "out")]
    return forker().start(command, cwd=ROOT, env=dict(os.environ), merged=True)


def result(grid: Path, *flags: str) -> dict[str, Any]:
    done = sweep(grid, "--json", *flags)
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def folders(grid: Path) -> list[Path]:
    return sorted((grid.parent / "out" / "runs").iterdir())


def lines(folder: Path, name: str = "replies.jsonl") -> list[dict[str, Any]]:
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def bought(folder: Path, name: str = "replies.jsonl") -> int:
    """Lines that were answered here, not copied from another run."""
    return sum("source" not in line for line in lines(folder, name))
