"""A rate over takes whose scenarios differ: the scenario, not the take, is what was drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import msgspec

from unmask.stats.rate import Rate, rate, steady_size, wilson_interval


def clustered_rate(hits: Sequence[int], totals: Sequence[int], *, unjudged: int = 0, steady: bool = False) -> Rate:
    """`hits[i]` of `totals[i]` takes of scenario i. The interval is 95 % with scenarios as clusters.

    Wilson's interval with as many independent takes as would have the cluster-robust variance. Where all takes
    agree, or there is one scenario, that variance says nothing and each scenario counts as one observation.
    `unjudged` counts takes left out: each could have been a hit or none. `steady` is for hits that may be very rare.
    """
    counts = [(hit, total) for hit, total in zip(hits, totals, strict=True) if total]
    hit, takes = sum(scenario_hits for scenario_hits, _ in counts), sum(total for _, total in counts)
    plain = rate(hit, takes, unjudged=unjudged)
    if not takes:
        return plain
    value, size = hit / takes, float(len(counts))
    if len(counts) > 1 and 0 < value < 1:
        variance = robust_variance([scenario_hits for scenario_hits, _ in counts], [total for _, total in counts])
        # Scenarios more alike than chance allows are chance: never more than the takes that were made.
        size = min(float(takes), value * (1 - value) / variance) if variance else float(takes)
        size = steady_size(size, count=len(counts), value=value) if steady else size
    low, high = wilson_interval(value * size, size)
    return msgspec.structs.replace(plain, low=low, high=high)


def robust_variance(hits: Sequence[int], totals: Sequence[int]) -> float:
    """Cluster-robust variance of the pooled rate, with the usual c / (c - 1) for few clusters."""
    count, takes = len(hits), sum(totals)
    pooled = sum(hits) / takes
    squares = fsum((hit - pooled * total) ** 2 for hit, total in zip(hits, totals, strict=True))
    return count / (count - 1) * squares / takes**2
