"""Agreement between judges and people as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from unmask.analysis.agreement import Agreed, JudgeErrors, ReaderAgreement
from unmask.records import Kind
from unmask.render.describe.score import count_other_replies
from unmask.render.terminal.tables import (
    TextTable,
    format_bounds,
    format_signed,
    make_table,
    percent,
    render_parts,
)
from unmask.stats.agree import Agreement, Coefficient

HEADINGS = ("", "n", "agreement %", "kappa", "AC1", "alpha")


def render(
    agreement: Agreed, *, names: Mapping[str, str] | None = None, width: int | None = None, color: bool = False
) -> str:
    """`names` has judges as somebody would type them, by their file names."""
    return render_parts(compose_parts(agreement, names or {}), width=width, color=color)


def compose_parts(agreement: Agreed, names: Mapping[str, str]) -> Iterator[str | TextTable]:
    """Sentences and tables, in order; a sentence that begins with a line end is a heading."""
    return _compose_parts(_with_names(agreement, names))


def _with_names(agreement: Agreed, names: Mapping[str, str]) -> Agreed:
    return replace(
        agreement,
        judges=tuple(names.get(judge, judge) for judge in agreement.judges),
        judge_against_labels=tuple(
            replace(side, a=names.get(side.a, side.a)) for side in agreement.judge_against_labels
        ),
        among_judges=tuple(
            replace(side, a=names.get(side.a, side.a), b=names.get(side.b, side.b)) for side in agreement.among_judges
        ),
    )


def _compose_parts(agreement: Agreed) -> Iterator[str | TextTable]:
    label_counts = ", ".join(f"{who} {count}" for who, count in agreement.labels.items())
    yield (
        f"{', '.join(agreement.runs)}, preset {agreement.preset}. Judges:"
        f" {', '.join(agreement.judges) or 'none'}. Labels: {label_counts or 'none'}."
    )
    if agreement.not_blind:
        yield f"{agreement.not_blind} labels were given where the judge could be seen; --include-not-blind counts them."
    if agreement.other_replies:
        yield f"{count_other_replies(agreement.other_replies)}."
    if agreement.labels:
        yield "Counts are of labels. All other numbers are weighted, so that they are those of the run."
    for side in (*agreement.judge_against_labels, *agreement.labels_against_labels):
        figures = {Kind.BINARY: " (all but figures)", Kind.NUMERIC: " (figures)"}
        yield f"\n{side.a}{figures[side.reads] if side.reads else ''} against {side.b}"
        yield from _describe_side(side)
        if side.effect is not None:
            yield from _describe_effect(side, side.effect)
    if agreement.among_labels is not None:
        yield f"\nKrippendorff's alpha over all who labelled: {format_coefficient(agreement.among_labels)}"
    if agreement.among_judges:
        yield "\nAmong judges: agreement of verdicts in % below the diagonal, kappa above"
        yield _judge_matrix(agreement)
        yield ""
        yield make_table(
            HEADINGS, [_agreement_row(f"{side.a} and {side.b}", side.verdicts) for side in agreement.among_judges]
        )


def _describe_side(side: ReaderAgreement) -> Iterator[str | TextTable]:
    rows = [_agreement_row("letters", side.letters), _agreement_row("verdicts", side.verdicts)]
    rows += [_agreement_row(f"  {archetype.value}", part) for archetype, part in side.archetypes.items()]
    weighted = side.letters.weighted or side.verdicts.weighted
    yield make_table([f"weighted\n{name}" if weighted and name == HEADINGS[2] else name for name in HEADINGS], rows)
    if side.figures.total:
        yield f"Figures meet in {side.figures.percent}."
    coefficients = [part for both in (side.letters, side.verdicts) for part in (both.agreement, both.kappa)]
    for why in dict.fromkeys(coefficient.why for coefficient in coefficients if coefficient.why is not None):
        yield f"n/a: {why}."
    if side.verdicts.n:
        yield f"\nVerdicts by {side.a} (rows) and {side.b} (columns)"
        table = side.verdicts.confusion
        used = [name for name in table if any(table[name].values()) or any(row[name] for row in table.values())]
        yield make_table(("", *used), [(name, *(str(table[name][column]) for column in used)) for name in used])


def _agreement_row(name: str, part: Agreement) -> tuple[str, ...]:
    shared = part.agreement
    share = "n/a" if shared.value is None else f"{percent(shared.value)}{format_bounds(shared.low, shared.high)}"
    return (
        name,
        str(part.n),
        share,
        *(format_coefficient(coefficient) for coefficient in (part.kappa, part.ac1, part.alpha)),
    )


def format_coefficient(coefficient: Coefficient) -> str:
    if coefficient.value is None:
        return "n/a"
    low, high = coefficient.low, coefficient.high
    return f"{coefficient.value:.2f}" + ("" if low is None or high is None else f" [{low:.2f}, {high:.2f}]")


def _describe_effect(side: ReaderAgreement, effect: JudgeErrors) -> Iterator[str]:
    if not effect.scenarios:
        yield "No scenario has all its statements labelled, so the effect on P(lie) is not known."
        return
    shift = effect.shift
    if shift.value is None:
        yield f"What the judge's errors do to P(lie) is not known: {shift.why}."
        return
    yield (
        f"Over {effect.scenarios} labelled scenarios P(lie) is {percent(effect.judge_p_lie)} % by {side.a} and"
        f" {percent(effect.labels_p_lie)} % by {side.b}: {effect.false_lies} false lies, {effect.missed_lies} missed."
    )
    yield f"The judge shifts P(lie) by {format_signed(shift.value)} points{format_bounds(shift.low, shift.high)}."
    yield f"Precision (of its lies, lies by the labels): {effect.precision.percent}."
    yield f"Recall (of the labels' lies, lies by the judge): {effect.recall.percent}."


def _judge_matrix(agreement: Agreed) -> TextTable:
    sides = {(side.a, side.b): side for side in agreement.among_judges}

    def cell(row: str, column: str) -> str:
        if row == column:
            return "-"
        upper = (row, column) in sides
        side = sides[row, column] if upper else sides[column, row]
        coefficient = side.verdicts.kappa if upper else side.verdicts.agreement
        if coefficient.value is None:
            return "n/a"
        return f"{coefficient.value:.2f}" if upper else percent(coefficient.value)

    rows = [(name, *(cell(name, judge) for judge in agreement.judges)) for name in agreement.judges]
    return make_table(("", *agreement.judges), rows)
