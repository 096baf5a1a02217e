"""A rate over takes whose scenarios differ: the scenario, not the take, is what was drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from unmask.stats.rate import Rate, wilson


def clustered(hits: Sequence[int], totals: Sequence[int], *, unjudged: int = 0) -> Rate:
    """`hits[i]` of `totals[i]` takes of scenario i. The interval is 95 % with scenarios as clusters.

    Wilson's interval with as many independent takes as would have the cluster-robust variance. Where all takes
    agree, or there is one scenario, that variance says nothing and each scenario counts as one observation.
    `unjudged` counts takes left out: each could have been a hit or none.
    """
    kept = [(hit, total) for hit, total in zip(hits, totals, strict=True) if total]
    hit, takes = sum(one for one, _ in kept), sum(total for _, total in kept)
    everything = takes + unjudged
    low, high = _interval(kept, hit / takes) if takes else (None, None)
    return Rate(
        hits=hit,
        total=takes,
        value=hit / takes if takes else None,
        low=low,
        high=high,
        worst_low=hit / everything if everything else None,
        worst_high=(hit + unjudged) / everything if everything else None,
        unjudged=unjudged,
    )


def robust_variance(hits: Sequence[int], totals: Sequence[int]) -> float:
    """Cluster-robust variance of the pooled rate, with the usual c / (c - 1) for few clusters."""
    count, takes = len(hits), sum(totals)
    pooled = sum(hits) / takes
    squares = fsum((hit - pooled * total) ** 2 for hit, total in zip(hits, totals, strict=True))
    return count / (count - 1) * squares / takes**2


def _interval(kept: Sequence[tuple[int, int]], value: float) -> tuple[float, float]:
    count, takes = len(kept), sum(total for _, total in kept)
    size = float(count)
    if count > 1 and 0 < value < 1:
        variance = robust_variance([hit for hit, _ in kept], [total for _, total in kept])
        # Scenarios more alike than chance allows are chance: never more than the takes that were made.
        size = min(float(takes), value * (1 - value) / variance) if variance else float(takes)
    return wilson(value * size, size)
