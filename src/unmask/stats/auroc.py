"""How well a score tells two classes apart: the area under the ROC curve, with an interval that respects groups.

It is the chance that a random positive has a higher score than a random negative; ties count half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unmask.records import Record
from unmask.stats.resample import RESAMPLES, draw_counts, percentile_interval

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
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


def area(scores: Sequence[float], labels: Sequence[bool], *, strata: Sequence[str] | None = None) -> float | None:
    """The plain value; `None` where one class is empty. With `strata` only pairs of one stratum count."""
    import numpy as np

    truth = np.asarray(labels, dtype=bool)
    parts = _mixed_strata(truth, strata)
    if not parts:
        return None
    wins = [_RankedScores(np.asarray(scores)[part], truth[part]).count_wins(np.ones((1, len(part)))) for part in parts]
    pairs = sum(int(truth[part].sum()) * int((~truth[part]).sum()) for part in parts)
    return float(sum(win[0] for win in wins)) / pairs


def auroc(
    scores: Sequence[float],
    labels: Sequence[bool],
    *,
    groups: Sequence[str],
    rng: Generator,
    widen: float = 1.0,
    strata: Sequence[str] | None = None,
) -> Auroc:
    """With an interval. Samples of one group (takes of a scenario) are drawn together or not at all.

    `widen` stretches the interval around the value, for scores whose scatter resampling does not see whole. With
    `strata` only pairs of one stratum count, so that what tells the strata apart is worth nothing.
    """
    areas = resample_areas([scores], labels, groups=groups, rng=rng, strata=strata)
    value = area(scores, labels, strata=strata)
    positives = sum(map(bool, labels))
    negatives = len(labels) - positives
    if areas is None:
        return Auroc(positives=positives, negatives=negatives, why="one of the two classes is empty")
    low, high = _stretch_interval(percentile_interval(areas[0]), value, widen)
    return Auroc(positives=positives, negatives=negatives, value=value, low=low, high=high)


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
    strata: Sequence[str] | None = None,
) -> list[Floats] | None:
    """The area of each score in every resample, all scores on the same draws; NaN where a resample lacks a class."""
    import numpy as np

    truth = np.asarray(labels, dtype=bool)
    parts = _mixed_strata(truth, strata)
    if not parts:
        return None
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    ranked = [[_RankedScores(np.asarray(values)[part], truth[part]) for part in parts] for values in scores]
    area_blocks: list[list[Floats]] = [[] for _ in scores]
    for counts in draw_counts(len(names), rng=rng, resamples=resamples, width=truth.size):
        pairs, wins = np.zeros(len(counts)), np.zeros((len(scores), len(counts)))
        for number, part in enumerate(parts):
            drawn = counts[:, place[part]]
            pairs += drawn[:, truth[part]].sum(axis=1) * drawn[:, ~truth[part]].sum(axis=1)
            wins += np.stack([rankings[number].count_wins(drawn) for rankings in ranked])
        for areas, row in zip(area_blocks, wins, strict=True):
            areas.append(np.divide(row, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0))
    return [np.concatenate(areas) for areas in area_blocks]


def _mixed_strata(truth: NDArray[bool_], strata: Sequence[str] | None) -> list[NDArray[intp]]:
    """The places of each stratum that has both classes; all places are one stratum unless told otherwise."""
    import numpy as np

    kinds = np.zeros(truth.size) if strata is None else np.asarray(strata)
    places = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
    return [part for part in places if truth[part].any() and not truth[part].all()]


class _RankedScores:
    """Samples in the order of their scores, equal scores together."""

    def __init__(self, scores: Sequence[float] | Floats, truth: NDArray[bool_]) -> None:
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
        positive, negative = ordered * self._truth, ordered * ~self._truth
        if len(self._starts) < len(self._order):  # equal scores count as one
            positive, negative = (np.add.reduceat(drawn, self._starts, axis=1) for drawn in (positive, negative))
        below = np.cumsum(negative, axis=1) - negative / 2
        wins_by_row: Floats = (positive * below).sum(axis=1)
        return wins_by_row
