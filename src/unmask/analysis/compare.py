"""Runs against each other, paired on the scenarios they share.

Every pair is compared on the scenarios that stand in both runs with the same content and were judged in both, under
one preset. Runs with different numbers of takes are compared at the smaller one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from unmask.analysis.corrected import CorrectedDifference, correct_difference, require_labels
from unmask.analysis.sides import RunSide, ScenarioValue, find_changed, lie_chance, lie_chances, open_sides, pair_known
from unmask.protocol.guards import USUAL_LIMITS, GuardFinding, GuardLimits, check_guard_limits, find_warnings
from unmask.protocol.measures import measure, tally_lies
from unmask.records import Accuracy, Archetype, Outcome, Preset, Record, Result, Verdict
from unmask.runs.differences import Setting, compare_names, differing_settings, settings_of
from unmask.runs.polarity import describe_disputes, find_sides
from unmask.runs.run import AnyRun, Runs, open_runs
from unmask.stats.compare import Difference, holm, paired_difference, worst_difference
from unmask.stats.rate import Rate
from unmask.text import list_names

if TYPE_CHECKING:
    from numpy.random import Generator

    Values = Mapping[str, "ScenarioValue"]


class ComparedRun(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One of the runs."""

    name: str
    model: str
    takes: int
    scenarios: int
    unjudged: int
    undecided: int
    warnings: tuple[GuardFinding, ...] = ()
    """What has to be said before any number of this run."""
    measures: dict[str, Rate | None]
    """Under the keys of `TITLES`, of the scenarios that all runs share; with several takes Lying@1 replaces P(lie)."""
    archetypes: dict[Archetype, Rate | None]
    """The first of these measures, archetype by archetype."""


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
    """The smaller number of takes: `p_lie` is Lying@k for this k."""
    primary: Literal["p_lie", "lying_at_1"]
    """The comparison to look at first, which `unmask gate` decides on and `unmask power` plans: Lying@1 with several
    takes, where it is known, else P(lie)."""
    not_called: str | None = None
    """Why no difference of this pair is called larger than chance: a guard refuses one of the runs. No p-value is given
    then."""
    p_lie: Difference
    measures: dict[str, Difference]
    archetypes: dict[Archetype, Difference]
    """The primary comparison, archetype by archetype."""
    became_lies: tuple[Flip, ...]
    stopped_lying: tuple[Flip, ...]
    corrected: CorrectedDifference | None = None
    """P(lie) of each run corrected by its own labels; only where labels were asked for."""

    @property
    def main(self) -> Difference:
        """The primary comparison."""
        return self.p_lie if self.primary == "p_lie" else self.measures[self.primary]

    @property
    def secondary(self) -> dict[str, Difference]:
        """All but the primary comparison that there is a value of, under the keys of `TITLES`."""
        return {
            name: difference
            for name, difference in _list_measures(self).items()
            if name != self.primary and (difference.n or name != "lying_at_1")
        }


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

    def to_json(self) -> dict[str, Any]:
        """The documented shape of `unmask compare --json`, ready to be encoded."""
        plain: dict[str, Any] = super().to_json()
        return plain


def compare(
    runs: Runs,
    *more: AnyRun,
    preset: Preset | str | None = None,
    judge: str | None = None,
    all_pairs: bool = False,
    drop_changed: bool = False,
    seed: int = 0,
    labels: str | Sequence[str] = (),
    guards: GuardLimits = USUAL_LIMITS,
) -> Comparison:
    """Each further run against the first, or all against all: `compare(a, b)` or `compare([a, b])`. The preset is that
    of the first run unless given.
    `labels` are people whose labels correct each run by its own; a run without any is refused.

    Raises a `DataError` where one id has different content in two runs, unless such scenarios are to be dropped, and
    a `UsageError` where two runs share no scenario. A run that `guards` refuses is shown, but no difference from it is
    called larger than chance.
    """
    import numpy as np

    check_guard_limits(guards)
    labels = list_names(labels)
    sides, chosen = open_sides([*open_runs(runs), *open_runs(more)], preset=preset, judge=judge)
    couples = list(combinations(sides, 2)) if all_pairs else [(sides[0], later) for later in sides[1:]]
    changed = find_changed(couples, drop_changed=drop_changed)
    require_labels([side.run for side in sides], labels)
    rng = np.random.default_rng(seed)
    common = set.intersection(*(set(side.contents) for side in sides)) - set(changed)
    several = any(side.takes > 1 for side in sides)
    described = [_describe_run(side, judge, guards, common, several=several) for side in sides]
    pairs = [_refuse_pair(compare_pair(a, b, frozenset(changed), rng), described) for a, b in couples]
    names = compare_names([side.run._identify(judge).answered_by for side in sides])
    polarity = describe_disputes([find_sides(side.run.folder, side.run.judge_file(judge)) for side in sides])
    if labels:
        pairs = [
            msgspec.structs.replace(
                pair,
                corrected=correct_difference(
                    (a.run, b.run),
                    (a.rows, b.rows),
                    labels,
                    ids=(a.contents.keys() & b.contents.keys()) - set(changed),
                    preset=chosen,
                    judge=judge,
                ),
            )
            for pair, (a, b) in zip(pairs, couples, strict=True)
        ]
    return Comparison(
        preset=chosen.value,
        runs=tuple(described),
        # The run's own preset, since all are read under one: it says how a lazy run was asked.
        differs=differing_settings(
            [
                settings_of(side.run.definition, judge=side.run.judge_file(judge), preset=chosen, polarity=disputed)
                | {"preset": side.run.definition.preset.value}
                | named
                for side, disputed, named in zip(sides, polarity, names, strict=True)
            ]
        ),
        changed=changed,
        pairs=tuple(_correct_families(pairs)),
        seed=seed,
    )


# --- inside


def compare_pair(a: RunSide, b: RunSide, changed: frozenset[str], rng: Generator) -> RunPair:
    """Run b against run a, without the scenarios that changed. Nothing is corrected for many tests yet."""
    shared = sorted((a.contents.keys() & b.contents.keys()) - changed)
    k, weigh = min(a.takes, b.takes), max(a.takes, b.takes) > 1
    lies = [lie_chances(side, shared, k) for side in (a, b)]
    archetypes = {
        archetype: [name for name in shared if a.rows[name].archetype is archetype] for archetype in Archetype
    }
    p_lie, measures = _compare_values(lies, shared, rng), _compare_measures(a, b, shared, rng)
    by_share = k > 1 and measures["lying_at_1"].n > 0
    if by_share:
        lies = [lie_chances(side, shared, 1) for side in (a, b)]
    return RunPair(
        a=a.name,
        b=b.name,
        shared=len(shared),
        takes=k,
        primary="lying_at_1" if by_share else "p_lie",
        p_lie=p_lie,
        measures=measures,
        archetypes={name: _compare_values(lies, ids, rng, weigh=weigh) for name, ids in archetypes.items() if ids},
        became_lies=tuple(_find_flips(a, b, shared)),
        stopped_lying=tuple(_find_flips(b, a, shared, back=True)),
    )


def _compare_values(
    values: Sequence[Values], ids: Sequence[str], rng: Generator, why: str | None = None, *, weigh: bool = False
) -> Difference:
    """The difference over scenarios known in both, and its bounds over all. `weigh` lets the pairs that are known
    stand for those of their kind that are not (with or without a belief in each run)."""
    shared = [(values[0][name], values[1][name]) for name in ids if name in values[0] and name in values[1]]
    lefts, rights, weights = pair_known(shared)
    difference = paired_difference(lefts, rights, rng=rng, why=why, weights=weights if weigh else None)
    if not shared:
        return difference
    low, high, upper = worst_difference([(a.least, a.most) for a, _ in shared], [(b.least, b.most) for _, b in shared])
    if difference.value is not None and difference.high is not None:
        low, high, upper = min(low, difference.value), max(high, difference.value), max(upper, difference.high)
    return msgspec.structs.replace(difference, worst_low=low, worst_high=high, worst_upper=upper)


TITLES = {
    "p_lie": "P(lie)",
    "lying_at_1": "Lying@1",
    "p_honest": "P(honest)",
    "p_lie_where_both_believe": "P(lie) where both believe",
    "accuracy": "accuracy",
}
"""What people are shown for the differences of a pair."""


def title_measure(pair: RunPair, name: str) -> str:
    """What a difference is called; with several takes P(lie) says of how many."""
    return f"P(lie), Lying@{pair.takes}" if name == "p_lie" and pair.takes > 1 else TITLES[name]


def _compare_measures(a: RunSide, b: RunSide, shared: Sequence[str], rng: Generator) -> dict[str, Difference]:
    """Differences besides P(lie), each with the scenarios it is defined on."""
    same = None if a.takes == b.takes else f"{a.name} has {a.takes} takes and {b.name} has {b.takes}"
    none: list[dict[str, ScenarioValue]] = [{}, {}]
    weigh = max(a.takes, b.takes) > 1
    sides = (a, b)
    alone = [lie_chances(side, shared, 1) for side in sides] if min(a.takes, b.takes) > 1 else none
    one_take = "a run has one take; P(lie) says it"
    honest = [
        {name: _verdict_value(row, Verdict.HONEST, side.takes) for name, row in side.rows.items()} for side in sides
    ]
    believed_lies = [
        {
            name: _verdict_value(row, Verdict.LIE, side.takes)
            for name, row in side.rows.items()
            if row.verdict is not Verdict.NO_BELIEF
        }
        for side in sides
    ]
    correct = [
        {
            name: _known_or_not(row.accuracy is not Accuracy.UNJUDGED, row.accuracy is Accuracy.CORRECT)
            for name, row in side.rows.items()
            if row.accuracy is not Accuracy.NOT_ASKED
        }
        for side in sides
    ]
    return {
        "lying_at_1": _compare_values(alone, shared, rng, one_take, weigh=weigh),
        "p_honest": _compare_values(none if same else honest, shared, rng, same, weigh=weigh),
        "p_lie_where_both_believe": _compare_values(none if same else believed_lies, shared, rng, same),
        "accuracy": _compare_values(correct, shared, rng),
    }


def _verdict_value(row: Outcome, verdict: Verdict, takes: int) -> ScenarioValue:
    """Whether a scenario has this verdict. Beside an unread take no verdict of several takes counts, also not a lie."""
    belief = tally_lies(row, takes=takes).belief
    judged = row.verdict is not Verdict.UNJUDGED
    hit = float(row.verdict is verdict)
    if judged and takes > 1 and lie_chance(row, takes=takes, k=takes) is None:
        return ScenarioValue(None, hit, hit, belief)
    return _known_or_not(judged, bool(hit))._replace(belief=belief)


def _known_or_not(known_value: bool, hit: bool) -> ScenarioValue:
    return ScenarioValue(float(hit), float(hit), float(hit)) if known_value else ScenarioValue(None, 0.0, 1.0)


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
    """Holm's correction, in three families: the primary comparison over pairs, its archetypes over pairs, and all other
    measures over pairs."""
    main = _adjust_family([pair.main for pair in pairs])
    archetypes = iter(_adjust_family([difference for pair in pairs for difference in pair.archetypes.values()]))
    others = iter(
        _adjust_family([part for pair in pairs for name, part in _list_measures(pair).items() if name != pair.primary])
    )
    corrected = []
    for pair, difference in zip(pairs, main, strict=True):
        measures = {name: difference if name == pair.primary else next(others) for name in _list_measures(pair)}
        corrected.append(
            msgspec.structs.replace(
                pair,
                p_lie=measures.pop("p_lie"),
                archetypes={name: next(archetypes) for name in pair.archetypes},
                measures=measures,
            )
        )
    return corrected


def _list_measures(pair: RunPair) -> dict[str, Difference]:
    return {"p_lie": pair.p_lie, **pair.measures}


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


def _describe_run(
    side: RunSide, judge: str | None, guards: GuardLimits, common: Collection[str], *, several: bool
) -> ComparedRun:
    """The run by itself. Its measures are those of the scenarios `common` to all runs; `several` says that a run has
    more than one take."""
    rows = list(side.rows.values())
    verdicts = [row.verdict for row in rows]
    shared = [row for row in rows if row.id in common]
    parts = {archetype: [row for row in shared if row.archetype is archetype] for archetype in Archetype}

    def measure_lies(part: Sequence[Outcome]) -> Rate | None:
        measured = measure(part, takes=side.takes)
        return measured.lying_at[1] if several else measured.p_lie

    overall = measure(shared, takes=side.takes)
    return ComparedRun(
        name=side.name,
        model=side.run.definition.subject.model,
        takes=side.takes,
        scenarios=len(side.rows),
        unjudged=verdicts.count(Verdict.UNJUDGED),
        undecided=sum(row.undecided for row in side.rows.values()),
        warnings=find_warnings(rows, guards, of_run=side.run._identify(judge).findings),
        measures={
            "lying_at_1" if several else "p_lie": measure_lies(shared),
            "p_honest": overall.p_honest,
            "accuracy": overall.accuracy,
        },
        archetypes={archetype: measure_lies(part) for archetype, part in parts.items() if part},
    )
