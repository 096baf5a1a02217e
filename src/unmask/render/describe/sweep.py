"""`unmask sweep`: what it will cost, how far it is, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.render import words
from unmask.render.blocks import Block, Quote, Table, Text
from unmask.sweep.driver import SweepResult
from unmask.sweep.plan import SweepAmount, SweepPlan
from unmask.sweep.state import UnitState

ENDS = {"least": "at least", "likely": "likely", "most": "at most"}


def describe_plan(plan: SweepPlan) -> Iterator[Block]:
    hours = plan.most.gpu_hours > 0
    headings = ["unit", "subject calls", "judge calls", "tokens in", "tokens out", "cost", *["GPU hours"] * hours]
    titles = shorten_titles([unit.title for unit in plan.units])
    rows = [[title, *_format_amount(unit.likely, hours)] for title, unit in zip(titles, plan.units, strict=True)]
    rows += [[f"all, {shown}", *_format_amount(getattr(plan, end), hours)] for end, shown in ENDS.items()]
    yield from map(Text, [*plan.changes, *plan.notes])
    yield Table(headings, rows)
    yield Text(f"{words.plural(len(plan.units), 'unit')}, each with its likely values. Nothing was started.")
    if lent := sum(unit.lender is not None for unit in plan.units):
        yield Text(f"{lent} of them borrow{'s' * (lent == 1)} the probes of another unit.")
    if plan.servers:
        starts = words.plural(plan.servers, "server")
        yield Text(f"The sweep starts {starts}. GPU hours leave out the time to load weights.")
    if plan.max_cost is not None:
        yield Text(f"The sweep stops at {words.money(plan.max_cost)}.")


def shorten_titles(titles: Sequence[str]) -> list[str]:
    """Titles without the parts that all of them share, such as the only data set. The subject stays."""
    shared = set.intersection(*(set(title.split(", ")) for title in titles)) if len(titles) > 1 else set()
    return [
        ", ".join(part for place, part in enumerate(title.split(", ")) if place == 0 or part not in shared)
        for title in titles
    ]


def _format_amount(amount: SweepAmount, hours: bool) -> list[str]:
    counts = (amount.subject_calls, amount.judge_calls, amount.input, amount.output)
    return [*map(_shorten, counts), words.money(amount.cost_usd), *[f"{amount.gpu_hours:.1f}"] * hours]


def _shorten(count: int) -> str:
    for size, sign in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if count >= size:
            unit = {"k": 1000}.get(sign, size)
            return f"{count / unit:.3g}{sign}" if count / unit < 1000 else f"{count / unit:.0f}{sign}"
    return f"{count:,}"


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
