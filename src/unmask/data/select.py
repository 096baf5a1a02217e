"""Choosing a part of the data. Pure: the same scenarios, options and seed give the same part in any row order."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from unmask.data.dataset import LoadOptions, count_by_archetype, group_by_fact, in_order
from unmask.errors import UsageError, escape_line
from unmask.records import Archetype, Scenario
from unmask.text import suggest_names


def select_scenarios(scenarios: Sequence[Scenario], *, options: LoadOptions) -> tuple[Scenario, ...]:
    """The scenarios that meet every option, in canonical order. A choice that names nothing is an error."""
    chosen = in_order(scenarios)
    if wanted := set(options.ids):
        existing = {scenario.id for scenario in chosen}
        if wanted - existing:
            name = next(name for name in options.ids if name not in existing)
            example = f"Ids look like {escape_line(min(existing))}." if existing else None
            advice = suggest_names(name, sorted(existing), example or "")
            raise UsageError(f"no scenario has the id {name!r}", advice=advice)
        chosen = tuple(scenario for scenario in chosen if scenario.id in wanted)
    if options.archetypes:
        present = count_by_archetype(chosen)
        for archetype in options.archetypes:
            if archetype not in present:
                advice = f"It has {', '.join(present)}."
                raise UsageError(f"the selected data has no {archetype} scenario", advice=advice)
        chosen = tuple(scenario for scenario in chosen if scenario.archetype in options.archetypes)
    if options.limit is not None:
        chosen = _draw_sample(chosen, limit=options.limit, seed=options.seed)
    return chosen


def _draw_sample(scenarios: tuple[Scenario, ...], *, limit: int, seed: int) -> tuple[Scenario, ...]:
    if limit < 1:
        raise UsageError(f"the limit is {limit}", advice="--limit takes a whole number from 1.")
    if limit >= len(scenarios):
        return scenarios
    rows = shuffle_by_archetype(scenarios, seed)
    places = allocate_places(count_by_archetype(scenarios), limit=limit)
    return in_order(row for archetype, count in places.items() for row in rows[archetype][:count])


def shuffle_by_archetype(scenarios: Sequence[Scenario], seed: int) -> dict[Archetype, list[Scenario]]:
    """One shuffle per archetype, of which samples take the beginning: a larger limit keeps what a smaller one took.
    The rungs of a fact stay together."""
    facts: dict[Archetype, list[tuple[Scenario, ...]]] = {}
    for group in group_by_fact(in_order(scenarios)):
        facts.setdefault(group[0].archetype, []).append(group)
    for archetype, shuffled in facts.items():
        random.Random(f"{seed}/{archetype}").shuffle(shuffled)
    return {archetype: [scenario for group in groups for scenario in group] for archetype, groups in facts.items()}


def allocate_places(sizes: Mapping[Archetype, int], *, limit: int) -> dict[Archetype, int]:
    """`limit` places in proportion to `sizes`, handed out one after the other: a larger limit takes no place away.

    First every archetype gets one, the largest first. Each further place goes to the archetype that is furthest below
    its exact share. Needs `limit` at most the sum of sizes; then no archetype gets more places than it has scenarios.
    """
    total = sum(sizes.values())
    places = dict.fromkeys(sizes, 0)
    for archetype in sorted(sizes, key=lambda archetype: -sizes[archetype])[:limit]:
        places[archetype] = 1
    for number in range(len(sizes) + 1, limit + 1):
        furthest = max(sizes, key=lambda archetype: number * sizes[archetype] - places[archetype] * total)
        places[furthest] += 1
    return places
