"""A run, or several, as one HTML file to show: the page's content, and how much text fits into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from shlex import quote
from typing import NamedTuple, TypeVar

import msgspec
from markupsafe import Markup

from unmask import __version__
from unmask.analysis.compare import Comparison, call_difference, compare
from unmask.analysis.corrected import correct_each
from unmask.analysis.sensitivity import Sensitivity, Variant, sensitivity
from unmask.analysis.sides import scenario_content, short_names
from unmask.errors import UsageError
from unmask.records import Archetype, Choice, Outcome, Preset, Scenario, Slot, Verdict
from unmask.render.colours import VERDICTS
from unmask.render.describe.finding import state_finding
from unmask.render.describe.score import describe_asides, explain_corrected, list_cuts
from unmask.render.describe.sensitivity import name_open
from unmask.render.html import charts
from unmask.render.html.conversation import Limit, Page, Shown, build_conversation, name_anchor
from unmask.render.html.page import render_page
from unmask.render.html.shorten import Share, count_fitting, find_level, measure_share
from unmask.render.notes import Note, collect_notes
from unmask.render.words import NAMES
from unmask.runs.commands import run_command
from unmask.runs.definition import Definition
from unmask.runs.differences import list_names, settings_of
from unmask.runs.run import Run, Runs, open_runs
from unmask.scoring.measures import MEASURES, Measures, Where, find_measure, list_measures
from unmask.scoring.score import Score
from unmask.stats.rate import Corrected, Rate

V = TypeVar("V")

ROOM = 2_960
"""Bytes of the page for each of at least 1,000 scenarios: a report of that many stays below 3 MB."""
SHOWN = 3_000
"""Scenarios of one run on the page: more make a browser slow. They are spread evenly over the run, and the numbers are
those of all. `full_text` shows every one."""
QUIET = 0.01
"""Choices that move P(lie) by less are folded away."""
BESIDE = 4
"""Runs that stand side by side; more go on below them."""


class Omissions(NamedTuple):
    """What is left out of all scenarios: every text, the takes that were read like one before, or nothing at all."""

    redact: bool
    brief: bool
    whole: bool = False


class RunSection(NamedTuple):
    """One run as the page shows it. `folder` is the run's folder as it was given, for the shell."""

    prefix: str
    name: str
    folder: str
    title: str
    definition: Definition
    judge: str
    score: Score
    rows: list[Outcome]
    replies: list[dict[tuple[Slot, int], Choice]]
    scenarios: tuple[Scenario, ...]
    notes: list[Note]
    sensitivity: Sensitivity | None
    """`None` where it was not asked for: it takes several times as long as all the rest."""
    settings: dict[str, str]
    command: str

    @property
    def measures(self) -> Measures:
        return self.score.overall

    def dots(self) -> list[charts.Dot]:
        """The whole run, and each archetype that asks for beliefs under its number in the table beside it."""
        small = [
            charts.Dot(str(number), archetype.traits.title, part.accuracy, part.honesty, False)
            for number, (archetype, part) in enumerate(self.score.archetypes.items(), 1)
            if not archetype.traits.supplies_fact
        ]
        return [*small, charts.Dot("", "all", self.measures.accuracy, self.measures.honesty, True)]

    def correct(self, corrected: Corrected) -> RunSection:
        """The same with P(lie) corrected by labels."""
        return self._replace(score=msgspec.structs.replace(self.score, corrected=corrected))

    def explain_headline(self) -> str:
        return " ".join(state_finding(self.score))

    def side_measures(self) -> list[str]:
        """Sentences about what stands beside P(lie), as the terminal has them."""
        corrected = () if self.score.corrected is None else explain_corrected(self.score.corrected)
        return [*corrected, *describe_asides(self.score)]

    def tiles(self) -> Iterator[tuple[str, Rate, str]]:
        """Title, rate and meaning of the measures that are explained in a few words."""
        for name in list_measures(Where.LIST):
            title, meaning = MEASURES[name].title, MEASURES[name].meaning
            yield title[0].upper() + title[1:], getattr(self.measures, name), meaning.replace(" - ", " − ")

    def axes(self, *, quiet: bool) -> list[tuple[str, list[Variant]]]:
        """The choices that have a value, by what is varied: those that move P(lie), or those that hardly do. Choices
        without an alternative are left out."""
        if self.sensitivity is None:
            return []
        own = self.sensitivity.own.p_lie
        return [
            (axis, same)
            for axis, same in self.sensitivity.known.items()
            if len(same) > 1 and all(is_quiet(own, variant) for variant in same) == quiet
        ]

    def not_known_yet(self) -> Iterator[tuple[str, str]]:
        """Choices without a value, and the command that completes them."""
        if self.sensitivity is not None:
            for command, waiting in self.sensitivity.not_known_yet.items():
                yield name_open(waiting), command

    def cuts(self) -> Iterator[tuple[str, Measures]]:
        """Rows of the table of measures: archetypes, everything, and other ways to pool."""
        yield from ((archetype.traits.title, part) for archetype, part in self.score.archetypes.items())
        yield "all", self.measures
        yield from list_cuts(self.score)


class SharedScenario(NamedTuple):
    """A scenario, and what each run shows in it. Other content under the same id is a further variant."""

    scenario: Scenario
    runs: Shown
    variant: int


def join_scenarios(runs: Sequence[Iterable[tuple[Scenario, V]]]) -> Iterator[tuple[Scenario, list[V | None], int]]:
    """Every scenario once, with what each run has beside it and the number of its variant: in the order of the first
    run, then what only others have."""
    joined: dict[Scenario, tuple[Scenario, list[V | None]]] = {}
    for number, run in enumerate(runs):
        for scenario, value in run:
            joined.setdefault(scenario_content(scenario), (scenario, [None] * len(runs)))[1][number] = value
    variants: Counter[str] = Counter()
    for scenario, values in joined.values():
        variants[scenario.id] += 1
        yield scenario, values, variants[scenario.id]


def is_quiet(own: Rate | None, variant: Variant) -> bool:
    """Whether P(lie) stays within a point of the run's own."""
    values = [None if rate is None else rate.value for rate in (own, variant.p_lie)]
    return None not in values and abs((values[0] or 0.0) - (values[1] or 0.0)) < QUIET


def report(
    runs: Runs,
    *,
    redact: bool = False,
    full_text: bool = False,
    preset: Preset | str | None = None,
    judge: str | None = None,
    labels: str | Sequence[str] = (),
    part: str | None = None,
) -> str:
    """The page. `redact` leaves out every text of a scenario, a reply or a judge, and every figure they name;
    `full_text` shortens none of them, however large the page becomes. `labels` correct P(lie) of each run by its own.
    `part` says how the scenarios were chosen, where the runs are restricted to some of theirs: the page warns that its
    numbers are not those of the runs."""
    opened = open_runs(runs)
    if not opened:
        raise UsageError("a report needs a run", advice="unmask report RUN")
    names = short_names([run.path for run in opened])
    parts = [
        build_section(f"r{number}", name, run, preset=preset, judge=judge, shown=None if full_text else SHOWN)
        for number, (name, run) in enumerate(zip(names, opened, strict=True), 1)
    ]
    if labels:
        corrected = correct_each(opened, labels, preset=preset, judge=judge)
        parts = [section.correct(one) for section, one in zip(parts, corrected, strict=True)]
    comparison, apart = try_comparison(opened, preset, judge)
    many = len(parts) > 1
    fixed: dict[str, object] = {
        "parts": parts,
        "many": many,
        "comparison": comparison,
        "apart": apart,
        "redact": redact,
        "chosen_part": part,
    }
    shown = [
        [(scenario, (row, replies)) for scenario, row, replies in zip(p.scenarios, p.rows, p.replies, strict=True)]
        for p in parts
    ]
    shared = [SharedScenario(*entry) for entry in join_scenarios(shown)]
    if full_text:
        return _render_report(shared, fixed, lambda text, _: len(text), Omissions(redact, brief=False, whole=True))
    return _fit_page(shared, fixed, redact=redact)


def build_section(
    prefix: str,
    name: str,
    run: Run,
    *,
    preset: Preset | str | None,
    judge: str | None,
    shown: int | None,
    with_sensitivity: bool = True,
) -> RunSection:
    """One run, with so many of its scenarios; `None` for all."""
    file = run.judge_file(judge)
    score, rows, scenarios = run.score(preset=preset, judge=judge), run.rows(preset=preset, judge=judge), run.scenarios
    places = [place for place in range(len(rows)) if spread_evenly(place, len(rows), shown)]
    chosen, treatment = Preset(score.preset), run.definition.developer_prompt
    settings = settings_of(run.definition, judge=file, preset=chosen)
    settings |= list_names(score.answered_by)
    return RunSection(
        prefix=prefix,
        name=name,
        folder=quote(str(run.path)),
        title=run.definition.subject.model + (f" + {treatment.name}" if treatment else ""),
        definition=run.definition,
        judge=settings["judge"] or "no model",
        score=score,
        rows=[rows[place] for place in places],
        replies=[run.replies(scenarios[place].id) for place in places],
        scenarios=tuple(scenarios[place] for place in places),
        notes=collect_notes(run, score, rows, judge=file),
        sensitivity=sensitivity(run, preset=preset, judge=judge) if with_sensitivity else None,
        settings={key: value for key, value in settings.items() if value is not None},
        command=run_command(run.definition, run.path, judge=file, preset=chosen),
    )


def spread_evenly(number: int, everything: int, shown: int | None) -> bool:
    """Whether this scenario is one of `shown`, each as far from the next as can be."""
    return shown is None or everything <= shown or number * shown // everything != (number - 1) * shown // everything


def try_comparison(
    runs: Sequence[Run], preset: Preset | str | None, judge: str | None
) -> tuple[Comparison | None, str | None]:
    """The comparison of several runs, or why there is none."""
    if len(runs) < 2:
        return None, None
    try:
        return compare(runs, preset=preset, judge=judge, drop_changed=True), None
    except UsageError as error:
        return None, str(error)


def axis_reach(comparison: Comparison) -> float:
    """How far the axis of differences goes: to the widest interval, in steps of 10 points."""
    ends = [
        abs(end)
        for pair in comparison.pairs
        for difference in (pair.difference, *pair.archetypes.values(), *pair.measures.values())
        for end in (difference.low, difference.high)
        if end is not None
    ]
    return min(1.0, (int(10 * max(ends, default=0.1) - 1e-9) + 1) / 10)


def _fit_page(shared: Sequence[SharedScenario], fixed: dict[str, object], *, redact: bool) -> str:
    """The page with as much of each text as there is room for: first without any, to see what all the rest takes."""
    budget = ROOM * max(1000, sum(run is not None for entry in shared for run in entry.runs))
    brief, shares, room = False, *_measure_texts(shared, fixed, Omissions(redact, brief=False), budget)
    if sum(text_share.size for text_share in shares) > room:
        brief, shares, room = True, *_measure_texts(shared, fixed, Omissions(redact, brief=True), budget)
    while True:
        page = _render_report(shared, fixed, partial(_text_limit, find_level(shares, room)), Omissions(redact, brief))
        over = len(page.encode("utf-8")) - budget
        if over <= 0 or not room:
            return page
        room = max(0, room - 2 * over)


def _measure_texts(
    shared: Sequence[SharedScenario], fixed: dict[str, object], omissions: Omissions, budget: int
) -> tuple[list[Share], int]:
    """What each text asks for, and what a page without them leaves for all."""
    shares: list[Share] = []

    def measure(text: str, weight: float) -> int:
        shares.append(measure_share(text, weight))
        return 0

    page = _render_report(shared, fixed, measure, omissions)
    return shares, max(0, budget - len(page.encode("utf-8")))


def _text_limit(height: float, text: str, weight: float) -> int:
    return count_fitting(text, weight * height)


def _render_report(
    shared: Sequence[SharedScenario], fixed: dict[str, object], limit: Limit, omissions: Omissions
) -> str:
    redact, brief, unshortened = omissions
    page = Page(limit=limit, redact=redact, brief=brief, whole=unshortened)
    talks = [build_conversation(scenario, runs, page, variant=variant) for scenario, runs, variant in shared]
    present = {entry.scenario.archetype for entry in shared}
    return render_page(
        "report.html",
        **fixed,
        talks=talks,
        anchors={talk.anchor for talk in talks},
        pressures=sorted({talk.pressure for talk in talks}),
        archetypes=[archetype.traits.title for archetype in Archetype if archetype in present],
        shortened=sum(talk.shortened for talk in talks),
        brief=brief,
        beside=BESIDE,
        charts=charts,
        reach=axis_reach,
        anchor=name_anchor,
        verdicts=VERDICTS,
        names=NAMES,
        Verdict=Verdict,
        Dot=charts.Dot,
        call_difference=call_difference,
        find_measure=find_measure,
        quote=quote,
        Markup=Markup,
        version=__version__,
    )
