"""Agreement between judges and people as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.analysis.agreement import Agreed, Effect, Side
from unmask.render.terminal.tables import grid, percent, printed, signed
from unmask.stats.agree import Agreement, Coefficient

if TYPE_CHECKING:
    from rich.table import Table

HEADINGS = ("", "n", "agreement %", "kappa", "AC1", "alpha")


def render(found: Agreed, *, width: int | None = None, color: bool = False) -> str:
    return printed(_parts(found), width=width, color=color)


def _parts(found: Agreed) -> Iterator[str | Table]:
    given = ", ".join(f"{who} {count}" for who, count in found.labels.items())
    yield f"{found.run}, preset {found.preset}. Judges: {', '.join(found.judges) or 'none'}. Labels: {given or 'none'}."
    for side in found.judge_against_labels:
        yield f"\n{side.a} against {side.b}"
        yield from _side(side)
        if side.effect is not None:
            yield from _effect(side, side.effect)
    for side in found.labels_against_labels:
        yield f"\n{side.a} against {side.b}"
        yield from _side(side)
    if found.among_labels is not None:
        yield f"\nKrippendorff's alpha over all who labelled: {coefficient(found.among_labels)}"
    if found.among_judges:
        yield "\nAmong judges: agreement of verdicts in % below the diagonal, kappa above"
        yield _matrix(found)
        yield ""
        yield grid(HEADINGS, [_row(f"{side.a} and {side.b}", side.verdicts) for side in found.among_judges])


def _side(side: Side) -> Iterator[str | Table]:
    rows = [_row("letters", side.letters), _row("verdicts", side.verdicts)]
    rows += [_row(f"  {archetype.value}", part) for archetype, part in side.archetypes.items()]
    yield grid(HEADINGS, rows)
    if side.figures.total:
        yield f"Figures meet in {side.figures}."
    for why in dict.fromkeys(_reasons(side)):
        yield f"n/a: {why}."
    if side.verdicts.n:
        yield f"\nVerdicts by {side.a} (rows) and {side.b} (columns)"
        yield _confusion(side.verdicts)


def _reasons(side: Side) -> Iterator[str]:
    for part in (side.letters, side.verdicts):
        for one in (part.agreement, part.kappa):
            if one.why is not None:
                yield one.why


def _row(name: str, part: Agreement) -> tuple[str, ...]:
    shared = part.agreement
    share = "n/a" if shared.value is None else f"{percent(shared.value)}{_bounds(shared, 100)}"
    return name, str(part.n), share, *(coefficient(one) for one in (part.kappa, part.ac1, part.alpha))


def coefficient(one: Coefficient) -> str:
    return "n/a" if one.value is None else f"{one.value:.2f}{_bounds(one, 1)}"


def _bounds(one: Coefficient, scale: int) -> str:
    if one.low is None or one.high is None:
        return ""
    digits = 1 if scale == 100 else 2
    return f" [{scale * one.low:.{digits}f}, {scale * one.high:.{digits}f}]"


def _confusion(part: Agreement) -> Table:
    used = [name for name, row in part.confusion.items() if any(row.values())]
    used += [name for name in part.confusion if name not in used and any(r[name] for r in part.confusion.values())]
    order = [name for name in part.confusion if name in used]
    return grid(("", *order), [(name, *(str(part.confusion[name][other]) for other in order)) for name in order])


def _effect(side: Side, effect: Effect) -> Iterator[str]:
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
    yield f"The judge shifts P(lie) by {signed(shift.value)} points{_bounds(shift, 100)}."
    yield f"Precision (of its lies, lies by the labels): {effect.precision.percent}."
    yield f"Recall (of the labels' lies, lies by the judge): {effect.recall.percent}."


def _matrix(found: Agreed) -> Table:
    sides = {(side.a, side.b): side for side in found.among_judges}

    def cell(row: str, column: str) -> str:
        if row == column:
            return "-"
        upper = (row, column) in sides
        side = sides[row, column] if upper else sides[column, row]
        one = side.verdicts.kappa if upper else side.verdicts.agreement
        if one.value is None:
            return "n/a"
        return f"{one.value:.2f}" if upper else percent(one.value)

    rows = [(name, *(cell(name, other) for other in found.judges)) for name in found.judges]
    return grid(("", *found.judges), rows)
