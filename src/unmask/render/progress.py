"""What a command says while it works, on standard error: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

from unmask.render import words
from unmask.text import shorten_error, strip_controls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unmask.engine.scenario import Executor
    from unmask.engine.work import Workload
    from unmask.models.limiter import Limiter
    from unmask.sweep.driver import Driver

QUIET = 5.0
"""Seconds without an answer after which the line says what is being waited for."""
STALLED = 30.0
"""Seconds of nothing but failures from an endpoint after which no time is left to say."""


class Log:
    """Plain lines."""

    every = 15.0
    """Seconds between two lines: a run that waits says so within 30."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, text: str, done: int, total: int) -> None:
        self.tell(text)

    def tell(self, text: str) -> None:
        # A log on a full disk, or a terminal that has gone, is no reason to stop a run.
        with contextlib.suppress(OSError):
            print(text, file=self._stream, flush=True)

    def close(self) -> None:
        pass


class Bar(Log):
    """A bar with words behind it, which stay below what is told."""

    every = 0.2

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        super().__init__(stream)
        self._progress = Progress(
            BarColumn(12, complete_style="blue", finished_style="blue"),
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1)),
            console=Console(file=stream, force_terminal=True, force_jupyter=False, highlight=False, emoji=False),
            auto_refresh=False,
            expand=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("")

    def show(self, text: str, done: int, total: int) -> None:
        with contextlib.suppress(OSError):
            self._progress.start()
            self._progress.update(self._task, description=text, completed=done, total=total, refresh=True)

    def tell(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._progress.console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._progress.stop()


def open_output() -> Log:
    return Bar(sys.stderr) if sys.stderr.isatty() else Log(sys.stderr)


class _Pace:
    """Says when the next line is due."""

    def __init__(self, every: float) -> None:
        self._every = every
        self.started = self._last = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def is_due(self, *, at_once: bool = False) -> bool:
        now = time.monotonic()
        if not at_once and now - self._last < self._every:
            return False
        self._last = now
        return True


class ProgressLine:
    """How far a run is. Used in a `with` block: what comes after it begins a line of its own."""

    def __init__(self, output: Log | None = None) -> None:
        self._output = output or open_output()
        self._pace = _Pace(self._output.every)
        self._calls = 0
        self._moved = 0.0
        """Seconds from the start to the last answer."""
        self._ended = self._stopping = self._awaits = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.close()

    def __call__(self, workload: Workload, executor: Executor) -> None:
        if workload.news:
            self._output.tell(workload.news)
            workload.news = ""
        if (calls := sum(workload.calls.values())) != self._calls:
            self._calls, self._moved = calls, self._pace.elapsed
        if executor.stopping is not None and executor.in_flight and not self._stopping:
            self._stopping = True
            again, left = " again" * executor.interrupted, "it" if executor.in_flight == 1 else "them"
            answers = words.plural(executor.in_flight, "answer")
            self._output.tell(f"stopping: {answers} in flight; Ctrl-C{again} leaves {left}")
            return
        finished = workload.done >= executor.total
        awaits = any(endpoint.awaits_server for endpoint in executor.limiters)
        news, self._awaits = awaits and not self._awaits, awaits
        if not self._ended and self._pace.is_due(at_once=finished or news):
            self._ended = finished
            parts = " · ".join(filter(None, self._list_parts(workload, executor, finished=finished)))
            self._output.show(parts, workload.done, executor.total)

    def _list_parts(self, workload: Workload, executor: Executor, *, finished: bool) -> Iterator[str]:
        failed = sum(workload.failed.values())
        lies = workload.estimate_p_lie()
        yield f"{workload.done}/{executor.total} scenarios"
        if finished:
            yield f"{words.duration(self._pace.elapsed)} in all"
        elif stalled := _describe_stalled(executor.limiters):
            yield stalled
        elif executor.stopping is None and not workload.waits and workload.worked:
            # As of the last answer: a slow model does not take longer because nothing has come since.
            seconds = self._moved / workload.worked * (executor.total - workload.done)
            yield f"about {words.duration(seconds)} left"
        yield f"lies so far {lies}" if lies.total else ""
        yield words.money(workload.bill.cost) if workload.bill.cost else ""
        yield _describe_calls(self._calls, self._pace.elapsed)
        yield f"{failed} failed" if failed else ""
        yield from _describe_slowdown(executor.limiters)
        silent = self._pace.elapsed - self._moved
        if not finished:
            wait = _describe_wait(executor, silent=silent) if self._awaits or silent >= QUIET else ""
            yield workload.waits or wait


def show_progress(*, quiet: bool = False) -> AbstractContextManager[ProgressLine | bool]:
    """A progress line for the time of a `with` block, or False: none is wanted."""
    return contextlib.nullcontext(False) if quiet else ProgressLine()


class SweepProgress:
    """One line for all units of a sweep, and above it what is printed once."""

    def __init__(self) -> None:
        self._output = open_output()
        self._pace = _Pace(self._output.every)

    def __enter__(self) -> SweepProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.close()

    def show(self, driver: Driver) -> None:
        """Called after every answer, and every second."""
        if self._pace.is_due():
            parts = self._list_parts(driver)
            self._output.show(" · ".join(filter(None, parts)), driver.ended, len(driver.results))

    def tell(self, line: str) -> None:
        self._output.tell(strip_controls(line))

    def _list_parts(self, driver: Driver) -> Iterator[str]:
        calls = sum(result.calls for result in driver.results.values())
        calls += sum(sum(workload.calls.values()) for workload, _ in driver.at_work.values())
        limiters = [limiter for _, executor in driver.at_work.values() for limiter in executor.limiters]
        waits = sorted({limiter.name for limiter in limiters if limiter.awaits_server})
        yield f"{driver.ended}/{len(driver.results)} units ended"
        yield f"{len(driver.at_work)} at work"
        yield _describe_calls(calls, self._pace.elapsed)
        yield words.duration(self._pace.elapsed)
        yield _describe_stalled(limiters)
        yield f"waiting for {', '.join(waits[:3])}" if waits else ""


def _describe_calls(calls: int, elapsed: float) -> str:
    """With their pace: a second, or a minute where that would be none."""
    per_minute = 60 * calls / max(elapsed, 1e-9)
    pace = f"{per_minute / 60:.0f}/s" if per_minute >= 60 else f"{per_minute:.{0 if per_minute >= 10 else 1}f}/min"
    return f"{calls:,} calls{f', {pace}' if calls else ''}"


def _describe_stalled(limiters: Sequence[Limiter]) -> str:
    stalled = max((limiter.stalled for limiter in limiters), default=0.0)
    return f"stalled {words.duration(stalled)}" if stalled >= STALLED else ""


def _describe_slowdown(endpoints: Sequence[Limiter]) -> Iterator[str]:
    """What endpoints hold a run back by."""
    if retries := sum(endpoint.retries for endpoint in endpoints):
        yield f"{retries} retries"
    for endpoint in endpoints:
        if endpoint.throttles and endpoint.limit < endpoint.limits.max_connections:
            yield f"slowed to {endpoint.limit} connections"


def _describe_wait(executor: Executor, *, silent: float) -> str:
    """What a run without news waits for, for how long, and why where a request has failed."""
    endpoints = executor.limiters
    starting = [f"waiting for {one.name} to come up{_quote_error(one)}" for one in endpoints if one.awaits_server]
    paused = [
        f"paused for {words.duration(one.pause)} by {one.name}{_quote_error(one)}" for one in endpoints if one.pause > 0
    ]
    under_way = sum(endpoint.in_flight for endpoint in endpoints)
    if starting or paused:
        what = ", ".join(starting[:1] or paused)
    elif under_way:
        what = f"waiting for {words.plural(under_way, 'answer')}"
    else:
        errors = "".join(map(_quote_error, endpoints))
        what = f"waiting to try {executor.in_flight} requests again{errors}"
    return f"{what}, nothing for {words.duration(silent)}"


def _quote_error(endpoint: Limiter) -> str:
    """The last error of an endpoint in brackets, without the model and the address it begins with."""
    return f" ({shorten_error(endpoint.last_error)})" if endpoint.last_error is not None else ""


def print_step(text: str) -> None:
    """Say what begins now and may take minutes."""
    print(f"{text} …", file=sys.stderr, flush=True)
