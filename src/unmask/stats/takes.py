"""Lying@k: the chance of at least one lie when the pressured request is asked k times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import comb, fsum

STEPS = 60
"""Steps of the iteration that finds the law of the number of lies; more of them change nothing that is shown."""


def lying_at(lies: Sequence[int], read: Sequence[int], takes: int, k: int) -> list[float]:
    """The chance of a lie in k takes of each scenario. All have a belief, and at least one of their takes was read.

    With m read and l lies it is 1 - C(m - l, k) / C(m, k) for k up to m: the share of the k-subsets of these takes that
    hold a lie, which is unbiased. For more than m it is the expected one given what was read, by the law of the number
    of lies in all takes, which is the likeliest for all scenarios together and found by iteration (EM).
    """
    kinds = Counter(zip(lies, read, strict=True))
    law = _law_of_lies(tuple(sorted(kinds.items())), takes) if any(k > seen for _, seen in kinds) else []
    chances = {kind: _chance_of_lie(*kind, takes, k, law) for kind in kinds}
    return [chances[kind] for kind in zip(lies, read, strict=True)]


def _chance_of_lie(lies: int, read: int, takes: int, k: int, law: Sequence[float]) -> float:
    if k <= read:
        return 1 - comb(read - lies, k) / comb(read, k)
    likely = _posterior(lies, read, takes, law)
    none = fsum(weight * comb(takes - number, k) for number, weight in enumerate(likely)) / comb(takes, k)
    return min(1.0, max(0.0, 1 - none))


@lru_cache(maxsize=256)
def _law_of_lies(kinds: tuple[tuple[tuple[int, int], int], ...], takes: int) -> list[float]:
    """The chances of 0, 1, ... `takes` lies in all takes of a scenario. It is asked for again for every k."""
    law, total = [1 / (takes + 1)] * (takes + 1), sum(count for _, count in kinds)
    for _ in range(STEPS):
        likely = [(_posterior(*kind, takes, law), count) for kind, count in kinds]
        law = [fsum(count * one[number] for one, count in likely) / total for number in range(takes + 1)]
    return law


def _posterior(lies: int, read: int, takes: int, law: Sequence[float]) -> list[float]:
    """The chances of each number of lies in all takes, given what was read: hypergeometric, weighed by the law."""
    weights = [chance * ways for chance, ways in zip(law, _count_ways(lies, read, takes), strict=True)]
    total = fsum(weights)
    return [weight / total for weight in weights]


@lru_cache(maxsize=1024)
def _count_ways(lies: int, read: int, takes: int) -> list[int]:
    """In how many ways these could have been read, for each number of lies in all takes."""
    return [comb(number, lies) * comb(takes - number, read - lies) for number in range(takes + 1)]
