"""What one simulated run shows, what many of them add up to, and the goals these are held against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from unmask.stats.rate import FEW, wilson_interval

Rng = np.random.Generator


class Kind(StrEnum):
    COVERAGE = "holds the truth"
    """How often a 95 % interval holds the planted value. The goal follows from the clusters that lie or differ."""
    CAREFUL = "holds the truth, may be wide"
    """The same for corrected rates."""
    WIDE = "holds the truth, may be wider still"
    """The same for a difference of two corrected rates: no upper limit."""
    FAILS = "does not hold the truth"
    """A world in which the usual interval must fail, or it would show nothing."""
    WRONG = "false positives"
    LIMIT = "passes at the limit"
    EVER = "ever passes at the limit"
    """Of histories that are looked at after every scenario."""
    NEVER = "never"
    POWER = "shows it"
    """With as many scenarios as `unmask power` asks for."""
    ALONE = "shown alone"
    """Without a goal."""


COVERAGES = {Kind.COVERAGE: 0.975, Kind.CAREFUL: 0.985, Kind.WIDE: inf}
"""The most that an interval may cover."""

LIMITS = {
    Kind.FAILS: (-inf, 0.9),
    Kind.WRONG: (-inf, 0.055),
    Kind.LIMIT: (-inf, 0.025),
    Kind.EVER: (-inf, 0.05),
    Kind.NEVER: (-inf, 0.0),
    Kind.POWER: (0.8, inf),
}
"""Least and most. Those of coverage are in `Finding.limits`."""

AGAIN = 4
"""Times as many runs, with the next seed, where a limit is too close to decide."""


class Seen(NamedTuple):
    """One thing measured in one simulated run."""

    what: str
    kind: Kind
    value: float
    """1 or 0, or an error."""
    telling: float = 0.0
    """Clusters that lie, or do not where these are fewer; of a difference, clusters that differ."""
    few: bool = False
    """Whether the interval is marked as one of few clusters."""
    width: float = 0.0


class World(NamedTuple):
    """A planted world, and what is measured in each run of it."""

    about: str
    name: str
    simulate: Callable[[Rng], Iterable[Seen]]
    exact: bool = False
    """Whether one run says it all: a sum over everything that can happen."""


class Finding(NamedTuple):
    """One thing over all runs of a world."""

    what: str
    kind: Kind
    value: float
    low: float
    high: float
    """Monte Carlo interval: what more runs would give."""
    runs: int
    telling: float = 0.0
    few: float = 0.0
    """Share of runs whose interval is marked."""
    width: float = 0.0
    again: Finding | None = None
    """The same with more runs and the next seed, where this one is close to a limit. It decides."""

    @property
    def limits(self) -> tuple[float, float] | None:
        """Least and most; `None` without a goal."""
        if self.kind not in COVERAGES:
            return LIMITS.get(self.kind)
        telling = round(self.telling)
        if telling < FEW:
            return None
        most = COVERAGES[self.kind] if telling >= 40 and self.few <= 0.5 else inf
        return 0.935 if telling >= 20 else 0.91, most

    @property
    def marked(self) -> bool:
        """Whether the goal is only that the interval is marked as one of few clusters."""
        return self.kind in COVERAGES and self.limits is None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; `None` where there is none."""
        if self.marked:
            return self.few > 0.5
        last = self.again or self
        return None if self.limits is None else self.limits[0] <= last.value <= self.limits[1]

    @property
    def sure(self) -> bool:
        """Whether the whole Monte Carlo interval meets the goal."""
        last = self.again or self
        if self.marked or self.kind is Kind.NEVER:
            return bool(self.met)
        return self.limits is not None and self.limits[0] <= last.low <= last.high <= self.limits[1]

    @property
    def close(self) -> bool:
        """Whether more runs could tell otherwise."""
        if self.runs == 1 or self.kind is Kind.NEVER or self.limits is None:
            return False
        return any(self.low <= limit <= self.high for limit in self.limits)


class Bounds(NamedTuple):
    """An interval that no record of `unmask` has."""

    low: float
    high: float
    few: bool = False


def holds(what: str, found: Any, truth: float, telling: float, kind: Kind = Kind.COVERAGE) -> Seen:
    """Whether the interval of a rate or a difference holds the truth. One that is missing does not."""
    if found.low is None or found.high is None:
        return Seen(what, kind, 0.0, telling)
    # A bound that is the truth itself, but for rounding, holds it.
    held = found.low - 1e-12 <= truth <= found.high + 1e-12
    return Seen(what, kind, float(held), telling, getattr(found, "few", False), found.high - found.low)


def simulate(world: World, runs: Iterable[int], seed: int) -> list[Seen]:
    """What these runs of a world show. Each has a random stream of its own, so that single ones can be repeated."""
    names = [seed, *f"{world.about}: {world.name}".encode()]
    streams = (np.random.SeedSequence(names, spawn_key=(run,)) for run in runs)
    return [seen for stream in streams for seen in world.simulate(np.random.default_rng(stream))]


def measure_world(world: World, *, runs: int, seed: int) -> list[Finding]:
    """All findings. Where one is close to a limit the world is simulated once more, and the second round decides:
    among many goals noise alone would miss some and meet others."""
    first = add_up(simulate(world, range(1 if world.exact else runs), seed))
    if not any(one.close for one in first):
        return first
    return decide_close(first, add_up(simulate(world, range(AGAIN * runs), seed + 1)))


def decide_close(first: Iterable[Finding], second: Iterable[Finding]) -> list[Finding]:
    """The findings of the first round, with those of the second where they are close to a limit."""
    again = {(one.what, one.kind): one for one in second}
    return [one._replace(again=again[one.what, one.kind]) if one.close else one for one in first]


def add_up(seen: Iterable[Seen]) -> list[Finding]:
    """What all runs of a world show together."""
    groups: defaultdict[tuple[str, Kind], list[Seen]] = defaultdict(list)
    for one in seen:
        groups[one.what, one.kind].append(one)
    return [_add_group(what, kind, found) for (what, kind), found in groups.items()]


def _add_group(what: str, kind: Kind, found: Sequence[Seen]) -> Finding:
    values = np.array([one.value for one in found])
    mean, half = float(values.mean()), 1.96 * float(values.std()) / sqrt(values.size)
    low, high = mean - half, mean + half
    if values.size > 1 and set(values.tolist()) <= {0.0, 1.0}:
        low, high = wilson_interval(float(values.sum()), values.size)
    telling, few, width = (
        float(np.mean(own)) for own in zip(*((one.telling, one.few, one.width) for one in found), strict=True)
    )
    return Finding(what, kind, mean, low, high, values.size, telling, few, width)
