"""Ranges of ranks, and letters for runs that cannot be told apart. `stats.estimate` decides which pairs can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from string import ascii_lowercase

from unmask.records import Record


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
