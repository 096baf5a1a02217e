"""The bootstrap over scenarios: which scenarios each resample drew, and the interval of what was computed from it.

A resample is a row of counts, one per scenario, so that every statistic that is a ratio of sums over scenarios is one
matrix product for many resamples at once. Several runs share the counts: that keeps them paired. Counts come in blocks
of resamples, so that the memory does not grow with the number of scenarios. How they are divided changes no draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[float64]

RESAMPLES = 2000
"""Enough that the bounds of a 95 % interval move by about a twentieth of its half-width between seeds."""
BLOCK = 4_000_000
"""Numbers of a block, of 8 bytes each: all resamples of 2,000 scenarios. Two or three such blocks exist at a time."""


def draw_counts(n: int, *, rng: Generator, resamples: int = RESAMPLES) -> Iterator[Floats]:
    """How often each of n scenarios was drawn: blocks of rows that each sum to n, `resamples` rows in all."""
    import numpy as np

    if n < 1:
        raise ValueError("there is nothing to resample")

    def draw_block(rows: int) -> Floats:
        picked = rng.integers(0, n, size=(rows, n))
        picked += n * np.arange(rows)[:, np.newaxis]
        return np.bincount(picked.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)

    return map(draw_block, block_sizes(resamples, width=n))


def block_sizes(rows: int, *, width: int) -> Iterator[int]:
    """So many rows at a time that a block of them has no more than `BLOCK` numbers, or is a single row."""
    most = max(1, BLOCK // width)
    return (min(most, rows - start) for start in range(0, rows, most))


def mean_draws(values: Sequence[float], *, rng: Generator, resamples: int = RESAMPLES) -> Floats:
    """The mean of each resample. Draws how often each distinct value comes up, which is the same and much faster."""
    import numpy as np

    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    n = int(counts.sum())
    return np.concatenate(
        [
            rng.multinomial(n, counts / n, size=rows) @ distinct / n
            for rows in block_sizes(resamples, width=distinct.size)
        ]
    )


def ratio_draws(numerator: Floats, denominator: Floats, *, rng: Generator, resamples: int = RESAMPLES) -> Floats:
    """Sum of the numerators over sum of the denominators in each resample; NaN where the latter is nothing."""
    import numpy as np

    blocks = []
    for counts in draw_counts(numerator.size, rng=rng, resamples=resamples):
        below = counts @ denominator
        blocks.append(np.divide(counts @ numerator, below, out=np.full(below.shape, np.nan), where=below > 0))
    return np.concatenate(blocks)


def percentile_interval(values: Floats, *, level: float = 0.95) -> tuple[float, float] | None:
    """The middle `level` of the resampled values. `None` where more than one resample in twenty has no value."""
    import numpy as np

    finite = values[np.isfinite(values)]
    if finite.size < 0.95 * values.size or not finite.size:
        return None
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
