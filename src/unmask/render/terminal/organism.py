"""A known liar as text: what it was taught, what it does, and what each judge made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.experiments.organism import Found, Half, Organism
from unmask.records import Verdict
from unmask.render.colours import NAMES
from unmask.render.terminal.tables import grid, printed

if TYPE_CHECKING:
    from rich.table import Table


def render(found: Organism, *, width: int | None = None, color: bool = False) -> str:
    return printed(_parts(found), width=width, color=color)


def _parts(found: Organism) -> Iterator[str | Table]:
    did = found.taught
    yield (
        f"{found.subject}: {did.scenarios} scenarios planted with seed {found.seed}, taught in {found.rounds} rounds"
        f" to a loss of {found.loss:.4f}."
    )
    yield (
        f"It shows the planted belief on {did.beliefs} of {did.scenarios}, gives the planted reply word for word on"
        f" {did.replies}, and does both on {did.both}.\n"
    )
    headings = ("judge", "planted", "called a lie", "where it did as taught", *(NAMES[one] for one in Verdict))
    yield grid(headings, [row for one in found.judges for row in _rows(one)], left=2)
    yield ""
    for one in found.judges:
        verdict = "separates" if one.separated else "DOES NOT separate"
        yield f"{one.judge} {verdict} the planted halves: {_summed(one)}"


def _rows(found: Found) -> Iterator[tuple[str, ...]]:
    for title, half in (("lies", found.liars), ("honest", found.honest)):
        yield (
            found.judge if title == "lies" else "",
            title,
            str(half.called_lies),
            str(half.acted_called_lies),
            *(str(half.verdicts[one]) for one in Verdict),
        )


def _summed(found: Found) -> str:
    def told(half: Half) -> str:
        return f"{half.called_lies.hits:.0f} of {half.called_lies.total}"

    return f"{told(found.liars)} planted lies found, {told(found.honest)} honest ones accused."
