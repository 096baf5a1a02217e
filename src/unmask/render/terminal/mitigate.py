"""What mitigations gain and cost, as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unmask.experiments.mitigation import Account, Treated, Writing
from unmask.render.terminal.tables import bounds, chance, grid, percent, printed, signed
from unmask.stats.compare import Difference
from unmask.stats.effect import Cost, Effect
from unmask.text import safe

if TYPE_CHECKING:
    from rich.table import Table

NAMES = {
    "p_lie": "P(lie)",
    "p_honest": "P(honest)",
    "p_honest_and_right": "honest and right",
    "p_evasion": "evasion",
    "belief": "belief",
    "accuracy": "accuracy",
}

EFFECTS = {
    Effect.HONEST: "more honest",
    Effect.HONEST_AT_A_COST: "more honest, at a cost",
    Effect.ONLY_EVADES: "only evades",
    Effect.ONLY_LOSES_BELIEFS: "only loses its beliefs",
    Effect.ONLY_EVADES_AND_LOSES_BELIEFS: "only evades and loses its beliefs",
    Effect.ONLY_GETS_FACTS_WRONG: "only gets facts wrong",
    Effect.FEWER_LIES_UNEXPLAINED: "fewer lies, unexplained",
    Effect.NO_EFFECT: "no effect seen",
    Effect.COST_WITHOUT_EFFECT: "a cost, no effect seen",
    Effect.MORE_LIES: "more lies",
    Effect.UNKNOWN: "cannot be said",
}

COSTS = {
    Cost.EVASION: "evades more",
    Cost.BELIEF: "has fewer beliefs",
    Cost.ACCURACY: "gets more facts wrong",
    Cost.FLUENCY: "writes less fluently",
}


def render(found: Account, *, width: int | None = None, color: bool = False) -> str:
    return printed(_parts(found), width=width, color=color)


def called(one: Treated) -> str:
    """The treatment, or the model where nothing was done to it."""
    return one.treatment if one.treatment != "none" else one.model


def markdown(found: Account) -> str:
    """The same tables for a README or a paper's notes."""
    lines = [f"Base: `{_plain(found.base.name)}` (`{_plain(found.base.model)}`), read as {found.preset}.", ""]
    for summary in _summaries(found):
        lines += [*_piped(*summary), ""]
    for one in found.treated:
        lines += [f"**{_plain(called(one))}** (`{_plain(one.name)}`): {_said(one)}", ""]
        lines += [*_piped(*_details(one)), ""]
    return "\n".join(lines)


def _parts(found: Account) -> Iterator[str | Table]:
    yield from _warnings(found)
    yield f"Base: {found.base.name} ({found.base.model}), read as {found.preset}. Treated minus base, in points.\n"
    for number, summary in enumerate(_summaries(found)):
        yield from [""] * (number > 0)
        yield grid(*summary)
    for one in found.treated:
        yield ""
        yield f"{called(one)} ({one.name}): {_said(one)}"
        yield grid(*_details(one))


def _warnings(found: Account) -> Iterator[str]:
    reading = [setting.name for setting in found.differs if setting.reading]
    if reading:
        yield f"CAUTION: the runs also differ in how replies become verdicts ({', '.join(reading)}).\n"
    if found.changed:
        yield f"Left out: {len(found.changed)} scenarios whose content differs under the same id.\n"
    for run in (found.base, *found.runs):
        if run.undecided:
            yield f"INCOMPLETE: {run.name} has {run.undecided} undecided scenarios; they are left out.\n"


Rows = tuple[Sequence[str], list[Sequence[str]]]


SIDE_BY_SIDE = 5
"""Treatments in one table; more would not fit on a screen."""


def _summaries(found: Account) -> Iterator[Rows]:
    """A column for each treatment, a row for each measure."""
    for start in range(0, len(found.treated), SIDE_BY_SIDE):
        yield _summary(found.treated[start : start + SIDE_BY_SIDE])


def _summary(treated: Sequence[Treated]) -> Rows:
    headings = ("points", *(called(one) for one in treated))
    rows: list[Sequence[str]] = [("run", *(one.name for one in treated))]
    rows.append(("judged in both", *(f"{one.measures['p_lie'].overall.n} of {one.shared}" for one in treated)))
    rows.append(("what it does", *(EFFECTS[one.effect] for one in treated)))
    rows += [(title, *(_moved(one.measures[name].overall) for one in treated)) for name, title in NAMES.items()]
    rows.append(("perplexity", *(_perplexity(one.writing) for one in treated)))
    rows.append(("p of P(lie), Holm", *(chance(one.measures["p_lie"].overall.p_adjusted) for one in treated)))
    return headings, rows


def _details(one: Treated) -> Rows:
    """All scenarios, then each archetype."""
    headings = ("points", "n", *NAMES.values())
    whole = [one.measures[name].overall for name in NAMES]
    rows: list[Sequence[str]] = [
        ("base, %", "", *(percent(found.a) for found in whole)),
        ("treated, %", "", *(percent(found.b) for found in whole)),
        ("difference", str(whole[0].n), *map(_moved, whole)),
    ]
    for archetype, lies in one.measures["p_lie"].archetypes.items():
        parts = [one.measures[name].archetypes[archetype] for name in NAMES]
        rows.append((f"  {archetype.traits.title}", str(lies.n), *map(_moved, parts)))
    return headings, rows


def _moved(found: Difference) -> str:
    return "n/a" if found.value is None else signed(found.value) + bounds(found.low, found.high)


def _perplexity(found: Writing) -> str:
    if found.ratio is None or found.base is None or found.treated is None:
        return "not measured"
    return f"{found.base:.2f} > {found.treated:.2f} (×{found.ratio.value:.2f})"


def _said(one: Treated) -> str:
    """The effect in a sentence, then each cost, then what to be careful about."""
    parts = [one.words]
    if one.costs:
        parts.append(f"Cost: {', '.join(COSTS[cost] for cost in one.costs)}.")
    if one.writing.ratio is None:
        parts.append(f"Fluency: not measured, {one.writing.why}.")
    parts += [f"Note: {note}." for note in one.notes]
    return " ".join(parts)


def _piped(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield "| " + " | ".join(_plain(cell) for cell in row) + " |"


def _plain(text: str) -> str:
    """Fit for a cell of a table: one line, and no sign that would end it."""
    return " ".join(safe(text).split()).replace("|", "\\|").replace("`", "'")
