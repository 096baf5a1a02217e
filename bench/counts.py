"""The share of a plain count, with its interval as the estimator has it."""

from __future__ import annotations

from unmask.stats.rate import Rate
from unmask.stats.values import estimate_rate, known_value


def rate(hits: int, total: int) -> Rate:
    return estimate_rate([known_value(1.0, 0.0)] * hits + [known_value(0.0, 1.0)] * (total - hits))
