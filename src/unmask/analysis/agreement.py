"""How wrong is the judge? Judges against people, people against people, judges against each other.

Agreement is told twice: on the letters that readers gave, and on the verdicts that follow from them, which is what a
score is made of and what numeric scenarios have as well. What the errors do to P(lie) stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from unmask.analysis.labels import Key, Labels, find_consensus, read_labels, reading_of, substitute_labels
from unmask.errors import UsageError
from unmask.protocol.intervals import all_agree
from unmask.protocol.presets import Rules, rules_of
from unmask.protocol.verdict import resolve
from unmask.records import (
    PRESSURED,
    Archetype,
    Letter,
    Lettered,
    NoBelief,
    Outcome,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Record,
    Result,
    Scenario,
    Verdict,
    is_probe,
)
from unmask.runs.run import Run
from unmask.stats.agree import Agreement, Coefficient, Pair, Unit, krippendorff_alpha, measure_agreement
from unmask.stats.corrected import Corrected, Labelled, correct_rate, shift_interval
from unmask.stats.rate import Rate, rate

LETTERS = tuple(letter.value for letter in Letter)
VERDICTS = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.UNJUDGED)


class JudgeErrors(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the judge's errors do to P(lie), over the scenarios whose statements are all labelled."""

    scenarios: int
    false_lies: int
    """The judge says lie, the labels do not."""
    missed_lies: int
    precision: Rate
    """Of the judge's lies, those that are lies by the labels."""
    recall: Rate
    """Of the labels' lies, those that are lies by the judge."""
    judge_p_lie: float | None
    labels_p_lie: float | None
    """Both over the labelled scenarios, weighted where the labels are; `None` for fewer than two of them."""
    shift: Coefficient
    """Judge less labels: by how much the judge's errors raise P(lie)."""


class ReaderAgreement(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Two readers."""

    a: str
    b: str
    letters: Agreement
    """Binary replies, by letter."""
    verdicts: Agreement
    """Pressured replies, by the verdict each reading leads to."""
    figures: Rate
    """Numeric replies on which the figures meet, or both find none."""
    archetypes: dict[Archetype, Agreement]
    """Of the verdicts."""
    effect: JudgeErrors | None = None
    """Only where a judge is held against labels."""
    effects: dict[Archetype, JudgeErrors] = msgspec.field(default_factory=dict)


class Agreed(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask agree` says."""

    run: str
    preset: str
    labels: dict[str, int]
    """Labels by who gave them."""
    judges: tuple[str, ...]
    judge_against_labels: tuple[ReaderAgreement, ...]
    labels_against_labels: tuple[ReaderAgreement, ...]
    among_labels: Coefficient | None
    """Krippendorff's alpha over all who labelled, on letters; `None` for fewer than two."""
    among_judges: tuple[ReaderAgreement, ...]


class _ReaderView(NamedTuple):
    """A reader: what it reads in each place, and what that makes of the scenario."""

    name: str
    reading: Callable[[Key], Reading | None]
    verdict: Callable[[Key], Verdict]


class _LabelledRun:
    """One run under one preset, with what its judges and people have read."""

    def __init__(self, run: Run, preset: Preset | str | None) -> None:
        self.run = run
        self.preset = Preset(preset) if preset else run.definition.preset
        self.rules: Rules = rules_of(self.preset)
        self.scenarios: dict[str, Scenario] = {scenario.id: scenario for scenario in run.scenarios}
        self._rows: dict[str | None, dict[str, Outcome]] = {}

    def rows_by_id(self, judge: str | None) -> dict[str, Outcome]:
        if judge not in self._rows:
            self._rows[judge] = {row.id: row for row in self.run.rows(preset=self.preset, judge=judge)}
        return self._rows[judge]

    def judge_view(self, name: str | None) -> _ReaderView:
        rows = self.rows_by_id(name)

        def reading(key: Key) -> Reading | None:
            readings = rows[key[0]].readings.get(key[1], ())
            return readings[key[2]] if key[2] < len(readings) else None

        def verdict(key: Key) -> Verdict:
            verdicts = rows[key[0]].verdicts
            return verdicts[key[2]] if key[2] < len(verdicts) else rows[key[0]].verdict

        return _ReaderView(name or "judge", reading, verdict)

    def person_view(self, name: str, labels: Labels, judge: str | None) -> _ReaderView:
        """What somebody says, with the beliefs as this judge sees them."""
        rows = self.rows_by_id(judge)

        def verdict(key: Key) -> Verdict:
            verdicts = self.resolve_with_labels(rows[key[0]], {key: labels[key]}).verdicts
            return verdicts[key[2]] if key[2] < len(verdicts) else Verdict.UNJUDGED

        return _ReaderView(name, lambda key: reading_of(labels[key]) if key in labels else None, verdict)

    def resolve_with_labels(self, row: Outcome, labels: Labels) -> Outcome:
        return resolve(self.scenarios[row.id], substitute_labels(row.readings, row.id, labels), preset=self.rules)


def agree(
    run: Run | str | Path,
    *,
    labels: Sequence[str] = (),
    judges: Sequence[str] = (),
    preset: Preset | str | None = None,
) -> Agreed:
    """Hold judges and labels against each other. `labels` are files or people, `judges` those of the run unless given.

    Raises a `UsageError` where there is only one reader, and a `DataError` for labels of other replies.
    """
    labelled_run = _LabelledRun(run if isinstance(run, Run) else Run(run), preset)
    labels_by_person = read_labels(labelled_run.run, labels)
    names = judges or sorted(labelled_run.run.definition.judges)
    named = list(dict.fromkeys(file for name in names if (file := labelled_run.run.judge_file(name)) is not None))
    if len(named) + len(labels_by_person) < 2:
        raise UsageError(
            f"{labelled_run.run.path} has one reader only, so there is nothing to compare",
            advice=(
                f"Label some replies: unmask label {labelled_run.run.path} --who NAME; or read it with a second judge."
            ),
        )
    own = named[0] if named else None
    return Agreed(
        run=str(labelled_run.run.path),
        preset=labelled_run.preset.value,
        labels={who: len(person_labels) for who, person_labels in labels_by_person.items()},
        judges=tuple(named),
        judge_against_labels=tuple(
            _compare_with_labels(labelled_run, judge, who, own_labels)
            for judge in named
            for who, own_labels in labels_by_person.items()
        ),
        labels_against_labels=tuple(
            _compare_people(labelled_run, a, b, labels_by_person, own) for a, b in combinations(labels_by_person, 2)
        ),
        among_labels=_alpha_among_people(labels_by_person) if len(labels_by_person) > 1 else None,
        among_judges=tuple(_compare_judges(labelled_run, a, b) for a, b in combinations(named, 2)),
    )


def corrected_p_lie(
    run: Run, labels: Sequence[str], *, preset: Preset | str | None = None, judge: str | None = None
) -> Corrected:
    """P(lie) by this judge, corrected with the labels; where several people labelled a reply, by what most say."""
    labelled_run = _LabelledRun(run, preset)
    agreed_labels = find_consensus(read_labels(run, labels).values())
    probes = any(slot != PRESSURED for _, slot, _ in agreed_labels)
    rows = [row for row in labelled_run.rows_by_id(judge).values() if row.verdict is not Verdict.UNJUDGED]
    # What has no belief, or no reply with a word in it, is no lie whatever labels say: they do not stand for it.
    frame = [row for row in rows if _can_be_labelled(row, probes=probes)]
    labelled, left_out = [], 0
    for row in labelled_run.rows_by_id(judge).values():
        label_verdict = _label_verdict(labelled_run, row, agreed_labels, probes=probes)
        if label_verdict is None:
            continue
        if row.verdict is Verdict.UNJUDGED or label_verdict.lie is None:
            left_out += 1
        elif _can_be_labelled(row, probes=probes):
            labelled.append(Labelled(label_verdict.lie, row.verdict is Verdict.LIE, label_verdict.weight))
    return correct_rate(
        [row.verdict is Verdict.LIE for row in frame],
        labelled,
        certain=len(rows) - len(frame),
        left_out=left_out,
    )


def _can_be_labelled(row: Outcome, *, probes: bool) -> bool:
    return (probes or not isinstance(row.belief, NoBelief)) and any(_judged_places(row, probes=probes))


class _LabelVerdict(NamedTuple):
    lie: bool | None
    """`None` where the labels leave the verdict open."""
    weight: float | None


def _label_verdict(
    labelled_run: _LabelledRun, row: Outcome, labels: Mapping[Key, Any], *, probes: bool
) -> _LabelVerdict | None:
    """What labels say about a scenario, if every statement of it is labelled, and with `probes` also every probe that
    a judge has read; else `None`."""
    wanted = [(row.id, slot, take) for slot, take in _judged_places(row, probes=probes)]
    if not wanted or any(key not in labels for key in wanted):
        return None
    verdict = labelled_run.resolve_with_labels(row, {key: labels[key] for key in wanted}).verdict
    return _LabelVerdict(None if verdict is Verdict.UNJUDGED else verdict is Verdict.LIE, labels[wanted[0]].weight)


def _judged_places(row: Outcome, *, probes: bool) -> Iterator[tuple[str, int]]:
    for slot, readings in row.readings.items():
        if slot != PRESSURED and not (probes and is_probe(slot)):
            continue
        for take, reading in enumerate(readings):
            by = getattr(reading, "by", None)
            pending = not isinstance(reading, Lettered | Ranged) and not hasattr(reading, "reason")
            if by != ReadBy.SILENT and not (slot != PRESSURED and by == ReadBy.RULE) and not pending:
                yield slot, take


# --- pairs of readers -------------------------------------------------------------------------------------


def _compare_with_labels(labelled_run: _LabelledRun, judge: str, who: str, labels: Labels) -> ReaderAgreement:
    views = labelled_run.judge_view(judge), labelled_run.person_view(who, labels, judge)
    side = _compare_readers(labelled_run, views, list(labels), _label_weights(labels))
    pairs = [
        (row, label_verdict)
        for row in labelled_run.rows_by_id(judge).values()
        if (label_verdict := _label_verdict(labelled_run, row, labels, probes=False)) is not None
    ]
    effects = {
        archetype: _measure_effect([pair for pair in pairs if pair[0].archetype is archetype])
        for archetype in Archetype
        if any(row.archetype is archetype for row, _ in pairs)
    }
    return msgspec.structs.replace(side, effect=_measure_effect(pairs), effects=effects)


def _compare_people(
    labelled_run: _LabelledRun, a: str, b: str, labels_by_person: Mapping[str, Labels], judge: str | None
) -> ReaderAgreement:
    labels_a, labels_b = labels_by_person[a], labels_by_person[b]
    shared = {key: label for key, label in labels_a.items() if key in labels_b}
    views = labelled_run.person_view(a, labels_a, judge), labelled_run.person_view(b, labels_b, judge)
    return _compare_readers(labelled_run, views, list(shared), _label_weights(shared))


def _compare_judges(labelled_run: _LabelledRun, a: str, b: str) -> ReaderAgreement:
    """Verdicts are those of whole scenarios, beliefs included: that is what the two would publish."""
    takes = labelled_run.run.definition.takes
    keys = [(name, PRESSURED, take) for name in labelled_run.scenarios for take in range(takes)]
    side = _compare_readers(labelled_run, (labelled_run.judge_view(a), labelled_run.judge_view(b)), keys, {})
    pairs: dict[Archetype, list[Pair]] = {}
    for name, row in labelled_run.rows_by_id(a).items():
        verdicts = row.verdict, labelled_run.rows_by_id(b)[name].verdict
        if Verdict.UNJUDGED not in verdicts:
            pairs.setdefault(row.archetype, []).append(Pair(verdicts[0].value, verdicts[1].value, name))
    return _with_verdicts(side, pairs)


def _label_weights(labels: Labels) -> dict[Key, float]:
    """By reply. Labels of which some have no weight are not one sample, and count alike."""
    weights = {key: label.weight for key, label in labels.items() if label.weight is not None}
    return weights if len(weights) == len(labels) else {}


def _compare_readers(
    labelled_run: _LabelledRun,
    views: tuple[_ReaderView, _ReaderView],
    keys: Sequence[Key],
    weights: Mapping[Key, float],
) -> ReaderAgreement:
    a, b = views
    letters: list[Pair] = []
    verdicts: dict[Archetype, list[Pair]] = {}
    meet: list[bool] = []
    for key in keys:
        left, right = a.reading(key), b.reading(key)
        weight = weights.get(key, 1.0)
        if isinstance(left, Lettered) and isinstance(right, Lettered):
            letters.append(Pair(left.letter.value, right.letter.value, key[0], weight))
        elif isinstance(left, Ranged) and isinstance(right, Ranged):
            if left.empty or right.empty:
                meet.append(left.empty and right.empty)
            else:
                meet.append(all_agree([left, right], tolerance=labelled_run.rules.tolerance))
        else:
            continue
        both = (a.verdict(key), b.verdict(key)) if key[1] == PRESSURED else (Verdict.UNJUDGED,)
        # Without a belief there is nothing a statement could be held against, whoever reads it.
        if not {Verdict.UNJUDGED, Verdict.NO_BELIEF} & set(both):
            pairs = verdicts.setdefault(labelled_run.scenarios[key[0]].archetype, [])
            pairs.append(Pair(both[0].value, both[-1].value, key[0], weight))
    side = ReaderAgreement(
        a=a.name,
        b=b.name,
        letters=measure_agreement(letters, classes=LETTERS),
        verdicts=measure_agreement([], classes=VERDICTS),
        figures=rate(sum(meet), len(meet)),
        archetypes={},
    )
    return _with_verdicts(side, verdicts)


def _with_verdicts(side: ReaderAgreement, pairs: Mapping[Archetype, Sequence[Pair]]) -> ReaderAgreement:
    return msgspec.structs.replace(
        side,
        verdicts=measure_agreement(
            [pair for archetype_pairs in pairs.values() for pair in archetype_pairs], classes=VERDICTS
        ),
        archetypes={name: measure_agreement(pairs[name], classes=VERDICTS) for name in Archetype if name in pairs},
    )


def _alpha_among_people(labels_by_person: Mapping[str, Labels]) -> Coefficient:
    """Alpha over all people, on letters; numeric replies have no classes and play no part."""
    letters: dict[Key, list[str]] = {}
    for labels in labels_by_person.values():
        for key, label in labels.items():
            reply_letters = letters.setdefault(key, [])
            if label.letter is not None:
                reply_letters.append(label.letter.value)
    units = [Unit(tuple(values), key[0]) for key, values in letters.items()]
    return krippendorff_alpha(units, classes=LETTERS, why="no reply was labelled by two people")


def _measure_effect(cases: Sequence[tuple[Outcome, _LabelVerdict]]) -> JudgeErrors:
    judged_and_labelled = [
        (row.verdict is Verdict.LIE, label_verdict.lie, label_verdict.weight)
        for row, label_verdict in cases
        if label_verdict.lie is not None and row.verdict is not Verdict.UNJUDGED
    ]
    false = sum(judge and not label for judge, label, _ in judged_and_labelled)
    missed = sum(label and not judge for judge, label, _ in judged_and_labelled)
    both = sum(judge and label for judge, label, _ in judged_and_labelled)
    even = any(weight is None for *_, weight in judged_and_labelled)
    weights = [1.0 if even or weight is None else weight for *_, weight in judged_and_labelled]
    total = sum(weights) if len(judged_and_labelled) > 1 else 0.0
    judged = sum(w for w, (judge, _, _) in zip(weights, judged_and_labelled, strict=True) if judge)
    labelled = sum(w for w, (_, label, _) in zip(weights, judged_and_labelled, strict=True) if label)
    gaps = [int(judge) - int(bool(label)) for judge, label, _ in judged_and_labelled]
    if len(gaps) < 2:
        shift = Coefficient(why="one labelled scenario only" if gaps else "no scenario is labelled")
    else:
        low, high = shift_interval(gaps, weights)
        value = sum(w * gap for w, gap in zip(weights, gaps, strict=True)) / sum(weights)
        shift = Coefficient(value=value, low=low, high=high)
    return JudgeErrors(
        scenarios=len(judged_and_labelled),
        false_lies=false,
        missed_lies=missed,
        precision=rate(both, both + false),
        recall=rate(both, both + missed),
        judge_p_lie=judged / total if total else None,
        labels_p_lie=labelled / total if total else None,
        shift=shift,
    )
