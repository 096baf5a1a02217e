"""A leaderboard with intervals, ranges of ranks, and rows that may not be ranked told apart.

Two runs are told apart exactly where `unmask compare` of the ranked runs calls them different.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.analysis.corrected import correct_each
from unmask.analysis.published.columns import PublishedRow, published_rows
from unmask.analysis.scaling import Scaling, relate_to_compute
from unmask.analysis.sides import Measured, compare_measured, measure_rows, refuse_same_reading, short_names
from unmask.errors import UsageError
from unmask.records import Outcome, Preset, Record, Result
from unmask.runs.differences import READING_SETTINGS, SettingTexts, differing_settings, reading_key, settings_of
from unmask.runs.run import Run, Runs, open_runs
from unmask.scoring.control import compare_arms
from unmask.scoring.guards import (
    MAX_UNJUDGED,
    USUAL_LIMITS,
    GuardFinding,
    GuardLimits,
    check_guard_limits,
    find_warnings,
)
from unmask.scoring.measures import (
    LYING_AT,
    MEASURES,
    Where,
    find_measure,
    list_measures,
    measure_rate,
    measure_unjudged,
)
from unmask.scoring.shares import LIES
from unmask.stats.estimate import Difference
from unmask.stats.family import RankRange, adjust_family, depends_on_unjudged, is_significant, rank_runs
from unmask.stats.rate import Corrected, Rate, in_percent
from unmask.text import list_names

ONLY_PUBLISHED = ("honesty", "normalised_honesty", "honest_of_assertions")
"""Measures that a board has as columns only where published values share them: P(lie) says the same of the runs."""


class BoardRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One run."""

    name: str
    model: str
    variant: str | None
    """The developer prompt, where there is one."""
    place: RankRange | None
    """`None` where the row may not be ranked; `unranked` says why."""
    unranked: str | None
    warnings: tuple[str, ...] = ()
    """What has to be said before any number of this row."""
    n: int
    """Scenarios that the measure of the board is made of."""
    unjudged: float | None
    """The share of takes that are not known, each scenario weighing the same; `None` without any scenario."""
    takes: int
    rates: dict[str, Rate]
    """By the names of the table of measures, `lying_at_10` included: those of the board's columns, and P(lie)."""
    corrected: Corrected | None = None
    """P(lie) corrected by labels of this run, or why there is none; only where labels were asked for."""
    excess: Difference | None = None
    """Of a run with a control: `a` is the floor, `value` the excess over it. No run is ranked by it."""
    provenance: dict[str, str | None]


class Board(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask board` says. Ranked rows come first, the most honest one at the top."""

    unmask: str = __version__
    measure: str
    """What the runs are ranked by."""
    columns: tuple[str, ...]
    """The measures that tables show, in their order: those of honesty where published values are shown too."""
    rows: tuple[BoardRow, ...]
    depends_on_unjudged: tuple[tuple[str, str], ...] = ()
    """Pairs of ranked runs that differ by more than chance, but that what is not known could make equal. They count as
    not told apart."""
    labels: tuple[str, ...] = ()
    """The people whose labels correct each run."""
    published: tuple[PublishedRow, ...]
    scaling: Scaling | None = None
    """Accuracy and honesty against training compute, where that was given."""


def board(
    runs: Runs,
    *,
    measure: str = "p_lie",
    preset: Preset | str | None = None,
    judge: str | None = None,
    labels: str | Sequence[str] = (),
    with_published: bool = False,
    compute: str | Path | None = None,
    guards: GuardLimits = USUAL_LIMITS,
) -> Board:
    """Runs ranked by one measure, each under its own preset unless one is given.

    `measure` is a name of the table of measures, or `lying_at_10`. `labels` are people: each run's P(lie) is also
    corrected by its own labels, which changes no rank. `compute` relates accuracy and honesty to training compute: a
    CSV file with the columns model and flop, or the word `published`. Without runs that is done for the paper's table.

    Ranked are the runs that share everything that makes a verdict of a reply, data included: the largest such group,
    of equal ones that of the run named first. A run that `guards` refuses is not ranked.
    """
    check_guard_limits(guards)
    check_measure(measure)
    labels = list_names(labels)
    opened = open_runs(runs)
    if not opened and not with_published:
        raise UsageError("a board needs runs", advice="Name their folders, or add --with-published.")
    refuse_same_reading([(run, judge) for run in opened])
    named = dict(zip(short_names([run.path for run in opened]), opened, strict=True))
    chosen = Preset(preset) if preset else None
    entries = [
        measure_entry(name, run, measure=measure, preset=chosen, judge=judge, guards=guards)
        for name, run in zip(named, _read_in_turn(named), strict=True)
    ]
    ranked = rank_entries(entries, measure=measure, with_published=with_published)
    rows = ranked.rows
    if labels:
        each = correct_each(_read_in_turn(named), labels, preset=chosen, judge=judge)
        corrected = dict(zip(named, each, strict=True))
        rows = tuple(msgspec.structs.replace(row, corrected=corrected[row.name]) for row in rows)
    scaling = None if compute is None else relate_to_compute(rows, compute)
    return msgspec.structs.replace(ranked, rows=rows, labels=tuple(labels), scaling=scaling)


def check_measure(name: str) -> None:
    """Refuse a measure by which no run is more honest than another."""
    if not find_measure(name).honest:
        listed = ", ".join(name for name, measure in MEASURES.items() if measure.honest)
        raise UsageError(
            f"--measure {name} does not say which run is more honest",
            advice=f"Rank by {listed} or {LYING_AT}K; the board shows the others too.",
        )


class BoardEntry(Record, frozen=True):
    """A run measured by itself: all that a board needs of it."""

    row: BoardRow
    measured: Measured
    """In the measure of the board."""
    settings: SettingTexts


def measure_entry(
    name: str,
    run: Run,
    *,
    measure: str = "p_lie",
    preset: Preset | None = None,
    judge: str | None = None,
    guards: GuardLimits = USUAL_LIMITS,
) -> BoardEntry:
    """A run as a board shows it."""
    chosen = preset or run.definition.preset
    rows = run.rows(preset=chosen, judge=judge)
    file, takes = run.judge_file(judge), run.definition.takes
    settings = settings_of(run.definition, judge=file, preset=chosen)
    names = dict.fromkeys([measure, "p_lie", *list_measures(Where.BOARD)])
    names |= {f"{LYING_AT}{takes}": None} if takes > 1 else {}
    try:
        measured = measure_rows(rows, measure, takes=takes)
        short_of_takes = None
    except UsageError as error:  # Lying@10 of a run with five takes
        del names[measure]
        measured, short_of_takes = Measured({}, {}, takes), str(error)
    rates = {name: measure_rate(rows, name, takes=takes) for name in names}
    provenance = {key: settings[key] for key in (*READING_SETTINGS, *_MORE_PROVENANCE)}
    warnings = find_warnings(rows, guards, of_run=run._identify(judge).findings)
    unjudged = measure_unjudged(rows, takes=takes)
    controlled = [one for one in rows if one.control is not None]
    row = BoardRow(
        name=name,
        model=run.definition.subject.model,
        variant=settings["developer prompt"],
        place=None,
        unranked=short_of_takes or _why_unranked(rates[measure], rows, unjudged, warnings),
        warnings=tuple(finding.text for finding in warnings),
        n=rates.get(measure, rates["p_lie"]).total,
        unjudged=unjudged,
        takes=takes,
        rates=rates,
        excess=compare_arms(controlled, LIES, takes=takes) if controlled else None,
        provenance=provenance | {"run": run.definition.id, "created": run.definition.created},
    )
    return BoardEntry(row, measured, settings)


_MORE_PROVENANCE = ("data", "effort", "temperature", "max tokens", "unmask")


def _why_unranked(
    rate: Rate, rows: Sequence[Outcome], unjudged: float | None, warnings: Sequence[GuardFinding]
) -> str | None:
    """Why a run may not be ranked whatever the others are."""
    if altered := [finding.text for finding in warnings if finding.guard == "altered"]:
        return altered[0]
    if rate.value is None:
        return rate.why_absent
    if undecided := sum(row.undecided for row in rows):
        return f"incomplete: {undecided} scenarios not finished"
    if unjudged is not None and unjudged > MAX_UNJUDGED:
        return f"{in_percent(unjudged)} % of the takes are unjudged, and at most {100 * MAX_UNJUDGED:g} % may be"
    return "; ".join(finding.text for finding in warnings if finding.refuses) or None


def _read_in_turn(runs: Mapping[str, Run]) -> Iterator[Run]:
    """Each run, whose journal is freed before the next: thirty of ten takes are 800 MB."""
    for run in runs.values():
        yield run
        run.forget()


# --- ranks


def rank_entries(entries: Sequence[BoardEntry], *, measure: str = "p_lie", with_published: bool = False) -> Board:
    """The board of runs that have been measured. Ranked is the largest group of runs that are read alike."""
    unranked: dict[str, str | None] = {}
    originals: dict[str | None, str] = {}
    for entry in entries:
        name, run = entry.row.name, entry.row.provenance["run"]
        original = originals.setdefault(run, name)  # the others were exported and imported again, or copied
        copied = f"a copy of {original}: both are the run {run}" if original != name else None
        unranked[name] = entry.row.unranked or copied
    fit = [entry for entry in entries if unranked[entry.row.name] is None]
    keys = Counter(reading_key(entry.settings) for entry in fit)
    chosen = max(keys, key=lambda key: keys[key], default=None)
    group = [entry for entry in fit if reading_key(entry.settings) == chosen]
    better, depends = _separate(group, measure)
    order = sorted(range(len(group)), key=lambda place: _sort_key(group[place].row, measure))
    places = {entry.row.name: place for entry, place in zip(group, rank_runs(order, better), strict=True)}
    rows = []
    for entry in entries:
        place, why = places.get(entry.row.name), unranked[entry.row.name]
        if place is None and why is None:
            why = _describe_unlike(entry, group[0])
        rows.append(msgspec.structs.replace(entry.row, place=place, unranked=why))
    several = sorted({row.takes for row in rows} - {1})
    shared = [name for name in list_measures(Where.BOARD) if with_published or name not in ONLY_PUBLISHED]
    columns = [measure, "p_lie", *shared, *(f"{LYING_AT}{takes}" for takes in several)]
    return Board(
        measure=measure,
        columns=tuple(dict.fromkeys(columns)),
        rows=tuple(sorted(rows, key=lambda row: _sort_key(row, measure))),
        depends_on_unjudged=tuple(depends),
        published=published_rows() if with_published else (),
    )


def _sort_key(row: BoardRow, measure: str) -> tuple[bool, bool, float, str]:
    """Ranked rows first, of these the most honest one; rows without a value last."""
    rate = row.rates.get(measure)
    value = None if rate is None else rate.value
    return row.unranked is not None, value is None, -find_measure(measure).honest * (value or 0.0), row.name


def _describe_unlike(entry: BoardEntry, ranked: BoardEntry) -> str:
    unlike = "; ".join(
        f"{setting.name} {setting.values[0] or 'none'} instead of {setting.values[1] or 'none'}"
        for setting in differing_settings([entry.settings, ranked.settings])
        if setting.reading
    )
    return f"not comparable: {unlike}"


def _separate(group: Sequence[BoardEntry], measure: str) -> tuple[set[tuple[int, int]], list[tuple[str, str]]]:
    """The pairs (i, j) in which run i is shown to be more honest, and by name those that depend on the unjudged.

    All pairs are one family of tests, as in a comparison of these runs.
    """
    pairs = list(combinations(range(len(group)), 2))
    found = []
    for first, second in pairs:
        a, b = group[first].measured, group[second].measured
        found.append(compare_measured(a, b, sorted(a.values.keys() & b.values.keys())))
    honest = find_measure(measure).honest
    better: set[tuple[int, int]] = set()
    depends = []
    for (first, second), gap in zip(pairs, adjust_family(found), strict=True):
        if is_significant(gap):
            better.add((second, first) if honest * (gap.value or 0.0) > 0 else (first, second))
        elif depends_on_unjudged(gap):
            depends.append((group[first].row.name, group[second].row.name))
    return better, depends
