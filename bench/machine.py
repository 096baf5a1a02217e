"""What a figure was measured on, and the file the figures go to."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


def described() -> str:
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


def write_section(name: str, text: str, *, path: Path = RESULTS) -> None:
    """Replace one section of the results; the others, which other commands wrote, stay as they are."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = path.read_text() if path.exists() else "# Results\n\nWritten by the commands that each section names.\n"
    section = f"{begin}\n{text.strip()}\n{end}"
    found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    page = found.sub(lambda _: section, page) if found.search(page) else f"{page.rstrip()}\n\n{section}\n"
    path.write_text(page)
