"""How well a score tells two classes apart: the area under the ROC curve, with an interval that respects groups.

It is the chance that a random positive has a higher score than a random negative; ties count half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unmask.records import Record
from unmask.stats.resample import RESAMPLES, draw_counts, percentile_interval

if TYPE_CHECKING:
    from numpy import bool_, float64
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
    import numpy as np

    truth = np.asarray(labels, dtype=bool)
    if truth.all() or not truth.any():
        return None
    pairs = int(truth.sum()) * int((~truth).sum())
    return float(_RankedScores(scores, truth).count_wins(np.ones((1, truth.size)))[0]) / pairs


def auroc(
    scores: Sequence[float], labels: Sequence[bool], *, groups: Sequence[str], rng: Generator, widen: float = 1.0
) -> Auroc:
    """With an interval. Samples of one group (takes of a scenario) are drawn together or not at all.

    `widen` stretches the interval around the value, for scores whose scatter resampling does not see whole.
    """
    areas = resample_areas([scores], labels, groups=groups, rng=rng)
    positives = sum(map(bool, labels))
    negatives = len(labels) - positives
    if areas is None:
        return Auroc(positives=positives, negatives=negatives, why="one of the two classes is empty")
    low, high = _stretch_interval(percentile_interval(areas[0]), area(scores, labels), widen)
    return Auroc(positives=positives, negatives=negatives, value=area(scores, labels), low=low, high=high)


def auroc_gap(
    pair: tuple[Sequence[float], Sequence[float]],
    labels: Sequence[bool],
    *,
    groups: Sequence[str],
    rng: Generator,
    widen: float = 1.0,
) -> tuple[float, float, float] | None:
    """Area of the first score minus that of the second on the same samples, with its paired interval."""
    areas = resample_areas(pair, labels, groups=groups, rng=rng)
    first_area, second_area = (area(scores, labels) for scores in pair)
    if areas is None or first_area is None or second_area is None:
        return None
    low, high = _stretch_interval(percentile_interval(areas[0] - areas[1]), first_area - second_area, widen, floor=-1.0)
    return None if low is None or high is None else (first_area - second_area, low, high)


def _stretch_interval(
    bounds: tuple[float, float] | None, value: float | None, widen: float, *, floor: float = 0.0
) -> tuple[float | None, float | None]:
    if bounds is None or value is None:
        return None, None
    return max(floor, value - widen * (value - bounds[0])), min(1.0, value + widen * (bounds[1] - value))


def resample_areas(
    scores: Sequence[Sequence[float]],
    labels: Sequence[bool],
    *,
    groups: Sequence[str],
    rng: Generator,
    resamples: int = RESAMPLES,
) -> list[Floats] | None:
    """The area of each score in every resample, all scores on the same draws; NaN where a resample lacks a class."""
    import numpy as np

    truth = np.asarray(labels, dtype=bool)
    if truth.all() or not truth.any():
        return None
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    ranked = [_RankedScores(values, truth) for values in scores]
    area_blocks: list[list[Floats]] = [[] for _ in scores]
    for counts in draw_counts(len(names), rng=rng, resamples=resamples, width=truth.size):
        drawn = counts[:, place]
        pairs = drawn[:, truth].sum(axis=1) * drawn[:, ~truth].sum(axis=1)
        for areas, ranking in zip(area_blocks, ranked, strict=True):
            areas.append(np.divide(ranking.count_wins(drawn), pairs, out=np.full(len(pairs), np.nan), where=pairs > 0))
    return [np.concatenate(areas) for areas in area_blocks]


class _RankedScores:
    """Samples in the order of their scores, equal scores together."""

    def __init__(self, scores: Sequence[float], truth: NDArray[bool_]) -> None:
        import numpy as np

        values = np.asarray(scores, dtype=np.float64)
        self._order = np.argsort(values, kind="stable")
        self._truth = truth[self._order]
        ordered = values[self._order]
        self._starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self._unknown = bool(np.isnan(values).any())

    def count_wins(self, counts: Floats) -> Floats:
        """How many pairs of a positive and a negative are in the right order, a half where they tie, in each row of
        counts; NaN where a score is. Sums from the lowest score upwards: memory and time of the samples, not of the
        pairs."""
        import numpy as np

        if self._unknown:
            return np.full(len(counts), np.nan)
        ordered = counts[:, self._order]
        positive = np.add.reduceat(ordered * self._truth, self._starts, axis=1)
        negative = np.add.reduceat(ordered * ~self._truth, self._starts, axis=1)
        below = np.cumsum(negative, axis=1) - negative / 2
        wins_by_row: Floats = (positive * below).sum(axis=1)
        return wins_by_row
