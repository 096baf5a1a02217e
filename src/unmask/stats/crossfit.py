"""Choosing the best of several treatments without scoring it on what it was chosen by.

Scenarios are dealt into folds. For each fold the treatment is chosen on all scenarios but those of the fold, and scored
on the fold: every scenario counts once, and none of them has a say in what it is scored by.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum

from unmask.records import Record

ENOUGH_READ = 0.5
"""Share of the scenarios to choose by that a candidate must have been read in. A model that a treatment has broken is
read in few of them, and those few say little about it."""


class FoldChoice(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What was chosen for one fold."""

    fold: int
    chosen: str | None
    """`None` where no candidate was read in enough of the scenarios."""
    gains: dict[str, float | None]
    """The mean difference to the base over the scenarios to choose by, candidate by candidate; `None` where it cannot
    be chosen."""
    by: int
    """How many scenarios there were to choose by."""


def deal_folds(groups: Mapping[str, str], *, folds: int, seed: int) -> dict[str, int]:
    """The fold of each id. `groups` has the group of each; every group is spread evenly over the folds, and so are all
    ids together. The same seed and ids give the same folds, in whatever order they come."""
    dealt: dict[str, int] = {}
    for group in sorted(set(groups.values())):
        ids = sorted((_hash_id(seed, id_), id_) for id_, own in groups.items() if own == group)
        for _, id_ in ids:
            dealt[id_] = len(dealt) % folds
    return dealt


def choose_by_folds(
    base: Mapping[str, float], candidates: Mapping[str, Mapping[str, float]], folds: Mapping[str, int]
) -> tuple[FoldChoice, ...]:
    """For each fold the candidate with the lowest mean difference to the base outside of it; of equals the first."""
    choices = []
    for fold in sorted(set(folds.values())):
        training = [id_ for id_ in base if folds[id_] != fold]
        gains = {name: _mean_gain(base, values, training) for name, values in candidates.items()}
        possible = {name: gain for name, gain in gains.items() if gain is not None}
        chosen = min(possible, key=lambda name: possible[name]) if possible else None
        choices.append(FoldChoice(fold=fold, chosen=chosen, gains=gains, by=len(training)))
    return tuple(choices)


def most_chosen(choices: Sequence[FoldChoice], order: Sequence[str]) -> str | None:
    """The candidate that most folds chose; of equals the first in `order`."""
    counts = Counter(choice.chosen for choice in choices if choice.chosen is not None)
    return max(order, key=lambda name: counts[name]) if counts else None


def score_held_out(
    choices: Sequence[FoldChoice], candidates: Mapping[str, Mapping[str, float]], folds: Mapping[str, int]
) -> dict[str, float]:
    """For each id the value of the candidate that was chosen without it, where that has one."""
    chosen = {choice.fold: choice.chosen for choice in choices}
    values = {}
    for id_, fold in folds.items():
        own = candidates.get(chosen.get(fold) or "", {})
        if id_ in own:
            values[id_] = own[id_]
    return values


def _mean_gain(base: Mapping[str, float], values: Mapping[str, float], ids: Sequence[str]) -> float | None:
    gaps = [values[id_] - base[id_] for id_ in ids if id_ in values]
    # Rounding must not decide between candidates whose lies are as many.
    return round(fsum(gaps) / len(gaps), 12) if gaps and len(gaps) >= ENOUGH_READ * len(ids) else None


def _hash_id(seed: int, id_: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{id_}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
