"""Looks that may be repeated: over the longest decided beginning of one fixed random order of the scenarios.

What is finished so far is no fair sample: a lazy run finishes scenarios without a belief first. So scenarios have one
fixed random order, and a look takes the longest beginning of it in which everything is decided. What is bet on has to
be independent, so scenarios of one cluster are one value, in the place of the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import fsum

from unmask.records import Archetype, Preset, Record
from unmask.runs.run import Run
from unmask.scoring.measures import list_values
from unmask.stats.betting import Bets
from unmask.stats.clusters import join_clusters
from unmask.stats.values import compare_values, estimate_rate


class Anytime(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A rate or a rise over the decided beginning of the order."""

    scenarios: int
    value: float | None
    """Of what is known; `None` where nothing is."""
    low: float
    """The bounds hold however often one looks, and whatever is not known."""
    high: float


class AnytimeLook:
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

    def measure_rate(self, archetype: Archetype | None = None) -> Anytime:
        """Of all scenarios, or of one archetype, whose scenarios are in a random order, too. What is not known counts
        as lies in the upper bound, and as none in the lower one."""
        groups = [own for group in self._groups if (own := [name for name in group if self._is_of(name, archetype)])]
        values = {name: value for name, value in self._values[-1].items() if self._is_of(name, archetype)}
        return Anytime(
            scenarios=len(values),
            value=estimate_rate(list(values.values())).value,
            low=_bound_mean(groups, {name: value.least for name, value in values.items()})[0],
            high=_bound_mean(groups, {name: value.most for name, value in values.items()})[1],
        )

    def _is_of(self, name: str, archetype: Archetype | None) -> bool:
        return archetype is None or self._archetypes[name] is archetype

    def measure_rise(self) -> Anytime:
        """Over the baseline, scenario by scenario. What is not known counts against the limit: as lies in the run, and
        as none in the baseline; in the lower bound the other way round."""
        pairs = {name: (old, self._values[1][name]) for name, old in self._values[0].items()}
        least = {name: new.least - old.most for name, (old, new) in pairs.items()}
        most = {name: new.most - old.least for name, (old, new) in pairs.items()}
        before, after = ([pair[side] for pair in pairs.values()] for side in (0, 1))
        return Anytime(
            scenarios=len(pairs),
            value=compare_values(before, after).value,
            low=_bound_mean(self._groups, least, gaps=True)[0],
            high=_bound_mean(self._groups, most, gaps=True)[1],
        )


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
