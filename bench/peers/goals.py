"""What was promised about the figures, and whether they show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

from bench.peers.cells import Cell, Found, Peer

OURS = (Peer.UNMASK, Peer.FULL)


class Goal(NamedTuple):
    """`met` is None where the cells it needs were not measured."""

    what: str
    limit: str
    found: str
    met: bool | None


def goals(found: Sequence[Found], *, help_ms: float | None) -> list[Goal]:
    return [
        *_cpu(found),
        *_wall(found),
        _memory(found),
        *_calls(found),
        _verdicts(found),
        _at_most("`unmask --help`", help_ms, 150, "{:.0f} ms"),
    ]


def _at_most(what: str, value: float | None, limit: float, form: str) -> Goal:
    shown = "not measured" if value is None else form.format(value)
    return Goal(what, "≤ " + form.format(limit), shown, None if value is None else value <= limit)


def _pairs(found: Sequence[Found], ours: Peer) -> Iterator[tuple[Found, Found]]:
    """Our cells with inspect_evals in the same place."""
    theirs = {_place(one.cell): one for one in found if one.cell.peer is Peer.INSPECT}
    for one in found:
        if one.cell.peer is ours and _place(one.cell) in theirs:
            yield one, theirs[_place(one.cell)]


def _place(cell: Cell) -> tuple[object, ...]:
    return cell.takes, cell.latency, cell.shape, cell.connections, cell.scenarios


def _work(one: Found) -> tuple[int, int] | None:
    return None if one.stopped else (one.cell.takes, one.cell.scenarios)


def _cpu(found: Sequence[Found]) -> Iterator[Goal]:
    """Apart for each kind of waiting: where answers come one by one, waking up for each costs more than reading it."""
    for name, latency, shape in (
        ("no latency", 0.0, "fixed"),
        ("500 ms, fixed", 0.5, "fixed"),
        ("500 ms, lognormal", 0.5, "lognormal"),
    ):
        pairs = [
            pair
            for pair in _pairs(found, Peer.UNMASK)
            if (pair[0].cell.takes, pair[0].cell.latency, pair[0].cell.shape) == (1, latency, shape)
        ]
        shares = [one.cpu_ms_per_call / other.cpu_ms_per_call for one, other in pairs if other.cpu_ms_per_call]
        what = f"CPU per call against inspect_evals, one take, {name}, worst and best of {len(shares)} cells"
        value = f"1/{1 / max(shares):.1f}, 1/{1 / min(shares):.1f}" if shares else "not measured"
        yield Goal(what, "≤ 1/30", value, max(shares) <= 1 / 30 if shares else None)
    whole = [_cpu_of(one) / _cpu_of(other) for one, other in _pairs(found, Peer.UNMASK) if not other.stopped]
    value = f"1/{1 / max(whole):.0f}, 1/{1 / min(whole):.0f}" if whole else "not measured"
    yield Goal(f"CPU of a whole run against inspect_evals, worst and best of {len(whole)} cells", "none", value, None)


def _cpu_of(one: Found) -> float:
    return one.calls * one.cpu_ms_per_call


def _wall(found: Sequence[Found]) -> Iterator[Goal]:
    for connections in (50, 200):
        for takes in (1, 10):
            cells = [
                one
                for one in found
                if one.cell.peer is Peer.UNMASK
                and (one.cell.connections, one.cell.takes, one.cell.shape) == (connections, takes, "fixed")
                and one.ratio is not None
            ]
            worst = max(cells, key=lambda one: one.ratio or 0.0, default=None)
            what = f"wall against the ideal, 500 ms, {connections} connections, {_takes(takes)}"
            goal = _at_most(what, worst.ratio if worst else None, 1.05, "{:.3f}")
            yield goal if worst is None else goal._replace(found=f"{goal.found} ({_least(worst)})")


def _least(one: Found) -> str:
    """What no client can go below: the last round takes as long as the others, however few calls are left for it."""
    rounds = ceil(one.calls / one.cell.connections)
    return f"{rounds} rounds alone are {rounds * one.cell.latency / one.ideal:.3f}"


def _memory(found: Sequence[Found]) -> Goal:
    peaks = [one.peak_mb for one in found if one.cell.peer in OURS]
    return _at_most("peak memory, the worst cell", max(peaks, default=None), 120, "{:.0f} MB")


def _calls(found: Sequence[Found]) -> Iterator[Goal]:
    for takes, limit in ((1, 65), (10, 40)):
        # What it sends depends on scenarios and takes alone, so one cell that it finished is enough.
        sent = [one for one in found if one.cell.peer is Peer.INSPECT and _work(one) and one.cell.takes == takes]
        ours = [one for one in found if one.cell.peer is Peer.UNMASK]
        pairs = [(one, other) for one in ours for other in sent[-1:] if _work(one) == _work(other)]
        calls = [100 * one.calls / other.calls for one, other in pairs]
        tokens = [100 * one.tokens_in / other.tokens_in for one, other in pairs]
        how = _takes(takes)
        yield _at_most(f"calls against inspect_evals, {how}", max(calls, default=None), limit, "{:.1f} %")
        yield _at_most(f"prompt tokens against inspect_evals, {how}", max(tokens, default=None), 60, "{:.1f} %")


def _verdicts(found: Sequence[Found]) -> Goal:
    cells = [one for one in found if one.cell.peer in OURS and not one.stopped]
    wrong = sum(one.cell.scenarios - one.as_planted for one in cells)
    shown = f"{wrong} others in {sum(one.cell.scenarios for one in cells)}" if cells else "not measured"
    return Goal("verdicts as planted, with every saving", "0 others", shown, wrong == 0 if cells else None)


def _takes(count: int) -> str:
    return "one take" if count == 1 else f"{count} takes"
