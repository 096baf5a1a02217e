"""How a run looks while it runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from unmask.records import Verdict
from unmask.render.terminal.silence import note_output
from unmask.stats.rate import rate

if TYPE_CHECKING:
    from unmask.engine.executor import Executor
    from unmask.engine.work import Workload

LIVE_EVERY = 0.2
PLAIN_EVERY = 15.0
"""Seconds between two lines in a log; a run that waits says so within 30."""
QUIET = 5.0
"""Seconds without an answer after which the line says what is being waited for."""


class ProgressLine:
    """Shows done/total, calls per second, the share of lies so far, cost and time left. Writes to standard error."""

    def __init__(self, stream: TextIO | None = None, *, live: bool | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty() if live is None else live
        self._started = time.monotonic()
        self._last = self._started
        self._width = 0
        self._ended = False
        self._stopping = False
        self._calls = 0
        self._moved = self._started

    def __call__(self, workload: Workload, executor: Executor) -> None:
        now = time.monotonic()
        if (calls := sum(workload.calls.values())) != self._calls:
            self._calls, self._moved = calls, now
        if executor.stopping is not None and executor.in_flight and not self._stopping:
            self._stopping = True
            again = " again" if executor.interrupted else ""
            self._write(
                f"stopping: {_count_answers(executor.in_flight)} in flight; Ctrl-C{again} leaves them", end=True
            )
            return
        finished = workload.done >= executor.total
        if self._ended or (not finished and now - self._last < (LIVE_EVERY if self._live else PLAIN_EVERY)):
            return
        self._last, self._ended = now, finished
        parts = [self.format_line(workload, executor, now - self._started)]
        if not finished and now - self._moved >= QUIET:
            parts.append(f"{_describe_wait(executor)}, nothing for {_format_duration(now - self._moved)}")
        self._write(" · ".join(parts), end=finished)

    def format_line(self, workload: Workload, executor: Executor, elapsed: float) -> str:
        """The line itself; pure but for its arguments."""
        calls = sum(workload.calls.values())
        counts = workload.verdicts
        judged = sum(counts.values()) - counts[Verdict.UNJUDGED]
        parts = [f"{workload.done}/{executor.total} scenarios", f"{calls} calls", f"{calls / max(elapsed, 1e-9):.0f}/s"]
        if judged:
            parts.append(f"lies so far {rate(counts[Verdict.LIE], judged, unjudged=counts[Verdict.UNJUDGED])}")
        if workload.bill.cost:
            parts.append(f"${workload.bill.cost:.2f}")
        if failed := sum(workload.failed.values()):
            parts.append(f"{failed} failed")
        parts += _describe_slowdown(executor)
        if workload.done >= executor.total:
            parts.append(f"{_format_duration(elapsed)} in all")
        elif here := workload.done - executor.already:
            parts.append(f"about {_format_duration(elapsed / here * (executor.total - workload.done))} left")
        return " · ".join(parts)

    def _write(self, text: str, *, end: bool) -> None:
        # A log on a full disk, or a terminal that has gone, is no reason to stop a run.
        note_output()
        with contextlib.suppress(OSError):
            if not self._live:
                print(text, file=self._stream, flush=True)
                return
            width = get_terminal_size().columns
            shown = text if len(text) < width else text[: width - 2] + "…"
            print("\r" + shown.ljust(self._width), end="\n" if end else "", file=self._stream, flush=True)
            self._width = len(shown)


def _describe_slowdown(executor: Executor) -> list[str]:
    """Says so when endpoints hold the run back."""
    endpoints = {id(line.endpoint): line.endpoint for line in executor.lines.values()}.values()
    retries = sum(endpoint.retries for endpoint in endpoints)
    slowed = [
        endpoint for endpoint in endpoints if endpoint.throttles and endpoint.limit < endpoint.limits.max_connections
    ]
    parts = [f"{retries} retries"] if retries else []
    return parts + [f"slowed to {endpoint.limit} connections" for endpoint in slowed]


def _describe_wait(executor: Executor) -> str:
    """What a run without news waits for."""
    endpoints = {id(line.endpoint): line.endpoint for line in executor.lines.values()}.values()
    paused = [
        f"paused for {_format_duration(paused_endpoint.pause)} by {paused_endpoint.name}"
        for paused_endpoint in endpoints
        if paused_endpoint.pause > 0
    ]
    if paused:
        return ", ".join(paused)
    under_way = sum(endpoint.in_flight for endpoint in endpoints)
    if under_way:
        return f"waiting for {_count_answers(under_way)}"
    return f"waiting to try {executor.in_flight} requests again"


def _count_answers(count: int) -> str:
    return f"{count} answer{'' if count == 1 else 's'}"


def _format_duration(seconds: float) -> str:
    rounded = round(seconds)
    if rounded < 90:
        return f"{rounded} s"
    return f"{rounded // 60} min" if rounded < 5400 else f"{rounded / 3600:.1f} h"
