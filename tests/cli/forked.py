"""Runs commands in processes of their own that need not start Python again: each is forked from one that has imported
every command. The child has its own working directory, environment and streams, and ends as the console script does.

One that is run to its end ends at once; one that is started, to be watched and sent signals, goes down as Python does,
with its threads and what it registered for its exit.

What depends on how Python starts (encodings, the first import of a module) belongs into a process of its own. Two
variables of its environment are for the child alone, which does not see them: WORLD is altered first
(`tests.faults.strange`), and MOUNTS is a process whose mounted file systems it sees in place of its own.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import IO, TextIO

LIMIT = 600
"""Seconds for one command."""
OUTSIDE = (
    *("aiohttp", "genai_prices", "jinja2", "matplotlib.figure", "numpy.random", "scipy.special"),
    *("rich.console", "rich.progress", "rich.table", "rich.text"),
)
WORLD, MOUNTS = "TESTS_WORLD", "TESTS_MOUNTS"


class ForkedProcess:
    """A command under way, with what tests use of `subprocess.Popen`. Its parent is not this process: that one tells
    first its number and later its exit code through a pipe."""

    def __init__(self, out: int, err: int, told: int) -> None:
        self.stdout: IO[str] = os.fdopen(out)
        self.stderr: IO[str] = os.fdopen(err)
        self.returncode: int | None = None
        self._told = os.fdopen(told, "rb", buffering=0)  # `select` sees nothing of what is in a buffer
        self._lock = threading.Lock()
        self.pid = int(self._told.readline())

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._told], [], [], 0)[0]:
                self._read_code()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            if self.returncode is None:
                if not select.select([self._told], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("unmask", timeout or 0.0)
                self._read_code()
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Both outputs to their ends, and then the exit code."""
        with ThreadPoolExecutor(2) as pool:
            out, err = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                said = out.result(timeout), err.result(timeout)
            except TimeoutError:
                self.kill()
                raise
        self.wait(timeout)
        return said

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read_code(self) -> None:
        self.returncode = int(self._told.readline())
        self._told.close()


class Forker:
    """The process from which commands are forked. It has no threads (`tests.conftest`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.forked", str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parent.parent.parent,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.close)

    def start(
        self, arguments: list[str], *, cwd: Path, env: dict[str, str], at_once: bool = False, merged: bool = False
    ) -> ForkedProcess:
        """The command, left to itself, with nothing to read. Any number of them may be under way. `at_once`: it ends as
        one that is run does. `merged`: what it says to stderr stands in stdout too, and only there."""
        pairs = [os.pipe() for _ in range(3)]
        (_, out), (_, err), (_, told) = pairs
        with self._lock:
            self._write([arguments, str(cwd.absolute()), env, at_once])
            socket.send_fds(self._socket, [b"."], [out, out if merged else err, told])
        for _, ours in pairs:
            os.close(ours)
        return ForkedProcess(*(reading for reading, _ in pairs))

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
            assert self._process.stdout is not None
            self._write([arguments, str(cwd.absolute()), env, streams])
            ready, _, _ = select.select([self._process.stdout], [], [], LIMIT)
            assert ready, f"no end after {LIMIT} s: unmask {' '.join(arguments)}"
            return int(self._process.stdout.readline())

    def _write(self, request: list[object]) -> None:
        assert self._process.stdin is not None
        json.dump(request, self._process.stdin)
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()


@cache
def forker() -> Forker:
    """One for each process of tests, started by its first user."""
    return Forker()


def import_everything() -> None:
    """All of unmask, and what its commands import when they get to it: a child should find both."""
    import unmask

    # All but the first take seconds, and no command needs them: a task of Inspect is begun by Inspect.
    apart = ("unmask.__main__", "unmask.whitebox", "unmask.interop.inspect.registry", "unmask.interop.inspect.task")
    own = [module.name for module in walk_packages(unmask.__path__, "unmask.")]
    for name in (*(name for name in own if not name.startswith(apart)), *OUTSIDE):
        with suppress(ImportError):  # extras may be missing; what needs them says so itself
            import_module(name)


def serve(requests: TextIO, streams: socket.socket) -> None:
    gc.disable()
    import_everything()
    gc.enable()
    gc.freeze()  # looking through all that in each child would copy it
    keepers: set[int] = set()
    for line in iter(requests.readline, ""):
        arguments, cwd, env, paths = json.loads(line)
        if isinstance(paths, bool):
            _, (out, err, told), _, _ = socket.recv_fds(streams, 1, 3)
            keepers = {pid for pid in keepers if not os.waitpid(pid, os.WNOHANG)[0]}
            keeper = os.fork()
            if not keeper:
                keep(told, [os.open(os.devnull, os.O_RDONLY), out, err], arguments, cwd, env, at_once=paths)
            keepers.add(keeper)
            for number in (out, err, told):
                os.close(number)
            continue
        child = os.fork()
        if not child:
            ways = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
            opened = [os.open(path, way) for path, way in zip(paths, ways, strict=True)]
            os._exit(become(arguments, cwd, env, opened))  # taking down what the parent imported would take longest
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def keep(told: int, streams: list[int], arguments: list[str], cwd: str, env: dict[str, str], *, at_once: bool) -> None:
    """Fork the command, tell its number, wait for its end, and tell its exit code."""
    child = os.fork()
    if not child:
        os.close(told)
        code = become(arguments, cwd, env, streams)
        (os._exit if at_once else sys.exit)(code)
    for number in (0, 1, 2, *streams):
        os.close(number)
    os.write(told, b"%d\n" % child)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def become(arguments: list[str], cwd: str, env: dict[str, str], streams: list[int]) -> int:
    """The command, in this process, to its exit code; after `-c` a program of Python, as Python itself takes it."""
    for number, opened in enumerate(streams):
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), errors="strict")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)), errors="backslashreplace", line_buffering=True
    )
    if holder := env.pop(MOUNTS, None):
        join_mounts(holder)
    os.chdir(cwd)
    world = env.pop(WORLD, "")
    os.environ.clear()
    os.environ.update(env)
    if world:
        from tests.faults.strange import alter

        alter(world.split())
    from unmask.cli.start import main

    code: object = 1
    try:
        if arguments[:1] == ["-c"]:
            sys.argv = ["-c", *arguments[2:]]
            exec(arguments[1], {"__name__": "__main__"})
            code = 0
        else:
            sys.argv = ["unmask", *arguments]
            main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code if isinstance(code, int) else 0


def join_mounts(holder: str) -> None:
    """See the file systems that this process has mounted. `os.setns` is new in Python 3.12."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in ("user", "mnt"):  # who is not root may enter the second only from inside the first
        path = f"/proc/{holder}/ns/{kind}"
        if os.readlink(path) == os.readlink(f"/proc/self/ns/{kind}"):
            continue
        namespace = os.open(path, os.O_RDONLY)
        if libc.setns(namespace, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        os.close(namespace)


if __name__ == "__main__":
    serve(sys.stdin, socket.socket(fileno=int(sys.argv[1])))
