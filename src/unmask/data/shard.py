"""Shards: equal parts of the data, one for each task that a scheduler starts.

Which shard a scenario belongs to depends on the data, the seed and the number of shards alone, not on `--limit` or
`--archetype`: a shard of a larger selection contains the same shard of a smaller one, so that it can grow.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from unmask.data.dataset import LoadOptions, ShardSpec, content_hash
from unmask.data.select import order_to_draw
from unmask.errors import UsageError
from unmask.records import Archetype, Scenario

MOST_SHARDS = 10_000
_SHARD = re.compile(r"(\d{1,9})/(\d{1,9})|auto(?:/(\d{1,9}))?")
_FORMS = "Give the number of the shard and how many there are, --shard 3/16, or --shard auto/16 in an array of tasks."


def parse_shard(text: str, environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """The number of a shard, from 1, and how many there are: `3/16`, or by the variables of the scheduler `auto/16`,
    and `auto` where it says how many tasks it has."""
    match = _SHARD.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--shard {text[:40]!r} is no shard", advice=_FORMS)
    if match[1] is None:
        number, of = _ask_scheduler(int(match[3]) if match[3] else None, environ)
    else:
        number, of = int(match[1]), int(match[2])
    if not 1 <= number <= of <= MOST_SHARDS:
        advice = f"Shards count from 1 to their number, which is at most {MOST_SHARDS}."
        raise UsageError(f"--shard {text[:40]}: there is no shard {number} of {of}", advice=advice)
    return number, of


def _ask_scheduler(of: int | None, environ: Mapping[str, str]) -> tuple[int, int]:
    if environ.get("SLURM_ARRAY_TASK_ID"):
        return _ask_slurm(of, environ)
    if not environ.get("JOB_COMPLETION_INDEX"):
        raise UsageError(
            "--shard auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set",
            advice="They are set in a Slurm array and in a Kubernetes Indexed Job. Elsewhere give --shard 3/16.",
        )
    if of is None:
        raise UsageError(
            "--shard auto: Kubernetes says which task this is, and not how many there are",
            advice="Give the `completions` of the Job: --shard auto/16",
        )
    return _read_number("JOB_COMPLETION_INDEX", environ) + 1, of


def _ask_slurm(of: int | None, environ: Mapping[str, str]) -> tuple[int, int]:
    """The shard of this task. Slurm counts the tasks of this array only: an array that sends some failed tasks again
    has fewer than there are shards. Then the user has to say how many there are, and task 0 is shard 1."""
    task = _read_number("SLURM_ARRAY_TASK_ID", environ)
    names = ("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT")
    low, high, count = (_read_number(name, environ) if environ.get(name) else None for name in names)
    if of is not None:
        if max(task, high or 0) >= of:
            raise UsageError(
                f"--shard auto/{of}: the array has a task {max(task, high or 0)}",
                advice=f"With a number, tasks count from 0: sbatch --array=0-{of - 1}",
            )
        return task + 1, of
    if low is None or high is None or count is None or count < 2 or low > 1 or high - low + 1 != count:
        raise UsageError(
            "--shard auto: this array may hold only some of the tasks, so it does not say how many shards there are",
            advice="Give the number of shards and count tasks from 0: --shard auto/16 with sbatch --array=0-15, and"
            " for those that failed sbatch --array=3,7",
        )
    return task - low + 1, count


def _read_number(name: str, environ: Mapping[str, str]) -> int:
    if not re.fullmatch(r"\d{1,9}", environ[name]):
        raise UsageError(f"--shard auto: {name} is {environ[name][:40]!r}, and no number", advice=_FORMS)
    return int(environ[name])


def take_shard(
    scenarios: Sequence[Scenario], selected: Sequence[Scenario], *, options: LoadOptions
) -> tuple[tuple[Scenario, ...], ShardSpec | None]:
    """The part of the selected scenarios that these options name, and what is to be written down about it."""
    if options.shard is None:
        return tuple(selected), None
    number, of = parse_shard(options.shard)
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
    """The shard of each scenario, by its id. Scenarios are dealt in the order in which samples take them: each goes to
    a shard that has fewest of its archetype, and among these to the smallest one. So shards take about the same time,
    whatever the limit and the archetypes."""
    totals = [0] * of
    waiting: defaultdict[Archetype, list[int]] = defaultdict(list)
    dealt: dict[str, int] = {}
    for scenario in order_to_draw(scenarios, seed=seed):
        round_of_archetype = waiting[scenario.archetype]
        if not round_of_archetype:
            round_of_archetype.extend(range(of))
        smallest = min(round_of_archetype, key=totals.__getitem__)
        round_of_archetype.remove(smallest)
        totals[smallest] += 1
        dealt[scenario.id] = smallest + 1
    return dealt
