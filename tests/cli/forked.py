"""Runs commands in processes of their own that need not start Python again: each is forked from one that has imported
every command. The child has its own working directory, environment and streams, and ends as the console script does.

What depends on how Python starts (encodings, the first import of a module) belongs into a process of its own.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import select
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import TextIO

LIMIT = 600
"""Seconds for one command."""
OUTSIDE = (
    *("aiohttp", "genai_prices", "jinja2", "matplotlib.figure", "numpy.random", "scipy.special"),
    *("rich.console", "rich.progress", "rich.table", "rich.text"),
)


class Forker:
    """The process from which commands are forked, one after the other. It has no threads (`tests.conftest`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent.parent,
        )
        atexit.register(self.close)

    def run(self, arguments: list[str], *, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        with TemporaryDirectory() as folder:
            names = [f"{folder}/out", f"{folder}/err"]
            code = self._fork(arguments, [os.devnull, *names], cwd=cwd, env=env)
            out, err = (Path(name).read_text() for name in names)
            return subprocess.CompletedProcess(arguments, code, out, err)

    def run_in_terminal(self, arguments: list[str], terminal: str, *, cwd: Path, env: dict[str, str]) -> int:
        """The exit code of a command whose three streams are the device `terminal`."""
        return self._fork(arguments, [terminal] * 3, cwd=cwd, env=env)

    def _fork(self, arguments: list[str], streams: list[str], *, cwd: Path, env: dict[str, str]) -> int:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            json.dump([arguments, str(cwd.absolute()), env, streams], self._process.stdin)
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], LIMIT)
            assert ready, f"no end after {LIMIT} s: unmask {' '.join(arguments)}"
            return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@cache
def forker() -> Forker:
    """One for each process of tests, started by its first user."""
    return Forker()


def import_everything() -> None:
    """All of unmask, and what its commands import when they get to it: a child should find both."""
    import unmask

    apart = ("unmask.__main__", "unmask.whitebox", "unmask.interop.inspect.registry")  # two of them take seconds
    own = [module.name for module in walk_packages(unmask.__path__, "unmask.")]
    for name in (*(name for name in own if not name.startswith(apart)), *OUTSIDE):
        with suppress(ImportError):  # extras may be missing; what needs them says so itself
            import_module(name)


def serve(requests: TextIO) -> None:
    import_everything()
    gc.freeze()  # looking through all that in each child would copy it
    for line in iter(requests.readline, ""):
        child = os.fork()
        if not child:
            become(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def become(arguments: list[str], cwd: str, env: dict[str, str], streams: list[str]) -> None:
    """The command, in this process, to its end."""
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY), number)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)), errors="backslashreplace", line_buffering=True
    )
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["unmask", *arguments]
    from unmask.cli.start import main

    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)  # taking down what the parent imported would take longest


if __name__ == "__main__":
    serve(sys.stdin)
