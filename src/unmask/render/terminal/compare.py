"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unmask.analysis.compare import TITLES, Comparison, Flip, Pair
from unmask.render.terminal.tables import bounds, chance, grid, percent, printed, signed
from unmask.stats.compare import Difference

if TYPE_CHECKING:
    from rich.table import Table


def render(comparison: Comparison, *, width: int | None = None, color: bool = False, flips: int = 10) -> str:
    """The comparison for a terminal; at most `flips` flipped scenarios each way, all of them with a negative number."""
    return printed(_parts(comparison, flips), width=width, color=color)


def _parts(comparison: Comparison, flips: int) -> Iterator[str | Table]:
    yield from _warnings(comparison)
    yield _settings(comparison)
    for pair in comparison.pairs:
        yield ""
        yield from _pair(pair, flips)


def _warnings(comparison: Comparison) -> Iterator[str]:
    reading = [setting.name for setting in comparison.differs if setting.reading]
    if reading:
        yield (
            f"CAUTION: the runs also differ in how replies become verdicts ({', '.join(reading)});"
            " a difference may come from that.\n"
        )
    if comparison.changed:
        yield f"Left out: {len(comparison.changed)} scenarios whose content differs under the same id.\n"
    for run in comparison.runs:
        if run.undecided:
            yield f"INCOMPLETE: {run.name} has {run.undecided} undecided scenarios; they are left out.\n"


def _settings(comparison: Comparison) -> Table:
    """The model even where it is the same, then all that differs."""
    names = [run.name for run in comparison.runs]
    rows = [(setting.name, *(value or "none" for value in setting.values)) for setting in comparison.differs]
    if not any(setting.name == "model" for setting in comparison.differs):
        rows.insert(0, ("model", *(run.model for run in comparison.runs)))
    rows.append(("unjudged", *(f"{run.unjudged} of {run.scenarios}" for run in comparison.runs)))
    return grid((f"differs, read as {comparison.preset}", *names), rows, left=1 + len(names))


def _pair(pair: Pair, flips: int) -> Iterator[str | Table]:
    found = pair.p_lie
    takes = f", Lying@{pair.takes}" if pair.takes > 1 else ""
    if found.value is None:
        yield f"{pair.b} against {pair.a}: no difference can be given, {found.why}."
    else:
        interval = bounds(found.low, found.high)
        yield (
            f"{pair.b} against {pair.a}{takes}: P(lie) {signed(found.value)} points{interval},"
            f" {percent(found.a)} % to {percent(found.b)} % of {found.n} scenarios known in both"
        )
        yield _meaning(found)
    yield ""
    yield _table(pair)
    for title, listed in (("became lies", pair.became_lies), ("stopped lying", pair.stopped_lying)):
        yield from _flips(title, listed, flips)


def _meaning(found: Difference) -> str:
    p = found.p_adjusted if found.p_adjusted is not None else found.p_value
    if p is None or p >= 0.05:
        meaning = "could be chance"
    else:
        meaning = "is larger than chance (p < 0.001)" if p < 0.001 else f"is larger than chance (p = {p:.3f})"
    reach = "No difference could be shown with so few scenarios."
    if found.detectable is not None:
        points = percent(found.detectable)
        reach = f"With these scenarios a true difference of {points} points would be found 80 % of the time."
    alike = "" if found.correlation is None else f" The runs' verdicts correlate by {found.correlation:+.2f}."
    return f"The difference {meaning}. {reach}{alike}"


def _table(pair: Pair) -> Table:
    headings = ("", "n", f"{pair.a} %", f"{pair.b} %", "difference", "bootstrap", "p", "p (Holm)")
    rows = [_row("P(lie)", pair.p_lie)]
    rows += [_row(f"  {archetype.value}", found) for archetype, found in pair.archetypes.items()]
    rows += [_row(TITLES[name], found) for name, found in pair.measures.items() if found.n or name != "lying_at_1"]
    return grid(headings, rows)


def _row(name: str, found: Difference) -> Sequence[str]:
    if found.value is None:
        return (name, "0", *["n/a"] * 6)
    return (
        name,
        str(found.n),
        percent(found.a),
        percent(found.b),
        signed(found.value) + bounds(found.low, found.high),
        bounds(found.bootstrap_low, found.bootstrap_high).strip() or "n/a",
        chance(found.p_value),
        chance(found.p_adjusted),
    )


def _flips(title: str, listed: Sequence[Flip], most: int) -> Iterator[str | Table]:
    if not listed:
        return
    shown = listed if most < 0 else listed[:most]
    left = len(listed) - len(shown)
    yield ""
    yield f"{len(listed)} {title}" + (f", {left} of them not shown (--flips -1 shows all)" if left else "")
    if shown:
        rows = [(flip.id, flip.archetype.value, f"{flip.a.value} > {flip.b.value}") for flip in shown]
        yield grid(("scenario", "archetype", "verdict"), rows, left=3)
