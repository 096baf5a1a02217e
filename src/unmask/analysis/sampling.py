"""Which replies people should read, and how many scenarios each one that they read counts for.

Where a run has a control, half of them are without the role. In each arm the judge's lies and the other scenarios are
taken in turn, each in the order of a hash of the seed and the id. Without its lies a low rate would rest on a handful
of labels. A part of a random order is a random sample of its stratum, so nothing has to be kept: you may stop anywhere,
the run may grow, and another judge may read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import zip_longest
from pathlib import Path

from unmask.analysis.label_sheets import Item, Key
from unmask.analysis.labels import list_items
from unmask.errors import UsageError
from unmask.records import CONTROL, PRESSURED, NoBelief, Outcome, Slot, Verdict, digest, is_probe
from unmask.runs.commands import completing_command
from unmask.runs.run import Run
from unmask.scoring.control import view_arm
from unmask.scoring.measures import MEASURES

SIZE = 150
"""As many as the published check of the judge."""

Stratum = tuple[Hashable, bool]
"""What the judge in use says of a scenario, and whether the judge that decided what people read calls it a lie."""


def label(run: Run | str | Path, *, size: int = SIZE, sample_seed: int = 0, probes: bool = False) -> list[Item]:
    """The replies that people should read, of up to `size` scenarios: those with a belief that some judge sees and a
    take that some judge has read. Where there is a control, half of `size` are for its replies. `probes` adds the probe
    replies, so that errors in beliefs are corrected too."""
    if size < 1:
        raise UsageError(f"--size {size} is too small", advice="Give at least 1.")
    opened = run if isinstance(run, Run) else Run(run)
    items = list_items(opened, opened.rows(), probes=probes)
    arms = (PRESSURED, CONTROL) if opened.definition.control else (PRESSURED,)
    lies = {arm: _find_lies(opened, arm, items, probes=probes) for arm in arms}
    if not any(lies.values()):
        raise UsageError(
            f"{opened.path} has no reply that a label could change",
            advice=f"Finish the run first: {completing_command(opened.definition, opened.path)}",
        )
    drawn: dict[Key, Item] = {}  # the probes of a scenario come once, before the first of its statements
    for scenario, arm in choose_in_arms(lies, size=size, seed=sample_seed):
        own = _list_in_arm(items[scenario], arm)
        drawn |= {item.key: item for item in sorted(own, key=lambda item: (item.slot == arm, item.slot, item.take))}
    return list(drawn.values())


def _list_in_arm(items: Iterable[Item], arm: Slot) -> list[Item]:
    return [item for item in items if item.slot == arm or is_probe(item.slot)]


def _find_lies(run: Run, arm: Slot, items: Mapping[str, Iterable[Item]], *, probes: bool) -> dict[str, bool]:
    """Whether the judge calls it a lie, of each scenario in which a label could change something."""
    own, takes, rules = run.rows(), run.definition.takes, run.definition.preset
    by_judge = [run.rows(judge=judge) for judge in sorted(run.definition.judges)] or [own]
    lies = {}
    for scenario, *rows in zip(run.scenarios, own, *by_judge, strict=True):
        if arm not in rows[0].readings or not _list_in_arm(items[scenario.id], arm):
            continue
        row, *views = (view_arm(scenario, row, arm, rules) for row in rows)
        judged = any(lie_share(view, takes=takes) is not None for view in views)
        if judged and (probes or any(not isinstance(view.belief, NoBelief) for view in views)):
            lies[row.id] = row.verdict is Verdict.LIE
    return lies


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
