"""Runs the real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.forked import forker

KEPT = ("PATH", "HOME", "LANG", "SYSTEMROOT", "TMPDIR")


def unmask(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`unmask ARGUMENTS` in `cwd`, with none of the caller's keys and settings."""
    clean = {name: os.environ[name] for name in KEPT if name in os.environ}
    whole = {**clean, "UNMASK_CACHE": str(cwd.absolute() / "cache"), **(env or {})}
    if not any(name.startswith(("PYTHON", "LANG", "LC_")) for name in env or ()):
        return forker().run(list(arguments), cwd=cwd, env=whole)
    return subprocess.run(
        [sys.executable, "-m", "unmask.cli.main", *arguments],
        cwd=cwd,
        env=whole,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
