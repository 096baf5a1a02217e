"""Runs against each other, paired on the scenarios they share.

Every pair is compared on the scenarios that both runs have with the same content, under one preset, in one measure:
P(lie) unless another is asked for. All pairs of the runs named are one family of tests, as on the board. With a margin
it is also said of each pair whether the difference is smaller than that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations

import msgspec

from unmask.analysis.corrected import correct_difference
from unmask.analysis.sides import EXCESS, FLOOR, RunSide, compare_sides, find_changed, open_sides, pair_measured
from unmask.errors import UsageError
from unmask.records import Archetype, Preset, Record, Result, Verdict
from unmask.runs.differences import Setting, compare_names, differing_settings, settings_of
from unmask.runs.run import AnyRun, Runs
from unmask.scoring.control import compare_arms
from unmask.scoring.guards import USUAL_LIMITS, GuardFinding, GuardLimits, check_guard_limits, find_warnings
from unmask.scoring.measures import Where, find_measure, list_measures, measure_rate, measure_unjudged
from unmask.scoring.shares import LIES
from unmask.stats.corrected import CorrectedDifference
from unmask.stats.estimate import Difference
from unmask.stats.family import adjust_family, depends_on_unjudged, is_significant
from unmask.stats.margin import MarginTest, MarginVerdict, check_margin
from unmask.stats.rate import Rate
from unmask.text import list_names


class ComparedRun(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One of the runs."""

    name: str
    path: str
    judge: str | None
    """As named behind the `@` or by `--judge`; `None` is the judge of the last `unmask run`."""
    model: str
    takes: int
    scenarios: int
    unjudged: int
    """Scenarios without a verdict."""
    unjudged_share: float | None
    """The share of takes that are not known, each scenario weighing the same."""
    undecided: int
    warnings: tuple[GuardFinding, ...] = ()
    """What has to be said before any number of this run."""
    measures: dict[str, Rate]
    """The measure compared, then the others, of the scenarios that all runs share."""
    archetypes: dict[Archetype, Rate]
    """The measure compared, archetype by archetype."""
    control: Difference | None = None
    """Of the scenarios that all runs share: `a` is the floor, `value` the excess. `None` without a control."""


class Flip(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A scenario that is a lie in one run and none in the other."""

    id: str
    archetype: Archetype
    a: Verdict
    b: Verdict


class ExcessPair(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The excess of two runs, over the scenarios that are judged in both arms of both. It is never shown without its
    floor: a model that lies without the role too has none."""

    excess: Difference
    floor: Difference


class RunPair(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Run b against run a; every difference is b - a."""

    a: str
    b: str
    shared: int
    """Scenarios in both runs; those known in both are `difference.n`."""
    not_called: str | None = None
    """Why no difference of this pair is called larger than chance: a guard refuses one of the runs. No p-value is given
    then."""
    difference: Difference
    """In the measure compared: what `unmask gate` decides on and `unmask power` plans."""
    within: MarginTest | None = None
    """Whether this difference is smaller than the margin; only where one was given."""
    archetypes: dict[Archetype, Difference]
    """The same, archetype by archetype."""
    measures: dict[str, Difference]
    """The other measures."""
    control: ExcessPair | None = None
    """`None` unless both runs have a control."""
    became_lies: tuple[Flip, ...]
    stopped_lying: tuple[Flip, ...]
    corrected: CorrectedDifference | None = None
    """P(lie) of each run corrected by its own labels; only where labels were asked for."""


class Comparison(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask compare` says."""

    preset: str
    measure: str
    margin: float | None
    runs: tuple[ComparedRun, ...]
    differs: tuple[Setting, ...]
    """Settings that are not the same in all runs, the model among them."""
    changed: tuple[str, ...]
    """Ids left out because their content differs between runs."""
    pairs: tuple[RunPair, ...]
    """All pairs, those with the first run first."""

    @property
    def against_first(self) -> tuple[RunPair, ...]:
        """The pairs with the first run: of many runs the only ones that are shown in full."""
        return tuple(pair for pair in self.pairs if pair.a == self.runs[0].name)


def compare(
    runs: Runs,
    *more: AnyRun,
    measure: str = "p_lie",
    margin: float | None = None,
    preset: Preset | str | None = None,
    judge: str | None = None,
    drop_changed: bool = False,
    labels: str | Sequence[str] = (),
    guards: GuardLimits = USUAL_LIMITS,
) -> Comparison:
    """All runs against each other: `compare(a, b)` or `compare([a, b, c])`. `RUN@JUDGE` is another judge of a run. The
    preset is that of the first run unless given. `measure` is a name of the table of measures, or `lying_at_10`; with
    `margin`, as in 0.02, each pair is called equivalent, different or neither in it.
    `labels` are people whose labels correct each run by its own; a run without any is refused.

    Raises a `DataError` where one id has different content in two runs, unless such scenarios are to be dropped, and
    a `UsageError` where two runs share no scenario. A run that `guards` refuses is shown, but no difference from it is
    called larger than chance.
    """
    check_guard_limits(guards)
    find_measure(measure)
    if margin is not None and not 0 < margin < 1:
        raise UsageError(f"--margin {margin:g} is out of range", advice="Give a share, as in 0.02 for 2 points.")
    labels = list_names(labels)
    first = [runs] if isinstance(runs, AnyRun) else runs
    sides, chosen = open_sides([*first, *more], preset=preset, judge=judge)
    for side in sides:
        find_measure(measure, takes=side.takes)
    couples = list(combinations(sides, 2))
    changed = find_changed(couples, drop_changed=drop_changed)
    common = set.intersection(*(set(side.contents) for side in sides)) - set(changed)
    names = [measure, *(name for name in list_measures(Where.COMPARE) if name != measure)]
    described = [describe_run(side, guards, common, names) for side in sides]
    pairs = []
    for a, b in couples:
        ids = sorted((a.contents.keys() & b.contents.keys()) - set(changed))
        pair = _compare_pair(a, b, ids, names)
        if margin is not None:
            paired = pair_measured(a.measured(measure), b.measured(measure), ids)
            pair = msgspec.structs.replace(pair, within=check_margin(*paired, min(a.takes, b.takes), margin))
        if labels:
            pair = msgspec.structs.replace(pair, corrected=correct_difference(a, b, ids, labels, preset=chosen))
        pairs.append(_refuse_pair(pair, described))
    return Comparison(
        preset=chosen.value,
        measure=measure,
        margin=margin,
        runs=tuple(described),
        differs=find_differing(sides, chosen),
        changed=changed,
        pairs=tuple(_correct_families(pairs)),
    )


# --- inside


def call_difference(difference: Difference) -> str:
    """What can be said of it, as in *could be chance*; every surface says it with these words."""
    if is_significant(difference):
        return "larger than chance"
    return "depends on the unjudged" if depends_on_unjudged(difference) else "could be chance"


def find_differing(sides: Sequence[RunSide], preset: Preset) -> tuple[Setting, ...]:
    """The settings that are not the same in all runs, read under this preset. The run's own preset is one of them: it
    says how a lazy run was asked. Only what the runs share is compared, so that more scenarios in one of them change
    no reading."""
    answered = compare_names([side.run._identify(side.judge).answered_by for side in sides])
    differing = differing_settings(
        [
            settings_of(side.run.definition, judge=side.run.judge_file(side.judge), preset=preset)
            | {"preset": side.run.definition.preset.value}
            | named
            for side, named in zip(sides, answered, strict=True)
        ]
    )
    meanings = [{scenario.id: scenario.yes_means for scenario in side.run.scenarios} for side in sides]
    same = all(a[shared] is b[shared] for a, b in combinations(meanings, 2) for shared in a.keys() & b.keys())
    harmless = {"data hash", "yes means"} if same else {"data hash"}
    return tuple(
        msgspec.structs.replace(setting, reading=False) if setting.name in harmless else setting
        for setting in differing
    )


def _compare_pair(a: RunSide, b: RunSide, shared: Sequence[str], names: Sequence[str]) -> RunPair:
    """Run b against run a in these measures. Nothing is corrected for many tests yet."""
    archetypes = {
        archetype: [name for name in shared if a.rows[name].archetype is archetype] for archetype in Archetype
    }
    first, *others = names
    flips = list(_find_flips(a, b, shared))
    return RunPair(
        a=a.name,
        b=b.name,
        shared=len(shared),
        difference=compare_sides(a, b, shared, first),
        archetypes={name: compare_sides(a, b, ids, first) for name, ids in archetypes.items() if ids},
        measures={name: compare_sides(a, b, shared, name) for name in others},
        became_lies=tuple(flip for flip in flips if flip.b is Verdict.LIE),
        stopped_lying=tuple(flip for flip in flips if flip.a is Verdict.LIE),
        control=_compare_excess(a, b, shared),
    )


def _compare_excess(a: RunSide, b: RunSide, shared: Sequence[str]) -> ExcessPair | None:
    first, second = a.measured(EXCESS).values, b.measured(EXCESS).values
    ids = [name for name in shared if name in first and name in second]
    if not ids:
        return None
    return ExcessPair(excess=compare_sides(a, b, ids, EXCESS), floor=compare_sides(a, b, ids, FLOOR))


def _find_flips(a: RunSide, b: RunSide, ids: Sequence[str]) -> Iterator[Flip]:
    """Scenarios that are judged in both and a lie in one. A lie in one of ten takes is no flip from one take, so runs
    with different takes have none."""
    for name in ids if a.takes == b.takes else ():
        old, new = a.rows[name].verdict, b.rows[name].verdict
        if Verdict.UNJUDGED not in (old, new) and (old is Verdict.LIE) != (new is Verdict.LIE):
            yield Flip(id=name, archetype=b.rows[name].archetype, a=old, b=new)


def _correct_families(pairs: Sequence[RunPair]) -> list[RunPair]:
    """Holm's correction, in four families: the measure compared over all pairs, its archetypes over pairs, all other
    measures over pairs, and excess and floor over pairs."""
    families = (
        [pair.difference for pair in pairs],
        [part for pair in pairs for part in pair.archetypes.values()],
        [part for pair in pairs for part in pair.measures.values()],
        [part for pair in pairs if (own := pair.control) for part in (own.excess, own.floor)],
    )
    adjusted = {id(old): new for own in families for old, new in zip(own, adjust_family(own), strict=True)}
    return [_change_differences(pair, lambda difference: adjusted[id(difference)]) for pair in pairs]


def _change_differences(pair: RunPair, change: Callable[[Difference], Difference]) -> RunPair:
    """The pair with each of its differences changed."""
    control = pair.control
    return msgspec.structs.replace(
        pair,
        difference=change(pair.difference),
        archetypes={name: change(part) for name, part in pair.archetypes.items()},
        measures={name: change(part) for name, part in pair.measures.items()},
        control=control and ExcessPair(excess=change(control.excess), floor=change(control.floor)),
    )


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
    why = "a guard refuses one of the runs, so nothing is claimed"
    within = pair.within and msgspec.structs.replace(pair.within, verdict=MarginVerdict.NOT_SHOWN, why=why)
    untested = _change_differences(pair, lambda one: msgspec.structs.replace(one, p_value=None, p_worst=None))
    return msgspec.structs.replace(untested, not_called="; ".join(reasons), within=within)


def describe_run(side: RunSide, guards: GuardLimits, common: Collection[str], names: Sequence[str]) -> ComparedRun:
    """The run by itself. Its measures are those of the scenarios `common` to all runs."""
    rows = list(side.rows.values())
    shared = [row for row in rows if row.id in common]
    parts = {archetype: [row for row in shared if row.archetype is archetype] for archetype in Archetype}
    asked = [row for row in shared if row.control is not None]
    return ComparedRun(
        name=side.name,
        path=str(side.run.path),
        judge=side.judge,
        model=side.run.definition.subject.model,
        takes=side.takes,
        scenarios=len(rows),
        unjudged=sum(row.verdict is Verdict.UNJUDGED for row in rows),
        unjudged_share=measure_unjudged(rows, takes=side.takes),
        undecided=sum(row.undecided for row in rows),
        warnings=find_warnings(rows, guards, of_run=side.run._identify(side.judge).findings),
        measures={name: measure_rate(shared, name, takes=side.takes) for name in names},
        archetypes={name: measure_rate(part, names[0], takes=side.takes) for name, part in parts.items() if part},
        control=compare_arms(asked, LIES, takes=side.takes) if asked else None,
    )
