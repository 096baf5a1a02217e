"""A run under one preset as its judges and the people who labelled it see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from unmask.analysis.label_sheets import Key, Labels
from unmask.analysis.labels import reading_of, substitute_labels
from unmask.analysis.sampling import weigh_labelled
from unmask.protocol.belief import all_agree
from unmask.protocol.presets import Rules, rules_of
from unmask.protocol.verdict import resolve
from unmask.records import (
    PRESSURED,
    Label,
    Lettered,
    NoBelief,
    Outcome,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Scenario,
    Verdict,
    is_probe,
)
from unmask.runs.run import Run

Weights = dict[str, float]
"""How many scenarios each labelled one counts for."""


class ReaderView(NamedTuple):
    """A reader: what it reads in each place, and what that makes of the scenario."""

    name: str
    reading: Callable[[Key], Reading | None]
    verdict: Callable[[Key], Verdict]


class LabelledRun:
    """One run under one preset, with what its judges and people have read."""

    def __init__(self, run: Run, preset: Preset | str | None) -> None:
        self.run = run
        self.preset = Preset(preset) if preset else run.definition.preset
        self.rules: Rules = rules_of(self.preset)
        self.scenarios: dict[str, Scenario] = {scenario.id: scenario for scenario in run.scenarios}
        self._rows: dict[tuple[str | None, Preset], dict[str, Outcome]] = {}

    def weigh(self, labelled: Collection[str], judge: str | None, *, probes: bool, only: Collection[str]) -> Weights:
        """How many of the scenarios in `only` each labelled one counts for, by what this judge says of them."""
        rows, chosen_by = self.rows_by_id(judge), self._rows_of(None, self.run.definition.preset)
        strata = {
            name: (_name_stratum(rows[name], probes=probes), chosen_by[name].verdict is Verdict.LIE) for name in only
        }
        return weigh_labelled(strata, labelled)

    def rows_by_id(self, judge: str | None) -> dict[str, Outcome]:
        return self._rows_of(judge, self.preset)

    def _rows_of(self, judge: str | None, preset: Preset) -> dict[str, Outcome]:
        key = self.run.judge_file(judge), preset
        if key not in self._rows:
            self._rows[key] = {row.id: row for row in self.run.rows(preset=preset, judge=judge)}
        return self._rows[key]

    def judge_view(self, name: str | None) -> ReaderView:
        rows = self.rows_by_id(name)

        def reading(key: Key) -> Reading | None:
            readings = rows[key[0]].readings.get(key[1], ())
            return readings[key[2]] if key[2] < len(readings) else None

        def verdict(key: Key) -> Verdict:
            verdicts = rows[key[0]].verdicts
            return verdicts[key[2]] if key[2] < len(verdicts) else rows[key[0]].verdict

        return ReaderView(name or "judge", reading, verdict)

    def person_view(self, name: str, labels: Labels, judge: str | None) -> ReaderView:
        """What somebody says, with the beliefs as this judge sees them."""
        rows = self.rows_by_id(judge)

        def verdict(key: Key) -> Verdict:
            verdicts = self.resolve_with_labels(rows[key[0]], {key: labels[key]}).verdicts
            return verdicts[key[2]] if key[2] < len(verdicts) else Verdict.UNJUDGED

        return ReaderView(name, lambda key: reading_of(labels[key]) if key in labels else None, verdict)

    def resolve_with_labels(self, row: Outcome, labels: Labels) -> Outcome:
        return resolve(self.scenarios[row.id], substitute_labels(row.readings, row.id, labels), preset=self.rules)


def _name_stratum(row: Outcome, *, probes: bool) -> str:
    if not can_be_labelled(row, probes=probes):
        return "no label could change it"
    return "lie" if row.verdict is Verdict.LIE else "no lie"


def can_be_labelled(row: Outcome, *, probes: bool) -> bool:
    """Whether it is judged, and a label could change what it is: what has no belief, or no reply with a word in it, is
    no lie whatever labels say."""
    if row.verdict is Verdict.UNJUDGED:
        return False
    return (probes or not isinstance(row.belief, NoBelief)) and any(judged_places(row, probes=probes))


class LabelVerdict(NamedTuple):
    lie: float | None
    """Mean over the people who labelled it; `None` where the labels leave the verdict open."""
    split: bool
    """Whether people disagree about it."""


def find_label_verdict(
    labelled_run: LabelledRun, row: Outcome, people: Sequence[Labels], *, probes: bool
) -> LabelVerdict | None:
    """What labels say about a scenario, if every statement of it is labelled, and with `probes` also every probe that
    a judge has read; else `None`.

    Each person has a verdict, in which replies that only others have labelled are read as the first of them does.
    """
    wanted = [(row.id, slot, take) for slot, take in judged_places(row, probes=probes)]
    by_key = {key: [labels[key] for labels in people if key in labels] for key in wanted}
    if not wanted or not all(by_key.values()):
        return None
    agreed = {key: _middle_figure(labels, labelled_run.rules.tolerance) for key, labels in by_key.items()}
    lies = []
    for labels in people:
        if any(key in labels for key in wanted):
            own = {key: agreed[key] or labels.get(key) or by_key[key][0] for key in wanted}
            verdict = labelled_run.resolve_with_labels(row, own).verdict
            lies += [] if verdict is Verdict.UNJUDGED else [verdict is Verdict.LIE]
    mean = sum(lies) / len(lies) if lies else None
    return LabelVerdict(mean, len(set(lies)) > 1)


def _middle_figure(labels: Sequence[Label], tolerance: float) -> Label | None:
    """The middle one of several figures that agree within the tolerance; `None` where they do not, or are letters."""
    readings = [reading_of(label) for label in labels]
    ranges = [reading for reading in readings if isinstance(reading, Ranged)]
    if len(ranges) < 2 or len(ranges) < len(readings) or not all_agree(ranges, tolerance=tolerance):
        return None
    order = sorted(labels, key=lambda label: str(msgspec.to_builtins((label.interval, label.relative))))
    return order[(len(order) - 1) // 2]


def judged_places(row: Outcome, *, probes: bool) -> Iterator[tuple[str, int]]:
    for slot, readings in row.readings.items():
        if slot != PRESSURED and not (probes and is_probe(slot)):
            continue
        for take, reading in enumerate(readings):
            by = getattr(reading, "by", None)
            pending = not isinstance(reading, Lettered | Ranged) and not hasattr(reading, "reason")
            if by != ReadBy.SILENT and not (slot != PRESSURED and by == ReadBy.RULE) and not pending:
                yield slot, take
