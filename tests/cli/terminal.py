"""Runs the real command in a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KEPT = ("PATH", "HOME", "LANG", "SYSTEMROOT", "TMPDIR")


def unmask(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`unmask ARGUMENTS` in `cwd`, with none of the caller's keys and settings."""
    clean = {name: os.environ[name] for name in KEPT if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "unmask.cli.main", *arguments],
        cwd=cwd,
        env={**clean, "UNMASK_CACHE": str(cwd / "cache"), **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
