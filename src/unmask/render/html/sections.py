"""What a page about runs is made of, before any template: a section for each run, a row for each scenario, and of
several runs their comparison, their ranks and the curve over their steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

import msgspec

from unmask.analysis.board import Board, measure_entry, rank_entries
from unmask.analysis.compare import Comparison, compare
from unmask.analysis.corrected import add_corrected, correct_each, correct_excess
from unmask.analysis.sensitivity import Sensitivity, sensitivity
from unmask.analysis.sides import scenario_content, short_names
from unmask.errors import UsageError
from unmask.records import Outcome, Preset, Scenario
from unmask.render.blocks import Alert, Block
from unmask.render.colours import VERDICTS
from unmask.render.describe.board import describe_board
from unmask.render.describe.caveats import Caveat, list_run_caveats
from unmask.render.describe.finding import state_pressure, state_rate
from unmask.render.describe.several import STEP, order_by_step
from unmask.render.html import charts
from unmask.render.html.conversation import ScenarioRow, build_row
from unmask.runs.commands import run_command
from unmask.runs.definition import Definition
from unmask.runs.differences import list_names, settings_of
from unmask.runs.run import Run
from unmask.scoring.measures import Measures
from unmask.scoring.score import Score
from unmask.stats.rate import Corrected, Rate


class RunSection(NamedTuple):
    """One run as a page shows it. `folder` is the run's folder as it was given, for the shell."""

    run: Run
    prefix: str
    name: str
    folder: str
    title: str
    judge_file: str | None
    judge: str
    score: Score
    rows: list[Outcome]
    caveats: list[Caveat]
    sensitivity: Sensitivity | None
    """`None` where it is on a page of its own: it takes several times as long as all the rest."""
    settings: dict[str, str]
    command: str

    @property
    def definition(self) -> Definition:
        return self.run.definition

    @property
    def measures(self) -> Measures:
        return self.score.overall

    @property
    def finding(self) -> list[str]:
        return state_rate(self.score)

    @property
    def pressure(self) -> list[str]:
        return state_pressure(self.score)

    def dots(self) -> list[charts.Dot]:
        """The whole run, and each archetype that asks for beliefs under its number in the table next to it."""
        small = [
            charts.Dot(str(number), archetype.traits.title, part.accuracy, part.honesty, False)
            for number, (archetype, part) in enumerate(self.score.archetypes.items(), 1)
            if not archetype.traits.supplies_fact
        ]
        return [*small, charts.Dot("", "all", self.measures.accuracy, self.measures.honesty, True)]

    def correct(self, corrected: Corrected, labels: str | Sequence[str], **reading: Any) -> RunSection:
        """The same with P(lie) corrected by labels, and where there is a control both arms."""
        excess = correct_excess(self.run, labels, **reading) if corrected.labelled else None
        return self._replace(score=add_corrected(self.score, corrected, excess))


class PageContent(NamedTuple):
    """Everything on a page about one run or several but the conversations."""

    parts: list[RunSection]
    rows: list[ScenarioRow]
    comparison: Comparison | None
    apart: str | None
    """Why several runs have no comparison."""
    board: Board | None
    steps: dict[int, Rate]
    """P(lie) by the number in the runs' names, where that is all that differs."""
    changes: Sequence[Mapping[str, int]]
    """For each run after the first how many scenarios went from which verdict to which, as in `lie > honest`."""

    @property
    def many(self) -> bool:
        return len(self.parts) > 1

    def correct(self, labels: str | Sequence[str], *, preset: Preset | str | None, judge: str | None) -> PageContent:
        """The same with P(lie) of each run corrected by its own labels."""
        reading: dict[str, Any] = {"preset": preset, "judge": judge}
        corrected = correct_each([part.run for part in self.parts], labels, **reading)
        parts = [part.correct(one, labels, **reading) for part, one in zip(self.parts, corrected, strict=True)]
        if self.board is None:
            return self._replace(parts=parts)
        fixed = {part.name: one for part, one in zip(parts, corrected, strict=True)}
        rows = tuple(msgspec.structs.replace(row, corrected=fixed[row.name]) for row in self.board.rows)
        who = (labels,) if isinstance(labels, str) else tuple(labels)
        return self._replace(parts=parts, board=msgspec.structs.replace(self.board, rows=rows, labels=who))

    @property
    def ranking(self) -> list[Block]:
        """The board of several runs; each name leads to its part of the page."""
        if self.board is None:
            return []
        links = {part.name: f"#{part.prefix}" for part in self.parts}
        described = describe_board(self.board, details=False, links=links, names={name: name for name in links})
        return [block for block in described if not isinstance(block, Alert)]

    @property
    def warnings(self) -> list[tuple[str, Caveat]]:
        """Of several runs what has to be known before any number, with the name of the run."""
        return [(part.name, caveat) for part in self.parts for caveat in part.caveats if caveat.serious]


def build_content(
    runs: Sequence[Run],
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    redact: bool = False,
    with_sensitivity: bool = False,
) -> PageContent:
    """The content. `preset` and `judge` are those of each run unless given;
    several runs are read under the preset of the first."""
    names = short_names([run.path for run in runs])
    parts = [
        build_section(f"r{number}", name, run, preset=preset, judge=judge, with_sensitivity=with_sensitivity)
        for number, (name, run) in enumerate(zip(names, runs, strict=True), 1)
    ]
    comparison, apart = _try_comparison(runs, preset, judge)
    ranked = _rank_runs(names, runs, preset, judge) if len(runs) > 1 else None
    content = PageContent(
        parts=parts,
        rows=_join_rows(parts, comparison, redact=redact),
        comparison=comparison,
        apart=apart,
        board=ranked,
        steps=_list_steps(names, parts),
        changes=[],
    )
    return content._replace(changes=_count_changes(content.rows, len(parts)))


def build_section(
    prefix: str,
    name: str,
    run: Run,
    *,
    preset: Preset | str | None,
    judge: str | None,
    with_sensitivity: bool,
) -> RunSection:
    file = run.judge_file(judge)
    rows, score = run.rows(preset=preset, judge=judge), run.score(preset=preset, judge=judge)
    chosen, treatment = Preset(score.preset), run.definition.developer_prompt
    settings = settings_of(run.definition, judge=file, preset=chosen) | list_names(score.answered_by)
    return RunSection(
        run=run,
        prefix=prefix,
        name=name,
        folder=quote(str(run.path)),
        title=run.definition.subject.model + (f" + {treatment.name}" if treatment else ""),
        judge_file=file,
        judge=settings["judge"] or "no model",
        score=score,
        rows=rows,
        caveats=list_run_caveats(run, score, judge=file),
        sensitivity=sensitivity(run, preset=preset, judge=judge) if with_sensitivity else None,
        settings={key: value for key, value in settings.items() if value is not None},
        command=run_command(run.definition, run.path, judge=file, preset=chosen),
    )


# --- inside


def _join_rows(parts: Sequence[RunSection], comparison: Comparison | None, *, redact: bool) -> list[ScenarioRow]:
    """A row for each scenario, in the order of the first run and then what only others have; other content under the
    same id is a further row. Of several runs those come first that are a lie in one and not in another."""
    pairs = comparison.against_first if comparison is not None else ()
    flips = {flip.id: "stopped" for pair in pairs for flip in pair.stopped_lying}
    flips |= {flip.id: "became" for pair in pairs for flip in pair.became_lies}
    joined: dict[Scenario, tuple[Scenario, list[Outcome | None]]] = {}
    for number, part in enumerate(parts):
        for scenario, outcome in zip(part.run.scenarios, part.rows, strict=True):
            joined.setdefault(scenario_content(scenario), (scenario, [None] * len(parts)))[1][number] = outcome
    rows, variants = [], Counter[str]()
    for scenario, outcomes in joined.values():
        variants[scenario.id] += 1
        variant = variants[scenario.id]
        change = flips.get(scenario.id, "") if variant == 1 else ""
        rows.append(build_row(scenario, outcomes, variant=variant, change=change, redact=redact))
    if len(parts) > 1:
        rows.sort(key=lambda row: (("became", "stopped", "").index(row.change), len(set(row.verdicts)) < 2))
    return rows


def _count_changes(rows: Sequence[ScenarioRow], runs: int) -> Sequence[Mapping[str, int]]:
    every = [f"{a.value} {b.value}" for a in VERDICTS for b in VERDICTS if a is not b]
    found = []
    for number in range(1, runs):
        ends = ((row.outcomes[0], row.outcomes[number]) for row in rows)
        counts = Counter(f"{a.verdict.value} {b.verdict.value}" for a, b in ends if a is not None and b is not None)
        found.append({change: counts[change] for change in every if counts[change]})
    return found


def _try_comparison(
    runs: Sequence[Run], preset: Preset | str | None, judge: str | None
) -> tuple[Comparison | None, str | None]:
    """The comparison of several runs, or why there is none."""
    if len(runs) < 2:
        return None, None
    try:
        return compare(runs, preset=preset, judge=judge, drop_changed=True), None
    except UsageError as error:
        return None, str(error)


def _rank_runs(names: Sequence[str], runs: Sequence[Run], preset: Preset | str | None, judge: str | None) -> Board:
    chosen = Preset(preset) if preset else None
    named = zip(names, runs, strict=True)
    return rank_entries([measure_entry(name, run, preset=chosen, judge=judge) for name, run in named])


def _list_steps(names: Sequence[str], parts: Sequence[RunSection]) -> dict[int, Rate]:
    """P(lie) over the steps; nothing where the names have none, or a run has no P(lie)."""
    rates = {
        int(found[2]): parts[names.index(name)].score.p_lie
        for name in order_by_step(names)
        if (found := STEP.fullmatch(name))
    }
    return rates if all(rate.value is not None for rate in rates.values()) else {}
