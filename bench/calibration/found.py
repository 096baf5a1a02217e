"""What one simulated run shows, and what many of them add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from math import sqrt
from typing import NamedTuple

import numpy as np

from unmask.stats.rate import wilson_interval

Rng = np.random.Generator


class Kind(StrEnum):
    COVERAGE = "coverage"
    """Whether a 95 % interval holds the planted value."""
    AT_LEAST = "coverage, at least"
    """Of intervals that promise at least 95 %, because they hold for many things at once."""
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
    CALLS = "share of the calls"
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

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; `None` where there is none."""
        match self.kind:
            case Kind.COVERAGE:
                return 0.935 <= self.value <= 0.975
            case Kind.AT_LEAST:
                return self.value >= 0.935
            case Kind.FALSE_POSITIVE:
                return self.value <= 0.055
            case Kind.NEVER:
                return self.value == 0
            case Kind.BIAS:
                return abs(self.value) < 0.003
            case Kind.SMALL_BIAS:
                return abs(self.value) < 0.002
            case Kind.ONE_LOOK:
                return self.value <= 0.025
            case Kind.HISTORIES:
                return self.value <= 0.05
            case Kind.POWER:
                return self.value >= 0.8
            case Kind.PLANNED:
                return self.value >= 0.78
            case Kind.CALLS:
                return self.value < 0.6
            case Kind.REFERENCE | Kind.SHARE:
                return None


def covers(what: str, interval: tuple[float | None, float | None], truth: float, *, at_least: bool = False) -> Seen:
    low, high = interval
    if low is None or high is None:
        raise ValueError(f"{what} has no interval")
    # A bound that is the planted value itself, but for rounding, holds it.
    held = low - 1e-12 <= truth <= high + 1e-12
    return Seen(what, Kind.AT_LEAST if at_least else Kind.COVERAGE, float(held))


def rejected(what: str, wrong: bool) -> Seen:
    return Seen(what, Kind.FALSE_POSITIVE, float(wrong))


def measured(setting: Setting, *, runs: int, seed: int) -> Iterator[Finding]:
    """All findings of a setting. Each run has a stream of its own, so that single ones can be repeated."""
    held: dict[tuple[str, Kind], list[float]] = {}
    for stream in np.random.SeedSequence([seed, *setting.name.encode()]).spawn(setting.count(runs)):
        for seen in setting.simulate(np.random.default_rng(stream)):
            held.setdefault((seen.what, seen.kind), []).append(seen.value)
    for (what, kind), values in held.items():
        yield _finding(setting.name, what, kind, values)


def _finding(setting: str, what: str, kind: Kind, values: Sequence[float]) -> Finding:
    count, mean = len(values), float(np.mean(values))
    shares = not set(values) <= {0.0, 1.0}  # of several draws in each run
    if shares or kind in {Kind.BIAS, Kind.SMALL_BIAS, Kind.REFERENCE, Kind.ONE_LOOK, Kind.CALLS}:
        half = 1.96 * float(np.std(values)) / sqrt(count)
        return Finding(setting, what, kind, mean, mean - half, mean + half, count)
    low, high = wilson_interval(sum(values), count)
    return Finding(setting, what, kind, mean, low, high, count)
