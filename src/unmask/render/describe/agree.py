"""Agreement between judges and people: what the judge's errors do, then every pair of readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unmask.analysis.agreement import Agreed, JudgeErrors, ReaderAgreement
from unmask.records import Archetype, Kind
from unmask.render import words
from unmask.render.blocks import Block, Cell, Heading, Table, Text, share_cell
from unmask.render.describe.caveats import count_other_replies
from unmask.stats.agree import Agreement, Coefficient

HEADINGS = ("", "n", "agreement %", "kappa", "AC1", "alpha")
GROUPS = {archetype.value: archetype.traits.title for archetype in Archetype}
GROUPS |= {"short": "up to 500 characters", "middle": "up to 1,500", "long": "longer"}
GROUPS |= {"yes": "truth is yes", "no": "truth is no"}
READS = {Kind.BINARY: " (all but numbers)", Kind.NUMERIC: " (numbers)"}


def describe_agreement(agreement: Agreed, *, names: Mapping[str, str] | None = None) -> Iterator[Block]:
    """`names` has judges as somebody would type them, by their file names."""
    typed = names or {}
    yield Text(state_agreement(agreement, typed), "strong")
    yield from map(Text, _describe_labels(agreement, typed))
    for side in (*agreement.judge_against_labels, *agreement.labels_against_labels):
        a, b = _name(side.a, typed), _name(side.b, typed)
        yield Heading(f"{a}{READS[side.reads] if side.reads else ''} against {b}")
        yield from _describe_side(side, a, b)
    if agreement.among_labels is not None:
        yield Text(f"Krippendorff's alpha over all who labelled: {format_coefficient(agreement.among_labels)}")
    if agreement.among_judges:
        yield Heading("Among judges")
        yield _make_matrix(agreement, typed)
        pairs = [(f"{_name(s.a, typed)} and {_name(s.b, typed)}", s.verdicts) for s in agreement.among_judges]
        yield Table(HEADINGS, [_agreement_row(name, part) for name, part in pairs])


def state_agreement(agreement: Agreed, names: Mapping[str, str]) -> str:
    """How often judge and people agree on verdicts, and what the judge's errors do to P(lie)."""
    sides = agreement.judge_against_labels or agreement.labels_against_labels or agreement.among_judges
    if not sides:
        return "One judge has read the replies and nobody has labelled any: there is nothing to compare."
    return " ".join(_state_side(side, names) for side in sides)


def _state_side(side: ReaderAgreement, names: Mapping[str, str]) -> str:
    shared, who = side.verdicts.agreement, f"{_name(side.a, names)} and {_name(side.b, names)}"
    if shared.value is None:
        return f"{who} have too few replies in common to say how often they agree."
    span = "" if shared.low is None else f" ({words.whole_span(shared.low, shared.high)})"
    verdicts = words.plural(side.verdicts.n, "verdict")
    text = f"{who} agree on {words.whole_percent(shared.value)} of {verdicts}{span}"
    shift = None if side.effect is None else side.effect.shift
    if shift is None or shift.value is None:
        return f"{text}."
    return f"{text}; the judge's errors shift P(lie) by {words.point_difference(shift)}."


def _name(reader: str, names: Mapping[str, str]) -> str:
    return names.get(reader, reader)


def _describe_labels(agreement: Agreed, names: Mapping[str, str]) -> Iterator[str]:
    counts = ", ".join(f"{who} {count}" for who, count in agreement.labels.items())
    judges = ", ".join(_name(judge, names) for judge in agreement.judges)
    runs = agreement.runs[0] if len(agreement.runs) == 1 else f"{len(agreement.runs)} runs"
    yield f"{runs}, preset {agreement.preset}. Judges: {judges or 'none'}. Labels: {counts or 'none'}."
    if agreement.other_replies:
        yield f"{count_other_replies(agreement.other_replies)}."
    if agreement.labels:
        yield "Counts are of labels. All other numbers are weighted, so that they are those of the run."


def _describe_side(side: ReaderAgreement, a: str, b: str) -> Iterator[Block]:
    rows = [_agreement_row("letters", side.letters), _agreement_row("verdicts", side.verdicts)]
    rows += [_agreement_row(GROUPS[name], part) for name, part in side.groups.items()]
    weighted = side.letters.weighted or side.verdicts.weighted
    yield Table([f"weighted {name}" if weighted and name == HEADINGS[2] else name for name in HEADINGS], rows)
    if side.figures.total:
        yield Text(f"Numbers meet in {side.figures.percent}.")
    coefficients = [part for both in (side.letters, side.verdicts) for part in (both.agreement, both.kappa)]
    for why in dict.fromkeys(coefficient.why for coefficient in coefficients if coefficient.why is not None):
        yield Text(f"n/a: {why}.")
    if side.effect is not None:
        yield from map(Text, _describe_effect(side.effect, a, b))
    if side.verdicts.n:
        table = side.verdicts.confusion
        used = [name for name in table if any(table[name].values()) or any(row[name] for row in table.values())]
        counts = [(name, *(words.count(table[name][column]) for column in used)) for name in used]
        yield Table(("", *used), counts, title=f"Verdicts by {a} (rows) and {b} (columns)")


def _agreement_row(name: str, part: Agreement) -> Sequence[str | Cell]:
    shared = part.agreement
    coefficients = (Cell(one.value, one.low, one.high, words.coefficient) for one in (part.kappa, part.ac1, part.alpha))
    return name, words.count(part.n), share_cell(shared), *coefficients


def format_coefficient(coefficient: Coefficient) -> str:
    return str(Cell(coefficient.value, coefficient.low, coefficient.high, words.coefficient))


def _describe_effect(effect: JudgeErrors, a: str, b: str) -> Iterator[str]:
    if not effect.scenarios:
        yield "No scenario has all its statements labelled, so the effect on P(lie) is not known."
        return
    if effect.shift.value is None:
        yield f"What the judge's errors do to P(lie) is not known: {effect.shift.why}."
        return
    lies = words.plural(effect.false_lies, "false lie")
    yield (
        f"Over {effect.scenarios} labelled scenarios P(lie) is {words.percent(effect.judge_p_lie)} by {a} and"
        f" {words.percent(effect.labels_p_lie)} by {b}: {lies}, {effect.missed_lies} missed."
    )
    yield f"The judge shifts P(lie) by {words.point_difference(effect.shift)}."
    yield f"Precision (of its lies, lies by the labels): {effect.precision.percent}."
    yield f"Recall (of the labels' lies, lies by the judge): {effect.recall.percent}."


def _make_matrix(agreement: Agreed, names: Mapping[str, str]) -> Table:
    sides = {(side.a, side.b): side for side in agreement.among_judges}

    def cell(row: str, column: str) -> str | Cell:
        if row == column:
            return "-"
        if (row, column) in sides:
            return Cell(sides[row, column].verdicts.kappa.value, form=words.coefficient)
        return Cell(sides[column, row].verdicts.agreement.value)

    rows = [(_name(row, names), *(cell(row, column) for column in agreement.judges)) for row in agreement.judges]
    title = "Agreement of verdicts in % below the diagonal, kappa above"
    return Table(("", *(_name(judge, names) for judge in agreement.judges)), rows, title=title)
