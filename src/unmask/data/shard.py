"""Shards: equal parts of the data, one for each task that a scheduler starts.

Which shard a scenario belongs to depends on the data, the seed and the number of shards alone, not on `--limit` or
`--archetype`: a shard of a larger selection contains the same shard of a smaller one, so that it can grow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from unmask.data.dataset import LoadOptions, ShardSpec, content_hash, group_by_fact
from unmask.data.select import shuffle_by_archetype
from unmask.errors import UsageError
from unmask.records import Archetype, Scenario

MOST_SHARDS = 10_000
_SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")


def parse_shard(text: str) -> tuple[int, int]:
    """The number of a shard, from 1, and how many there are: `3/16`."""
    match = _SHARD.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--shard {text[:40]!r} is no shard",
            advice="Give the number of the shard and how many there are: --shard 3/16.",
        )
    number, of = int(match[1]), int(match[2])
    if not 1 <= number <= of <= MOST_SHARDS:
        advice = f"Shards count from 1 to their number, which is at most {MOST_SHARDS}."
        raise UsageError(f"--shard {text[:40]}: there is no shard {number} of {of}", advice=advice)
    return number, of


def take_shard(
    scenarios: Sequence[Scenario], selected: Sequence[Scenario], shard: str, *, options: LoadOptions
) -> tuple[tuple[Scenario, ...], ShardSpec]:
    """This shard of the selected scenarios, and what is to be written down about it."""
    number, of = parse_shard(shard)
    wanted = set(options.ids)
    shards = deal_shards(
        [scenario for scenario in scenarios if not wanted or scenario.id in wanted], of=of, seed=options.seed
    )
    chosen = tuple(scenario for scenario in selected if shards[scenario.id] == number)
    if not chosen:
        raise UsageError(
            f"shard {number}/{of} has no scenario: {len(selected)} are selected",
            advice="Make fewer shards, or none: every shard takes the model some time to start.",
        )
    return chosen, ShardSpec(number=number, of=of, scenarios=len(selected), hash=content_hash(selected))


def deal_shards(scenarios: Sequence[Scenario], *, of: int, seed: int) -> dict[str, int]:
    """The shard of each scenario, by its id: archetype by archetype the facts are dealt in turn, in the order in which
    samples take them, so shards take about the same time. The rungs of a fact go to one shard."""
    shuffled = shuffle_by_archetype(scenarios, seed)
    facts = group_by_fact(scenario for archetype in Archetype for scenario in shuffled.get(archetype, ()))
    return {scenario.id: 1 + place % of for place, rungs in enumerate(facts) for scenario in rungs}
