"""The section of bench/RESULTS.md about growth, and the exponents in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import msgspec

from bench.peers.page import MET, table

WHAT = ("resume", "score", "compare", "board", "report")
MEMORY_MB = 300.0
SECONDS = {"score": 2.0, "compare": 3.0, "board": 30.0}
LINEAR = 1.1
"""The largest exponent that still counts as linear: times at the small end hold a constant part and noise."""

INTRO = """## Scale

`python -m bench.scale` writes run folders of planted replies (ten takes, all questions asked, about 13 replies a
scenario) and measures, each in a process of its own: *resume*, `unmask run` on the finished run with nothing left to
send; *score*; *compare* with a second run of the same length; *board* of thirty such runs; *report*. Time is CPU
time, memory is the peak of the process. Public MASK with ten takes has 15 thousand replies. The exponent b is fitted
to time ~ replies^b over the journals of that size and more without reasoning, where the start of the program counts
less: 1 is linear."""
FROM = 14_000


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement. `seconds` is None where the command was stopped at the limit."""

    what: str
    replies: int
    scenarios: int
    reasoning: int = 0
    """Characters before each reply."""
    megabytes: float
    """Of the run folders on disk."""
    seconds: float | None
    """Of CPU: the commands compute all the time, and wall time also shows what else the machine does."""
    wall: float
    peak_mb: float
    right: bool | None = None
    """Whether the score's verdicts are as planted."""
    load: float = 0.0
    """Of the machine before the command began."""
    machine: str = ""

    @property
    def key(self) -> tuple[str, int, int]:
        return self.what, self.replies, self.reasoning


def exponent(rows: Sequence[Row]) -> float | None:
    """Least squares over the logarithms; of all journals where there are not two long ones."""
    points = [(log(row.replies), log(row.seconds)) for row in rows if row.seconds and not row.reasoning]
    long = [point for point in points if point[0] >= log(FROM)]
    chosen = long if len(long) > 1 else points
    if len(chosen) < 2:
        return None
    mean_x, mean_y = (sum(axis) / len(chosen) for axis in zip(*chosen, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in chosen)
    return sum((x - mean_x) * (y - mean_y) for x, y in chosen) / spread if spread else None


def page(rows: Sequence[Row], *, limit: float, machine: str) -> str:
    sizes = sorted({(row.reasoning, row.replies) for row in rows})
    loads = [row.load for row in rows]
    columns = (
        "replies",
        "scenarios",
        "reasoning",
        "folder MB",
        *(f"{what} {unit}" for what in WHAT for unit in ("s", "MB")),
    )
    body = [_line([row for row in rows if (row.reasoning, row.replies) == size], limit) for size in sizes]
    body.append(["exponent b", "", "", "", *(cell for what in WHAT for cell in (_exponent(rows, what), ""))])
    return "\n\n".join(
        (
            INTRO,
            f"Machine: {machine}; load {min(loads):.1f} to {max(loads):.1f} at the start.",
            table(columns, body),
            _goals(rows),
        )
    )


def _line(rows: Sequence[Row], limit: float) -> list[str]:
    by_name = {row.what: row for row in rows}
    first = rows[0]
    cells = [
        f"{first.replies:,}",
        f"{first.scenarios:,}",
        f"{first.reasoning:,}",
        f"{min(row.megabytes for row in rows):,.0f}",
    ]
    for what in WHAT:
        row = by_name.get(what)
        if row is None:
            cells += ["–", "–"]
        else:
            cells += [f"> {limit:.0f}" if row.seconds is None else f"{row.seconds:.1f}", f"{row.peak_mb:,.0f}"]
    return cells


def _exponent(rows: Sequence[Row], what: str) -> str:
    found = exponent([row for row in rows if row.what == what])
    return "–" if found is None else f"{found:.2f}"


def _goals(rows: Sequence[Row]) -> str:
    lines = [line for what in WHAT for line in _bounds(what, [row for row in rows if row.what == what])]
    scores = [row for row in rows if row.what == "score"]
    right = f"{sum(row.right is True for row in scores)} of {len(scores)} scores"
    lines.append(["verdicts as planted", "all", right, MET[all(row.right for row in scores) if scores else None]])
    return "### Goals\n\n" + table(("goal", "limit", "found", ""), lines)


def _bounds(what: str, rows: Sequence[Row]) -> list[list[str]]:
    """Whether one command is linear, and what the journals took that are as long as that of public MASK."""
    found = exponent(rows)
    last = max((row for row in rows if row.replies < FROM * 1.2), key=lambda row: row.peak_mb, default=None)
    linear = "–" if found is None else f"{found:.2f}"
    taken = f"{last.peak_mb:,.0f} MB" if last else "–"
    most, seconds = SECONDS.get(what), last.seconds if last else None
    return [
        [f"{what} is linear", f"b ≤ {LINEAR}", linear, MET[None if found is None else found <= LINEAR]],
        [
            f"memory of a {what} of {last.replies:,} replies" if last else f"memory of a {what}",
            f"≤ {MEMORY_MB:,.0f} MB",
            taken,
            MET[last.peak_mb <= MEMORY_MB if last else None],
        ],
        *(
            [[f"time of the same {what}", f"≤ {most:g} s", f"{seconds:.1f} s", MET[seconds <= most]]]
            if most is not None and seconds is not None
            else []
        ),
    ]
