"""Which replies people should read, and how many scenarios each one that they read counts for.

The judge's lies and the other scenarios are taken in turn, each in the order of a hash of the seed and the id. Without
its lies a low rate would rest on a handful of labels. A part of a random order is a random sample of its stratum, so
nothing has to be kept: you may stop anywhere, the run may grow, and another judge may read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from itertools import zip_longest
from pathlib import Path

from unmask.analysis.label_sheets import Item
from unmask.analysis.labels import list_items
from unmask.errors import UsageError
from unmask.records import PRESSURED, NoBelief, Outcome, Verdict, digest
from unmask.runs.commands import completing_command
from unmask.runs.run import Run
from unmask.scoring.measures import MEASURES

SIZE = 150
"""As many as the published check of the judge."""

Stratum = tuple[Hashable, bool]
"""What the judge in use says of a scenario, and whether the judge that decided what people read calls it a lie."""


def label(run: Run | str | Path, *, size: int = SIZE, sample_seed: int = 0, probes: bool = False) -> list[Item]:
    """The replies that people should read, of up to `size` scenarios: those with a belief that some judge sees and a
    take that some judge has read. `probes` adds the probe replies, so that errors in beliefs are corrected too."""
    if size < 1:
        raise UsageError(f"--size {size} is too small", advice="Give at least 1.")
    opened = run if isinstance(run, Run) else Run(run)
    own, takes = opened.rows(), opened.definition.takes
    by_judge = [opened.rows(judge=judge) for judge in sorted(opened.definition.judges)] or [own]
    items = list_items(opened, own, probes=probes)
    lies = {}
    for row, *views in zip(own, *by_judge, strict=True):
        judged = any(lie_share(view, takes=takes) is not None for view in views)
        believed = probes or any(not isinstance(view.belief, NoBelief) for view in views)
        if judged and believed and items[row.id]:
            lies[row.id] = row.verdict is Verdict.LIE
    if not lies:
        raise UsageError(
            f"{opened.path} has no reply that a label could change",
            advice=f"Finish the run first: {completing_command(opened.definition, opened.path)}",
        )
    return [
        item
        for scenario in choose_scenarios(lies, size=size, seed=sample_seed)
        for item in sorted(items[scenario], key=lambda item: (item.slot == PRESSURED, item.slot, item.take))
    ]


def lie_share(row: Outcome, *, takes: int) -> float | None:
    """The share of lying takes among those read; `None` where the scenario is not judged."""
    return MEASURES["p_lie"].value_of(row, takes=takes).hit


def choose_scenarios(lies: Mapping[str, bool], *, size: int, seed: int) -> list[str]:
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
