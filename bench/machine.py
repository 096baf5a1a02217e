"""What a number was measured on."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def describe() -> str:
    """One line: processor, cores, memory, system, Python, our version, and the day."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB memory, {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}, unmask {version('unmask')}, "
        f"{datetime.now(UTC):%Y-%m-%d}"
    )


def _processor() -> str:
    found = None
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return re.sub(r"\((?:R|TM)\)", "", found.group(1)) if found else platform.processor() or platform.machine()
