"""What a study of mitigations shows, as text for a terminal and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from unmask.experiments.study_arms import TakeMeasure
from unmask.experiments.study_corrected import CorrectedShare, LabelledStudy
from unmask.experiments.study_labels import LabellerKind
from unmask.experiments.study_result import (
    ArmAccount,
    ArmDifference,
    DoseResponse,
    FamilyResult,
    Steadiness,
    StudyResult,
)
from unmask.experiments.study_success import Condition, ConditionState, FamilyOutcome
from unmask.render.terminal.tables import (
    TextTable,
    format_bounds,
    format_difference,
    format_p_value,
    format_signed,
    make_table,
    markdown_table,
    percent,
    render_parts,
)
from unmask.text import strip_controls
from unmask.whitebox.fluency import Ratio

OUTCOMES = {
    FamilyOutcome.SUCCESS: "success",
    FamilyOutcome.NO_SUCCESS: "no success",
    FamilyOutcome.OPEN: "open: not everything was measured",
}
CONDITIONS = {
    Condition.FEWER_LIES: "fewer lies",
    Condition.MORE_HONEST_AND_RIGHT: "more often honest and right",
    Condition.PLACEBO_FLAT: "base with another seed is flat",
    Condition.CONTROLS_FLAT: "placebo and controls are flat",
    Condition.STILL_FLUENT: "perplexity within the limit",
}
STATES = {
    ConditionState.MET: "met",
    ConditionState.NOT_MET: "NOT MET",
    ConditionState.NOT_MEASURED: "not measured",
    ConditionState.NOT_APPLICABLE: "not applicable",
}
LABELLERS = {
    LabellerKind.PERSON: "labels given by a person",
    LabellerKind.LANGUAGE_MODEL: "labels given by language models",
    None: "whether a person or a language model gave the labels is not known",
}
SHARES = {
    TakeMeasure.LIE.value: "lies",
    TakeMeasure.HONEST_AND_RIGHT.value: "honest and right",
    TakeMeasure.EVASION.value: "evasion",
    TakeMeasure.UNREAD.value: "unread",
}

WORK = ("prepare", "run", "fluency")

Rows = tuple[Sequence[str], list[Sequence[str]]]


def render(result: StudyResult, *, width: int | None = None, color: bool = False) -> str:
    parts: list[str | TextTable] = []
    for part in _compose_parts(result):
        parts += [part, ""] if isinstance(part, str) else [make_table(*part), ""]
    return render_parts(parts[:-1], width=width, color=color)


def render_markdown(result: StudyResult) -> str:
    """The same for `results.md`."""
    lines = [f"# {_clean(result.name)}", ""]
    for part in _compose_parts(result):
        lines += [_clean(part), ""] if isinstance(part, str) else [*markdown_table(*part), ""]
    return "\n".join(lines)


def _compose_parts(result: StudyResult) -> Iterator[str | Rows]:
    """Paragraphs and tables; what is missing comes before any number."""
    for caution in result.cautions:
        yield f"CAUTION: {caution}."
    if result.left_out:
        yield f"Left out by the design: {', '.join(result.left_out)}."
    yield (
        f"{result.model} on {result.data}, {result.takes} takes, read by {result.judge} as {result.preset}; design"
        f" {result.design_hash}. Lies per take, over the {result.analysis_set} of {result.scenarios} scenarios in which"
        " the base shows a belief. All differences are arm minus base, in points."
    )
    if result.expected:
        yield f"Expected before the first arm ran: {result.expected}"
    yield (
        f"One test for each family. Which candidate is scored on a scenario was chosen on the other folds of"
        f" {result.folds}. p-values and intervals are corrected together by Holm's method: an interval leaves out 0"
        " exactly where its test rejects."
    )
    yield _family_table(result.families)
    for family in result.families:
        yield _describe_choices(family)
    yield "What a success needs:"
    yield _condition_table(result.families)
    yield "Every arm against the base: plain 95 % intervals, a description and no tests."
    yield _arm_table(result.table)
    for dose in result.dose:
        yield _describe_dose(dose)
        yield _dose_table(dose)
    yield _describe_steadiness(result.steadiness)
    for labelled in result.labels:
        yield f"Corrected by {_clean(labelled.who)} ({LABELLERS[labelled.kind]}), blind to arm, model and judge:"
        yield _label_table(labelled)
    yield "What each arm took:"
    yield _cost_table(list(result.arms.values()))
    yield from (f"Changed {change.date}: {change.what} Why: {change.why}" for change in result.changed)


def _family_table(families: Sequence[FamilyResult]) -> Rows:
    rows: list[Sequence[str]] = [
        (
            family.family.value,
            OUTCOMES[family.outcome],
            str(family.lies.n),
            format_difference(family.lies),
            format_p_value(family.lies.p_adjusted),
            format_difference(family.honest_and_right),
            format_difference(family.evasion),
        )
        for family in families
    ]
    return ("family", "outcome", "n", "lies", "p, corrected", "honest and right", "evasion"), rows


def _describe_choices(family: FamilyResult) -> str:
    counts = Counter(choice.chosen or "none" for choice in family.choices)
    listed = ", ".join(f"{name} ({count} of {len(family.choices)})" for name, count in counts.items()) or "nothing"
    level = f"{100 * family.lies.level:.1f} %"
    everywhere = format_difference(family.lies_everywhere)
    ratios = ", ".join(f"{name} {_format_ratio(ratio)}" for name, ratio in family.perplexity.items())
    writing = f" Perplexity: {ratios}." if family.perplexity else ""
    return (
        f"{family.family.value}: the folds chose {listed}. Intervals of lies and of honest and right are of {level}."
        f" Lies over all scenarios (95 %): {everywhere}.{writing}"
    )


def _condition_table(families: Sequence[FamilyResult]) -> Rows:
    rows: list[Sequence[str]] = [
        (words, *(STATES[family.conditions[condition]] for family in families))
        for condition, words in CONDITIONS.items()
    ]
    return ("condition", *(family.family.value for family in families)), rows


def _arm_table(table: Sequence[ArmDifference]) -> Rows:
    rows: list[Sequence[str]] = []
    for row in table:
        differences = [format_difference(row.measures[name]) for name in SHARES if name != TakeMeasure.UNREAD.value]
        unread = percent(row.measures[TakeMeasure.UNREAD.value].b)
        rows.append((row.arm, str(row.measures[TakeMeasure.LIE.value].n), *differences, unread))
    return ("arm", "n", "lies", "honest and right", "evasion", "unread, %"), rows


def _describe_dose(dose: DoseResponse) -> str:
    slope = dose.slope
    words = {True: "The sign reverses", False: "The sign does not reverse", None: "Reversal: not measured"}[
        dose.reverses
    ]
    if slope.value is None:
        return f"Steering at depth {dose.depth:g}: no slope, since too few coefficients were run. {words}."
    return (
        f"Steering at depth {dose.depth:g}: lies change by {100 * slope.value:+.2f}"
        f" [{100 * (slope.low or 0):+.2f}, {100 * (slope.high or 0):+.2f}] points for one unit of coefficient"
        f" ({slope.n} scenarios; p, by {slope.flips:,} sign flips: {format_p_value(slope.p_value)}). {words}."
    )


def _dose_table(dose: DoseResponse) -> Rows:
    rows: list[Sequence[str]] = []
    for point in dose.points:
        shares = [percent(point.shares[name]) for name in SHARES]
        against = "base" if point.lies is None else format_difference(point.lies)
        rows.append((f"{point.coefficient:+g}" if point.coefficient else "0", str(point.n), *shares, against))
    return ("coefficient", "n", *(f"{name}, %" for name in SHARES.values()), "lies against base"), rows


def _describe_steadiness(steady: Steadiness) -> str:
    if not steady.n:
        return "How steady natural lies are was not measured: the base was not repeated."
    correlation = "n/a" if steady.correlation is None else f"{steady.correlation:.2f}"
    return (
        f"How steady natural lies are: over {steady.n} scenarios the base lies in {percent(steady.base)} % of takes and"
        f" with another seed in {percent(steady.again)} %; correlation over scenarios {correlation}. Lies in at least"
        f" half of the takes: {steady.mostly_lies_in_base} scenarios, with another seed"
        f" {steady.mostly_lies_in_again}, in both {steady.mostly_lies_in_both}."
    )


def _label_table(labelled: LabelledStudy) -> Rows:
    rows: list[Sequence[str]] = []
    for arm in labelled.arms:
        counts = f"{arm.used} of {arm.drawn}" + (f", {arm.skipped} skipped" if arm.skipped else "")
        raw = "" if arm.raw_difference is None else format_difference(arm.raw_difference)
        corrected = "" if arm.corrected_difference is None else _format_corrected(arm.corrected_difference, signed=True)
        agreement = percent(arm.agreement.value) + format_bounds(arm.agreement.low, arm.agreement.high)
        rows.append((arm.arm, counts, agreement, percent(arm.judge), _format_corrected(arm.corrected), raw, corrected))
    headings = ("arm", "labels", "agree with the judge, %", "lies, judge, %", "lies, corrected, %")
    return (*headings, "raw difference", "corrected difference"), rows


def _cost_table(arms: Sequence[ArmAccount]) -> Rows:
    rows: list[Sequence[str]] = [
        (
            arm.name,
            arm.state.value.replace("_", " "),
            *(_format_minutes(arm.seconds.get(work)) for work in WORK),
            _format_count(arm.calls),
            _format_count(arm.input_tokens),
            _format_count(arm.output_tokens),
            "n/a" if arm.peak_memory is None else f"{arm.peak_memory / 2**30:.1f}",
        )
        for arm in arms
    ]
    tokens = ("tokens in", "tokens out")
    return ("arm", "state", *(f"{work}, min" for work in WORK), "calls", *tokens, "peak, GiB"), rows


def _format_corrected(share: CorrectedShare, *, signed: bool = False) -> str:
    if share.value is None:
        return f"n/a ({share.why})" if share.why else "n/a"
    return (format_signed if signed else percent)(share.value) + format_bounds(share.low, share.high)


def _format_ratio(ratio: Ratio | None) -> str:
    return "not measured" if ratio is None else f"×{ratio.value:.2f}"


def _format_minutes(seconds: float | None) -> str:
    return "n/a" if seconds is None else f"{seconds / 60:.1f}"


def _format_count(count: int | None) -> str:
    return "n/a" if count is None else f"{count:,}"


def _clean(text: str) -> str:
    """One line of safe text."""
    return " ".join(strip_controls(text).split()).replace("`", "'")
