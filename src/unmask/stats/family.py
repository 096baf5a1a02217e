"""Many differences at once: Holm's correction, ranges of ranks, and letters for runs that cannot be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from string import ascii_lowercase

import msgspec

from unmask.records import Record
from unmask.stats.estimate import ALPHA, Difference


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values in the order given. What was not tested (`None`) does not count towards the family."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for rank, (p, place) in enumerate(order):
        reached = max(reached, min(1.0, p * (len(order) - rank)))
        adjusted[place] = reached
    return adjusted


def holm_levels(p_values: Sequence[float | None], *, alpha: float = ALPHA) -> list[float]:
    """The confidence level at which Holm's method tested each value: 1 - alpha / (hypotheses not yet rejected).

    An interval of that level leaves out 0 exactly where Holm's method rejects, if it inverts the same test.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    left = max(1, len(order))
    levels = [1 - alpha / left] * len(p_values)
    rejects = True
    for p, place in order:
        levels[place] = 1 - alpha / left
        rejects = rejects and p * left < alpha
        left -= rejects and left > 1
    return levels


def is_significant(difference: Difference) -> bool:
    """Whether it is larger than chance, and would be whatever is not known: by the corrected p-value, or by the only
    one where nothing was corrected."""
    p = difference.p_worst if difference.p_worst_adjusted is None else difference.p_worst_adjusted
    return p is not None and p < ALPHA


def depends_on_unjudged(difference: Difference) -> bool:
    """Whether it is larger than chance as far as is known, but what is not known could undo that."""
    p = difference.p_value if difference.p_adjusted is None else difference.p_adjusted
    return p is not None and p < ALPHA and not is_significant(difference)


def adjust_family(family: Sequence[Difference]) -> list[Difference]:
    """The differences with Holm's correction over all of them."""
    adjusted = zip(family, holm([one.p_value for one in family]), holm([one.p_worst for one in family]), strict=True)
    return [
        msgspec.structs.replace(one, p_adjusted=p_adjusted, p_worst_adjusted=p_worst)
        for one, p_adjusted, p_worst in adjusted
    ]


class RankRange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The places that one run could have. Rank 1 is the best."""

    best: int
    worst: int
    group: str
    """Letters: two runs that share one cannot be told apart."""


def rank_runs(order: Sequence[int], better: Collection[tuple[int, int]]) -> list[RankRange]:
    """The ranks of the runs 0, 1, 2, ... `order` has the run with the best value first. `better` has (i, j) where run i
    is shown to be better than run j."""
    letters = assign_letters({frozenset(pair) for pair in better}, order)
    ahead, behind = Counter(worse for _, worse in better), Counter(first for first, _ in better)
    return [
        RankRange(best=1 + ahead[run], worst=len(order) - behind[run], group=letters[run]) for run in range(len(order))
    ]


def assign_letters(apart: Collection[frozenset[int]], order: Sequence[int]) -> list[str]:
    """Letters by run, such that two runs share one exactly where they are not told apart.

    Runs are taken in `order`; a group that holds two runs that are apart is split, and one inside another is dropped.
    """
    cliques: list[set[int]] = [set(order)]
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            if frozenset({first, second}) in apart:
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
