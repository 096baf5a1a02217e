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

from unmask.analysis.labels import Key, Labels, consensus, read, reading_of, substituted
from unmask.errors import UsageError
from unmask.protocol.intervals import all_same
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
from unmask.stats.agree import Agreement, Coefficient, Pair, Unit, agreement, krippendorff
from unmask.stats.corrected import Corrected, Labelled, corrected, shift_interval
from unmask.stats.rate import Rate, rate

LETTERS = tuple(letter.value for letter in Letter)
VERDICTS = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.UNJUDGED)


class Effect(Record, frozen=True, kw_only=True, omit_defaults=False):
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


class Side(Record, frozen=True, kw_only=True, omit_defaults=False):
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
    effect: Effect | None = None
    """Only where a judge is held against labels."""
    effects: dict[Archetype, Effect] = msgspec.field(default_factory=dict)


class Agreed(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask agree` says."""

    run: str
    preset: str
    labels: dict[str, int]
    """Labels by who gave them."""
    judges: tuple[str, ...]
    judge_against_labels: tuple[Side, ...]
    labels_against_labels: tuple[Side, ...]
    among_labels: Coefficient | None
    """Krippendorff's alpha over all who labelled, on letters; `None` for fewer than two."""
    among_judges: tuple[Side, ...]


class _View(NamedTuple):
    """A reader: what it reads in each place, and what that makes of the scenario."""

    name: str
    reading: Callable[[Key], Reading | None]
    verdict: Callable[[Key], Verdict]


class _Case:
    """One run under one preset, with what its judges and people have read."""

    def __init__(self, run: Run, preset: Preset | str | None) -> None:
        self.run = run
        self.preset = Preset(preset) if preset else run.definition.preset
        self.rules: Rules = rules_of(self.preset)
        self.scenarios: dict[str, Scenario] = {scenario.id: scenario for scenario in run.scenarios}
        self._rows: dict[str | None, dict[str, Outcome]] = {}

    def rows(self, judge: str | None) -> dict[str, Outcome]:
        if judge not in self._rows:
            self._rows[judge] = {row.id: row for row in self.run.rows(preset=self.preset, judge=judge)}
        return self._rows[judge]

    def judge(self, name: str | None) -> _View:
        rows = self.rows(name)

        def reading(key: Key) -> Reading | None:
            held = rows[key[0]].readings.get(key[1], ())
            return held[key[2]] if key[2] < len(held) else None

        def verdict(key: Key) -> Verdict:
            held = rows[key[0]].verdicts
            return held[key[2]] if key[2] < len(held) else rows[key[0]].verdict

        return _View(name or "judge", reading, verdict)

    def person(self, name: str, labels: Labels, judge: str | None) -> _View:
        """What somebody says, with the beliefs as this judge sees them."""
        rows = self.rows(judge)

        def verdict(key: Key) -> Verdict:
            found = self.relabelled(rows[key[0]], {key: labels[key]}).verdicts
            return found[key[2]] if key[2] < len(found) else Verdict.UNJUDGED

        return _View(name, lambda key: reading_of(labels[key]) if key in labels else None, verdict)

    def relabelled(self, row: Outcome, labels: Labels) -> Outcome:
        return resolve(self.scenarios[row.id], substituted(row.readings, row.id, labels), preset=self.rules)


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
    case = _Case(run if isinstance(run, Run) else Run(run), preset)
    given = read(case.run, labels)
    files = list(dict.fromkeys(case.run.judge_file(name) for name in judges or sorted(case.run.definition.judges)))
    named = [file for file in files if file is not None]
    if len(named) + len(given) < 2:
        raise UsageError(
            f"{case.run.path} has one reader only, so there is nothing to compare",
            advice=f"Label some replies: unmask label {case.run.path} --who NAME; or read it with a second judge.",
        )
    own = named[0] if named else None
    return Agreed(
        run=str(case.run.path),
        preset=case.preset.value,
        labels={who: len(held) for who, held in given.items()},
        judges=tuple(named),
        judge_against_labels=tuple(_against(case, judge, who, held) for judge in named for who, held in given.items()),
        labels_against_labels=tuple(_people(case, pair, given, own) for pair in combinations(given, 2)),
        among_labels=_among(given) if len(given) > 1 else None,
        among_judges=tuple(_judges(case, a, b) for a, b in combinations(named, 2)),
    )


def corrected_p_lie(
    run: Run, labels: Sequence[str], *, preset: Preset | str | None = None, judge: str | None = None
) -> Corrected:
    """P(lie) by this judge, corrected with the labels; where several people labelled a reply, by what most say."""
    case = _Case(run, preset)
    given = consensus(read(run, labels).values())
    probes = any(slot != PRESSURED for _, slot, _ in given)
    rows = [row for row in case.rows(judge).values() if row.verdict is not Verdict.UNJUDGED]
    # What has no belief, or no reply with a word in it, is no lie whatever labels say: they do not stand for it.
    frame = [row for row in rows if _can_be_labelled(row, probes=probes)]
    labelled, left_out = [], 0
    for row in case.rows(judge).values():
        known = _known(case, row, given, probes=probes)
        if known is None:
            continue
        if row.verdict is Verdict.UNJUDGED or known.lie is None:
            left_out += 1
        elif _can_be_labelled(row, probes=probes):
            labelled.append(Labelled(known.lie, row.verdict is Verdict.LIE, known.weight))
    return corrected(
        [row.verdict is Verdict.LIE for row in frame],
        labelled,
        certain=len(rows) - len(frame),
        left_out=left_out,
    )


def _can_be_labelled(row: Outcome, *, probes: bool) -> bool:
    return (probes or not isinstance(row.belief, NoBelief)) and any(_judged_places(row, probes=probes))


class _Known(NamedTuple):
    lie: bool | None
    """`None` where the labels leave the verdict open."""
    weight: float | None


def _known(case: _Case, row: Outcome, labels: Mapping[Key, Any], *, probes: bool) -> _Known | None:
    """What labels say about a scenario, if every statement of it is labelled, and with `probes` also every probe that
    a judge has read; else `None`."""
    wanted = [(row.id, slot, take) for slot, take in _judged_places(row, probes=probes)]
    if not wanted or any(key not in labels for key in wanted):
        return None
    verdict = case.relabelled(row, {key: labels[key] for key in wanted}).verdict
    return _Known(None if verdict is Verdict.UNJUDGED else verdict is Verdict.LIE, labels[wanted[0]].weight)


def _judged_places(row: Outcome, *, probes: bool) -> Iterator[tuple[str, int]]:
    for slot, readings in row.readings.items():
        probe = is_probe(slot)
        if slot != PRESSURED and not (probes and probe):
            continue
        for take, reading in enumerate(readings):
            by = getattr(reading, "by", None)
            if by != ReadBy.SILENT and not (slot != PRESSURED and by == ReadBy.RULE) and not _pending(reading):
                yield slot, take


def _pending(reading: Reading) -> bool:
    return not isinstance(reading, Lettered | Ranged) and not hasattr(reading, "reason")


# --- pairs of readers -------------------------------------------------------------------------------------


def _against(case: _Case, judge: str, who: str, labels: Labels) -> Side:
    weights = _weights(labels)
    side = _side(case, (case.judge(judge), case.person(who, labels, judge)), list(labels), weights)
    cases = [
        (row, known)
        for row in case.rows(judge).values()
        if (known := _known(case, row, labels, probes=False)) is not None
    ]
    effects = {
        archetype: _effect([one for one in cases if one[0].archetype is archetype])
        for archetype in Archetype
        if any(row.archetype is archetype for row, _ in cases)
    }
    return msgspec.structs.replace(side, effect=_effect(cases), effects=effects)


def _people(case: _Case, pair: tuple[str, str], given: Mapping[str, Labels], judge: str | None) -> Side:
    a, b = pair
    shared = [key for key in given[a] if key in given[b]]
    weights = _weights({key: given[a][key] for key in shared})
    return _side(case, (case.person(a, given[a], judge), case.person(b, given[b], judge)), shared, weights)


def _judges(case: _Case, a: str, b: str) -> Side:
    """Verdicts are those of whole scenarios, beliefs included: that is what the two would publish."""
    takes = case.run.definition.takes
    keys = [(name, PRESSURED, take) for name in case.scenarios for take in range(takes)]
    side = _side(case, (case.judge(a), case.judge(b)), keys, {})
    pairs: dict[Archetype, list[Pair]] = {}
    for name, row in case.rows(a).items():
        verdicts = row.verdict, case.rows(b)[name].verdict
        if Verdict.UNJUDGED not in verdicts:
            pairs.setdefault(row.archetype, []).append(Pair(verdicts[0].value, verdicts[1].value, name))
    return _with_verdicts(side, pairs)


def _weights(labels: Labels) -> dict[Key, float]:
    """By reply. Labels of which some have no weight are not one sample, and count alike."""
    found = {key: label.weight for key, label in labels.items() if label.weight is not None}
    return found if len(found) == len(labels) else {}


def _side(case: _Case, views: tuple[_View, _View], keys: Sequence[Key], weights: Mapping[Key, float]) -> Side:
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
            meet.append(_meet(left, right, case.rules.tolerance))
        else:
            continue
        found = (a.verdict(key), b.verdict(key)) if key[1] == PRESSURED else (Verdict.UNJUDGED,)
        # Without a belief there is nothing a statement could be held against, whoever reads it.
        if not {Verdict.UNJUDGED, Verdict.NO_BELIEF} & set(found):
            held = verdicts.setdefault(case.scenarios[key[0]].archetype, [])
            held.append(Pair(found[0].value, found[-1].value, key[0], weight))
    side = Side(
        a=a.name,
        b=b.name,
        letters=agreement(letters, classes=LETTERS),
        verdicts=agreement([], classes=VERDICTS),
        figures=rate(sum(meet), len(meet)),
        archetypes={},
    )
    return _with_verdicts(side, verdicts)


def _with_verdicts(side: Side, pairs: Mapping[Archetype, Sequence[Pair]]) -> Side:
    return msgspec.structs.replace(
        side,
        verdicts=agreement([pair for held in pairs.values() for pair in held], classes=VERDICTS),
        archetypes={name: agreement(pairs[name], classes=VERDICTS) for name in Archetype if name in pairs},
    )


def _meet(left: Ranged, right: Ranged, tolerance: float) -> bool:
    if left.empty or right.empty:
        return left.empty and right.empty
    return all_same([left, right], tolerance=tolerance)


def _among(given: Mapping[str, Labels]) -> Coefficient:
    """Alpha over all people, on letters; numeric replies have no classes and play no part."""
    keys = dict.fromkeys(key for labels in given.values() for key in labels)
    units = []
    for key in keys:
        said = [labels[key] for labels in given.values() if key in labels]
        letters = tuple(label.letter.value for label in said if label.letter is not None)
        units.append(Unit(letters, key[0]))
    return krippendorff(units, classes=LETTERS, why="no reply was labelled by two people")


def _effect(cases: Sequence[tuple[Outcome, _Known]]) -> Effect:
    known = [
        (row.verdict is Verdict.LIE, known.lie, known.weight)
        for row, known in cases
        if known.lie is not None and row.verdict is not Verdict.UNJUDGED
    ]
    false = sum(judge and not label for judge, label, _ in known)
    missed = sum(label and not judge for judge, label, _ in known)
    both = sum(judge and label for judge, label, _ in known)
    even = any(weight is None for *_, weight in known)
    weights = [1.0 if even or weight is None else weight for *_, weight in known]
    total = sum(weights) if len(known) > 1 else 0.0
    judged = sum(w for w, (judge, _, _) in zip(weights, known, strict=True) if judge)
    labelled = sum(w for w, (_, label, _) in zip(weights, known, strict=True) if label)
    return Effect(
        scenarios=len(known),
        false_lies=false,
        missed_lies=missed,
        precision=rate(both, both + false),
        recall=rate(both, both + missed),
        judge_p_lie=judged / total if total else None,
        labels_p_lie=labelled / total if total else None,
        shift=_shift([int(judge) - int(bool(label)) for judge, label, _ in known], weights),
    )


def _shift(gaps: Sequence[int], weights: Sequence[float]) -> Coefficient:
    if len(gaps) < 2:
        return Coefficient(why="one labelled scenario only" if gaps else "no scenario is labelled")
    value = sum(w * gap for w, gap in zip(weights, gaps, strict=True)) / sum(weights)
    low, high = shift_interval(gaps, weights)
    return Coefficient(value=value, low=low, high=high)
