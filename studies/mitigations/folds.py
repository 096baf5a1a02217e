"""Choosing the best of several treatments without scoring it on what it was chosen by.

Scenarios are dealt into folds. For each fold the treatment is chosen on the scenarios of all other folds and scored on
this one: every scenario counts once, and none has a say in what it is scored by.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum

ENOUGH_READ = 0.5
"""Share of the scenarios to choose by that a candidate must have been read in. A model that a treatment has broken is
read in few of them, and those few say little about it."""

Shares = Mapping[str, float]
"""By scenario, the share of its takes."""


def deal_folds(groups: Mapping[str, str], *, folds: int, seed: int) -> dict[str, int]:
    """The fold of each id. `groups` has the group of each; every group is spread evenly over the folds, and so are all
    ids together. The same seed and ids give the same folds, in whatever order they come."""
    dealt: dict[str, int] = {}
    for group in sorted(set(groups.values())):
        ids = [id_ for id_, own in groups.items() if own == group]
        for id_ in sorted(ids, key=lambda id_: hashlib.blake2b(f"{seed}\0{id_}".encode(), digest_size=8).digest()):
            dealt[id_] = len(dealt) % folds
    return dealt


def choose_by_folds(base: Shares, candidates: Mapping[str, Shares], folds: Mapping[str, int]) -> dict[int, str | None]:
    """For each fold the candidate with the lowest mean difference to the base outside of it; of equals the first."""
    choices: dict[int, str | None] = {}
    for fold in sorted(set(folds.values())):
        training = [id_ for id_ in base if folds[id_] != fold]
        gains = {name: _mean_gain(base, shares, training) for name, shares in candidates.items()}
        possible = {name: gain for name, gain in gains.items() if gain is not None}
        choices[fold] = min(possible, key=lambda name: possible[name]) if possible else None
    return choices


def find_most_chosen(choices: Mapping[int, str | None], order: Sequence[str]) -> str | None:
    """The candidate that most folds chose; of equals the first in `order`."""
    counts = Counter(name for name in choices.values() if name is not None)
    return max(order, key=lambda name: counts[name]) if counts else None


def score_held_out(
    choices: Mapping[int, str | None], candidates: Mapping[str, Shares], folds: Mapping[str, int]
) -> dict[str, float]:
    """For each id the share of the candidate that was chosen without it, where it has one."""
    chosen = {id_: candidates.get(choices.get(fold) or "", {}) for id_, fold in folds.items()}
    return {id_: shares[id_] for id_, shares in chosen.items() if id_ in shares}


def _mean_gain(base: Shares, shares: Shares, ids: Sequence[str]) -> float | None:
    gaps = [shares[id_] - base[id_] for id_ in ids if id_ in shares]
    # Rounding must not decide between candidates with as many lies.
    return round(fsum(gaps) / len(gaps), 12) if gaps and len(gaps) >= ENOUGH_READ * len(ids) else None
