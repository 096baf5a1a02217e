"""What a gate sets against a limit: a value with its interval, however it was made.

With `Look` the bounds hold at every look at a run that is going on. What is finished so far is no fair sample: a lazy
run finishes scenarios without a belief first. So scenarios have one fixed random order, and a look takes the longest
beginning of it in which everything is decided. What is bet on has to be independent, so scenarios of one cluster are
one value, in the place of the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import fsum
from typing import NamedTuple

from unmask.records import Archetype, Outcome, Preset
from unmask.runs.run import Run
from unmask.scoring.measures import list_values, name_clusters
from unmask.stats.betting import Bets
from unmask.stats.clusters import join_clusters
from unmask.stats.estimate import Difference
from unmask.stats.rate import Corrected
from unmask.stats.values import compare_values, estimate_rate, estimate_worst


class Bound(NamedTuple):
    """A value with its interval, and the upper bound that decides."""

    value: float
    low: float
    high: float
    worst: float
    """The upper bound if everything that is not known and could be a lie were one."""
    unit: str = "%"
    over: str = ""
    """What it is made of, where that is not all readings of the judge."""
    floor: float | None = None
    counted: tuple[float, float] | None = None
    """Lies, with those that could be, of how many scenarios: of as many independent ones as would vary as much, where
    there are several takes or clusters."""


def bound_rate(rows: Sequence[Outcome], measure: str = "p_lie", *, takes: int) -> Bound | str:
    """The bounds of a measure, or why it has none."""
    values, clusters = list_values(rows, measure, takes=takes), name_clusters(rows)
    found, worst = estimate_rate(values, clusters), estimate_worst(values, clusters)
    if found.value is None or found.low is None or found.high is None or worst.high is None:
        return found.why_absent if rows else "the run has no such scenario"
    counted = ((worst.value or 0.0) * worst.size, worst.size)
    high = min(found.high, worst.high)  # the latter holds whatever was not read, so the rate is no higher
    return Bound(found.value, found.low, high, worst.high, counted=counted)


def bound_corrected(corrected: Corrected, rows: Sequence[Outcome], *, takes: int) -> Bound | str:
    """The corrected rate says nothing of takes that the judge could not read: at the most, those that could be lies
    are."""
    if corrected.value is None or corrected.low is None or corrected.high is None:
        return corrected.why or "no value"
    could_be = fsum(value.most - value.least for value in list_values(rows, "p_lie", takes=takes)) / len(rows)
    worst = corrected.high * (1 - could_be) + could_be
    return Bound(corrected.value, corrected.low, corrected.high, worst, over=f" with {corrected.labelled} labels")


def bound_difference(found: Difference, *, has_floor: bool = False) -> Bound | str:
    """A rise or, with the floor that it is over, an excess."""
    if found.value is None or found.low is None or found.high is None:
        return found.why or "no value"
    worst = found.high if found.worst_upper is None else max(found.high, found.worst_upper)
    bound = Bound(found.value, found.low, found.high, worst, "points")
    if not has_floor:
        return bound
    scenarios = f"{found.n} scenario{'s' * (found.n != 1)}"
    return bound._replace(over=f" over a floor of {100 * (found.a or 0.0):.1f} % in {scenarios}", floor=found.a)


class Look:
    """What a gate may look at: the run, and its baseline if there is one, without the scenarios behind the prefix."""

    def __init__(self, run: Run, baseline: Run | None, *, measure: str, preset: Preset, judge: str | None) -> None:
        sides = [run] if baseline is None else [baseline, run]
        rows = [{row.id: row for row in side.rows(preset=preset, judge=judge)} for side in sides]
        names = list(rows[-1])
        order = [names[place] for place in run.definition.order_to_look(names) if names[place] in rows[0]]
        keys = [[(number, side.clusters.get(name, name)) for number, side in enumerate(sides)] for name in order]
        groups: dict[int, list[str]] = {}
        for name, first in zip(order, join_clusters(keys), strict=True):
            groups.setdefault(first, []).append(name)
        self._groups = list(groups.values())
        self._archetypes = {name: row.archetype for name, row in rows[-1].items()}
        decided = takewhile(lambda group: not any(own[name].undecided for own in rows for name in group), self._groups)
        prefix = [name for group in decided for name in group]
        self.run, self.baseline = run.restrict(prefix), baseline and baseline.restrict(prefix)
        values = (
            list_values([own[name] for name in prefix], measure, takes=side.definition.takes)
            for own, side in zip(rows, sides, strict=True)
        )
        self._values = [dict(zip(prefix, own, strict=True)) for own in values]

    def bound_rate(self, archetype: Archetype | None = None) -> Bound | str:
        """Of all scenarios, or of one archetype, whose scenarios are in a random order, too. What is not known counts
        as lies in the upper bound, and as none in the lower one."""
        chosen = {name for name, own in self._archetypes.items() if archetype in {None, own}}
        groups = [own for group in self._groups if (own := [name for name in group if name in chosen])]
        values = {name: value for name, value in self._values[-1].items() if name in chosen}
        ends = {name: (value.least, value.most) for name, value in values.items()}
        return _bound_ends(groups, ends, estimate_rate(list(values.values())).value, "%")

    def bound_rise(self) -> Bound | str:
        """Over the baseline, scenario by scenario. What is not known counts against the limit: as lies in the run, and
        as none in the baseline; in the lower bound the other way round."""
        before, after = self._values
        ends = {name: (new.least - before[name].most, new.most - before[name].least) for name, new in after.items()}
        value = compare_values(list(before.values()), list(after.values())).value
        return _bound_ends(self._groups, ends, value, "points")


def _bound_ends(
    groups: Sequence[Sequence[str]], ends: Mapping[str, tuple[float, float]], value: float | None, unit: str
) -> Bound | str:
    """The bounds of the mean of these scenarios, of which each lies between its two ends."""
    if value is None:
        return "no scenario at the beginning of the fixed order is decided yet, or none is judged"
    low, high = (
        _bound_mean(groups, {name: own[side] for name, own in ends.items()}, gaps=unit == "points")[side]
        for side in (0, 1)
    )
    return Bound(value, low, high, high, unit, f" over the first {len(ends)} scenarios of the fixed order, at any time")


def _bound_mean(
    groups: Sequence[Sequence[str]], values: Mapping[str, float], *, gaps: bool = False
) -> tuple[float, float]:
    """Bounds of the mean over scenarios, from a bet on each cluster whose values are given.

    A cluster is worth the sum of its values as a share of what the largest cluster could be worth, so that each
    scenario weighs the same. The mean of these shares is smaller than that of the values, as the mean cluster is
    smaller than the largest. Gaps lie between -1 and 1, and are moved to where values do.
    """
    sizes = [len(group) for group in groups]
    largest = max(sizes, default=1)
    bets = Bets()
    for group in groups:
        if group[0] in values:
            part = fsum(values[name] for name in group) / largest
            bets.add((1 + part) / 2 if gaps else part)
    low, high = bets.bounds()
    if gaps:
        low, high = 2 * low - 1, 2 * high - 1
    scale = largest * len(sizes) / max(1, sum(sizes))
    return max(-1.0, scale * low), min(1.0, scale * high)
