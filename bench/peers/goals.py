"""What was measured as a table, and what was promised about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.peers.cells import Cell, Found, Peer

OURS = (Peer.UNMASK, Peer.FULL)
SCRIPTS = (Peer.SCRIPT_10, Peer.SCRIPT_50)
"""Their judge prompts are ours: their tokens say nothing."""
COLUMNS = (
    *("takes", "latency", "client", "connections", "calls", "tokens in", "tokens out", "wall s", "÷ ideal"),
    *("CPU ms a call", "peak MB", "first call s", "most at a time", "endpoint busy", "as planted", "load"),
)
MET = {True: "met", False: "**missed**", None: "–"}


class Goal(NamedTuple):
    """`met` is None where the cells it needs were not measured."""

    what: str
    limit: str
    found: str
    met: bool | None


def list_lines(found: Sequence[Found]) -> Iterator[str]:
    """Both tables as Markdown."""
    yield from _table(COLUMNS, [_row(one) for one in sorted(found, key=lambda one: one.cell)])
    yield ""
    yield from _table(
        ("goal", "limit", "found", ""), [(goal.what, goal.limit, goal.found, MET[goal.met]) for goal in goals(found)]
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for line in (columns, ["---", *["--:"] * (len(columns) - 1)], *rows):
        yield f"| {' | '.join(line)} |"


def _row(one: Found) -> list[str]:
    cell = one.cell
    return [
        str(cell.takes),
        f"{1000 * cell.latency:g} ms, {cell.shape}" if cell.latency else "none",
        cell.peer.value,
        str(cell.connections),
        f"{one.calls:,}",
        "–" if cell.peer in SCRIPTS else f"{one.tokens_in:,}",
        f"{one.tokens_out:,}",
        f"{one.wall:.1f}" + (f" (stopped after {one.wall:.0f} s)" if one.stopped else ""),
        "–" if one.ratio is None else f"{one.ratio:.2f}",
        f"{one.cpu_ms_per_call:.2f}",
        f"{one.peak_mb:.0f}",
        "–" if one.first_call is None else f"{one.first_call:.2f}",
        str(one.most_at_a_time),
        f"{100 * one.endpoint_busy:.0f} %",
        "–" if one.stopped else f"{one.as_planted} of {cell.scenarios}",
        f"{one.load:.1f}",
    ]


def goals(found: Sequence[Found]) -> list[Goal]:
    ours = [one for one in found if one.cell.peer in OURS]
    peaks = [one.peak_mb for one in ours]
    return [
        *_cpu(found),
        *_wall(found),
        _at_most("peak memory, the worst cell", max(peaks, default=None), 120, "{:.0f} MB"),
        *_calls(found),
        _verdicts([one for one in ours if not one.stopped]),
    ]


def _at_most(what: str, value: float | None, limit: float, form: str) -> Goal:
    shown = "not measured" if value is None else form.format(value)
    return Goal(what, "≤ " + form.format(limit), shown, None if value is None else value <= limit)


def _cpu(found: Sequence[Found]) -> Iterator[Goal]:
    """Apart for each kind of waiting: where answers come one by one, waking up for each costs more than reading it."""
    theirs = {_place(one.cell): one for one in found if one.cell.peer is Peer.INSPECT}
    for name, latency, shape in (
        ("no latency", 0.0, "fixed"),
        ("500 ms, fixed", 0.5, "fixed"),
        ("500 ms, lognormal", 0.5, "lognormal"),
    ):
        shares = [
            one.cpu_ms_per_call / theirs[_place(one.cell)].cpu_ms_per_call
            for one in found
            if one.cell.peer is Peer.UNMASK
            and (one.cell.takes, one.cell.latency, one.cell.shape) == (1, latency, shape)
            and _place(one.cell) in theirs
        ]
        what = f"CPU per call against inspect_evals, one take, {name}, worst and best of {len(shares)} cells"
        value = f"1/{1 / max(shares):.1f}, 1/{1 / min(shares):.1f}" if shares else "not measured"
        yield Goal(what, "≤ 1/30", value, max(shares) <= 1 / 30 if shares else None)


def _place(cell: Cell) -> tuple[object, ...]:
    return cell.takes, cell.latency, cell.shape, cell.connections, cell.scenarios


def _wall(found: Sequence[Found]) -> Iterator[Goal]:
    for connections in (50, 200):
        for takes in (1, 10):
            wanted = (Peer.UNMASK, connections, takes, "fixed")
            ratios = [
                one.ratio
                for one in found
                if (one.cell.peer, one.cell.connections, one.cell.takes, one.cell.shape) == wanted and one.ratio
            ]
            what = f"wall against the ideal, 500 ms, {connections} connections, {_takes(takes)}"
            yield _at_most(what, max(ratios, default=None), 1.05, "{:.3f}")


def _calls(found: Sequence[Found]) -> Iterator[Goal]:
    """What a client sends depends on scenarios and takes alone, so one cell that it finished is enough."""
    for takes, limit in ((1, 65), (10, 40)):
        done = [one for one in found if not one.stopped and one.cell.takes == takes]
        pairs = [
            (one, other)
            for one in done
            for other in [other for other in done if other.cell.peer is Peer.INSPECT][-1:]
            if one.cell.peer is Peer.UNMASK and one.cell.scenarios == other.cell.scenarios
        ]
        calls = [100 * one.calls / other.calls for one, other in pairs]
        tokens = [100 * one.tokens_in / other.tokens_in for one, other in pairs]
        yield _at_most(f"calls against inspect_evals, {_takes(takes)}", max(calls, default=None), limit, "{:.1f} %")
        yield _at_most(
            f"prompt tokens against inspect_evals, {_takes(takes)}", max(tokens, default=None), 60, "{:.1f} %"
        )


def _verdicts(ours: Sequence[Found]) -> Goal:
    wrong = sum(one.cell.scenarios - one.as_planted for one in ours)
    shown = f"{wrong} others in {sum(one.cell.scenarios for one in ours)}" if ours else "not measured"
    return Goal("verdicts as planted, with every saving", "0 others", shown, wrong == 0 if ours else None)


def _takes(count: int) -> str:
    return "one take" if count == 1 else f"{count} takes"
