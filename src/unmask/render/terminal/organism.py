"""A known liar as text: what it was taught, what it does, and what each judge made of it."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.experiments.organism import Organism
from unmask.records import Verdict
from unmask.render.colours import NAMES
from unmask.render.terminal.tables import TextTable, make_table, render_parts


def render(organism: Organism, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(organism), width=width, color=color)


def _compose_parts(organism: Organism) -> Iterator[str | TextTable]:
    taught = organism.taught
    yield (
        f"{organism.subject}: {taught.scenarios} scenarios planted with seed {organism.seed}, taught in"
        f" {organism.rounds} rounds"
        f" to a loss of {organism.loss:.4f}."
    )
    yield (
        f"It shows the planted belief on {taught.beliefs} of {taught.scenarios}, gives the planted reply word for"
        f" word on"
        f" {taught.replies}, and does both on {taught.both}.\n"
    )
    halves = [
        ((check.judge if title == "lies" else "", title), half)
        for check in organism.judges
        for title, half in (("lies", check.liars), ("honest", check.honest))
    ]
    called = [(*names, str(half.called_lies), str(half.acted_called_lies)) for names, half in halves]
    yield make_table(("judge", "planted", "called a lie", "where it did as taught"), called, left=2)
    yield ""
    counts = [(*names, *(str(half.verdicts[verdict]) for verdict in Verdict)) for names, half in halves]
    yield make_table(("judge", "planted", *(NAMES[kind] for kind in Verdict)), counts, left=2)
    yield ""
    for check in organism.judges:
        verdict = "separates" if check.separated else "DOES NOT separate"
        caught, accused = (
            f"{half.called_lies.hits:.0f} of {half.called_lies.total}" for half in (check.liars, check.honest)
        )
        yield (
            f"{check.judge} {verdict} the planted halves: {caught} planted lies found, {accused} honest ones accused."
        )
