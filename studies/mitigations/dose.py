"""Whether an outcome rises or falls with a dose: a slope for each scenario, and a test that flips their signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from unmask.stats.estimate import difference

FLIPS = 10_000
FEWEST_DOSES = 3
"""Doses at which a scenario must have been read before it has a slope."""


class SlopeTest(msgspec.Struct, frozen=True, kw_only=True):
    """The mean slope over scenarios: the change of the outcome for one unit of dose."""

    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of Student's t, of slopes scaled by the largest dose."""
    p_value: float | None = None
    """Two-sided, by flipping the signs of slopes at random; never below 1 / (flips + 1)."""
    flips: int = FLIPS


def fit_slope(points: Mapping[float, float]) -> float | None:
    """Least squares over dose and outcome. `None` with fewer than `FEWEST_DOSES` doses."""
    return float(np.polyfit([*points], [*points.values()], 1)[0]) if len(points) >= FEWEST_DOSES else None


def flip_slopes(
    slopes: Sequence[float], *, widest: float, takes: int = 1, rng: np.random.Generator, flips: int = FLIPS
) -> SlopeTest:
    """Tests a mean slope of 0. `widest` is the largest dose: a slope times it is a change between -1 and 1."""
    if not slopes:
        return SlopeTest(n=0, flips=flips)
    values = np.asarray(slopes, dtype=np.float64)
    # Equal sums may differ in their last digit by the order of adding.
    seen = abs(float(values.sum())) - 1e-12 * max(1.0, float(np.abs(values).sum()))
    flipped = np.concatenate(
        [
            (2.0 * rng.integers(0, 2, size=(min(500, flips - done), values.size)) - 1.0) @ values
            for done in range(0, flips, 500)
        ]
    )
    changes = [max(-1.0, min(1.0, slope * widest)) for slope in slopes]
    found = difference([0.0] * len(changes), changes, takes=takes)
    return SlopeTest(
        n=len(slopes),
        value=float(values.mean()),
        low=None if found.low is None else found.low / widest,
        high=None if found.high is None else found.high / widest,
        p_value=(int((np.abs(flipped) >= seen).sum()) + 1) / (flips + 1),
        flips=flips,
    )
