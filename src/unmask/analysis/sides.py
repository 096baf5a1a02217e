"""Runs opened to be compared: their outcomes by scenario, and the difference of two of them in one measure.

`RUN@JUDGE` names another judge of a run than that of the last `unmask run`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from unmask.errors import DataError, UsageError
from unmask.files import file_exists
from unmask.records import Outcome, Preset, Scenario
from unmask.runs.run import AnyRun, Run, Runs, open_runs
from unmask.scoring.control import list_arms
from unmask.scoring.measures import list_values
from unmask.stats.clusters import join_clusters
from unmask.stats.estimate import Difference
from unmask.stats.values import Value, compare_values
from unmask.text import replace_surrogates


class Measured(NamedTuple):
    """A run in one measure: all that a difference from another run needs of it."""

    values: Mapping[str, Value]
    """What each scenario adds to the measure."""
    clusters: Mapping[str, str]
    """Of the scenarios that share a cluster with others."""
    takes: int


EXCESS, FLOOR = "excess", "floor"
"""Of the scenarios with a control: no measures, since a run has them only next to each other."""


def measure_rows(rows: Collection[Outcome], measure: str, *, takes: int) -> Measured:
    """In one measure, in the excess or in its floor."""
    same: dict[Value, Value] = {}  # most scenarios have one of a few values
    if measure in (EXCESS, FLOOR):
        rows = [row for row in rows if row.control is not None]
        values = list_arms(rows, takes=takes)[measure == EXCESS]
    else:
        values = list_values(list(rows), measure, takes=takes)
    clusters = {row.id: row.cluster for row in rows if row.cluster is not None}
    own = {row.id: same.setdefault(value, value) for row, value in zip(rows, values, strict=True)}
    return Measured(own, clusters, takes)


class RunSide(NamedTuple):
    """A run, read by one judge under one preset, with everything a comparison needs."""

    name: str
    run: Run
    judge: str | None
    """As the user named it; `None` for the first of the run."""
    contents: dict[str, Scenario]
    """What each scenario asks."""
    rows: dict[str, Outcome]
    found: dict[str, Measured]
    """By measure, those that were asked for."""

    @property
    def takes(self) -> int:
        return self.run.definition.takes

    def measured(self, measure: str) -> Measured:
        if measure not in self.found:
            self.found[measure] = measure_rows(self.rows.values(), measure, takes=self.takes)
        return self.found[measure]


def open_sides(runs: Runs, *, preset: Preset | str | None, judge: str | None) -> tuple[list[RunSide], Preset]:
    """The runs read under one preset, and that preset. `judge` reads where no judge is named behind an `@`. A folder
    that holds runs means all of them."""
    opened: list[tuple[Run, str | None]] = []
    for named in [runs] if isinstance(runs, AnyRun) else runs:
        folder, own = (named, None) if isinstance(named, Run) else _split_judge(str(named))
        opened += [(run, own or judge) for run in open_runs(folder)]
    if len(opened) < 2:
        raise UsageError("a comparison needs two runs", advice="Name two run folders, or one that holds several.")
    refuse_same_reading(opened)
    chosen = Preset(preset) if preset else opened[0][0].definition.preset
    paths = [run.path for run, _ in opened]
    short = dict(zip(dict.fromkeys(paths), short_names(list(dict.fromkeys(paths))), strict=True))
    sides = []
    for run, own in opened:
        again = f"@{own}" if own and paths.count(run.path) > 1 else ""
        contents = {scenario.id: scenario_content(scenario) for scenario in run.scenarios}
        rows = {row.id: row for row in run.rows(preset=chosen, judge=own)}
        sides.append(RunSide(short[run.path] + again, run, own, contents, rows, {}))
    return sides, chosen


def _split_judge(named: str) -> tuple[str, str | None]:
    """A folder and the judge behind an `@`. A folder whose own name has an `@` is found as it is."""
    places = [place for place, sign in enumerate(named) if sign == "@"]
    for end in (len(named), *places):
        if file_exists(named[:end]):
            if named[end:] == "@":
                raise UsageError(f"{named} names no judge", advice=f"Write {named}NAME, or leave out the @.")
            return named[:end], named[end + 1 :] or None
    return named[: places[0]] if places else named, None  # opening it says that there is no such run


def refuse_same_reading(readings: Sequence[tuple[Run, str | None]]) -> None:
    """A run next to itself would look like two that agree."""
    seen = set()
    for run, judge in readings:
        file = run.judge_file(judge)
        if (run.path.resolve(), file) in seen:
            others = [run.definition.typed_judge(name) for name in sorted(run.definition.judges) if name != file]
            advice = f"Name different runs, or another judge of it: {run.path}@{others[0] if others else 'NAME'}"
            if not others:
                advice += ". It has one; `unmask judge` makes readings by another."
            raise UsageError(f"{run.path} is named twice, read by the same judge", advice=advice)
        seen.add((run.path.resolve(), file))


def compare_sides(a: RunSide, b: RunSide, ids: Sequence[str], measure: str, *, level: float = 0.95) -> Difference:
    """b - a in one measure over these scenarios, which both have. Nothing is corrected for many tests yet."""
    return compare_measured(a.measured(measure), b.measured(measure), ids, level)


def compare_measured(a: Measured, b: Measured, ids: Sequence[str], level: float = 0.95) -> Difference:
    return compare_values(*pair_measured(a, b, ids), min(a.takes, b.takes), level)


def pair_measured(a: Measured, b: Measured, ids: Sequence[str]) -> tuple[list[Value], list[Value], list[int] | None]:
    """What each scenario adds in both, and its cluster: those of either run, joined."""
    clusters = None
    if a.clusters or b.clusters:
        clusters = join_clusters([((0, a.clusters.get(name, name)), (1, b.clusters.get(name, name))) for name in ids])
    return [a.values[name] for name in ids], [b.values[name] for name in ids], clusters


UNIT = re.compile(r"(.+)-[0-9a-f]{10}")
"""The folder of a unit of a sweep: what it is, and a digest."""


def short_names(paths: Sequence[Path]) -> list[str]:
    """Folder names where these are all different, else the paths as given. Units of a sweep have neither their digest
    nor what all of them end in, as long as they are different without it."""
    names = [replace_surrogates(path.name or str(path)) for path in paths]
    units = [match[1].split("-") for name in names if (match := UNIT.fullmatch(name))]
    if len(units) == len(names):
        ends = [len(set(parts)) == 1 for parts in zip(*(reversed(unit[1:]) for unit in units), strict=False)]
        shared = [*ends, False].index(False) if len(units) > 1 else 0
        shorter = ["-".join(unit[: len(unit) - shared]) for unit in units]
        names = shorter if len(set(shorter)) == len(names) else names
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


def find_changed(couples: Sequence[tuple[RunSide, RunSide]], *, drop_changed: bool) -> tuple[str, ...]:
    """Ids whose content differs in a couple. A couple that shares no scenario, or only such, is refused."""
    differing: set[str] = set()
    for a, b in couples:
        shared = a.contents.keys() & b.contents.keys()
        differing |= {name for name in shared if a.contents[name] != b.contents[name]}
    changed = tuple(sorted(differing))
    if changed and not drop_changed:
        shown = tuple(f"{name}: not the same text or truth in all runs" for name in changed[:10])
        more = (f"and {len(changed) - 10} more",) if len(changed) > 10 else ()
        raise DataError(
            f"the runs differ in {len(changed)} scenario{'s' * (len(changed) != 1)} under the same id",
            problems=shown + more,
            advice="Make the runs on the same data, or leave these scenarios out with --drop-changed.",
        )
    for a, b in couples:
        if a.contents.keys() & b.contents.keys() <= differing:
            raise UsageError(
                f"{a.name} and {b.name} share no scenario{' with the same text and truth' * bool(changed)}",
                advice="Compare runs that were made on the same data.",
            )
    return changed
