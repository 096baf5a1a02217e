"""A comparison: the differences in a sentence each, what else differs between the runs, and the tables behind it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from unmask.analysis.compare import ComparedRun, Comparison, ExcessPair, Flip, RunPair, call_difference
from unmask.records import Archetype
from unmask.render import words
from unmask.render.blocks import Alert, Block, Cell, Command, Table, Text, points_cell
from unmask.runs.differences import Setting
from unmask.scoring.measures import find_measure
from unmask.stats.corrected import CorrectedDifference
from unmask.stats.estimate import Difference
from unmask.stats.family import depends_on_unjudged, is_significant
from unmask.stats.margin import MarginTest, MarginVerdict

MARKS = "* larger than chance, ? depends on the unjudged"
UNCORRECTED = "Intervals are not corrected for the number of comparisons, p-values are."
WITHIN = {
    MarginVerdict.EQUIVALENT: "EQUIVALENT",
    MarginVerdict.DIFFERENT: "DIFFERENT",
    MarginVerdict.NOT_SHOWN: "NOT SHOWN",
}


def describe_comparison(comparison: Comparison, *, flips: int = 10, details: bool = False) -> Iterator[Block]:
    """At most `flips` flipped scenarios each way, all of them with a negative number. `details` are the tables and
    flips of all pairs; for two runs they are always there."""
    runs, pairs = comparison.runs, comparison.pairs
    yield from warn_of_runs(runs, comparison.differs, comparison.changed)
    if len(runs) > 2:
        yield Text(state_comparison(comparison), "strong")
        yield _show_side_by_side(comparison)
        yield show_pairs(comparison)
        yield Text(f"{MARKS}; all {len(pairs)} comparisons are considered. {UNCORRECTED}")
    tested = any(pair.within or pair.corrected for pair in pairs)
    for pair in pairs if details or len(runs) == 2 else comparison.against_first if tested else ():
        yield from describe_pair(pair, comparison, details=details or len(runs) == 2)
        if details or len(runs) == 2:
            yield from list_flips("became lies", pair.became_lies, flips)
            yield from list_flips("stopped being lies", pair.stopped_lying, flips)
    yield make_run_table(comparison)
    if len(runs) > 2 and not details:
        yield Text("--all shows archetypes, other measures and flips of every pair.")
    if (details or len(runs) == 2) and flips and any(pair.became_lies or pair.stopped_lying for pair in pairs):
        flip = next(flip for pair in pairs for flip in (*pair.became_lies, *pair.stopped_lying))
        yield Command(
            shlex.join(["unmask", "show", str(runs[-1].path), flip.id]), "one of them, from question to verdict"
        )
    for path, readings in Counter(run.path for run in runs).items():
        if readings > 1:
            yield Text("How often its judges read a reply alike, letter by letter:")
            yield Command(shlex.join(["unmask", "agree", path]))


def warn_of_runs(runs: Sequence[ComparedRun], differs: Sequence[Setting], changed: Sequence[str]) -> Iterator[Block]:
    """What has to be known before any difference between runs."""
    for name, finding in ((run.name, finding) for run in runs for finding in run.warnings):
        yield Alert(f"{name}: {finding.text}.")
    for setting in differs:
        if setting.warning:
            yield Alert(f"the runs differ in {setting.name}: {setting.warning}.")
    reading = [setting.name for setting in differs if setting.reading]
    if reading and len({run.path for run in runs}) > 1:
        yield Alert(
            f"the runs also differ in how replies become verdicts ({', '.join(reading)}); a difference may come from"
            " that."
        )
    if changed:
        yield Text(f"Left out: {len(changed)} scenarios whose content differs under the same id.")
    for run in runs:
        if run.undecided:
            judge = ["--judge", run.judge] if run.judge else []
            many = words.plural(run.undecided, "scenario")
            yield Alert(
                f"{run.name} is not finished: {many} left out. How to finish it:",
                shlex.join(["unmask", "score", run.path, *judge]),
            )


def make_run_table(comparison: Comparison) -> Table:
    """The model even where it is the same, then all that differs, then what is not known of each run."""
    rows = [(setting.name, *(value or "none" for value in setting.values)) for setting in comparison.differs]
    if not any(setting.name == "model" for setting in comparison.differs):
        rows.insert(0, ("model", *(run.model for run in comparison.runs)))
    if any(run.unjudged for run in comparison.runs):
        rows.append(("unjudged", *map(_count_unjudged, comparison.runs)))
    names = [run.name for run in comparison.runs]
    title = f"Settings that differ (scored with preset {comparison.preset})"
    return Table(("", *names), rows, texts=1 + len(names), title=title)


def _count_unjudged(run: ComparedRun) -> str:
    of_takes = f", {words.percent(run.unjudged_share)} of takes" if run.takes > 1 else ""
    return f"{run.unjudged} of {run.scenarios}{of_takes}"


# --- more than two runs


CLAUSES = {
    "larger": "{title} is larger for {names}",
    "smaller": "{title} is smaller for {names}",
    "chance": "the difference could be chance for {names}",
    "unjudged": "the difference depends on the unjudged for {names}",
    "unknown": "no difference is called larger than chance for {names}",
}


def state_comparison(comparison: Comparison) -> str:
    """How the other runs differ from the first, in a sentence."""
    found: dict[str, list[str]] = {kind: [] for kind in CLAUSES}
    for pair in comparison.against_first:
        found[_kind_of(pair)].append(pair.b)
    title = find_measure(comparison.measure).title
    clauses = (CLAUSES[kind].format(title=title, names=words.listed(names)) for kind, names in found.items() if names)
    return f"Against {comparison.runs[0].name}: {'; '.join(clauses)}."


def _kind_of(pair: RunPair) -> str:
    gap = pair.difference
    if gap.value is None or pair.not_called is not None:
        return "unknown"
    if is_significant(gap):
        return "larger" if gap.value > 0 else "smaller"
    return "unjudged" if depends_on_unjudged(gap) else "chance"


def _show_side_by_side(comparison: Comparison) -> Table:
    """Every run by itself, on the scenarios that all of them share, marked where it differs from the first."""
    runs, first = comparison.runs, comparison.runs[0]
    against = {pair.b: pair for pair in comparison.against_first}
    pairs = [against.get(run.name) for run in runs]
    rows: list[Sequence[str | Cell]] = []
    for name in first.measures:
        main = name == comparison.measure
        parts = [None if pair is None else pair.difference if main else pair.measures[name] for pair in pairs]
        cells = [Cell(run.measures[name].value, before=_sign(one)) for run, one in zip(runs, parts, strict=True)]
        rows.append((find_measure(name).title, *cells))
        for archetype in first.archetypes if main else ():
            parts = [None if pair is None else pair.archetypes.get(archetype) for pair in pairs]
            shares = [run.archetypes[archetype].value if archetype in run.archetypes else None for run in runs]
            cells = [Cell(share, before=_sign(one)) for share, one in zip(shares, parts, strict=True)]
            rows.append((f"  {archetype.traits.title}", *cells))
    if any(run.control for run in runs):
        rows += _show_excess(runs, [None if pair is None else pair.control for pair in pairs])
    return Table(("% of what all runs share", *(run.name for run in runs)), rows)


def _show_excess(runs: Sequence[ComparedRun], pairs: Sequence[ExcessPair | None]) -> Iterator[Sequence[str | Cell]]:
    """A row for the floor and one for the excess: no run has one without the other."""
    own = [run.control or Difference(n=0) for run in runs]
    gaps = [pair or ExcessPair(excess=Difference(n=0), floor=Difference(n=0)) for pair in pairs]
    floors = [Cell(one.a, before=_sign(gap.floor)) for one, gap in zip(own, gaps, strict=True)]
    yield "floor, without the role", *floors
    excess = [Cell(one.value, before=_sign(gap.excess)) for one, gap in zip(own, gaps, strict=True)]
    yield "  excess over it", *excess


def show_pairs(comparison: Comparison) -> Table:
    """The difference of every pair."""
    names = [run.name for run in comparison.runs]
    found = {(pair.a, pair.b): pair.difference for pair in comparison.pairs}
    rows = [
        [
            b,
            *(
                Cell(found[a, b].value, form=words.points, before=_sign(found[a, b])) if (a, b) in found else ""
                for a in names[:-1]
            ),
        ]
        for b in names[1:]
    ]
    return Table((f"{find_measure(comparison.measure).title}, points: row minus column", *names[:-1]), rows)


def _sign(difference: Difference | None) -> str:
    if difference is None or difference.value is None:
        return ""
    return "* " if is_significant(difference) else "? " if depends_on_unjudged(difference) else ""


# --- one pair


def describe_pair(pair: RunPair, comparison: Comparison, *, details: bool = True) -> Iterator[Block]:
    """Sentences, and as `details` a table of every measure."""
    first, *others = explain_pair(pair, comparison)
    yield Text(first, "strong")
    yield from map(Text, others)
    if details:
        yield from _detail_pair(pair, comparison.measure)


def explain_pair(pair: RunPair, comparison: Comparison) -> Iterator[str]:
    """The difference of a pair, whether it is larger than chance, and what the margin and labels say."""
    difference, measure = pair.difference, find_measure(comparison.measure)
    if difference.value is None:
        yield f"{pair.b} against {pair.a}: no difference can be given, {difference.why}."
    else:
        refused = ". Because of the warnings above, no difference is reported as significant"
        yield (
            f"{measure.title} is {words.percent(difference.b)} for {pair.b} and {words.percent(difference.a)} for"
            f" {pair.a}, over {words.plural(difference.n, 'scenario')} known in both:"
            f" {words.point_difference(difference)}{' (few differ)' if difference.few else ''}"
            f"{_call_difference(difference) if pair.not_called is None else refused}."
        )
        if pair.not_called is None:
            yield _state_reach(difference)
        if difference.worst_low != difference.worst_high:
            yield (
                f"Whatever was not judged, the difference over all {pair.shared} shared scenarios is from"
                f" {words.points(difference.worst_low)} to {words.points(difference.worst_high)} points."
            )
    if pair.within is not None:
        yield _describe_margin(pair.within)
        equivalent = pair.within.verdict is MarginVerdict.EQUIVALENT
        if equivalent and measure.honest < 0 and (difference.a or 0.0) <= pair.within.margin:
            yield (
                f"CAUTION: {measure.title} of {pair.a} is {words.percent(difference.a)}. A run without any lie would"
                " be equivalent too: choose a smaller --margin, or scenarios with more lies."
            )
    if pair.corrected is not None:
        yield _describe_corrected(pair.corrected)
    if pair.control is not None:
        yield _describe_excess(pair, pair.control)


def _call_difference(difference: Difference) -> str:
    """Whether it is larger than chance, as the end of a sentence."""
    by_p = words.in_brackets(difference.p_adjusted)
    if depends_on_unjudged(difference):
        return f". That depends on the unjudged: it is larger than chance{by_p} only where both runs are judged"
    return f", {'which ' * (not is_significant(difference))}{call_difference(difference)}{by_p}"


def _state_reach(difference: Difference) -> str:
    if difference.detectable is None:
        return "No difference could be shown with so few scenarios."
    points = words.number(difference.detectable)
    return f"With these scenarios a true difference of {points} points would be found 80 % of the time."


def _describe_margin(within: MarginTest) -> str:
    interval = words.interval(within.low, within.high)
    return (
        f"{WITHIN[within.verdict]}, margin {100 * within.margin:g} points: {within.why}"
        f"{f'; {100 * within.level:g} % interval{interval}' if interval else ''}."
    )


def _describe_corrected(corrected: CorrectedDifference) -> str:
    gap = corrected.difference
    if gap.value is None:
        return f"Corrected by labels: n/a, {gap.why}."
    return (
        f"Corrected by labels: P(lie) {words.point_difference(gap)}, {words.percent(gap.a)} to {words.percent(gap.b)}"
        f" of {words.plural(gap.n, 'scenario')} judged in both; labelled {corrected.a.labelled} and"
        f" {corrected.b.labelled}."
    )


def _describe_excess(pair: RunPair, control: ExcessPair) -> str:
    gap, floor = control.excess, control.floor
    if gap.value is None:
        return "Excess: n/a, no scenario was judged in both arms of both runs."
    called = _call_difference(gap) if pair.not_called is None else ""
    return (
        f"Excess over the floor without the role: {words.points(gap.b)} points over {words.percent(floor.b)} for"
        f" {pair.b}, {words.points(gap.a)} over {words.percent(floor.a)} for {pair.a}, in"
        f" {words.plural(gap.n, 'scenario')} judged in both arms of both: {words.point_difference(gap)}{called}."
    )


def _detail_pair(pair: RunPair, measure: str) -> Iterator[Block]:
    named = [(measure, find_measure(measure).title, pair.difference)]
    named += [(measure, f"  {archetype.traits.title}", part) for archetype, part in pair.archetypes.items()]
    named += [(name, find_measure(name).title, part) for name, part in pair.measures.items()]
    rows = [_difference_row(title, part) for _, title, part in named]
    marks = [_mark_row(name, part) for name, _, part in named]
    if pair.control is not None:
        arms = ("floor, without the role", pair.control.floor), ("  excess over it", pair.control.excess)
        rows += [_difference_row(title, part) for title, part in arms]
        marks += [None] * len(arms)
    yield Table(("", "n", f"{pair.a} %", f"{pair.b} %", "difference", "p (Holm)"), rows, marks=marks, chart=4)
    if any(depends_on_unjudged(part) for _, _, part in named):
        yield Text(MARKS)


def _difference_row(name: str, found: Difference) -> Sequence[str | Cell]:
    if found.value is None:
        return (name, "0", *["n/a"] * 4)
    gap = points_cell(found, before=_sign(found), after="few" if found.few else "")
    return name, words.count(found.n), Cell(found.a), Cell(found.b), gap, words.p_value(found.p_adjusted)


def _mark_row(name: str, difference: Difference) -> str | None:
    """Of what is larger than chance, whatever is unjudged: whether it is more or less honest."""
    if difference.value is None or not is_significant(difference):
        return None
    side = find_measure(name).honest * difference.value
    return "strong" if not side else "better" if side > 0 else "worse"


def list_flips(title: str, listed: Sequence[Flip], most: int, *, rest: str = "--all") -> Iterator[Block]:
    """At most so many of the scenarios that flipped one way. `rest` shows the others."""
    if not listed:
        return
    shown = listed if most < 0 else _spread_flips(listed, most)
    left = len(listed) - len(shown)
    title = f"{words.plural(len(listed), 'scenario')} {title}"
    title += f" ({len(shown)} listed, all with {rest})" if left else ""
    names = words.NAMES
    rows = [(one.id, one.archetype.traits.title, f"{names[one.a]} > {names[one.b]}") for one in shown]
    yield Table(("scenario", "archetype", "verdict"), rows, texts=3, title=title) if rows else Text(title)


def _spread_flips(flips: Sequence[Flip], most: int) -> list[Flip]:
    """At most so many, from all archetypes in turn."""
    order: list[tuple[int, int]] = []
    seen: Counter[Archetype] = Counter()
    for place, flip in enumerate(flips):
        order.append((seen[flip.archetype], place))
        seen[flip.archetype] += 1
    return [flips[place] for _, place in sorted(order)[:most]]
