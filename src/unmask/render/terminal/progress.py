"""What a command says while it works, on standard error: how far a run is, in a live line on a terminal and in plain
lines elsewhere; and what begins."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from unmask.render import words
from unmask.text import shorten_error, strip_controls

if TYPE_CHECKING:
    from unmask.engine.executor import Executor
    from unmask.engine.work import Workload
    from unmask.models.limiter import Limiter
    from unmask.sweep.units import Unit

LIVE_EVERY = 0.2
PLAIN_EVERY = 15.0
"""Seconds between two lines in a log; a run that waits says so within 30."""
QUIET = 5.0
"""Seconds without an answer after which the line says what is being waited for."""
EXPECTED_WEIGHT = 5
"""Finished scenarios that count as much as what was expected of them."""
STALLED = 30.0
"""Seconds of nothing but failures from an endpoint after which no time is left to say."""


class ProgressLine:
    """Shows done/total, calls per second, the share of lies so far, cost and time left. Writes to standard error.

    Used in a `with` block: at its end a live line is ended too, so that what comes next begins a line of its own."""

    def __init__(self, stream: TextIO | None = None, *, live: bool | None = None) -> None:
        self._stream = stream or sys.stderr
        self.live = self._stream.isatty() if live is None else live
        self._started = time.monotonic()
        self._last = self._started
        self._width = 0
        self._ended = False
        self._stopping = False
        self._awaits = False
        self._calls = 0
        self._moved = self._started
        self._expected: float | None = None

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            with contextlib.suppress(OSError):
                print(file=self._stream, flush=True)
            self._width = 0

    def __call__(self, workload: Workload, executor: Executor) -> None:
        now = time.monotonic()
        if workload.news:
            self.write(workload.news, end=True)
            workload.news = ""
        if (calls := sum(workload.calls.values())) != self._calls:
            self._calls, self._moved = calls, now
        if executor.stopping is not None and executor.in_flight and not self._stopping:
            self._stopping = True
            again = " again" if executor.interrupted else ""
            left = "it" if executor.in_flight == 1 else "them"
            answers = _count_answers(executor.in_flight)
            self.write(f"stopping: {answers} in flight; Ctrl-C{again} leaves {left}", end=True)
            return
        finished = workload.done >= executor.total
        awaits = any(endpoint.awaits_server for endpoint in executor.limiters)
        if awaits and not self._awaits:
            self._last = float("-inf")  # said at once, not with the next line
        self._awaits = awaits
        if self._ended or (not finished and now - self._last < (LIVE_EVERY if self.live else PLAIN_EVERY)):
            return
        self._last, self._ended = now, finished
        parts = self.list_parts(workload, executor, now - self._started)
        if workload.waits:
            parts["wait"] = workload.waits
        elif not finished and (awaits or now - self._moved >= QUIET):
            parts["wait"] = _describe_wait(executor, silent=now - self._moved)
        self.write(fit_parts(parts, get_terminal_size().columns - 1 if self.live else None), end=finished)

    def list_parts(self, workload: Workload, executor: Executor, elapsed: float) -> dict[str, str]:
        """The parts of the line by name, in their order; one that has nothing to say is empty or absent."""
        calls = sum(workload.calls.values())
        failed = sum(workload.failed.values())
        lies = workload.estimate_p_lie()
        parts = {
            "done": f"{workload.done}/{executor.total} scenarios",
            "calls": f"{calls} calls",
            "pace": _format_pace(calls / max(elapsed, 1e-9)) if calls else "",
            "lies": f"lies so far {lies}" if lies.total else "",
            "cost": words.money(workload.bill.cost) if workload.bill.cost else "",
            "failed": f"{failed} failed" if failed else "",
            "slowdown": " · ".join(_describe_slowdown(executor)),
        }
        if workload.done >= executor.total:
            parts["time"] = f"{words.duration(elapsed)} in all"
        elif (stalled := max((limiter.stalled for limiter in executor.limiters), default=0.0)) >= STALLED:
            parts["time"] = f"stalled {words.duration(stalled)}"
        elif executor.stopping is None and not workload.waits and calls and (each := self._calls_each(workload)):
            # As of the last answer: a slow model does not take longer because nothing has come since.
            until_news = min(elapsed, max(self._moved - self._started, 0.0) or elapsed)
            open_scenarios = executor.total - workload.done
            to_send = max(open_scenarios, each * open_scenarios - (calls - workload.worked_calls))
            parts["time"] = f"about {words.duration(until_news * to_send / calls)} left"
        return parts

    def _calls_each(self, workload: Workload) -> float:
        """Calls that a scenario takes: as expected at first, then as those that are finished took. 0 if unknown."""
        if self._expected is None:
            from unmask.engine.estimate import expect_calls

            self._expected = expect_calls(workload)
        weight = EXPECTED_WEIGHT if self._expected else 0
        scenarios = workload.worked + weight
        return (workload.worked_calls + weight * self._expected) / scenarios if scenarios else 0.0

    def write(self, text: str, *, end: bool = False) -> None:
        # A log on a full disk, or a terminal that has gone, is no reason to stop a run.
        with contextlib.suppress(OSError):
            if not self.live:
                print(text, file=self._stream, flush=True)
                return
            print("\r" + text.ljust(self._width), end="\n" if end else "", file=self._stream, flush=True)
            self._width = 0 if end else len(text)


SHORTER: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("lies", lambda text: text.replace(" so far", "").partition(" [")[0]),
    ("calls", lambda _: ""),
    ("slowdown", lambda _: ""),
    ("pace", lambda _: ""),
    ("lies", lambda _: ""),
    ("cost", lambda _: ""),
    ("failed", lambda _: ""),
)
"""What gives way where the line is too long, in this order. How far the run is and the time left always stay."""


def fit_parts(parts: dict[str, str], width: int | None) -> str:
    """One line of at most `width` characters, or as long as it is."""
    parts = dict(parts)
    line = " · ".join(filter(None, parts.values()))
    for name, shorten in SHORTER:
        if width is None or len(line) <= width:
            return line
        parts[name] = shorten(parts.get(name, ""))
        line = " · ".join(filter(None, parts.values()))
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


def show_progress(*, quiet: bool = False) -> AbstractContextManager[ProgressLine | bool]:
    """A progress line for the time of a `with` block, or False: none is wanted."""
    return contextlib.nullcontext(False) if quiet else ProgressLine()


class SweepProgress:
    """One line for all units of a sweep, and above it what is said once."""

    def __init__(self, total: int) -> None:
        self._line = ProgressLine()
        self._total, self._ended, self._calls = total, 0, 0
        self._started = self._last = time.monotonic()
        self._open: dict[tuple[str, str], tuple[Workload, Executor]] = {}
        self._stopping = False

    def __enter__(self) -> SweepProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.__exit__()

    def follow(self, unit: Unit, judge: str, workload: Workload, executor: Executor) -> None:
        """Called after every answer of a unit, and every second."""
        if workload.news:
            self.tell(f"{unit.title}: {workload.news}")
            workload.news = ""
        self._open[unit.digest, judge] = workload, executor
        if executor.interrupted and not self._stopping:
            self._stopping = True
            self.tell("stopping: answers in flight come in; Ctrl-C again leaves them")
        now = time.monotonic()
        if now - self._last >= (LIVE_EVERY if self._line.live else PLAIN_EVERY):
            self._last = now
            width = get_terminal_size().columns - 1 if self._line.live else None
            self._line.write(" · ".join(filter(None, self._list_parts(now - self._started)))[:width])

    def leave(self, unit: Unit, judge: str) -> None:
        """A judge has come to the end of a unit."""
        if (entry := self._open.pop((unit.digest, judge), None)) is not None:
            self._calls += sum(entry[0].calls.values())

    def end(self, unit: Unit) -> None:
        """All judges have."""
        self._ended += 1

    def tell(self, line: str) -> None:
        self._line.write(strip_controls(line), end=True)

    def _list_parts(self, elapsed: float) -> list[str]:
        calls = self._calls + sum(sum(workload.calls.values()) for workload, _ in self._open.values())
        limiters = [limiter for _, executor in self._open.values() for limiter in executor.limiters]
        waits = sorted({limiter.name for limiter in limiters if limiter.awaits_server})
        stalled = max((limiter.stalled for limiter in limiters), default=0.0)
        return [
            f"{self._ended}/{self._total} units ended",
            f"{len(self._open)} at work",
            f"{calls:,} calls",
            _format_pace(calls / max(elapsed, 1e-9)) if calls else "",
            words.duration(elapsed),
            f"stalled {words.duration(stalled)}" if stalled >= STALLED else "",
            f"waiting for {', '.join(waits[:3])}" if waits else "",
        ]


def _describe_slowdown(executor: Executor) -> list[str]:
    """Says so when endpoints hold the run back."""
    endpoints = executor.limiters
    retries = sum(endpoint.retries for endpoint in endpoints)
    slowed = [
        endpoint for endpoint in endpoints if endpoint.throttles and endpoint.limit < endpoint.limits.max_connections
    ]
    parts = [f"{retries} retries"] if retries else []
    return parts + [f"slowed to {endpoint.limit} connections" for endpoint in slowed]


def _describe_wait(executor: Executor, *, silent: float) -> str:
    """What a run without news waits for, for how long, and why where a request has failed."""
    endpoints = executor.limiters
    for_long = f", nothing for {words.duration(silent)}"
    for endpoint in endpoints:
        if endpoint.awaits_server:
            return f"waiting for {endpoint.name} to come up{_quote_error(endpoint)}{for_long}"
    paused = [
        f"paused for {words.duration(endpoint.pause)} by {endpoint.name}{_quote_error(endpoint)}"
        for endpoint in endpoints
        if endpoint.pause > 0
    ]
    if paused:
        return ", ".join(paused) + for_long
    under_way = sum(endpoint.in_flight for endpoint in endpoints)
    if under_way:
        return f"waiting for {_count_answers(under_way)}{for_long}"
    errors = "".join(filter(None, map(_quote_error, endpoints)))
    return f"waiting to try {executor.in_flight} requests again{errors}{for_long}"


def _quote_error(endpoint: Limiter) -> str:
    """The last error of an endpoint in brackets, without the model and the address it begins with."""
    if endpoint.last_error is None:
        return ""
    return f" ({shorten_error(endpoint.last_error)})"


def _count_answers(count: int) -> str:
    return f"{count} answer{'' if count == 1 else 's'}"


def _format_pace(per_second: float) -> str:
    """Calls a second, or a minute where that would be none."""
    if per_second >= 1:
        return f"{per_second:.0f}/s"
    per_minute = 60 * per_second
    return f"{per_minute:.0f}/min" if per_minute >= 10 else f"{per_minute:.1f}/min"


def print_step(text: str) -> None:
    """Say what begins now and may take minutes."""
    print(f"{text} …", file=sys.stderr, flush=True)
