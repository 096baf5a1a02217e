"""A rate where some scenarios were left out that are known to be of one kind.

Takes that could not be read leave out scenarios with a belief, never one without: there no take can be a lie. If the
rate were taken over what is left, scenarios without a belief would count too much. So each kind counts with as many
scenarios as it has, those left out included, and what was seen of a kind stands for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from unmask.stats.rate import Rate, steady_size, widen_worst, wilson_interval


class Layer(NamedTuple):
    """Scenarios of one kind: sums over those that count, and how many were left out."""

    counted: int
    left_out: int
    hits: float
    among: float
    """How many of those that count belong to the denominator."""
    squares: float
    """Sum of the squared hits: the hits themselves where each is 0 or 1."""

    @property
    def weight(self) -> float:
        """How many scenarios each that counts stands for. A kind of which nothing was seen cannot be filled up."""
        return 1 + self.left_out / self.counted if self.counted else 1.0


def weigh_layers(layers: Sequence[Layer], *, groups: float = 1) -> tuple[float, float] | None:
    """The rate, and how many yes/no observations have its variance. `None` where nothing belongs to the denominator.

    `groups` is how many observations one scenario can hold at most.
    """
    total = sum(layer.weight * layer.among for layer in layers)
    if not total:
        return None
    value = sum(layer.weight * layer.hits for layer in layers) / total
    heaviest = max(layer.weight for layer in layers if layer.among)
    variance = sum(_layer_variance(layer, value) for layer in layers if layer.counted) / total**2
    size = total / heaviest
    if variance > 1e-15 and 0 < value < 1:
        observed = value * (1 - value) / variance
        size = observed if groups <= 1 else steady_size(min(size * groups, observed), count=size, value=value)
    return value, size


def _layer_variance(layer: Layer, value: float) -> float:
    """Of the weighted sum of (hit - value): scenarios vary within their kind, and how many are of a kind varies."""
    mean = (layer.hits - value * layer.among) / layer.counted
    square = (layer.squares - 2 * value * layer.hits + value * value * layer.among) / layer.counted
    within = max(0.0, square - mean * mean)
    return layer.weight * layer.counted * (layer.weight * within + mean * mean)


def layered_rate(layers: Sequence[Layer], *, plain: Rate, unjudged: int, groups: float = 1) -> Rate:
    """The rate over layers, with Wilson's interval of its effective size. `plain` has the worst-case bounds."""
    estimate = weigh_layers(layers, groups=groups)
    total = round(sum(layer.among for layer in layers))
    if estimate is None:
        return msgspec.structs.replace(plain, hits=0, total=total, value=None, low=None, high=None, unjudged=unjudged)
    value, size = estimate
    low, high = wilson_interval(value * size, size)
    weighed = msgspec.structs.replace(
        plain, hits=value * total, total=total, value=value, low=low, high=high, unjudged=unjudged
    )
    return widen_worst(weighed, low=plain.worst_low, high=plain.worst_high)
