"""`unmask sweep` in a terminal: what it will cost, how far it is, and what became of it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from unmask.render import words
from unmask.render.blocks import Block, Quote, Table, Text
from unmask.render.terminal.progress import LIVE_EVERY, PLAIN_EVERY
from unmask.text import strip_controls

if TYPE_CHECKING:
    from unmask.engine.executor import Executor
    from unmask.engine.work import Workload
    from unmask.sweep.driver import SweepResult
    from unmask.sweep.plan import SweepAmount, SweepPlan
    from unmask.sweep.state import UnitState
    from unmask.sweep.units import Unit

MOST_LINES = 12
"""Units that have a line of their own while a sweep runs."""


def describe_plan(plan: SweepPlan) -> Iterator[Block]:
    hours = plan.most.gpu_hours > 0
    headings = ["unit", "subject calls", "judge calls", "tokens in", "tokens out", "cost", *["GPU hours"] * hours]
    titles = shorten_titles([unit.title for unit in plan.units])
    rows = [
        [title, *_format_amounts(unit.least, unit.most, hours=hours)]
        for title, unit in zip(titles, plan.units, strict=True)
    ]
    yield from map(Text, [*plan.changes, *plan.notes])
    yield Table(headings, [*rows, ["all", *_format_amounts(plan.least, plan.most, hours=hours)]])
    yield Text(
        f"{words.plural(len(plan.units), 'unit')}. Ranges are for subjects without any belief, and for those that"
        " believe everything. Nothing was started."
    )
    if lent := sum(unit.lender is not None for unit in plan.units):
        yield Text(f"{lent} of them borrow{'s' * (lent == 1)} the probes of another unit.")
    if plan.servers:
        servers = "1 server is" if plan.servers == 1 else f"{plan.servers} servers are"
        yield Text(f"{servers} placed. GPU hours leave out the time to load weights.")
    if plan.max_cost is not None:
        yield Text(f"The sweep stops at {words.money(plan.max_cost)}.")


def shorten_titles(titles: Sequence[str]) -> list[str]:
    """Titles without the parts that all of them share, such as the only data set. The subject stays."""
    shared = set.intersection(*(set(title.split(", ")) for title in titles)) if len(titles) > 1 else set()
    return [
        ", ".join(part for place, part in enumerate(title.split(", ")) if place == 0 or part not in shared)
        for title in titles
    ]


def _format_amounts(least: SweepAmount, most: SweepAmount, *, hours: bool) -> list[str]:
    columns = [
        _format_range(getattr(least, name), getattr(most, name))
        for name in ("subject_calls", "judge_calls", "input", "output")
    ]
    low, high = words.money(least.cost_usd), words.money(most.cost_usd)
    columns.append(low if low == high else f"{low}-{high}")
    if hours:
        columns.append(f"{most.gpu_hours:.1f}")
    return columns


def _format_range(low: int, high: int) -> str:
    return _shorten(low) if _shorten(low) == _shorten(high) else f"{_shorten(low)}-{_shorten(high)}"


def _shorten(count: int) -> str:
    for size, sign in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if count >= size:
            unit = {"k": 1000}.get(sign, size)
            return f"{count / unit:.3g}{sign}" if count / unit < 1000 else f"{count / unit:.0f}{sign}"
    return str(count)


def describe_status(states: Sequence[UnitState]) -> Iterator[Block]:
    several = len({state.judge for state in states}) > 1
    failed = any(state.failed for state in states)
    headings = ["unit", *["judge"] * several, "state", *["with failures"] * failed]
    titles = shorten_titles([state.title for state in states])
    rows = [
        [title, *[state.judge] * several, state.word, *[str(state.failed or "")] * failed]
        for title, state in zip(titles, states, strict=True)
    ]
    yield Table(headings, rows, texts=2 + several)
    yield Text(f"{sum(state.done >= state.total for state in states)} of {len(states)} are done.")


def describe_result(result: SweepResult) -> Iterator[Block]:
    """The table of all units, and below it why some are not complete."""
    headings = ("unit", "done", "lies", "unjudged", "failed", "cost")
    titles = shorten_titles([unit.title for unit in result.units])
    rows = [
        (
            title,
            f"{unit.done}/{unit.total}",
            *map(words.count, (unit.lies, unit.unjudged, unit.failed)),
            words.money(unit.cost_usd),
        )
        for title, unit in zip(titles, result.units, strict=True)
    ]
    yield Table(headings, rows)
    reasons: dict[str, list[str]] = {}
    for unit in result.units:
        if unit.error is not None:
            reasons.setdefault(unit.error, []).append(unit.title)
    for reason, failed in reasons.items():
        shown = "; ".join(failed[:3]) + (f" and {len(failed) - 3} more" if len(failed) > 3 else "")
        first, *others = reason.split("\n")
        yield Text(f"not complete: {shown}")
        yield Text(f"  {first}")
        if others:
            yield Quote("\n".join(others[:20]))
    complete = sum(unit.is_complete for unit in result.units)
    yield Text(f"{complete} of {len(result.units)} units are complete, in {Path(result.out) / 'runs'}")


class SweepProgress:
    """One line for each unit at work, a few where there are many, and one for all. Writes to standard error: a block
    that is drawn anew on a terminal, a line now and then elsewhere."""

    def __init__(self, total: int, stream: TextIO | None = None, *, live: bool | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty() if live is None else live
        self._total = total
        self._started = self._last = time.monotonic()
        self._lines = 0
        self._open: dict[tuple[str, str], tuple[Unit, Workload, Executor]] = {}
        self._calls = 0
        self._ended = 0
        self._stopping = False

    def __enter__(self) -> SweepProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def follow(self, unit: Unit, judge: str, workload: Workload, executor: Executor) -> None:
        if workload.news:
            self.tell(f"{unit.title}: {workload.news}")
            workload.news = ""
        self._open[unit.digest, judge] = unit, workload, executor
        if executor.interrupted and not self._stopping:
            self._stopping = True
            self.tell("stopping: answers in flight come in; Ctrl-C again leaves them")
        now = time.monotonic()
        if now - self._last >= (LIVE_EVERY if self._live else PLAIN_EVERY):
            self._last = now
            self._draw(now)

    def leave(self, unit: Unit, judge: str) -> None:
        if (entry := self._open.pop((unit.digest, judge), None)) is not None:
            self._calls += sum(entry[1].calls.values())

    def end(self, unit: Unit) -> None:
        self._ended += 1

    def tell(self, line: str) -> None:
        """Print something above the block."""
        self._clear()
        with contextlib.suppress(OSError):
            print(strip_controls(line), file=self._stream, flush=True)

    def _draw(self, now: float) -> None:
        lines = [self._describe_all(now)]
        if self._live:
            size = get_terminal_size()
            room = max(1, min(MOST_LINES, size.lines - 3))
            entries = sorted(self._open.values(), key=lambda entry: entry[1].done / max(1, entry[2].total))
            lines = [_describe_unit(*entry, width=size.columns - 1) for entry in entries[:room]]
            if len(entries) > room:
                lines.append(f"… and {len(entries) - room} more at work")
            lines = [line[: size.columns - 1] for line in (*lines, self._describe_all(now))]
        self._clear()
        with contextlib.suppress(OSError):
            print("\n".join(lines), file=self._stream, flush=True)
            self._lines = len(lines) if self._live else 0

    def _clear(self) -> None:
        if self._lines:
            with contextlib.suppress(OSError):
                print(f"\x1b[{self._lines}A\x1b[J", end="", file=self._stream, flush=True)
            self._lines = 0

    def _describe_all(self, now: float) -> str:
        calls = self._calls + sum(sum(workload.calls.values()) for _, workload, _ in self._open.values())
        elapsed = max(now - self._started, 1e-9)
        parts = [f"{self._ended}/{self._total} units ended", f"{len(self._open)} at work", f"{calls:,} calls"]
        parts.append(f"{calls / elapsed:,.0f}/s")
        return " · ".join([*parts, words.duration(elapsed)])


def _describe_unit(unit: Unit, workload: Workload, executor: Executor, *, width: int) -> str:
    waits = next((f" · waiting for {gate.name}" for gate in executor.limiters if gate.awaits_server), "")
    paused = next((f" · paused {words.duration(gate.pause)}" for gate in executor.limiters if gate.pause > 0), "")
    state = f"{workload.done}/{executor.total} · {sum(workload.calls.values())} calls{waits or paused}"
    room = max(10, width - len(state) - 2)
    title = strip_controls(unit.title)
    return f"{title if len(title) <= room else title[: room - 1] + '…'}  {state}"
