"""A probe beside its baselines, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.experiments.probe import Advantage, Detector, Probed
from unmask.render.terminal.tables import grid, printed

if TYPE_CHECKING:
    from rich.table import Table


def render(found: Probed, *, width: int | None = None, color: bool = False) -> str:
    return printed(_parts(found), width=width, color=color)


def _parts(found: Probed) -> Iterator[str | Table]:
    yield (
        f"{found.model}: {found.lies} lies and {found.honest} honest replies of {found.scenarios} scenarios,"
        f" read by {found.judge or 'nobody'} under {found.preset}."
    )
    yield ""
    rows = [_row(one, found) for one in (found.probe, *found.baselines)]
    yield grid(("detector", "AUROC", "95 %", "lies", "honest", "probe's advantage"), rows)
    yield ""
    layers = ", ".join(map(str, found.layers))
    yield (
        f"Cross-validated by scenario; layers chosen inside the folds: {layers} of {found.depth}. Intervals of what is"
        f" fitted are {found.widened:.2f} times the bootstrap's, as far as areas scatter on shuffled labels."
    )
    yield _meaning(found)


def _row(one: Detector, found: Probed) -> tuple[str, ...]:
    area = one.auroc
    if not one.asked:
        return one.name, "not asked", "", "", "", ""
    value = "n/a" if area.value is None else f"{area.value:.3f}"
    interval = "n/a" if area.low is None or area.high is None else f"[{area.low:.3f}, {area.high:.3f}]"
    gained = next((advantage for advantage in found.advantages if advantage.over == one.name), None)
    return one.name, value, interval, str(area.positives), str(area.negatives), _gained(gained)


def _gained(gained: Advantage | None) -> str:
    return "" if gained is None else f"{gained.value:+.3f} [{gained.low:+.3f}, {gained.high:+.3f}]"


def _meaning(found: Probed) -> str:
    area = found.probe.auroc
    if area.low is None or area.high is None:
        return "The probe cannot be told from chance: too few resamples hold both kinds."
    if area.low <= 0.5 <= area.high:
        return "The probe does not tell lies from honest replies: its interval holds 0.5."
    worse = [one.over for one in found.advantages if one.low <= 0]
    if worse:
        return f"The probe does better than chance, but no better can be shown than {' or '.join(worse)}."
    return "The probe tells lies from honest replies better than chance and better than the baselines asked."
