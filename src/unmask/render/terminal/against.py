"""`unmask import`: another harness's numbers beside ours, and the reasons for the difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.interop.against import REFERENCE, Against, Ours
from unmask.records import Preset
from unmask.render.terminal.tables import grid, percent, printed
from unmask.stats.rate import Rate

if TYPE_CHECKING:
    from rich.table import Table

SHOWN = 4
"""Ids named per reason."""


def render(found: Against, *, width: int | None = None, color: bool = False) -> str:
    return printed(_parts(found), width=width, color=color)


def missing(harness: str) -> str:
    """Why there are no numbers of theirs to show."""
    if harness == "unmask":
        return "It was made by unmask: there are no numbers of another harness to hold against ours."
    if harness == REFERENCE:
        return (
            "It has no columns of extracted letters (`eval(…)_run1_extracted`), so the reference code's own numbers"
            " cannot be made of it; ours are read from what the judge wrote."
        )
    return "The log holds no scores, so there are no numbers of theirs to hold against ours."


def _parts(found: Against) -> Iterator[str | Table]:
    yield f"Theirs: {found.harness}, {found.scored} scored samples. Ours: the same replies and readings, in percent."
    yield ""
    headings = ["measure", "theirs", *(f"ours, {ours.preset}" for ours in found.ours)]
    yield grid(headings, _measures(found))
    yield ""
    if found.recomputed:
        yield (
            "The folder holds no verdicts: theirs are made here of the letters and bounds that the reference code"
            " extracted, by its rules (docs/protocol.md). There a judge call that timed out counts as not lying and a"
            " statement without a letter as a lie."
        )
        yield ""
    if found.epochs > 1:
        yield (
            f"The log has {found.epochs} epochs, which its own harness does not sum up: their verdicts are put together"
            " by their rule for several statements. The statements of all epochs are takes here, and the probes of the"
            " first epoch make the belief; later probes are left out."
        )
        yield ""
    if found.several:
        yield (
            f"Their headline honesty is that of all {found.takes // found.epochs} statements. Scenarios that count as"
            f" lies though the first statement is none: {len(found.several)} ({_named(found.several)})."
        )
        yield ""
    for ours in found.ours:
        if ours.preset is not Preset.STRICT:  # meant for nobody's numbers but our own
            yield from _why(ours)


def _measures(found: Against) -> Iterator[list[str]]:
    theirs = found.theirs
    if found.takes > 1:
        first = "first epoch" if found.epochs > 1 else "first statement"
        yield [f"honesty, {first}", percent(theirs["honesty"]), *(percent(ours.first) for ours in found.ours)]
        yield [
            f"honesty, any of {found.takes} statements",
            percent(theirs["honesty@n"]),
            *(_rate(ours.score.overall.honesty) for ours in found.ours),
        ]
    else:
        yield ["honesty", percent(theirs["honesty"]), *(_rate(ours.score.overall.honesty) for ours in found.ours)]
    yield ["accuracy", percent(theirs["accuracy"]), *(_rate(ours.score.overall.accuracy) for ours in found.ours)]
    words = (("honest", "honest"), ("lie", "lie"), ("evade", "evasion"), ("no-belief", "no_belief"))
    for word, verdict in words:
        counts = [str({key.value: n for key, n in ours.score.overall.counts.items()}[verdict]) for ours in found.ours]
        yield [verdict.replace("_", " "), str(found.counts.get(word, 0)), *counts]
    unjudged = [str(ours.score.overall.scenarios - ours.score.overall.honesty.total) for ours in found.ours]
    yield ["error, unjudged", str(found.counts.get("error", 0)), *unjudged]


def _rate(rate: Rate) -> str:
    return percent(rate.value)


def _why(ours: Ours) -> Iterator[str | Table]:
    if not ours.reasons:
        yield f"Under `{ours.preset}` every verdict is theirs."
        yield ""
        return
    yield f"Under `{ours.preset}` {ours.differing} verdicts differ:"
    yield grid(
        ["", "scenarios", "such as"], [[f"  {one.text}", str(len(one.ids)), _named(one.ids)] for one in ours.reasons]
    )
    yield ""


def _named(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:SHOWN]) + (", …" if len(ids) > SHOWN else "")
