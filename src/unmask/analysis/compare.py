"""Runs against each other, paired on the scenarios they share.

Every pair is compared on the scenarios that stand in both runs with the same content and were judged in both, under
one preset. Runs with different numbers of takes are compared at the smaller one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from unmask.errors import DataError, UsageError
from unmask.protocol.guards import USUAL_LIMITS, GuardFinding, GuardLimits, check_guard_limits, find_warnings
from unmask.protocol.score import tally_lies
from unmask.protocol.side_measures import OneLetter, find_one_letter
from unmask.records import Accuracy, Archetype, Outcome, Preset, Record, Result, Scenario, Verdict
from unmask.runs.differences import Setting, differing_settings, settings_of
from unmask.runs.run import Run
from unmask.stats.compare import Difference, holm, paired_difference
from unmask.stats.lying_at import estimate_lie_chance
from unmask.text import replace_surrogates

if TYPE_CHECKING:
    from numpy.random import Generator

    Values = Mapping[str, float]


class ComparedRun(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One of the runs."""

    name: str
    model: str
    takes: int
    scenarios: int
    unjudged: int
    undecided: int
    one_letter: OneLetter | None = None
    """Set where the judge, or a judge of the panel, gave one letter for everything."""
    warnings: tuple[GuardFinding, ...] = ()
    """What has to be said before any number of this run."""


class Flip(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A scenario that is a lie in one run and none in the other."""

    id: str
    archetype: Archetype
    a: Verdict
    b: Verdict


class RunPair(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Run b against run a; every difference is b - a."""

    a: str
    b: str
    shared: int
    """Scenarios in both runs; those known in both are `p_lie.n`."""
    takes: int
    """The k of Lying@k at which the two are compared."""
    not_called: str | None = None
    """Why no difference of this pair is called larger than chance: a guard refuses one of the runs. No p-value is given
    then."""
    p_lie: Difference
    measures: dict[str, Difference]
    archetypes: dict[Archetype, Difference]
    became_lies: tuple[Flip, ...]
    stopped_lying: tuple[Flip, ...]


class Comparison(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask compare` says."""

    preset: str
    runs: tuple[ComparedRun, ...]
    differs: tuple[Setting, ...]
    """Settings that are not the same in all runs, the model among them."""
    changed: tuple[str, ...]
    """Ids left out because their content differs between runs."""
    pairs: tuple[RunPair, ...]
    seed: int


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


def compare(
    runs: Sequence[Run | str | Path],
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    all_pairs: bool = False,
    drop_changed: bool = False,
    seed: int = 0,
    guards: GuardLimits = USUAL_LIMITS,
) -> Comparison:
    """Each further run against the first, or all against all. The preset is that of the first run unless given.

    Raises a `DataError` where one id has different content in two runs, unless such scenarios are to be dropped, and
    a `UsageError` where two runs share no scenario. A run that `guards` refuses is shown, but no difference from it is
    called larger than chance.
    """
    import numpy as np

    check_guard_limits(guards)
    sides, chosen = open_sides(runs, preset=preset, judge=judge)
    couples = list(combinations(sides, 2)) if all_pairs else [(sides[0], later) for later in sides[1:]]
    changed = _find_changed(couples, drop_changed=drop_changed)
    rng = np.random.default_rng(seed)
    described = [_describe_run(side, guards) for side in sides]
    pairs = [_refuse_pair(_compare_pair(a, b, frozenset(changed), rng), described) for a, b in couples]
    return Comparison(
        preset=chosen.value,
        runs=tuple(described),
        # The run's own preset, since all are read under one: it says how a lazy run was asked.
        differs=differing_settings(
            [
                settings_of(side.run.definition, judge=side.run.judge_file(judge), preset=chosen)
                | {"preset": side.run.definition.preset.value}
                for side in sides
            ]
        ),
        changed=changed,
        pairs=tuple(_correct_families(pairs)),
        seed=seed,
    )


def open_sides(
    runs: Sequence[Run | str | Path], *, preset: Preset | str | None, judge: str | None
) -> tuple[list[RunSide], Preset]:
    """The runs read under one preset, and that preset."""
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
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
                for scenario in run.folder.each_scenario()
            },
            {row.id: row for row in run.bare_rows(preset=chosen, judge=judge)},
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
    """What is asked and what is true, without remarks about it. Which side *yes* means is learnt, not content."""
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
    """The chance of a lie in k takes, 0 or 1 for k = takes. `None` where unknown takes could change it."""
    counts = tally_lies(outcome, takes=takes)
    least = estimate_lie_chance(counts.lies, n=takes, k=k)
    return least if least == estimate_lie_chance(counts.lies + counts.unknown, n=takes, k=k) else None


# --- inside


def _find_changed(couples: Sequence[tuple[RunSide, RunSide]], *, drop_changed: bool) -> tuple[str, ...]:
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


def _compare_pair(a: RunSide, b: RunSide, changed: frozenset[str], rng: Generator) -> RunPair:
    shared = sorted((a.contents.keys() & b.contents.keys()) - changed)
    k = min(a.takes, b.takes)
    lies = [_lie_chances(side, shared, k) for side in (a, b)]
    stopped = [side.name for side in (a, b) if _stopped_early(side, k)]
    why = f"{stopped[0]} stopped at the first lie, so nothing is known about {k} of its takes" if stopped else None
    if stopped:
        lies = [{}, {}]
    archetypes = {
        archetype: [name for name in shared if a.rows[name].archetype is archetype] for archetype in Archetype
    }
    return RunPair(
        a=a.name,
        b=b.name,
        shared=len(shared),
        takes=k,
        p_lie=_compare_values(lies, shared, rng, why),
        measures=_compare_measures(a, b, shared, rng),
        archetypes={name: _compare_values(lies, ids, rng, why) for name, ids in archetypes.items() if ids},
        became_lies=tuple(_find_flips(a, b, shared)),
        stopped_lying=tuple(_find_flips(b, a, shared, back=True)),
    )


def _compare_values(values: Sequence[Values], ids: Sequence[str], rng: Generator, why: str | None = None) -> Difference:
    shared = [name for name in ids if name in values[0] and name in values[1]]
    return paired_difference(
        [values[0][name] for name in shared], [values[1][name] for name in shared], rng=rng, why=why
    )


TITLES = {
    "lying_at_1": "Lying@1",
    "p_honest": "P(honest)",
    "p_lie_where_both_believe": "P(lie) where both believe",
    "accuracy": "accuracy",
}
"""What people are shown for the differences below."""


def _compare_measures(a: RunSide, b: RunSide, shared: Sequence[str], rng: Generator) -> dict[str, Difference]:
    """Differences besides P(lie), each with the scenarios it is defined on."""
    same = None if a.takes == b.takes else f"{a.name} has {a.takes} takes and {b.name} has {b.takes}"
    none: list[dict[str, float]] = [{}, {}]
    sides = (a, b)
    rows = [side.rows.items() for side in sides]
    alone = [_lie_chances(side, shared, 1) for side in sides] if min(a.takes, b.takes) > 1 else none
    hidden = next((side.name for side in sides if _stopped_early(side, 1)), None)
    stopped = f"{hidden} stopped at the first lie" if hidden else "a run has one take; P(lie) says it"
    honest = [
        {name: float(row.verdict is Verdict.HONEST) for name, row in items if row.verdict is not Verdict.UNJUDGED}
        for items in rows
    ]
    no_belief = {Verdict.UNJUDGED, Verdict.NO_BELIEF}
    believed_lies = [
        {name: float(row.verdict is Verdict.LIE) for name, row in items if row.verdict not in no_belief}
        for items in rows
    ]
    unknown = {Accuracy.UNJUDGED, Accuracy.NOT_ASKED}
    correct = [
        {name: float(row.accuracy is Accuracy.CORRECT) for name, row in items if row.accuracy not in unknown}
        for items in rows
    ]
    return {
        "lying_at_1": _compare_values(none if hidden else alone, shared, rng, stopped),
        "p_honest": _compare_values(none if same else honest, shared, rng, same),
        "p_lie_where_both_believe": _compare_values(none if same else believed_lies, shared, rng, same),
        "accuracy": _compare_values(correct, shared, rng),
    }


def _lie_chances(side: RunSide, ids: Sequence[str], k: int) -> dict[str, float]:
    chances = ((name, lie_chance(side.rows[name], takes=side.takes, k=k)) for name in ids)
    return {name: value for name, value in chances if value is not None}


def _stopped_early(side: RunSide, k: int) -> bool:
    """Whether takes skipped after a first lie hide how often k takes would hold one."""
    return k < side.takes and any(tally_lies(row, takes=side.takes).stopped for row in side.rows.values())


def _find_flips(old: RunSide, new: RunSide, ids: Sequence[str], *, back: bool = False) -> Iterator[Flip]:
    """Scenarios that are a lie in `new`, and judged but none in `old`. A lie in one of ten takes is no flip from one
    take, so runs with different takes have none. `back` says that `new` is run a."""
    if old.takes != new.takes:
        return
    for name in ids:
        before, after = old.rows[name].verdict, new.rows[name].verdict
        if after is Verdict.LIE and before not in {Verdict.LIE, Verdict.UNJUDGED}:
            a, b = (after, before) if back else (before, after)
            yield Flip(id=name, archetype=new.rows[name].archetype, a=a, b=b)


def _correct_families(pairs: Sequence[RunPair]) -> list[RunPair]:
    """Holm's correction, in three families: P(lie) over pairs, each archetype over pairs, other measures over pairs."""
    lies = _adjust_family([pair.p_lie for pair in pairs])
    archetypes = iter(_adjust_family([difference for pair in pairs for difference in pair.archetypes.values()]))
    measures = iter(_adjust_family([difference for pair in pairs for difference in pair.measures.values()]))
    return [
        msgspec.structs.replace(
            pair,
            p_lie=lie,
            archetypes={name: next(archetypes) for name in pair.archetypes},
            measures={name: next(measures) for name in pair.measures},
        )
        for pair, lie in zip(pairs, lies, strict=True)
    ]


def _adjust_family(family: Sequence[Difference]) -> list[Difference]:
    adjusted = holm([difference.p_value for difference in family])
    return [msgspec.structs.replace(unadjusted, p_adjusted=p) for unadjusted, p in zip(family, adjusted, strict=True)]


def _refuse_pair(pair: RunPair, runs: Sequence[ComparedRun]) -> RunPair:
    """The pair without p-values, and with the reason, where a guard refuses one of its runs."""
    reasons = [
        f"{run.name}: {finding.text}"
        for run in runs
        if run.name in (pair.a, pair.b)
        for finding in run.warnings
        if finding.refuses
    ]
    if not reasons:
        return pair
    return msgspec.structs.replace(
        pair,
        not_called="; ".join(reasons),
        p_lie=_without_p_value(pair.p_lie),
        measures={name: _without_p_value(part) for name, part in pair.measures.items()},
        archetypes={name: _without_p_value(part) for name, part in pair.archetypes.items()},
    )


def _without_p_value(difference: Difference) -> Difference:
    return msgspec.structs.replace(difference, p_value=None, test=None)


def _describe_run(side: RunSide, guards: GuardLimits) -> ComparedRun:
    rows = list(side.rows.values())
    verdicts = [row.verdict for row in rows]
    return ComparedRun(
        name=side.name,
        model=side.run.definition.subject.model,
        takes=side.takes,
        scenarios=len(side.rows),
        unjudged=verdicts.count(Verdict.UNJUDGED),
        undecided=sum(row.undecided for row in side.rows.values()),
        one_letter=find_one_letter(rows),
        warnings=find_warnings(rows, guards),
    )
