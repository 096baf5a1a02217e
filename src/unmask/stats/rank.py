"""Which of many runs can be told apart, and the ranks each could have.

Runs are compared in pairs over the scenarios both have judged. How far apart two must be is set by resampling
scenarios, the same for all runs: so far that with 95 % confidence no pair at all is told apart wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import inf
from string import ascii_lowercase
from typing import TYPE_CHECKING

from unmask.records import Record
from unmask.stats.rate import Z95
from unmask.stats.resample import RESAMPLES, block_sizes, draw_counts

if TYPE_CHECKING:
    from numpy import bool_, intp
    from numpy.random import Generator
    from numpy.typing import NDArray

    from unmask.stats.resample import Floats

    Flags = NDArray[bool_]
    Places = NDArray[intp]


class RankRange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Where one run stands. Rank 1 is the smallest value."""

    best: int
    worst: int
    group: str
    """Letters: two runs that share one cannot be told apart."""


def rank_runs(values: Floats, *, rng: Generator, resamples: int = RESAMPLES) -> list[RankRange]:
    """One column per run, one row per scenario; NaN where a run has no value. Smaller is better."""
    import numpy as np

    runs = values.shape[1]
    if not runs:
        return []
    better = separate_pairs(values, rng=rng, resamples=resamples)
    judged = [column[np.isfinite(column)] for column in values.T]
    means = [float(column.mean()) if column.size else inf for column in judged]
    order = sorted(range(runs), key=lambda run: means[run])
    letters = assign_letters(better | better.T, order)
    ahead, behind = better.sum(axis=0), better.sum(axis=1)
    return [
        RankRange(best=1 + int(ahead[run]), worst=runs - int(behind[run]), group=letters[run]) for run in range(runs)
    ]


def separate_pairs(values: Floats, *, rng: Generator, resamples: int = RESAMPLES) -> Flags:
    """Row i, column j: run i is smaller than run j beyond what chance explains, in all pairs at once."""
    import numpy as np

    scenarios, runs = values.shape
    left, right = np.triu_indices(runs, k=1)
    smaller = np.zeros((runs, runs), dtype=np.bool_)
    if not scenarios or not left.size:
        return smaller
    pairs = _RunPairs(values, left, right)
    centre, error = pairs.studentise_gaps(np.ones((1, scenarios)))
    drawn = draw_counts(scenarios, rng=rng, resamples=resamples)
    limit = float(np.quantile(np.concatenate([pairs.largest_deviation(counts, centre) for counts in drawn]), 0.95))
    limit = max(limit, Z95)  # few disagreements resample too calmly; all pairs at once cannot need less than one pair
    ratio = (centre / error)[0]
    smaller[left[ratio > limit], right[ratio > limit]] = True
    smaller[right[ratio < -limit], left[ratio < -limit]] = True
    return smaller


def assign_letters(apart: Flags, order: Sequence[int]) -> list[str]:
    """Letters by run, such that two runs share one exactly where they are not told apart.

    Runs are taken in `order`; a group that holds two runs that are apart is split, and one inside another is dropped.
    """
    cliques: list[set[int]] = [set(order)]
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            if apart[first, second]:
                cliques = _split_cliques(cliques, first, second)
    rank = {run: place for place, run in enumerate(order)}
    cliques.sort(key=lambda clique: sorted(rank[run] for run in clique))
    turns = (divmod(number, len(ascii_lowercase)) for number in range(len(cliques)))
    letters = [ascii_lowercase[place] + (str(turn + 1) if turn else "") for turn, place in turns]
    return [
        "".join(letter for letter, clique in zip(letters, cliques, strict=True) if run in clique)
        for run in sorted(rank)
    ]


def _split_cliques(cliques: list[set[int]], first: int, second: int) -> list[set[int]]:
    if not any({first, second} <= clique for clique in cliques):
        return cliques
    parts: list[set[int]] = []
    for clique in cliques:
        parts += [clique - {first}, clique - {second}] if {first, second} <= clique else [clique]
    maximal: list[set[int]] = []
    for part in sorted(parts, key=len, reverse=True):
        if not any(part <= larger for larger in maximal):
            maximal.append(part)
    return maximal


class _RunPairs:
    """The gaps of all pairs of runs, a few pairs at a time: of many long runs they would not all fit into memory."""

    def __init__(self, values: Floats, left: Places, right: Places) -> None:
        self._values = values
        ends = list(accumulate(block_sizes(left.size, width=len(values))))
        self._parts = [(left[start:end], right[start:end]) for start, end in pairwise([0, *ends])]

    def largest_deviation(self, counts: Floats, centre: Floats) -> Floats:
        """How many standard errors the pair that moved most is from its centre, in each resample."""
        import numpy as np

        again, errors = self.studentise_gaps(counts)
        deviations: Floats = np.max(np.abs(again - centre) / errors, axis=1)
        return deviations

    def studentise_gaps(self, counts: Floats) -> tuple[Floats, Floats]:
        """Mean gap of each pair in each resample, and its standard error."""
        import numpy as np

        means, errors = zip(*(_studentise_block(counts, *self._pair_gaps(*part)) for part in self._parts), strict=True)
        return np.concatenate(means, axis=1), np.concatenate(errors, axis=1)

    def _pair_gaps(self, left: Places, right: Places) -> tuple[Floats, Floats]:
        import numpy as np

        gaps = self._values[:, right] - self._values[:, left]
        return np.nan_to_num(gaps), np.isfinite(gaps).astype(np.float64)


def _studentise_block(counts: Floats, gaps: Floats, present: Floats) -> tuple[Floats, Floats]:
    """Mean gap of each pair in each resample, and its standard error.

    One scenario with gap 1 and one with gap -1 are added, as in `compare.bounded_mean`: a handful of disagreements
    has no error of its own worth believing.
    """
    import numpy as np

    n = counts @ present + 2
    total, squares = counts @ gaps, counts @ (gaps * gaps) + 2
    return total / n, np.sqrt(squares - total * total / n) / n
