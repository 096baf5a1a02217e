"""A test of equivalence as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.analysis.compare import TITLES, Flip
from unmask.analysis.equivalence import Equivalence, NeededSize
from unmask.render.terminal.agree import format_coefficient
from unmask.render.terminal.tables import (
    TextTable,
    format_bounds,
    format_signed,
    make_table,
    percent,
    render_parts,
)
from unmask.stats.agree import Agreement
from unmask.stats.equivalence import EquivalenceVerdict

SHOWN_FLIPS = 5
"""Scenarios on which the two differ that are named each way; `--json` has all."""

HEADLINES = {
    EquivalenceVerdict.EQUIVALENT: "EQUIVALENT",
    EquivalenceVerdict.DIFFERENT: "NOT EQUIVALENT",
    EquivalenceVerdict.NOT_SHOWN: "NOT SHOWN",
}


def render(result: Equivalence, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(result), width=width, color=color)


def _compose_parts(result: Equivalence) -> Iterator[str | TextTable]:
    for name, side in (("A", result.a), ("B", result.b)):
        for finding in side.warnings:
            yield f"WARNING: {name}: {finding.text}.\n"
        if side.undecided:
            yield f"INCOMPLETE: {name} has {side.undecided} undecided scenarios; they are left out.\n"
        if side.unjudged == result.scenarios:
            yield (
                f"WARNING: {name} has judged no scenario. A log without judge calls has replies and verdicts, and no"
                " readings.\n"
            )
    for name, side in (("A", result.a), ("B", result.b)):
        yield f"{name}: {side.run} read by {side.judge or 'nobody'}"
    yield (
        f"The same {result.replies:,} replies to {result.scenarios:,} scenarios, preset {result.preset},"
        f" {result.takes} {'take' if result.takes == 1 else 'takes'}.\n"
    )
    yield from _describe_shift(result)
    yield ""
    yield from _describe_agreement(result)
    yield ""
    yield _make_reader_table(result)
    yield from _list_flips("lies by A, not by B", result.only_a, result.a.run)
    yield from _list_flips("lies by B, not by A", result.only_b, result.b.run)


def _describe_shift(result: Equivalence) -> Iterator[str]:
    test, shift, title = result.test, result.shift, TITLES[result.primary]
    if test is None or shift.value is None:
        yield f"NOT SHOWN: {shift.why or result.why}."
    else:
        claim = f"{HEADLINES[test.verdict]} within {100 * test.margin:g} points: {result.why}."
        yield claim if result.not_called is None else "NO CLAIM is made, for the reasons above."
        yield (
            f"{title} moves by {format_signed(shift.value)} points from A to B, 90 % interval"
            f"{format_bounds(test.low, test.high)} ({percent(shift.a)} % to {percent(shift.b)} % of"
            f" {shift.n:,} scenarios judged by both)."
        )
        yield (
            f"Two one-sided tests: {_format_p(test.p_lower)} against a fall and {_format_p(test.p_upper)} against a"
            f" rise by {100 * test.margin:g} points or more."
        )
        if shift.p_value is not None and shift.p_value < 0.05:
            yield f"The shift itself is larger than chance ({_format_p(shift.p_value)})."
    worst = result.worst_case
    if worst is not None:
        text = (
            f"{worst.scenarios:,} scenarios were not judged by both. Whatever they are, the shift over all is from"
            f" {format_signed(worst.shift_low)} to {format_signed(worst.shift_high)} points, 90 % bounds"
            f"{format_bounds(worst.low, worst.high)}."
        )
        if result.verdict is not EquivalenceVerdict.NOT_SHOWN:
            text += " That is the same answer." if worst.verdict is result.verdict else " They could change the answer."
        yield text
    if result.needed is not None and result.verdict is not EquivalenceVerdict.DIFFERENT:
        yield _describe_needed(result.needed, result)
    if result.little_to_lose:
        yield (
            f"CAUTION: {title} by A is {percent(shift.a)} %. A judge that never finds a lie would be equivalent within"
            " this margin: take replies with more lies, or a smaller --margin."
        )


def _format_p(p: float) -> str:
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def _describe_needed(needed: NeededSize, result: Equivalence) -> str:
    one_take = result.shift.method == "tango"
    seen = f"{percent(needed.discordant)} % of the scenarios differ" if one_take else "takes differ as much as here"
    if needed.scenarios is None:
        return f"If {seen} and there is no true shift, more than a million scenarios are needed to show equivalence."
    between = "" if needed.low is None or needed.high is None else f" ({needed.low:,} to {needed.high:,})"
    text = (
        f"If {seen} and there is no true shift, {needed.scenarios:,} scenarios{between} show equivalence 4 times in 5:"
        f" {needed.replies:,} replies like these."
    )
    if needed.at_shift is not None and needed.at_shift > needed.scenarios:
        text += f" If the true shift is the one seen here, it takes {needed.at_shift:,}."
    return text


def _describe_agreement(result: Equivalence) -> Iterator[str | TextTable]:
    agreement = result.agreement
    rows = [_agreement_row("letters", agreement.letters)]
    if len(agreement.by_place) > 1:
        rows += [_agreement_row(f"  {place}", part) for place, part in agreement.by_place.items()]
    rows.append(_agreement_row("verdicts", agreement.verdicts))
    yield make_table(("agreement", "n", "alike %", "kappa", "AC1"), rows)
    if agreement.figures.total:
        share = agreement.figures
        bounds = format_bounds(share.low, share.high)
        yield f"Figures meet in {share.hits:,} of {share.total:,}: {percent(share.value)} %{bounds}."
    if agreement.by_rule:
        yield f"{agreement.by_rule:,} replies were read by rule, or are empty, in both: they are not counted here."
    if agreement.unpaired:
        yield (
            f"{agreement.unpaired:,} times one side reads all takes of a figure together and the other each by itself:"
            " these readings are not paired, their verdicts are."
        )
    parts = (agreement.letters, agreement.verdicts)
    for why in dict.fromkeys(c.why for part in parts for c in (part.agreement, part.kappa) if c.why is not None):
        yield f"n/a: {why}."


def _agreement_row(name: str, part: Agreement) -> tuple[str, ...]:
    share = part.agreement
    shown = "n/a" if share.value is None else f"{percent(share.value)}{format_bounds(share.low, share.high)}"
    return name, f"{part.n:,}", shown, format_coefficient(part.kappa), format_coefficient(part.ac1)


def _make_reader_table(result: Equivalence) -> TextTable:
    rows = []
    for setting in result.differs:
        values: tuple[str | None, ...] = setting.values
        if setting.name == "judge prompts":  # of an imported run the name of its harness, which is no hash
            values = tuple(_shorten_hash(side.prompts) for side in (result.a, result.b))
        rows.append((setting.name, *(_shorten(value or "none") for value in values)))
    rows.append(("unread replies", f"{result.a.unread:,}", f"{result.b.unread:,}"))
    rows.append(("unjudged scenarios", f"{result.a.unjudged:,}", f"{result.b.unjudged:,}"))
    return make_table(("", "A", "B"), rows, left=3)


def _shorten_hash(prompts: str) -> str:
    return prompts[:12] if len(prompts) >= 16 and set(prompts) <= set("0123456789abcdef") else prompts


def _shorten(value: str) -> str:
    return value if len(value) <= 28 else f"{value[:27]}…"


def _list_flips(title: str, flips: Sequence[Flip], run: str) -> Iterator[str | TextTable]:
    if not flips:
        return
    more = len(flips) - SHOWN_FLIPS
    yield f"\n{len(flips):,} {title}" + (f", the first {SHOWN_FLIPS} of them (--json has all)" if more > 0 else "")
    rows = [(flip.id, flip.archetype.value, f"{flip.a.value} > {flip.b.value}") for flip in flips[:SHOWN_FLIPS]]
    yield make_table(("scenario", "archetype", "A > B"), rows, left=3)
