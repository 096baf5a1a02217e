"""What a study of mitigations shows, from the run folders of its arms. Nothing is asked and no model is loaded.

Everything here was decided before the first arm ran: the outcome, the set of scenarios, the choice by cross-fitting,
one test for each family, and what counts as a success. docs/statistics.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

import msgspec

from unmask.experiments.mitigation import read_fluency
from unmask.experiments.study_arms import (
    BASE,
    BASE_AGAIN,
    TREATED,
    ArmState,
    CostLine,
    Measure,
    OpenArm,
    OpenStudy,
    StudySource,
    choose_candidates,
    list_candidate_values,
    list_cautions,
    open_arms,
)
from unmask.experiments.study_corrected import LabelledStudy, correct_by_labels
from unmask.experiments.study_design import ArmPart, Change, Family
from unmask.experiments.study_success import (
    Condition,
    ConditionState,
    FamilyOutcome,
    check_fewer,
    check_flat,
    check_fluency,
    check_more,
    decide_outcome,
)
from unmask.protocol.guards import GuardFinding, find_warnings
from unmask.records import FORMAT_VERSION, Record, Result
from unmask.stats.compare import (
    Difference,
    detectable_difference,
    holm,
    holm_levels,
    paired_difference,
    paired_interval,
    pearson_correlation,
)
from unmask.stats.crossfit import FoldChoice, most_chosen, score_held_out
from unmask.stats.dose import SlopeTest, fit_slope, flip_slopes
from unmask.whitebox.fluency import Ratio, compare_perplexity

HALF = 0.5


class ArmAccount(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What an arm is, how far it is, and what it cost. `None` where something is not known."""

    name: str
    family: Family
    part: ArmPart
    state: ArmState
    run: str | None
    created: str | None
    """When the run began, in UTC."""
    model: str | None
    scenarios: int
    undecided: int
    warnings: tuple[GuardFinding, ...]
    seconds: dict[str, float]
    """By what was done: `prepare`, `run`, `fluency`."""
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    peak_memory: int | None = None
    """Bytes, the largest of all pieces of work."""
    devices: tuple[str, ...] = ()


class ArmDifference(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One arm against the base, with plain 95 % intervals. It describes, and tests nothing."""

    arm: str
    family: Family
    part: ArmPart
    depth: float | None
    coefficient: float | None
    measures: dict[str, Difference]
    """`p_lie`, `p_honest_and_right`, `p_evasion` and `unread` over the analysis set."""
    lies_everywhere: Difference
    """Of lies, over all scenarios; without a belief there is no lie."""
    perplexity: Ratio | None


class FamilyResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One family against the base: its cross-fitted outcome, and what that comes to."""

    family: Family
    outcome: FamilyOutcome
    conditions: dict[Condition, ConditionState]
    choices: tuple[FoldChoice, ...]
    chosen: str | None
    """The candidate that most folds chose."""
    lies: Difference
    """The primary comparison: lies per take over the analysis set, with p-value and interval by Holm's method over the
    families."""
    honest_and_right: Difference
    """With an interval of the same level."""
    evasion: Difference
    unread: Difference
    lies_everywhere: Difference
    perplexity: dict[str, Ratio | None]
    """Of every arm that a fold chose, over that of the base; empty for prompts, which leave the weights alone."""


class DosePoint(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One coefficient. Shares are means over the scenarios of the analysis set that were read at it."""

    coefficient: float
    arm: str
    n: int
    shares: dict[str, float | None]
    lies: Difference | None
    """Against the base; `None` for the base itself."""


class DoseResponse(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Steering at one depth, from the most negative coefficient to the most positive; 0 is the base."""

    depth: float
    points: tuple[DosePoint, ...]
    slope: SlopeTest
    """Of lies per take over the coefficient."""
    reverses: bool | None
    """Whether the most negative coefficient raises lies and the most positive lowers them, both by a 95 % interval that
    leaves out 0; `None` where one of them is not known."""


class Steadiness(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How far natural lies are the same with another seed: the base against its repetition, over the analysis set."""

    n: int
    base: float | None = None
    again: float | None = None
    correlation: float | None = None
    """Of the shares of lies over scenarios."""
    mostly_lies_in_base: int = 0
    """Scenarios with lies in at least half of the takes that were read."""
    mostly_lies_in_again: int = 0
    mostly_lies_in_both: int = 0


class StudyResult(Result, frozen=True, kw_only=True, omit_defaults=False):
    """`results.json` of a study."""

    v: int = FORMAT_VERSION
    name: str
    design_hash: str
    model: str
    judge: str
    data: str
    takes: int
    preset: str
    expected: str
    left_out: tuple[str, ...]
    changed: tuple[Change, ...]
    folds: int
    seed: int
    perplexity_limit: float
    cautions: tuple[str, ...]
    """What is missing and what the guards say. It is shown before any number."""
    scenarios: int
    analysis_set: int
    """Scenarios in which the base shows a belief."""
    arms: dict[str, ArmAccount]
    families: tuple[FamilyResult, ...]
    table: tuple[ArmDifference, ...]
    dose: tuple[DoseResponse, ...]
    steadiness: Steadiness
    labels: tuple[LabelledStudy, ...]

    def to_json(self) -> dict[str, Any]:
        """The content of `results.json`."""
        return super().to_json()


def analyse_study(study: StudySource) -> StudyResult:
    """Everything that the arms run so far show. What is missing is named, and decides nothing."""
    opened = open_arms(study)
    design, base_run = opened.design, opened.base.run
    assert base_run is not None  # `open_arms` refuses a study without a base
    ratios = {name: _compare_writing(opened, arm) for name, arm in opened.arms.items()}
    table = tuple(
        _describe_arm(opened, arm, ratios[name]) for name, arm in opened.arms.items() if name != BASE and arm.rows
    )
    lines = study.costs()
    return StudyResult(
        name=design.name,
        design_hash=opened.design_hash,
        model=design.model,
        judge=design.judge,
        data=design.data,
        takes=base_run.definition.takes,
        preset=base_run.definition.preset.value,
        expected=design.analysis.expected,
        left_out=design.left_out,
        changed=design.changed,
        folds=design.analysis.folds,
        seed=design.analysis.seed,
        perplexity_limit=design.analysis.perplexity_limit,
        cautions=tuple(list_cautions(opened)),
        scenarios=len(opened.base.rows),
        analysis_set=len(opened.analysis_set),
        arms={
            name: _account_arm(arm, [line for line in lines if line.arm == name]) for name, arm in opened.arms.items()
        },
        families=_test_families(opened, ratios, {row.arm: row.measures[Measure.LIE.value] for row in table}),
        table=table,
        dose=tuple(_respond_to_dose(opened, depth) for depth in (design.steering.depths if design.steering else ())),
        steadiness=_measure_steadiness(opened),
        labels=correct_by_labels(study, opened),
    )


# --- families


def _test_families(
    study: OpenStudy, ratios: Mapping[str, Ratio | None], lies_by_arm: Mapping[str, Difference]
) -> tuple[FamilyResult, ...]:
    """One test for each family of the design, corrected together."""
    families = [family for family in TREATED if study.list_family(family, ArmPart.CANDIDATE)]
    compared = [_cross_fit(study, family) for family in families]
    tested = [family_values[Measure.LIE].difference.p_value for _, family_values, _ in compared]
    corrections = zip(holm(tested), holm_levels(tested), strict=True)
    results = []
    for family, (choices, values, everywhere), (p_adjusted, level) in zip(families, compared, corrections, strict=True):
        lies = values[Measure.LIE].at_level(level, p_adjusted)
        right = values[Measure.HONEST_AND_RIGHT].at_level(level, None)
        chosen = dict.fromkeys(choice.chosen for choice in choices if choice.chosen is not None)
        perplexity = {} if family is Family.PROMPT else {name: ratios[name] for name in chosen}
        controls = [arm.arm.name for arm in study.list_family(family, ArmPart.PLACEBO, ArmPart.CONTROL)]
        conditions = {
            Condition.FEWER_LIES: check_fewer(lies),
            Condition.MORE_HONEST_AND_RIGHT: check_more(right),
            Condition.PLACEBO_FLAT: check_flat([lies_by_arm.get(BASE_AGAIN, Difference(n=0))]),
            Condition.CONTROLS_FLAT: check_flat([lies_by_arm.get(name, Difference(n=0)) for name in controls]),
            Condition.STILL_FLUENT: check_fluency(family, perplexity, limit=study.design.analysis.perplexity_limit),
        }
        results.append(
            FamilyResult(
                family=family,
                outcome=decide_outcome(conditions.values()),
                conditions=conditions,
                choices=choices,
                chosen=most_chosen(choices, list(study.arms)),
                lies=lies,
                honest_and_right=right,
                evasion=values[Measure.EVASION].difference,
                unread=values[Measure.UNREAD].difference,
                lies_everywhere=everywhere.difference,
                perplexity=perplexity,
            )
        )
    return tuple(results)


class PairedShares(Record, frozen=True):
    """A difference to the base, and the shares that it comes from, scenario by scenario."""

    difference: Difference
    left: list[float]
    right: list[float]

    def at_level(self, level: float, p_adjusted: float | None) -> Difference:
        """With the interval of this level, which leaves out 0 exactly where Holm's method rejects."""
        if self.difference.value is None:
            return self.difference
        low, high = paired_interval(self.left, self.right, level=level)
        reach = detectable_difference(self.left, self.right, level=level)
        return msgspec.structs.replace(
            self.difference, low=low, high=high, level=level, p_adjusted=p_adjusted, detectable=reach
        )


def _cross_fit(
    study: OpenStudy, family: Family
) -> tuple[tuple[FoldChoice, ...], dict[Measure, PairedShares], PairedShares]:
    """What each fold chose, the differences of the cross-fitted shares, and that of lies over all scenarios."""
    choices = choose_candidates(study, family)

    def compare_measure(measure: Measure, ids: Collection[str], words: str) -> PairedShares:
        candidates = list_candidate_values(study, family, measure, ids)
        held_out = score_held_out(choices, candidates, study.folds)
        return _pair_shares(study, study.base.values(measure, ids), held_out, family.value, words, measure.value)

    values = {measure: compare_measure(measure, study.analysis_set, "set") for measure in Measure}
    return choices, values, compare_measure(Measure.LIE, study.base.rows.keys(), "everywhere")


def _pair_shares(
    study: OpenStudy, base: Mapping[str, float], treated: Mapping[str, float], *words: str
) -> PairedShares:
    ids = sorted(base.keys() & treated.keys())
    left, right = [base[id_] for id_ in ids], [treated[id_] for id_ in ids]
    why = "no scenario was read in both"
    return PairedShares(paired_difference(left, right, rng=study.make_rng(*words), why=why), left, right)


# --- arms


def _describe_arm(study: OpenStudy, arm: OpenArm, ratio: Ratio | None) -> ArmDifference:
    def compare_measure(measure: Measure, ids: Collection[str], words: str) -> Difference:
        base, treated = study.base.values(measure, ids), arm.values(measure, ids)
        return _pair_shares(study, base, treated, arm.arm.name, words, measure.value).difference

    return ArmDifference(
        arm=arm.arm.name,
        family=arm.arm.family,
        part=arm.arm.part,
        depth=arm.arm.depth,
        coefficient=arm.arm.coefficient,
        measures={measure.value: compare_measure(measure, study.analysis_set, "set") for measure in Measure},
        lies_everywhere=compare_measure(Measure.LIE, study.base.rows.keys(), "everywhere"),
        perplexity=ratio,
    )


def _compare_writing(study: OpenStudy, arm: OpenArm) -> Ratio | None:
    """The perplexity of an arm over that of the base; `None` where one of them was not measured."""
    if arm.run is None or study.base.run is None or arm is study.base:
        return None
    before, after = read_fluency(study.base.run), read_fluency(arm.run)
    if before is None or after is None:
        return None
    return compare_perplexity(before, after, rng=study.make_rng("perplexity", arm.arm.name))


def _account_arm(arm: OpenArm, lines: Sequence[CostLine]) -> ArmAccount:
    definition = arm.run.definition if arm.run is not None else None
    memory = [line.peak_memory for line in lines if line.peak_memory is not None]
    return ArmAccount(
        name=arm.arm.name,
        family=arm.arm.family,
        part=arm.arm.part,
        state=arm.state,
        run=definition.id if definition else None,
        created=definition.created if definition else None,
        model=definition.subject.model if definition else None,
        scenarios=len(arm.rows),
        undecided=arm.undecided,
        warnings=find_warnings(list(arm.rows.values())),
        seconds={
            str(work): fsum(line.seconds for line in lines if line.what == work)
            for work in dict.fromkeys(line.what for line in lines)
        },
        calls=_add_counts(line.calls for line in lines),
        input_tokens=_add_counts(line.input_tokens for line in lines),
        output_tokens=_add_counts(line.output_tokens for line in lines),
        peak_memory=max(memory, default=None),
        devices=tuple(dict.fromkeys(line.device for line in lines if line.device)),
    )


def _add_counts(counts: Iterable[int | None]) -> int | None:
    """`None` where there is nothing to add, or one of them is not known."""
    listed = list(counts)
    return sum(count or 0 for count in listed) if listed and None not in listed else None


# --- dose and steadiness


def _respond_to_dose(study: OpenStudy, depth: float) -> DoseResponse:
    steered = study.list_family(Family.STEERING, ArmPart.CANDIDATE, ArmPart.REVERSED)
    by_dose = {arm.arm.coefficient or 0.0: arm for arm in steered if arm.arm.depth == depth and arm.rows}
    by_dose[0.0] = study.base
    lies = {dose: arm.values(Measure.LIE, study.analysis_set) for dose, arm in sorted(by_dose.items())}
    points = tuple(_describe_dose(study, dose, by_dose[dose]) for dose in lies)
    slopes = []
    for id_ in study.analysis_set:
        slope = fit_slope({dose: values[id_] for dose, values in lies.items() if id_ in values})
        slopes += [] if slope is None else [slope]
    widest = max(map(abs, lies)) or 1.0
    return DoseResponse(
        depth=depth,
        points=points,
        slope=flip_slopes(slopes, widest=widest, rng=study.make_rng("slope", f"{depth:g}")),
        reverses=_find_reversal(points),
    )


def _describe_dose(study: OpenStudy, dose: float, arm: OpenArm) -> DosePoint:
    shares = {measure: arm.values(measure, study.analysis_set) for measure in Measure}
    base = study.base.values(Measure.LIE, study.analysis_set)
    words = (arm.arm.name, "set", Measure.LIE.value)  # the same chance as in the table of arms
    lies = None if arm is study.base else _pair_shares(study, base, shares[Measure.LIE], *words).difference
    return DosePoint(
        coefficient=dose,
        arm=arm.arm.name,
        n=len(shares[Measure.LIE]),
        shares={measure.value: fsum(own.values()) / len(own) if own else None for measure, own in shares.items()},
        lies=lies,
    )


def _find_reversal(points: Sequence[DosePoint]) -> bool | None:
    lowest, highest = points[0], points[-1]
    if lowest.coefficient >= 0 or highest.coefficient <= 0 or lowest.lies is None or highest.lies is None:
        return None
    if lowest.lies.low is None or highest.lies.high is None:
        return None
    return lowest.lies.low > 0 and highest.lies.high < 0


def _measure_steadiness(study: OpenStudy) -> Steadiness:
    base = study.base.values(Measure.LIE, study.analysis_set)
    again = study.arms[BASE_AGAIN].values(Measure.LIE, study.analysis_set) if BASE_AGAIN in study.arms else {}
    ids = sorted(base.keys() & again.keys())
    if not ids:
        return Steadiness(n=0)
    left, right = [base[id_] for id_ in ids], [again[id_] for id_ in ids]
    return Steadiness(
        n=len(ids),
        base=fsum(left) / len(ids),
        again=fsum(right) / len(ids),
        correlation=pearson_correlation(left, right),
        mostly_lies_in_base=sum(share >= HALF for share in left),
        mostly_lies_in_again=sum(share >= HALF for share in right),
        mostly_lies_in_both=sum(a >= HALF and b >= HALF for a, b in zip(left, right, strict=True)),
    )
