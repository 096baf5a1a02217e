"""The aims of the house, measured: what a stranger has to take in before the program is understood.

    python -m bench.house

The numbers are for judgement. Nothing fails by them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import click

import unmask
from bench.planted import plant, write_jsonl
from bench.process import ROOT, serving
from tests.docs_cli import commands
from unmask.cli.main import COMMANDS, FIRST

SOURCE = ROOT / "src" / "unmask"
COUNT_MODULES = """
import atexit, sys
ours = lambda: [name for name in sys.modules if name == "unmask" or name.startswith("unmask.")]
atexit.register(lambda: print(len(ours()), file=sys.stderr))
from unmask.cli.start import main
main()
"""


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def count_docs() -> tuple[int, int]:
    """Pages of the manual and their words, generated ones included."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    return len(pages), sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def count_flags() -> dict[str, int]:
    """Every command that does something, with the number of its flags."""
    return {
        name: sum(isinstance(parameter, click.Option) for parameter in command.params)
        for name, command in commands()
        if not isinstance(command, click.Group)
    }


def modules_and_functions_of_a_scenario() -> tuple[int, int]:
    """What is called, by file and by name, when one scripted scenario is run and scored."""
    called: set[CodeType] = set()
    run = unmask.run  # found before, as its import is

    def note_call(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            called.add(frame.f_code)

    with tempfile.TemporaryDirectory() as place:
        threading.setprofile(note_call)
        sys.setprofile(note_call)
        try:
            models = {"model": "scripted/liar", "judge": "scripted/judge"}
            run(data="core", limit=1, out=Path(place, "run"), **models).score()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    # What is run once, when a module or a class is made, is no step of a scenario.
    named = [code for code in called if code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")]
    return len({code.co_filename for code in named}), len(named)


def root_files() -> list[str]:
    return sorted(path.name for path in SOURCE.iterdir() if path.is_file())


def count_lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def modules_of_a_run() -> int:
    """Modules of `unmask` that are loaded when `unmask run` against an HTTP endpoint ends."""
    with tempfile.TemporaryDirectory() as place, serving(scenarios=6) as served:
        data = write_jsonl(plant(6), Path(place, "planted.jsonl"))
        subject = ("openai/mock", "--base-url", served.url)
        judge = ("--judge", "openai/judge", "--judge-base-url", served.url)
        flags = ("run", "--data", str(data), "--out", str(Path(place, "run")), "--quiet", *subject, *judge)
        command = [sys.executable, "-c", COUNT_MODULES, *flags]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1])


def help_milliseconds(times: int = 9) -> float:
    """The median time of `unmask --help` in a process of its own."""
    command = [sys.executable, "-m", "unmask.cli.start", "--help"]
    each = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        each.append(1000 * (time.perf_counter() - started))
    return statistics.median(each)


def main() -> None:
    flags, (pages, words), walked = count_flags(), count_docs(), modules_and_functions_of_a_scenario()
    rows = [
        ("files in the root", f"{len(root_files())}: {' '.join(root_files())}", "7"),
        ("source lines", f"{count_lines(source_files()):,}", "33,500"),
        ("modules", str(len(source_files())), "220"),
        ("modules, named functions of a scenario", f"{walked[0]}, {walked[1]}", "45, 450"),
        ("commands: first help screen, all", f"{sum(map(len, FIRST.values()))}, {len(COMMANDS)}", "12, 25"),
        ("flags: all, of run", f"{sum(flags.values())}, {flags['unmask run']}", "220, 36"),
        ("docs: pages, words", f"{pages}, {words:,}", "16, 32,000"),
        ("lines of tests", f"{count_lines(python_files('tests')):,}", "32,000"),
        ("lines of bench", f"{count_lines(python_files('bench')):,}", "7,000"),
        ("lines of studies, not in the package", f"{count_lines(python_files('studies')):,}", "none"),
        ("modules loaded by unmask run", str(modules_of_a_run()), "80"),
        ("unmask --help", f"{help_milliseconds():.0f} ms", "150 ms"),
    ]
    for name, value, aim in rows:
        print(f"{name} (aim {aim}): {value}")


if __name__ == "__main__":
    main()
