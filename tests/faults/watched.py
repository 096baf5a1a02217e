"""A command in a process of its own whose silence is measured: nothing for a minute means that it hangs."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from bench.process import ROOT
from tests.cli.forked import WORLD, ForkedProcess, forker
from tests.patience import PATIENCE

SILENCE = PATIENCE
"""Seconds without a line after which a run counts as hanging. A run promises a line every 30; a busy machine may need
some of them to start it."""


class Watched:
    """A running command. Both outputs are read as they come."""

    def __init__(self, process: subprocess.Popen[str] | ForkedProcess) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for stream, kept in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            threading.Thread(target=self._read, args=(stream, kept), daemon=True).start()

    def _read(self, stream: IO[str], kept: list[str]) -> None:
        with stream:
            for line in stream:
                kept.append(line)
                self._lines.put(line)
        self._lines.put(None)

    def next_line(self) -> str | None:
        """The next line of either output, None at the end; a failure if it is silent for too long."""
        try:
            return self._lines.get(timeout=SILENCE)
        except queue.Empty:
            raise AssertionError(f"silent for {SILENCE:g} s; before that: {self.errors[-2000:]}") from None

    def until(self, word: str) -> str:
        """Reads on to the first line with this word."""
        while (line := self.next_line()) is not None:
            if word in line:
                return line
        raise AssertionError(f"ended with {self.process.wait()} and never said {word!r}: {self.errors[-2000:]}")

    def when(self, ready: Callable[[], bool]) -> None:
        """Waits until something outside has happened, or the command has ended."""
        deadline = time.monotonic() + PATIENCE
        while not ready() and self.process.poll() is None:
            assert time.monotonic() < deadline, f"nothing happened: {self.errors[-2000:]}"
            time.sleep(0.005)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """The exit code, once both outputs are at their end."""
        open_ends = 2
        while open_ends:
            open_ends -= self.next_line() is None
        code = self.process.wait(SILENCE)
        assert "Traceback" not in self.errors, self.errors
        assert "bug in unmask" not in self.errors, self.errors
        assert "Unclosed" not in self.errors, self.errors
        return code

    @property
    def errors(self) -> str:
        return "".join(self.err)

    @property
    def printed(self) -> str:
        return "".join(self.out)


def start_python(*arguments: str) -> subprocess.Popen[str]:
    """A Python that begins from nothing."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def watched(
    verb: str, *flags: str, strange: tuple[str, ...] = (), fresh: bool = False, at_once: bool = False
) -> Iterator[Watched]:
    """`unmask VERB FLAGS` in a process of its own, which does not outlive the test: one forked from a Python that has
    imported the commands (`at_once`, `strange`: see `tests.cli.forked`), or a fresh one."""
    if fresh:
        child = Watched(start_python("-m", "unmask.cli.start", verb, *flags))
    else:
        env = {**os.environ, **({WORLD: " ".join(strange)} if strange else {})}
        child = Watched(forker().start([verb, *flags], cwd=ROOT, env=env, at_once=at_once))
    try:
        yield child
    finally:
        if child.process.poll() is None:
            child.process.kill()
        child.process.wait()


def finished(verb: str, *flags: str, strange: tuple[str, ...] = ()) -> Watched:
    """The command, when it has ended by itself. It has never been silent for too long and has shown no traceback. In a
    strange world its threads too have to end."""
    with watched(verb, *flags, strange=strange, at_once=not strange) as child:
        child.end()
        return child
