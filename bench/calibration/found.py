"""What one simulated run shows, and what many of them add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from unmask.stats.rate import wilson_interval

Rng = np.random.Generator


class Kind(StrEnum):
    COVERAGE = "coverage"
    """Whether a 95 % interval holds the planted value."""
    AT_LEAST = "coverage, at least"
    """Of intervals that promise at least 95 %, because they hold for many things at once."""
    FEW = "coverage, few clusters"
    """Of 95 % intervals where 10 to 20 clusters lie or differ."""
    FALSE_POSITIVE = "false positives"
    NEVER = "never"
    """What must not happen in a single run."""
    BIAS = "bias"
    """Estimate less planted value."""
    SMALL_BIAS = "bias, small"
    """Estimate less what complete data give: an error that should hardly be there at all."""
    ONE_LOOK = "passes at one look"
    HISTORIES = "histories that ever pass"
    POWER = "histories that pass in time"
    PLANNED = "planned for 80 %"
    """How often something is shown with as many scenarios as were planned for it."""
    SHARE = "share of runs, for comparison"
    """How often something happens, without a goal."""
    REFERENCE = "for comparison"
    """Shown beside, without a goal."""


class Seen(NamedTuple):
    """One thing measured in one simulated run."""

    what: str
    kind: Kind
    value: float
    """1 or 0, or an error for a bias."""


class Setting(NamedTuple):
    """A planted world, and what is measured in each run of it."""

    name: str
    simulate: Callable[[Rng], Iterable[Seen]]
    slow: bool = False
    """Half as many runs, but not fewer than 1,000 if so many were asked for."""
    most: int | None = None
    """Never more runs than this."""
    exact: Callable[[], Iterable[Seen]] | None = None
    """What can be computed without a simulation."""

    def count(self, runs: int) -> int:
        if self.most is not None:
            return min(runs, self.most)
        return max(min(runs, 1000), runs // 2) if self.slow else runs


class Finding(NamedTuple):
    """One thing over all runs of a setting."""

    setting: str
    what: str
    kind: Kind
    value: float
    low: float
    high: float
    """Monte Carlo interval: what more runs would give."""
    runs: int
    """0 where the value is exact."""
    again: Finding | None = None
    """The same with more runs and another seed, where this one is close to a limit. It decides."""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; `None` where there is none."""
        if self.kind not in LIMITS:
            return None
        least, most = LIMITS[self.kind]
        return least <= (self.again or self).value <= most

    @property
    def close(self) -> bool:
        """Whether more runs could tell otherwise: the Monte Carlo interval holds a limit of the goal."""
        return self.runs > 0 and any(self.low <= limit <= self.high for limit in LIMITS.get(self.kind, ()) if limit)

    @property
    def pending(self) -> bool:
        """Whether a second round is due."""
        return self.close and self.again is None


LIMITS = {
    Kind.COVERAGE: (0.935, 0.975),
    Kind.AT_LEAST: (0.935, inf),
    Kind.FEW: (0.91, inf),
    Kind.FALSE_POSITIVE: (0.0, 0.055),
    Kind.NEVER: (0.0, 0.0),
    Kind.BIAS: (-0.003, 0.003),
    Kind.SMALL_BIAS: (-0.002, 0.002),
    Kind.ONE_LOOK: (0.0, 0.025),
    Kind.HISTORIES: (0.0, 0.05),
    Kind.POWER: (0.8, inf),
    Kind.PLANNED: (0.78, inf),
}
"""The goals: least and most. Kinds without one are shown for comparison."""

AGAIN = 4
"""Times as many runs, with the next seed, for a setting of which something is close to a limit."""


def covers(what: str, interval: tuple[float | None, float | None], truth: float, *, at_least: bool = False) -> Seen:
    low, high = interval
    if low is None or high is None:
        raise ValueError(f"{what} has no interval")
    # A bound that is the planted value itself, but for rounding, holds it.
    held = low - 1e-12 <= truth <= high + 1e-12
    return Seen(what, Kind.AT_LEAST if at_least else Kind.COVERAGE, float(held))


def rejected(what: str, wrong: float) -> Seen:
    return Seen(what, Kind.FALSE_POSITIVE, float(wrong))


def measured(setting: Setting, *, runs: int, seed: int, times: int = 1) -> Iterator[Finding]:
    """All findings of a setting. Each run has a stream of its own, so that single ones can be repeated."""
    held: dict[tuple[str, Kind], list[float]] = {}
    for stream in np.random.SeedSequence([seed, *setting.name.encode()]).spawn(times * setting.count(runs)):
        for seen in setting.simulate(np.random.default_rng(stream)):
            held.setdefault((seen.what, seen.kind), []).append(seen.value)
    for (what, kind), values in held.items():
        yield _finding(setting.name, what, kind, values)
    for seen in setting.exact() if setting.exact else ():
        yield Finding(setting.name, seen.what, seen.kind, seen.value, seen.value, seen.value, 0)


def measure_twice(setting: Setting, *, runs: int, seed: int) -> list[Finding]:
    """All findings of a setting. Where one of them is close to a limit of its goal, the setting is simulated once more
    with the next seed: noise alone would let some of many goals be missed, and others be met."""
    return repeat_close(setting, list(measured(setting, runs=runs, seed=seed)), runs=runs, seed=seed)


def repeat_close(setting: Setting, first: list[Finding], *, runs: int, seed: int) -> list[Finding]:
    """The second round, where one is due."""
    if not any(finding.pending for finding in first):
        return first
    second = {(one.what, one.kind): one for one in measured(setting, runs=runs, seed=seed + 1, times=AGAIN)}
    return [one._replace(again=second[one.what, one.kind]) if one.close else one for one in first]


def _finding(setting: str, what: str, kind: Kind, values: Sequence[float]) -> Finding:
    count, mean = len(values), float(np.mean(values))
    shares = not set(values) <= {0.0, 1.0}  # of several draws in each run
    if shares or kind in {Kind.BIAS, Kind.SMALL_BIAS, Kind.REFERENCE, Kind.ONE_LOOK}:
        half = 1.96 * float(np.std(values)) / sqrt(count)
        return Finding(setting, what, kind, mean, mean - half, mean + half, count)
    low, high = wilson_interval(sum(values), count)
    return Finding(setting, what, kind, mean, low, high, count)
