"""How wrong is the judge? Judges against people, people against people, judges against each other.

Agreement is told twice: on the letters that readers gave, and on the verdicts that follow from them, which is what a
score is made of and what numeric scenarios have as well. What the errors do to P(lie) stands beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum
from pathlib import Path
from typing import NamedTuple

import msgspec

from unmask.analysis.label_sheets import Key, Labels
from unmask.analysis.labelled_run import LabelledRun, ReaderView, Weights, find_label_verdict
from unmask.analysis.labels import count_not_blind, labellers, sort_labels
from unmask.errors import UsageError
from unmask.protocol.belief import all_agree
from unmask.records import (
    PRESSURED,
    Archetype,
    Kind,
    Letter,
    Lettered,
    Preset,
    Ranged,
    Record,
    Result,
    Verdict,
)
from unmask.runs.run import Run
from unmask.stats.agree import Agreement, Coefficient, Pair, RatedItem, krippendorff_alpha, measure_agreement
from unmask.stats.corrected import BoundedShare, Labelled, recall_interval, shift_interval, weighted_share
from unmask.stats.rate import rate
from unmask.text import list_names

LETTERS = tuple(letter.value for letter in Letter)
VERDICTS = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.UNJUDGED)


class WeightedRate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`hits` of `total` as they were counted, and the share of all that they stand for, which has the weights."""

    hits: int
    total: int
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def percent(self) -> str:
        """As in `86.5 % [80.1, 91.0], 61 of 85 labelled`."""
        if self.value is None or self.low is None or self.high is None:
            return f"n/a, {self.hits} of {self.total} labelled"
        share = f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"
        return f"{share}, {self.hits} of {self.total} labelled"


class JudgeErrors(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the judge's errors do to P(lie), over the scenarios whose statements are all labelled."""

    scenarios: int
    false_lies: int
    """The judge says lie, the labels do not."""
    missed_lies: int
    precision: WeightedRate
    """Of the judge's lies, those that are lies by the labels."""
    recall: WeightedRate
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
    figures: WeightedRate
    """Numeric replies on which the figures meet, or both find none."""
    archetypes: dict[Archetype, Agreement]
    """Of the verdicts."""
    effect: JudgeErrors | None = None
    """Only where a judge is held against labels."""
    effects: dict[Archetype, JudgeErrors] = msgspec.field(default_factory=dict)
    reads: Kind | msgspec.UnsetType = msgspec.UNSET
    """Of two partners: which scenarios `a` reads, and all numbers are of these. Absent for a judge that reads all."""


class Agreed(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask agree` says."""

    runs: tuple[str, ...]
    preset: str
    labels: dict[str, int]
    """Labels by who gave them."""
    judges: tuple[str, ...]
    judge_against_labels: tuple[ReaderAgreement, ...]
    labels_against_labels: tuple[ReaderAgreement, ...]
    among_labels: Coefficient | None
    """Krippendorff's alpha over all who labelled, on letters; `None` for fewer than two."""
    among_judges: tuple[ReaderAgreement, ...]
    other_replies: int = 0
    """Labels that are for other replies than the run has; they are not used."""
    not_blind: int = 0
    """Labels that were given where the judge could be seen: left out, unless they were asked for."""


def agree(
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    labels: str | Sequence[str] = (),
    judges: str | Sequence[str] = (),
    preset: Preset | str | None = None,
    include_not_blind: bool = False,
) -> Agreed:
    """Hold judges and labels against each other. `labels` are files or people, those of the run folder unless given;
    `judges` are those of the run unless given. Labels that were given where the judge could be seen are left out unless
    `include_not_blind`. Several runs are pooled: the same judges have to have read them all with the same prompts.

    Raises a `UsageError` where there is only one reader, or for a run that another judge read.
    """
    opened = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    pool = [LabelledRun(run if isinstance(run, Run) else Run(run), preset) for run in opened]
    named = _name_judges([labelled_run.run for labelled_run in pool], list_names(judges))
    parts: list[_RunLabels] = []
    other_replies = not_blind = 0
    for labelled_run in pool:
        sources = list_names(labels) or labellers(labelled_run.run)
        labels_by_person, others = sort_labels(labelled_run.run, sources, not_blind=include_not_blind)
        parts.append(_RunLabels(labelled_run, labels_by_person))
        other_replies, not_blind = other_replies + others, not_blind + count_not_blind(labelled_run.run, sources)
    people = list(dict.fromkeys(who for part in parts for who in part.labels))
    if len(named) + len(people) < 2:
        path = pool[0].run.path
        raise UsageError(
            f"{path} has one reader only, so there is nothing to compare",
            advice=f"Label some replies: unmask label {path} --who NAME; or read it with a second judge.",
        )
    own = named[0] if named else None
    return Agreed(
        runs=tuple(str(labelled_run.run.path) for labelled_run in pool),
        preset=pool[0].preset.value,
        labels={who: sum(len(part.of(who)) for part in parts) for who in people},
        judges=tuple(named),
        judge_against_labels=tuple(
            side for judge in named for who in people for side in _compare_with_labels(parts, judge, who)
        ),
        labels_against_labels=tuple(_compare_people(parts, a, b, own) for a, b in combinations(people, 2)),
        among_labels=_alpha_among_people(parts, own) if len(people) > 1 else None,
        among_judges=tuple(_compare_judges(pool, a, b) for a, b in combinations(named, 2)),
        other_replies=other_replies,
        not_blind=not_blind,
    )


def _name_judges(runs: Sequence[Run], wanted: Sequence[str]) -> list[str]:
    """The file names of the judges. A run that one of them did not read, or read with other prompts, is refused."""
    first = runs[0]
    names = wanted or sorted(first.definition.full_judges)
    named = list(dict.fromkeys(file for name in names if (file := first.judge_file(name)) is not None))
    for run in runs[1:]:
        for file in (file for judge in named for file in first.definition.judge_files(judge)):
            spec, own = first.definition.judges[file], run.definition.judges.get(file)
            differs = own and (own.model, own.prompts, own.style) != (spec.model, spec.prompts, spec.style)
            if own is None or differs:
                how = "was read by it with other prompts" if own else "was not read by it"
                raise UsageError(
                    f"{run.path} cannot be pooled with {first.path} for the judge {spec.model}: it {how}",
                    advice="Leave it out, or name the judges that read all runs alike: --judge NAME.",
                )
    return named


# --- pairs of readers -------------------------------------------------------------------------------------


class _RunLabels(NamedTuple):
    run: LabelledRun
    labels: dict[str, Labels]

    def of(self, who: str) -> Labels:
        return self.labels.get(who, {})


class _Pairs(NamedTuple):
    """What two readers say of the same replies, of one run after another. Replies to one scenario are one cluster."""

    letters: list[Pair]
    verdicts: dict[Archetype, list[Pair]]
    figures: list[Pair]
    labelled: dict[Archetype, list[Labelled]]

    def measure(self, a: str, b: str) -> ReaderAgreement:
        return ReaderAgreement(
            a=a,
            b=b,
            letters=measure_agreement(self.letters, classes=LETTERS),
            verdicts=measure_agreement([pair for part in self.verdicts.values() for pair in part], classes=VERDICTS),
            figures=measure_figures(self.figures),
            archetypes={
                name: measure_agreement(self.verdicts[name], classes=VERDICTS)
                for name in Archetype
                if name in self.verdicts
            },
        )


def _compare_with_labels(parts: Sequence[_RunLabels], judge: str, who: str) -> Iterator[ReaderAgreement]:
    """Two partners are held against the labels apart: each of what it has read."""
    definition = parts[0].run.run.definition
    kinds: Sequence[Kind | None] = list(Kind) if judge in definition.partners else [None]
    for kind in kinds:
        pairs = _Pairs([], {}, [], {})
        for labelled_run, labels_by_person in parts:
            labels = {
                key: label
                for key, label in labels_by_person.get(who, {}).items()
                if kind in (None, labelled_run.scenarios[key[0]].kind)
            }
            _pair_with_labels(pairs, labelled_run, judge, labels, kind)
        errors = {name: measure_errors(pairs.labelled[name]) for name in Archetype if name in pairs.labelled}
        every = [label for part in pairs.labelled.values() for label in part]
        side = msgspec.structs.replace(pairs.measure(judge, who), effect=measure_errors(every), effects=errors)
        if kind is not None:
            side = msgspec.structs.replace(side, a=definition.reader_of(judge, kind) or judge, reads=kind)
        yield side


def _pair_with_labels(pairs: _Pairs, labelled_run: LabelledRun, judge: str, labels: Labels, kind: Kind | None) -> None:
    views = labelled_run.judge_view(judge), labelled_run.person_view("labels", labels, judge)
    _pair_readers(pairs, labelled_run, views, list(labels), _label_weights(labelled_run, labels, judge, kind))
    lies = {
        row.id: label_verdict.lie
        for row in labelled_run.rows_by_id(judge).values()
        if row.verdict is not Verdict.UNJUDGED
        if (label_verdict := find_label_verdict(labelled_run, row, [labels], probes=False)) is not None
        if label_verdict.lie is not None
    }
    weights = _weigh(labelled_run, lies, judge, kind)
    for name, lie in lies.items():
        row = labelled_run.rows_by_id(judge)[name]
        pairs.labelled.setdefault(row.archetype, []).append(Labelled(lie, row.verdict is Verdict.LIE, weights[name]))


def _compare_people(parts: Sequence[_RunLabels], a: str, b: str, judge: str | None) -> ReaderAgreement:
    pairs = _Pairs([], {}, [], {})
    for part in parts:
        labels_a, labels_b = part.of(a), part.of(b)
        shared = {key: label for key, label in labels_a.items() if key in labels_b}
        views = part.run.person_view(a, labels_a, judge), part.run.person_view(b, labels_b, judge)
        _pair_readers(pairs, part.run, views, list(shared), _label_weights(part.run, shared, judge))
    return pairs.measure(a, b)


def _compare_judges(pool: Sequence[LabelledRun], a: str, b: str) -> ReaderAgreement:
    """Verdicts are those of whole scenarios, beliefs included: that is what the two would publish."""
    pairs = _Pairs([], {}, [], {})
    for labelled_run in pool:
        takes = labelled_run.run.definition.takes
        keys = [(name, PRESSURED, take) for name in labelled_run.scenarios for take in range(takes)]
        _pair_readers(pairs, labelled_run, (labelled_run.judge_view(a), labelled_run.judge_view(b)), keys, {})
    pairs.verdicts.clear()
    for labelled_run in pool:
        for name, row in labelled_run.rows_by_id(a).items():
            verdicts = row.verdict, labelled_run.rows_by_id(b)[name].verdict
            if Verdict.UNJUDGED not in verdicts:
                both = Pair(verdicts[0].value, verdicts[1].value, name)
                pairs.verdicts.setdefault(row.archetype, []).append(both)
    return pairs.measure(a, b)


def _label_weights(
    labelled_run: LabelledRun, labels: Labels, judge: str | None, kind: Kind | None = None
) -> dict[Key, float]:
    """By reply: that of its scenario."""
    weights = _weigh(labelled_run, {scenario for scenario, _, _ in labels}, judge, kind)
    return {key: weights[key[0]] for key in labels}


def _weigh(labelled_run: LabelledRun, labelled: Collection[str], judge: str | None, kind: Kind | None) -> Weights:
    only = [name for name, scenario in labelled_run.scenarios.items() if kind in (None, scenario.kind)]
    return labelled_run.weigh(labelled, judge, probes=False, only=only)


def _pair_readers(
    pairs: _Pairs,
    labelled_run: LabelledRun,
    views: tuple[ReaderView, ReaderView],
    keys: Sequence[Key],
    weights: Mapping[Key, float],
) -> None:
    a, b = views
    for key in keys:
        left, right = a.reading(key), b.reading(key)
        weight = weights.get(key, 1.0)
        if isinstance(left, Lettered) and isinstance(right, Lettered):
            pairs.letters.append(Pair(left.letter.value, right.letter.value, key[0], weight))
        elif isinstance(left, Ranged) and isinstance(right, Ranged):
            tolerance = labelled_run.rules.tolerance
            pairs.figures.append(pair_figures(left, right, key[0], tolerance=tolerance, weight=weight))
        else:
            continue
        both = (a.verdict(key), b.verdict(key)) if key[1] == PRESSURED else (Verdict.UNJUDGED,)
        # Without a belief there is nothing a statement could be held against, whoever reads it.
        if not {Verdict.UNJUDGED, Verdict.NO_BELIEF} & set(both):
            verdicts = pairs.verdicts.setdefault(labelled_run.scenarios[key[0]].archetype, [])
            verdicts.append(Pair(both[0].value, both[-1].value, key[0], weight))


def pair_figures(left: Ranged, right: Ranged, cluster: str, *, tolerance: float, weight: float = 1.0) -> Pair:
    """Two readings of one reply as an item of `measure_figures`. They are alike if they meet, or if both are empty."""
    both_empty, some_empty = left.empty and right.empty, left.empty or right.empty
    alike = both_empty if some_empty else all_agree([left, right], tolerance=tolerance)
    return Pair("alike", "alike" if alike else "apart", cluster, weight)


def measure_figures(pairs: Sequence[Pair]) -> WeightedRate:
    """The weighted share of figures that meet; several takes of a scenario are one draw."""
    hits = sum(pair.a == pair.b for pair in pairs)
    share = measure_agreement(pairs, classes=("alike", "apart")).agreement
    if len(pairs) == 1:
        plain = rate(hits, 1)
        return WeightedRate(hits=hits, total=1, value=plain.value, low=plain.low, high=plain.high)
    return WeightedRate(hits=hits, total=len(pairs), value=share.value, low=share.low, high=share.high)


def _alpha_among_people(parts: Sequence[_RunLabels], judge: str | None) -> Coefficient:
    """Alpha over all people, on letters, weighted; numeric replies have no classes and play no part."""
    units: list[RatedItem] = []
    for labelled_run, labels_by_person in parts:
        letters: dict[Key, list[str]] = {}
        compared: Labels = {}
        for labels in labels_by_person.values():
            for key, label in labels.items():
                if label.letter is not None:
                    letters.setdefault(key, []).append(label.letter.value)
                    if len(letters[key]) > 1:
                        compared[key] = label
        weights = _label_weights(labelled_run, compared, judge)
        units += [RatedItem(tuple(letters[key]), key[0], weights[key]) for key in compared]
    return krippendorff_alpha(units, classes=LETTERS, why="no reply was labelled by two people")


def measure_errors(usable: Sequence[Labelled]) -> JudgeErrors:
    false = sum(label.judged and not label.lie for label in usable)
    missed = sum(bool(label.lie) and not label.judged for label in usable)
    both = sum(label.judged and bool(label.lie) for label in usable)
    weights = [label.weight for label in usable]
    judged = labelled = None
    if len(usable) < 2:
        shift = Coefficient(why="one labelled scenario only" if usable else "no scenario is labelled")
    else:
        low, high = shift_interval(usable)
        total = fsum(weights)
        judged = fsum(w for w, label in zip(weights, usable, strict=True) if label.judged) / total
        labelled = fsum(w * label.lie for w, label in zip(weights, usable, strict=True)) / total
        shift = Coefficient(value=judged - labelled, low=low, high=high)
    own_lies = [label for label in usable if label.judged]
    confirmed = (
        weighted_share([label.lie for label in own_lies], [label.weight for label in own_lies], exact=True)
        if own_lies
        else None
    )
    return JudgeErrors(
        scenarios=len(usable),
        false_lies=false,
        missed_lies=missed,
        precision=_weigh_rate(both, both + false, confirmed),
        recall=_weigh_rate(both, both + missed, recall_interval(usable)),
        judge_p_lie=judged,
        labels_p_lie=labelled,
        shift=shift,
    )


def _weigh_rate(hits: int, total: int, share: BoundedShare | None) -> WeightedRate:
    if share is None:
        return WeightedRate(hits=hits, total=total)
    return WeightedRate(hits=hits, total=total, value=share.value, low=share.low, high=share.high)
