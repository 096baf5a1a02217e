"""Whether an outcome rises or falls with a dose: a slope for each scenario, and a test that flips their signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

from unmask.records import Record
from unmask.stats.compare import bounded_mean

if TYPE_CHECKING:
    from numpy.random import Generator

FLIPS = 10_000
BLOCK = 500
"""Rows of signs that exist at a time."""
FEWEST_DOSES = 3
"""Doses that a scenario must have been read at before it has a slope."""


class SlopeTest(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The mean slope over scenarios: change of the outcome for one unit of dose."""

    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of Bonett and Price, of slopes scaled by the widest dose."""
    p_value: float | None = None
    """Two-sided, by flipping the signs of slopes at random; it cannot be below 1 / (flips + 1)."""
    flips: int = FLIPS


def fit_slope(points: Mapping[float, float]) -> float | None:
    """Least squares over dose and outcome. `None` with fewer than `FEWEST_DOSES` doses."""
    if len(points) < FEWEST_DOSES:
        return None
    middle, mean = fsum(points) / len(points), fsum(points.values()) / len(points)
    spread = fsum((dose - middle) ** 2 for dose in points)
    return fsum((dose - middle) * (outcome - mean) for dose, outcome in points.items()) / spread


def flip_slopes(slopes: Sequence[float], *, widest: float, rng: Generator, flips: int = FLIPS) -> SlopeTest:
    """Tests a mean slope of 0. `widest` is the largest dose: a slope times it is a change from -1 to 1."""
    import numpy as np

    if not slopes:
        return SlopeTest(n=0, flips=flips)
    values = np.asarray(slopes, dtype=np.float64)
    seen = abs(float(values.sum()))
    # Equal sums may differ in their last digit by the order of adding.
    reach = seen - 1e-12 * max(1.0, float(np.abs(values).sum()))
    extreme = 0
    for start in range(0, flips, BLOCK):
        signs = 2.0 * rng.integers(0, 2, size=(min(BLOCK, flips - start), values.size)) - 1.0
        extreme += int((np.abs(signs @ values) >= reach).sum())
    low, high = bounded_mean([max(-1.0, min(1.0, slope * widest)) for slope in slopes])
    return SlopeTest(
        n=len(slopes),
        value=float(values.mean()),
        low=low / widest,
        high=high / widest,
        p_value=(extreme + 1) / (flips + 1),
        flips=flips,
    )
