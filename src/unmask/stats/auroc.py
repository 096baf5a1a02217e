"""How well a score tells two classes apart: the area under the ROC curve, with an interval that respects groups.

It is the chance that a random positive has a higher score than a random negative; ties count half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unmask.records import Record
from unmask.stats.resample import draws, percentile_interval

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[float64]


class Auroc(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`value` is `None` where a class is empty; `why` says so. The interval is 95 %, by bootstrap over groups."""

    positives: int
    negatives: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str | None = None


def area(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """The plain value; `None` where one class is empty."""
    positive, negative = _split(scores, labels)
    return float(_wins(positive, negative).mean()) if len(positive) and len(negative) else None


def auroc(
    scores: Sequence[float], labels: Sequence[bool], *, groups: Sequence[str], rng: Generator, widen: float = 1.0
) -> Auroc:
    """With an interval. Samples of one group (takes of a scenario) are drawn together or not at all.

    `widen` stretches the interval around the value, for scores whose scatter resampling does not see whole.
    """
    found = resampled([scores], labels, groups=groups, rng=rng)
    positives = sum(map(bool, labels))
    negatives = len(labels) - positives
    if found is None:
        return Auroc(positives=positives, negatives=negatives, why="one of the two classes is empty")
    low, high = _stretched(percentile_interval(found[0]), area(scores, labels), widen)
    return Auroc(positives=positives, negatives=negatives, value=area(scores, labels), low=low, high=high)


def gap(
    pair: tuple[Sequence[float], Sequence[float]],
    labels: Sequence[bool],
    *,
    groups: Sequence[str],
    rng: Generator,
    widen: float = 1.0,
) -> tuple[float, float, float] | None:
    """Area of the first score minus that of the second on the same samples, with its paired interval."""
    found = resampled(pair, labels, groups=groups, rng=rng)
    one, other = (area(scores, labels) for scores in pair)
    if found is None or one is None or other is None:
        return None
    low, high = _stretched(percentile_interval(found[0] - found[1]), one - other, widen, floor=-1.0)
    return None if low is None or high is None else (one - other, low, high)


def _stretched(
    bounds: tuple[float, float] | None, value: float | None, widen: float, *, floor: float = 0.0
) -> tuple[float | None, float | None]:
    if bounds is None or value is None:
        return None, None
    return max(floor, value - widen * (value - bounds[0])), min(1.0, value + widen * (bounds[1] - value))


def resampled(
    scores: Sequence[Sequence[float]], labels: Sequence[bool], *, groups: Sequence[str], rng: Generator
) -> list[Floats] | None:
    """The area of each score in every resample, all scores on the same draws; NaN where a resample lacks a class."""
    import numpy as np

    truth = np.asarray(labels, dtype=bool)
    if truth.all() or not truth.any():
        return None
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    counts = draws(len(names), rng=rng)[:, place]
    positive, negative = counts[:, truth], counts[:, ~truth]
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    found = []
    for one in scores:
        won = ((positive @ _wins(*_split(one, labels))) * negative).sum(axis=1)
        found.append(np.divide(won, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0))
    return found


def _split(scores: Sequence[float], labels: Sequence[bool]) -> tuple[Floats, Floats]:
    import numpy as np

    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    return values[truth], values[~truth]


def _wins(positive: Floats, negative: Floats) -> Floats:
    """1 where the positive is above the negative, a half where they tie."""
    import numpy as np

    found: Floats = (np.sign(positive[:, np.newaxis] - negative) + 1) / 2
    return found
