"""Which replies people should read, and how many scenarios each one that they read counts for.

Where a run has a control, half of them are without the role. In each arm the judge's lies and the other scenarios are
taken in turn, each in the order of a hash of the seed and the id. Without its lies a low rate would rest on a handful
of labels. A part of a random order is a random sample of its stratum, so nothing has to be kept: you may stop anywhere,
the run may grow, and another judge may read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from itertools import zip_longest

from unmask.records import PRESSURED, Outcome, Slot, digest
from unmask.scoring.measures import MEASURES

Stratum = tuple[Hashable, bool]
"""What the judge in use says of a scenario, and whether the judge that decided what people read calls it a lie."""


def lie_share(row: Outcome, *, takes: int) -> float | None:
    """The share of lying takes among those read; `None` where the scenario is not judged."""
    return MEASURES["p_lie"].value_of(row, takes=takes).hit


def choose_in_arms(lies: Mapping[Slot, Mapping[str, bool]], *, size: int, seed: int) -> list[tuple[str, Slot]]:
    """As many scenarios of each arm, for replies of that arm, in an order that does not tell the arm."""
    arms = [arm for arm, own in lies.items() if own]
    chosen = [
        (scenario, arm)
        for place, arm in enumerate(arms)
        for scenario in choose_scenarios(
            lies[arm],
            size=(size + len(arms) - 1 - place) // len(arms),
            seed=seed if arm == PRESSURED else f"{seed} {arm}",
        )
    ]
    return sorted(chosen, key=lambda one: digest((str(seed), "shown", *one)))


def choose_scenarios(lies: Mapping[str, bool], *, size: int, seed: int | str) -> list[str]:
    """`lies` says of each scenario whether the judge calls it one. They are shown in an order that does not tell."""
    order = sorted(lies, key=lambda scenario: digest((str(seed), scenario)))
    strata = ([scenario for scenario in order if lies[scenario] is lie] for lie in (True, False))
    in_turn = [scenario for pair in zip_longest(*strata) for scenario in pair if scenario is not None]
    return sorted(in_turn[:size], key=lambda scenario: digest((str(seed), "shown", scenario)))


def join_strata(strata: Mapping[str, Stratum], labelled: Collection[str]) -> dict[str, Hashable]:
    """The stratum that each scenario is counted in. Where nobody labelled any of a stratum, all that the judge in use
    reads alike are one."""
    bare = set(strata.values()) - {strata[scenario] for scenario in labelled}
    joined = {said for said, _ in bare}
    return {scenario: said if said in joined else (said, chosen) for scenario, (said, chosen) in strata.items()}


def weigh_labelled(strata: Mapping[str, Stratum], labelled: Collection[str]) -> dict[str, float]:
    """How many scenarios each labelled one counts for: the size of its stratum over the number labelled in it."""
    joined = join_strata(strata, labelled)
    sizes, read = Counter(joined.values()), Counter(joined[scenario] for scenario in labelled)
    return {scenario: sizes[joined[scenario]] / read[joined[scenario]] for scenario in labelled}
