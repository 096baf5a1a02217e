"""A comparison as text for a terminal."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unmask.analysis.compare import ComparedRun, Comparison, Flip, RunPair, call_difference
from unmask.analysis.corrected import CorrectedDifference
from unmask.records import Archetype
from unmask.render.terminal.tables import (
    TextTable,
    format_bounds,
    format_difference,
    format_p_value,
    format_signed,
    make_table,
    percent,
    render_parts,
)
from unmask.scoring.measures import find_measure
from unmask.stats.estimate import Difference, depends_on_unjudged, is_significant
from unmask.stats.margin import MarginTest, MarginVerdict
from unmask.stats.rate import Rate
from unmask.text import strip_controls

if TYPE_CHECKING:
    from rich.text import Text

MARKS = "* larger than chance, ? depends on the unjudged"
UNCORRECTED = "Intervals are not corrected for the number of comparisons, p-values are."
WITHIN = {
    MarginVerdict.EQUIVALENT: "EQUIVALENT",
    MarginVerdict.DIFFERENT: "DIFFERENT",
    MarginVerdict.NOT_SHOWN: "NOT SHOWN",
}


def render(
    comparison: Comparison, *, width: int | None = None, color: bool = False, flips: int = 10, details: bool = False
) -> str:
    """The comparison for a terminal; at most `flips` flipped scenarios each way, all of them with a negative number.
    `details` are the tables and flips of all pairs; for two runs they are always there."""
    return render_parts(_compose_parts(comparison, flips, details), width=width, color=color)


def _compose_parts(comparison: Comparison, flips: int, details: bool) -> Iterator[str | Text | TextTable]:
    runs, pairs = comparison.runs, comparison.pairs
    yield from _list_warnings(comparison)
    yield _make_run_table(comparison)
    if len(runs) > 2:
        yield ""
        yield from _show_side_by_side(comparison)
        yield ""
        yield from _show_pairs(comparison)
    details = details or len(runs) == 2
    for pair in pairs if details else comparison.against_first:
        yield ""
        yield from _describe_pair(pair, comparison)
        if details:
            yield ""
            yield from _detail_pair(pair, comparison.measure, flips)
    yield ""
    if not details:
        yield "--details shows archetypes, other measures and flips of every pair."
    if details and flips and any(pair.became_lies or pair.stopped_lying for pair in pairs):
        yield "One of these scenarios as it was asked and answered: unmask show RUN SCENARIO"
    for path, readings in Counter(run.path for run in runs).items():
        if readings > 1:
            yield "How often its judges read a reply alike, letter by letter:"
            yield _keep_whole("unmask", "agree", path)


def _keep_whole(*words: str) -> Text:
    """A command in one line, to be copied."""
    from rich.text import Text

    return Text(f"  {strip_controls(shlex.join(words))}", no_wrap=True)


def _list_warnings(comparison: Comparison) -> Iterator[str | Text]:
    for name, finding in ((run.name, finding) for run in comparison.runs for finding in run.warnings):
        yield f"WARNING: {name}: {finding.text}.\n"
    for setting in comparison.differs:
        if setting.warning:
            yield f"WARNING: the runs differ in {setting.name}: {setting.warning}.\n"
    reading = [setting.name for setting in comparison.differs if setting.reading]
    if reading and len({run.path for run in comparison.runs}) > 1:
        yield (
            f"CAUTION: the runs also differ in how replies become verdicts ({', '.join(reading)});"
            " a difference may come from that.\n"
        )
    if comparison.changed:
        yield f"Left out: {len(comparison.changed)} scenarios whose content differs under the same id.\n"
    for run in comparison.runs:
        if run.undecided:
            yield f"INCOMPLETE: {run.name} has {run.undecided} undecided scenarios; left out. How to finish it:"
            yield _keep_whole("unmask", "score", run.path, *(["--judge", run.judge] if run.judge else []))


def _make_run_table(comparison: Comparison) -> TextTable:
    """The model even where it is the same, then all that differs, then what is not known of each run."""
    rows = [(setting.name, *(value or "none" for value in setting.values)) for setting in comparison.differs]
    if not any(setting.name == "model" for setting in comparison.differs):
        rows.insert(0, ("model", *(run.model for run in comparison.runs)))
    rows.append(("unjudged", *map(_count_unjudged, comparison.runs)))
    names = [run.name for run in comparison.runs]
    return make_table((f"read as {comparison.preset}", *names), rows, left=1 + len(names))


def _count_unjudged(run: ComparedRun) -> str:
    of_takes = f", {percent(run.unjudged_share)} % of takes" if run.takes > 1 else ""
    return f"{run.unjudged} of {run.scenarios}{of_takes}"


# --- more than two runs


def _show_side_by_side(comparison: Comparison) -> Iterator[str | TextTable]:
    """Every run by itself, on the scenarios that all of them share, marked where it differs from the first."""
    runs, first = comparison.runs, comparison.runs[0]
    against = {pair.b: pair for pair in comparison.against_first}
    pairs = [against.get(run.name) for run in runs]
    lines: list[list[str]] = []
    for name in first.measures:
        main = name == comparison.measure
        parts = [None if pair is None else pair.difference if main else pair.measures[name] for pair in pairs]
        shares = [_mark_share(run.measures[name], part) for run, part in zip(runs, parts, strict=True)]
        lines.append([find_measure(name).title, *shares])
        for archetype in first.archetypes if main else ():
            parts = [None if pair is None else pair.archetypes.get(archetype) for pair in pairs]
            shares = [_mark_share(run.archetypes[archetype], part) for run, part in zip(runs, parts, strict=True)]
            lines.append([f"  {archetype.value}", *shares])
    yield make_table(("% of what all runs share", *(run.name for run in runs)), lines)
    yield f"Against {first.name}: {MARKS}, all comparisons considered."


def _show_pairs(comparison: Comparison) -> Iterator[str | TextTable]:
    """The difference of every pair."""
    names = [run.name for run in comparison.runs]
    found = {(pair.a, pair.b): pair.difference for pair in comparison.pairs}
    lines = [
        [b, *(_mark(found[a, b], format_signed(found[a, b].value)) if (a, b) in found else "" for a in names[:-1])]
        for b in names[1:]
    ]
    yield make_table((f"{find_measure(comparison.measure).title}, points: row minus column", *names[:-1]), lines)
    yield f"{MARKS}. {UNCORRECTED}"


def _mark_share(rate: Rate, difference: Difference | None) -> str:
    return _mark(difference, percent(rate.value))


def _mark(difference: Difference | None, text: str) -> str:
    if difference is None or difference.value is None:
        return text
    return f"{'* ' if is_significant(difference) else '? ' if depends_on_unjudged(difference) else ''}{text}"


# --- one pair


def _describe_pair(pair: RunPair, comparison: Comparison) -> Iterator[str]:
    difference, measure = pair.difference, find_measure(comparison.measure)
    if difference.value is None:
        yield f"{pair.b} against {pair.a}: no difference can be given, {difference.why}."
    else:
        yield (
            f"{pair.b} against {pair.a}: {measure.title} {format_signed(difference.value)} points"
            f"{format_bounds(difference.low, difference.high)}{_mention_few(difference)}, {percent(difference.a)} % to"
            f" {percent(difference.b)} % of {difference.n} scenarios known in both"
        )
        refused = "No difference between these runs is called one, for the reasons above."
        yield _explain_difference(difference) if pair.not_called is None else refused
        if difference.worst_low != difference.worst_high:
            yield (
                f"Whatever was not judged, the difference over all {pair.shared} shared scenarios is from"
                f" {format_signed(difference.worst_low)} to {format_signed(difference.worst_high)} points."
            )
    if pair.within is not None:
        yield _describe_margin(pair.within)
        equivalent = pair.within.verdict is MarginVerdict.EQUIVALENT
        if equivalent and measure.honest < 0 and (difference.a or 0.0) <= pair.within.margin:
            yield (
                f"CAUTION: {measure.title} of {pair.a} is {percent(difference.a)} %. A run without any lie would be"
                " equivalent too: choose a smaller --margin, or scenarios with more lies."
            )
    if pair.corrected is not None:
        yield _describe_corrected(pair.corrected)


def _mention_few(difference: Difference) -> str:
    return " (few differ)" if difference.few else ""


def _explain_difference(difference: Difference) -> str:
    called, p = call_difference(difference), difference.p_adjusted
    by_p = "" if p is None else " (p < 0.001)" if p < 0.001 else f" (p = {p:.3f})"
    if is_significant(difference):
        meaning = f"The difference is {called}{by_p}."
    elif depends_on_unjudged(difference):
        meaning = f"The difference {called}: larger than chance{by_p} only where both runs are judged."
    else:
        meaning = f"The difference {called}{by_p}."
    reach = "No difference could be shown with so few scenarios."
    if difference.detectable is not None:
        points = percent(difference.detectable)
        reach = f"With these scenarios a true difference of {points} points would be found 80 % of the time."
    return f"{meaning} {reach}"


def _describe_margin(within: MarginTest) -> str:
    interval = format_bounds(within.low, within.high)
    return (
        f"{WITHIN[within.verdict]}, margin {100 * within.margin:g} points: {within.why}"
        f"{f'; {100 * within.level:g} % interval{interval}' if interval else ''}."
    )


def _describe_corrected(corrected: CorrectedDifference) -> str:
    gap = corrected.difference
    if gap.value is None:
        return f"Corrected by labels: n/a, {gap.why}."
    return (
        f"Corrected by labels: P(lie) {format_signed(gap.value)} points{format_bounds(gap.low, gap.high)},"
        f" {percent(gap.a)} % to {percent(gap.b)} % of {gap.n} scenarios judged in both; labelled"
        f" {corrected.a.labelled} and {corrected.b.labelled}."
    )


def _detail_pair(pair: RunPair, measure: str, flips: int) -> Iterator[str | TextTable]:
    named = [(measure, find_measure(measure).title, pair.difference)]
    named += [(measure, f"  {archetype.value}", part) for archetype, part in pair.archetypes.items()]
    named += [(name, find_measure(name).title, part) for name, part in pair.measures.items()]
    rows = [_difference_row(title, part) for _, title, part in named]
    styles = [_row_style(name, part) for name, _, part in named]
    yield make_table(("", "n", f"{pair.a} %", f"{pair.b} %", "difference", "p (Holm)"), rows, styles=styles)
    if any(depends_on_unjudged(part) for _, _, part in named):
        yield MARKS
    yield from _list_flips("became lies", pair.became_lies, flips)
    yield from _list_flips("stopped lying", pair.stopped_lying, flips)


def _difference_row(name: str, difference: Difference) -> Sequence[str]:
    if difference.value is None:
        return (name, "0", *["n/a"] * 4)
    return (
        name,
        str(difference.n),
        percent(difference.a),
        percent(difference.b),
        _mark(difference, format_difference(difference)) + (" few" if difference.few else ""),
        format_p_value(difference.p_adjusted),
    )


def _row_style(name: str, difference: Difference) -> str | None:
    """Of what is larger than chance, whatever is unjudged: red where it is less honest and green where it is more."""
    if difference.value is None or not is_significant(difference):
        return None
    side = find_measure(name).honest * difference.value
    return "bold" if not side else "green" if side > 0 else "red"


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
