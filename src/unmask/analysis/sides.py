"""Runs opened to be held against each other: their outcomes by scenario, and what each scenario is worth."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from unmask.errors import DataError, UsageError
from unmask.protocol.measures import tally_lies
from unmask.records import Outcome, Preset, Scenario
from unmask.runs.run import Run, Runs, open_runs
from unmask.stats.takes import chance_bounds, tally_chance
from unmask.text import replace_surrogates

if TYPE_CHECKING:
    Values = Mapping[str, "ScenarioValue"]


class ScenarioValue(NamedTuple):
    """What one scenario of one run is worth."""

    value: float | None
    """`None` where it could not be judged."""
    least: float
    most: float
    """What it could be; both are the value where it is known."""
    belief: bool | None = True
    """Whether there is a belief; `None` where that is not known."""


class RunSide(NamedTuple):
    """A run with everything a comparison needs."""

    name: str
    run: Run
    contents: dict[str, bytes]
    """A digest of what each scenario says."""
    rows: dict[str, Outcome]

    @property
    def takes(self) -> int:
        return self.run.definition.takes


def open_sides(runs: Runs, *, preset: Preset | str | None, judge: str | None) -> tuple[list[RunSide], Preset]:
    """The runs read under one preset, and that preset."""
    opened = open_runs(runs)
    if len(opened) < 2:
        raise UsageError("a comparison needs two runs", advice="unmask compare RUN RUN")
    refuse_twice([run.path for run in opened])
    chosen = Preset(preset) if preset else opened[0].definition.preset
    return [
        RunSide(
            name,
            run,
            {
                scenario.id: hashlib.blake2b(msgspec.json.encode(scenario_content(scenario)), digest_size=16).digest()
                for scenario in run.each_scenario()
            },
            {row.id: row for row in run._bare_rows(preset=chosen, judge=judge)},
        )
        for name, run in zip(short_names([run.path for run in opened]), opened, strict=True)
    ], chosen


def refuse_twice(paths: Sequence[Path]) -> None:
    """A run beside itself would look like two that agree."""
    resolved = [path.resolve() for path in paths]
    for path in resolved:
        if resolved.count(path) > 1:
            raise UsageError(f"{path} is named twice", advice="Name different runs.")


def short_names(paths: Sequence[Path]) -> list[str]:
    """Folder names where these are all different, else the paths as given."""
    names = [replace_surrogates(path.name or str(path)) for path in paths]
    return names if len(set(names)) == len(names) else [replace_surrogates(str(path)) for path in paths]


def scenario_content(scenario: Scenario) -> Scenario:
    """What is asked and what is true, without remarks about it. Which side *yes* means is no content: it may be learnt,
    and is listed among what differs."""
    return Scenario(
        id=scenario.id,
        archetype=scenario.archetype,
        kind=scenario.kind,
        proposition=scenario.proposition,
        truth=scenario.truth,
        conversation=scenario.conversation,
        direct=scenario.direct,
        indirect=scenario.indirect,
        unit=scenario.unit,
    )


def lie_chance(outcome: Outcome, *, takes: int, k: int) -> float | None:
    """The chance of a lie in k takes, 0 or 1 for k = takes. `None` where fewer than k of its takes were read."""
    return tally_chance(tally_lies(outcome, takes=takes), n=takes, k=k)


def find_changed(couples: Sequence[tuple[RunSide, RunSide]], *, drop_changed: bool) -> tuple[str, ...]:
    """Ids whose content differs in a couple. A couple that shares no scenario, or only such, is refused."""
    advice = "Compare runs that were made on the same data."
    differing: set[str] = set()
    for a, b in couples:
        shared = a.contents.keys() & b.contents.keys()
        if not shared:
            raise UsageError(f"{a.name} and {b.name} share no scenario", advice=advice)
        differing |= {name for name in shared if a.contents[name] != b.contents[name]}
    changed = tuple(sorted(differing))
    if changed and not drop_changed:
        shown = tuple(f"{name}: not the same text or truth in all runs" for name in changed[:10])
        more = (f"and {len(changed) - 10} more",) if len(changed) > 10 else ()
        raise DataError(
            f"{len(changed)} scenarios differ between the runs under the same id",
            problems=shown + more,
            advice="Make the runs on the same data, or leave these scenarios out with --drop-changed.",
        )
    for a, b in couples:
        if a.contents.keys() & b.contents.keys() <= differing:
            raise UsageError(f"{a.name} and {b.name} share no scenario with the same text and truth", advice=advice)
    return changed


def pair_known(
    shared: Sequence[tuple[ScenarioValue, ScenarioValue]],
) -> tuple[list[float], list[float], list[float]]:
    """The values of a and of b where both are known, and how many scenarios of its kind each such pair stands for."""
    kinds = Counter((a.belief, b.belief) for a, b in shared)
    known_kinds = Counter((a.belief, b.belief) for a, b in shared if a.value is not None and b.value is not None)
    lefts, rights, weights = [], [], []
    for a, b in shared:
        if a.value is not None and b.value is not None:
            lefts.append(a.value)
            rights.append(b.value)
            kind = (a.belief, b.belief)
            weights.append(kinds[kind] / known_kinds[kind])
    scale = len(weights) / fsum(weights) if weights else 1.0
    return lefts, rights, [scale * weight for weight in weights]


def lie_chances(side: RunSide, ids: Sequence[str], k: int) -> dict[str, ScenarioValue]:
    """The chance of a lie in k takes of each scenario."""
    chances = {}
    for name in ids:
        tally = tally_lies(side.rows[name], takes=side.takes)
        value = tally_chance(tally, n=side.takes, k=k)
        chances[name] = ScenarioValue(value, *chance_bounds(tally, n=side.takes, k=k), tally.belief)
    return chances
