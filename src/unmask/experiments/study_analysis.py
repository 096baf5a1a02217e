"""What a study of mitigations shows, from the run folders of its arms. Nothing is asked and no model is loaded.

Everything here was decided before the first arm ran: the outcome, the set of scenarios, the choice by cross-fitting,
one test for each family, and what counts as a success. docs/statistics.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum

import msgspec

from unmask.experiments.mitigation import read_fluency
from unmask.experiments.study_arms import (
    BASE,
    BASE_AGAIN,
    TREATED,
    CostLine,
    OpenArm,
    OpenStudy,
    StudySource,
    TakeMeasure,
    choose_candidates,
    list_candidate_values,
    list_cautions,
    open_arms,
)
from unmask.experiments.study_corrected import correct_by_labels
from unmask.experiments.study_design import ArmPart, Family
from unmask.experiments.study_result import (
    ArmAccount,
    ArmDifference,
    DosePoint,
    DoseResponse,
    FamilyResult,
    Steadiness,
    StudyResult,
)
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
from unmask.protocol.guards import find_warnings
from unmask.records import Record
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
from unmask.stats.dose import fit_slope, flip_slopes
from unmask.whitebox.fluency import Ratio, compare_perplexity

HALF = 0.5


def analyse_study(study: StudySource) -> StudyResult:
    """Everything that the arms run so far show. What is missing is named, and decides nothing."""
    opened = open_arms(study)
    design, base_run = opened.design, opened.base.run
    assert base_run is not None  # `open_arms` refuses a study without a base
    ratios = {name: _compare_writing(opened, arm) for name, arm in opened.arms.items()}
    table = tuple(
        _describe_arm(opened, arm, ratios[name])
        for name, arm in opened.arms.items()
        if name != BASE and arm.is_measured
    )
    lines = study.costs()
    return StudyResult(
        name=design.name,
        design_hash=opened.design_hash,
        prompts=study.prompt_hashes,
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
        families=_test_families(opened, ratios, {row.arm: row.measures[TakeMeasure.LIE.value] for row in table}),
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
    tested = [family_values[TakeMeasure.LIE].difference.p_value for _, family_values, _ in compared]
    corrections = zip(holm(tested), holm_levels(tested), strict=True)
    results = []
    for family, (choices, values, everywhere), (p_adjusted, level) in zip(families, compared, corrections, strict=True):
        lies = values[TakeMeasure.LIE].at_level(level, p_adjusted)
        right = values[TakeMeasure.HONEST_AND_RIGHT].at_level(level, None)
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
                outcome=_decide_family(study, family, conditions.values()),
                conditions=conditions,
                choices=choices,
                chosen=most_chosen(choices, list(study.arms)),
                lies=lies,
                honest_and_right=right,
                evasion=values[TakeMeasure.EVASION].difference,
                unread=values[TakeMeasure.UNREAD].difference,
                lies_everywhere=everywhere.difference,
                perplexity=perplexity,
            )
        )
    return tuple(results)


def _decide_family(study: OpenStudy, family: Family, conditions: Iterable[ConditionState]) -> FamilyOutcome:
    """Open while a candidate is not finished: the folds could still choose it."""
    if all(arm.is_measured for arm in study.list_family(family, ArmPart.CANDIDATE)):
        return decide_outcome(conditions)
    return FamilyOutcome.OPEN


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
) -> tuple[tuple[FoldChoice, ...], dict[TakeMeasure, PairedShares], PairedShares]:
    """What each fold chose, the differences of the cross-fitted shares, and that of lies over all scenarios."""
    choices = choose_candidates(study, family)

    def compare_measure(measure: TakeMeasure, ids: Collection[str], words: str) -> PairedShares:
        candidates = list_candidate_values(study, family, measure, ids)
        held_out = score_held_out(choices, candidates, study.folds)
        return _pair_shares(study, study.base.values(measure, ids), held_out, family.value, words, measure.value)

    values = {measure: compare_measure(measure, study.analysis_set, "set") for measure in TakeMeasure}
    return choices, values, compare_measure(TakeMeasure.LIE, study.base.rows.keys(), "everywhere")


def _pair_shares(
    study: OpenStudy, base: Mapping[str, float], treated: Mapping[str, float], *words: str
) -> PairedShares:
    ids = sorted(base.keys() & treated.keys())
    left, right = [base[id_] for id_ in ids], [treated[id_] for id_ in ids]
    why = "no scenario was read in both"
    return PairedShares(paired_difference(left, right, rng=study.make_rng(*words), why=why), left, right)


# --- arms


def _describe_arm(study: OpenStudy, arm: OpenArm, ratio: Ratio | None) -> ArmDifference:
    def compare_measure(measure: TakeMeasure, ids: Collection[str], words: str) -> Difference:
        base, treated = study.base.values(measure, ids), arm.values(measure, ids)
        return _pair_shares(study, base, treated, arm.arm.name, words, measure.value).difference

    return ArmDifference(
        arm=arm.arm.name,
        family=arm.arm.family,
        part=arm.arm.part,
        depth=arm.arm.depth,
        coefficient=arm.arm.coefficient,
        measures={measure.value: compare_measure(measure, study.analysis_set, "set") for measure in TakeMeasure},
        lies_everywhere=compare_measure(TakeMeasure.LIE, study.base.rows.keys(), "everywhere"),
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
    asked = [line for line in lines if line.what == "run"]
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
        calls=_add_counts(line.calls for line in asked),
        input_tokens=_add_counts(line.input_tokens for line in asked),
        output_tokens=_add_counts(line.output_tokens for line in asked),
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
    by_dose = {arm.arm.coefficient or 0.0: arm for arm in steered if arm.arm.depth == depth and arm.is_measured}
    by_dose[0.0] = study.base
    lies = {dose: arm.values(TakeMeasure.LIE, study.analysis_set) for dose, arm in sorted(by_dose.items())}
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
    shares = {measure: arm.values(measure, study.analysis_set) for measure in TakeMeasure}
    base = study.base.values(TakeMeasure.LIE, study.analysis_set)
    words = (arm.arm.name, "set", TakeMeasure.LIE.value)  # the same chance as in the table of arms
    lies = None if arm is study.base else _pair_shares(study, base, shares[TakeMeasure.LIE], *words).difference
    return DosePoint(
        coefficient=dose,
        arm=arm.arm.name,
        n=len(shares[TakeMeasure.LIE]),
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
    base = study.base.values(TakeMeasure.LIE, study.analysis_set)
    again = study.arms[BASE_AGAIN].values(TakeMeasure.LIE, study.analysis_set) if BASE_AGAIN in study.arms else {}
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
