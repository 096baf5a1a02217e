"""Runs `unmask` as its user does: a process of its own against a real endpoint on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from bench.planted import plant
from bench.process import ROOT, Served
from tests.cli.forked import forker

SUBJECT, JUDGE = "openai/mock", "openai/judge"


def command(verb: str, *flags: str) -> list[str]:
    return [sys.executable, "-m", "unmask.cli.main", verb, *flags]


def run_flags(served: Served, data: Path, out: Path, *more: str) -> tuple[str, ...]:
    return (
        *("--data", str(data), SUBJECT, "--base-url", served.url),
        *("--judge", JUDGE, "--judge-base-url", served.url, "--out", str(out), "--max-connections", "50"),
        *more,
    )


def unmask(verb: str, *flags: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = forker().run([verb, *flags], cwd=ROOT, env=dict(os.environ))
    if check and done.returncode:
        raise AssertionError(f"{verb} left with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done


def rows(out: Path, *flags: str) -> dict[str, dict[str, Any]]:
    done = unmask("score", str(out), "--rows", *flags)
    return {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}


@cache
def planted(scenarios: int, takes: int, profile: str = "mixed") -> tuple[Any, ...]:
    return plant(scenarios, seed=1, takes=takes, profile=profile)  # type: ignore[arg-type]
