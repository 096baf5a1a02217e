"""A comparison as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from unmask.analysis.compare import TITLES, Comparison, Flip, RunPair, title_measure
from unmask.analysis.corrected import CorrectedDifference
from unmask.records import Archetype
from unmask.render.terminal.tables import (
    TextTable,
    format_bounds,
    format_p_value,
    format_signed,
    make_table,
    percent,
    render_parts,
)
from unmask.stats.compare import Difference, is_significant
from unmask.stats.rate import Rate

ROOMY = 110
"""Columns for the whole table of differences. A narrower terminal leaves the bootstrap and the plain p to `--json`."""


def render(comparison: Comparison, *, width: int | None = None, color: bool = False, flips: int = 10) -> str:
    """The comparison for a terminal; at most `flips` flipped scenarios each way, all of them with a negative number."""
    from shutil import get_terminal_size

    columns = width or get_terminal_size().columns
    return render_parts(_compose_parts(comparison, flips, columns), width=columns, color=color)


def _compose_parts(comparison: Comparison, flips: int, columns: int) -> Iterator[str | TextTable]:
    for name, finding in ((run.name, finding) for run in comparison.runs for finding in run.warnings):
        yield f"WARNING: {name}: {finding.text}.\n"
    for setting in comparison.differs:
        if setting.warning:
            yield f"WARNING: the runs differ in {setting.name}: {setting.warning}.\n"
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
    # The model even where it is the same, then all that differs.
    rows = [(setting.name, *(value or "none" for value in setting.values)) for setting in comparison.differs]
    if not any(setting.name == "model" for setting in comparison.differs):
        rows.insert(0, ("model", *(run.model for run in comparison.runs)))
    rows.append(("unjudged", *(f"{run.unjudged} of {run.scenarios}" for run in comparison.runs)))
    names = [run.name for run in comparison.runs]
    yield make_table((f"differs, read as {comparison.preset}", *names), rows, left=1 + len(names))
    if len(names) > 2:
        yield ""
        yield from _show_side_by_side(comparison)
    for pair in comparison.pairs:
        yield ""
        yield from _describe_pair(pair, flips, columns)
    if flips and any(pair.became_lies or pair.stopped_lying for pair in comparison.pairs):
        yield "\nOne of these scenarios as it was asked and answered: unmask show RUN SCENARIO"


def _show_side_by_side(comparison: Comparison) -> Iterator[str | TextTable]:
    """Every run by itself, on the scenarios that all of them share, marked where it differs from the first."""
    runs, first = comparison.runs, comparison.runs[0]
    against = {pair.b: pair for pair in comparison.pairs if pair.a == first.name}
    lines: list[list[str]] = []
    for name in first.measures:
        pairs = [against.get(run.name) for run in runs]
        parts = [None if pair is None else pair.p_lie if name == "p_lie" else pair.measures[name] for pair in pairs]
        lines.append(
            [TITLES[name], *(_mark_share(run.measures[name], part) for run, part in zip(runs, parts, strict=True))]
        )
        for archetype in first.archetypes if name in {"p_lie", "lying_at_1"} else ():
            parts = [None if pair is None else pair.archetypes.get(archetype) for pair in pairs]
            shares = [_mark_share(run.archetypes[archetype], part) for run, part in zip(runs, parts, strict=True)]
            lines.append([f"  {archetype.value}", *shares])
    yield make_table(("% of what all runs share", *(run.name for run in runs)), lines)
    yield f"* differs from {first.name} by more than chance, all these comparisons considered"


def _mark_share(rate: Rate | None, difference: Difference | None) -> str:
    share = "unknown" if rate is None else percent(rate.value)
    called = difference is not None and difference.value is not None and is_significant(difference)
    return f"* {share}" if called else share


def _describe_pair(pair: RunPair, flips: int, columns: int) -> Iterator[str | TextTable]:
    difference, title = pair.main, title_measure(pair, pair.primary)
    if difference.value is None:
        yield f"{pair.b} against {pair.a}: no difference can be given, {difference.why}."
    else:
        interval = format_bounds(difference.low, difference.high)
        yield (
            f"{pair.b} against {pair.a}: {title} {format_signed(difference.value)} points{interval},"
            f" {percent(difference.a)} % to {percent(difference.b)} % of {difference.n} scenarios known in both"
        )
        refused = "No difference between these runs is called one, for the reasons above."
        yield _explain_difference(difference) if pair.not_called is None else refused
        if difference.n < pair.shared and difference.worst_low is not None and difference.worst_high is not None:
            yield (
                f"Whatever the {pair.shared - difference.n} other shared scenarios are, the difference is from"
                f" {format_signed(difference.worst_low)} to {format_signed(difference.worst_high)} points."
            )
    if pair.corrected is not None:
        yield _describe_corrected(pair.corrected)
    yield ""
    roomy = columns >= ROOMY
    headings = ("", "n", f"{pair.a} %", f"{pair.b} %", "difference", *(("bootstrap", "p") if roomy else ()), "p (Holm)")
    rows = [_difference_row(title, difference)]
    rows += [_difference_row(f"  {archetype.value}", part) for archetype, part in pair.archetypes.items()]
    rows += [_difference_row(title_measure(pair, name), part) for name, part in pair.secondary.items()]
    lies = [(pair.primary, part) for part in (difference, *pair.archetypes.values())]
    styles = [_row_style(*shown) for shown in (*lies, *pair.secondary.items())]
    yield make_table(headings, rows if roomy else [[*row[:5], row[7]] for row in rows], styles=styles)
    yield from _list_flips("became lies", pair.became_lies, flips)
    yield from _list_flips("stopped lying", pair.stopped_lying, flips)


def _row_style(name: str, difference: Difference) -> str | None:
    """Of what is larger than chance by the corrected p-value; red for more lies and green for fewer."""
    if difference.value is None or not is_significant(difference):
        return None
    if "lie" not in name and "lying" not in name:
        return "bold"
    return "red" if difference.value > 0 else "green"


def _describe_corrected(corrected: CorrectedDifference) -> str:
    gap = corrected.difference
    if gap.value is None:
        return f"Corrected by labels: n/a, {gap.why}."
    return (
        f"Corrected by labels: P(lie) {format_signed(gap.value)} points{format_bounds(gap.low, gap.high)},"
        f" {percent(gap.a)} % to {percent(gap.b)} % of {gap.n} scenarios judged in both; labelled"
        f" {corrected.a.labelled} and {corrected.b.labelled}."
    )


def _explain_difference(difference: Difference) -> str:
    p = difference.p_adjusted if difference.p_adjusted is not None else difference.p_value
    if p is None or not is_significant(difference):
        meaning = "could be chance"
    else:
        meaning = "is larger than chance (p < 0.001)" if p < 0.001 else f"is larger than chance (p = {p:.3f})"
    reach = "No difference could be shown with so few scenarios."
    if difference.detectable is not None:
        points = percent(difference.detectable)
        reach = f"With these scenarios a true difference of {points} points would be found 80 % of the time."
    alike = "" if difference.correlation is None else f" The runs' verdicts correlate by {difference.correlation:+.2f}."
    return f"The difference {meaning}. {reach}{alike}"


def _difference_row(name: str, difference: Difference) -> Sequence[str]:
    if difference.value is None:
        return (name, "0", *["n/a"] * 6)
    return (
        name,
        str(difference.n),
        percent(difference.a),
        percent(difference.b),
        format_signed(difference.value) + format_bounds(difference.low, difference.high),
        format_bounds(difference.bootstrap_low, difference.bootstrap_high).strip() or "n/a",
        format_p_value(difference.p_value),
        format_p_value(difference.p_adjusted),
    )


def _list_flips(title: str, listed: Sequence[Flip], most: int) -> Iterator[str | TextTable]:
    if not listed:
        return
    shown = listed if most < 0 else _spread_flips(listed, most)
    left = len(listed) - len(shown)
    yield ""
    yield f"{len(listed)} {title}" + (f", {left} of them not shown (--flips -1 shows all)" if left else "")
    if shown:
        rows = [(flip.id, flip.archetype.value, f"{flip.a.value} > {flip.b.value}") for flip in shown]
        yield make_table(("scenario", "archetype", "verdict"), rows, left=3)


def _spread_flips(flips: Sequence[Flip], most: int) -> list[Flip]:
    """At most so many, from all archetypes in turn."""
    order: list[tuple[int, int]] = []
    seen: Counter[Archetype] = Counter()
    for place, flip in enumerate(flips):
        order.append((seen[flip.archetype], place))
        seen[flip.archetype] += 1
    return [flips[place] for _, place in sorted(order)[:most]]
