"""How wrong is the judge? Judges against people, people against people, judges against each other.

Agreement is given twice: on the letters that readers gave, and on the verdicts that follow from them, which is what a
score is made of and what numeric scenarios have as well. Next to it is what the errors do to P(lie).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from unmask.analysis.label_sheets import Key, Labels
from unmask.analysis.labelled_run import LENGTHS, LabelledRun, Says, find_label_verdict
from unmask.analysis.labels import sort_labels
from unmask.analysis.sampling import lie_share
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
from unmask.runs.definition import Definition, judge_file
from unmask.runs.run import Run, Runs, open_runs, use_each
from unmask.stats.agree import Agreement, Coefficient, Pair, RatedItem, krippendorff_alpha, measure_agreement
from unmask.stats.drawn import Bounded, Compared, Drawn, drawn_share, measure_precision, measure_recall
from unmask.stats.estimate import difference
from unmask.stats.rate import in_percent
from unmask.text import list_names

GROUPS = (*Archetype, *LENGTHS, "yes", "no")
_NO_LIE = {Verdict.UNJUDGED, Verdict.NO_BELIEF}
"""Without a belief there is nothing that a statement could contradict."""
LETTERS = tuple(letter.value for letter in Letter)
VERDICTS = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.UNJUDGED)


class WeightedRate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`hits` of `total` as they were counted, and the share of all that they represent, which has the weights."""

    hits: int
    total: int
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, hits: int, total: int, share: Bounded | None) -> WeightedRate:
        return cls(hits=hits, total=total, **({} if share is None else share._asdict()))

    @property
    def percent(self) -> str:
        """As in `86.5 % [80.1, 91.0], 61 of 85 labelled`."""
        if self.value is None or self.low is None or self.high is None:
            return f"n/a, {self.hits} of {self.total} labelled"
        share = f"{in_percent(self.value)} % [{in_percent(self.low)}, {in_percent(self.high)}]"
        return f"{share}, {self.hits} of {self.total} labelled"


class JudgeErrors(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the judge's errors do to P(lie), over the scenarios whose statements are all labelled."""

    scenarios: int
    false_lies: int
    """Replies: the judge says lie, the labels do not."""
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
    groups: dict[str, Agreement]
    """Of the verdicts, by archetype and by what biases a judge: the mean length of the scenario's replies (`short`,
    `middle` or `long`) and the true answer to the direct probe (`yes` or `no`)."""
    effect: JudgeErrors | None = None
    """Only where a judge is compared with labels."""
    reads: Kind | msgspec.UnsetType = msgspec.UNSET
    """Where another model reads numbers for the judge: which scenarios `a` reads, and all values are of these. Absent
    for a judge that reads all."""


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


def agree(
    runs: Runs,
    *,
    labels: str | Sequence[str] = (),
    judges: str | Sequence[str] = (),
    preset: Preset | str | None = None,
) -> Agreed:
    """Hold judges and labels against each other. `labels` are people, all who labelled the runs unless given;
    `judges` are those of the run unless given. Several runs, or a folder that holds some, are pooled for the judges
    that read them all with the same prompts. A run that the judges asked for, or the judge of most runs, did not read
    so is left out with a warning.

    Raises a `UsageError` where there is only one reader.
    """
    opened = open_runs(runs)
    if not opened:
        raise UsageError("agreement needs a run", advice="Name its folder, or one that holds runs.")
    opened, named = _pool_runs(opened, list_names(judges))
    pool = [LabelledRun(run, preset) for run in opened]
    parts: list[_RunLabels] = []
    other_replies = 0
    for whole in pool:
        by_person, others = sort_labels(whole.run, list_names(labels) or whole.run.folder.labellers())
        parts += [
            (arm, {who: arm.take_labels(own, probes=arm is whole) for who, own in by_person.items()})
            for arm in whole.list_arms()
        ]
        other_replies += others
    people = list(dict.fromkeys(who for _, own in parts for who in own))
    if len(named) + len(people) < 2:
        path = opened[0].path
        raise UsageError(
            f"{path} has only one judge or labeller, so there is nothing to compare",
            advice=f"Label some replies: unmask label {path}; or read it with a second judge.",
        )
    own = named[0] if named else None
    pairs_of_people = combinations(people, 2)
    return Agreed(
        runs=tuple(str(run.path) for run in opened),
        preset=pool[0].preset.value,
        labels={who: sum(len(own.get(who, {})) for _, own in parts) for who in people},
        judges=tuple(named),
        judge_against_labels=tuple(
            side for judge in named for who in people for side in _compare_with_labels(parts, judge, who)
        ),
        labels_against_labels=tuple(_compare_people(parts, a, b, own) for a, b in pairs_of_people),
        among_labels=_alpha_among_people(parts, own) if len(people) > 1 else None,
        among_judges=tuple(_compare_judges(pool, a, b) for a, b in combinations(named, 2)),
        other_replies=other_replies,
    )


_Readings = dict[str, tuple[tuple[str, str, str], ...]]
"""The judges of a run by their files: which models read, with which prompts, in which style."""


def _pool_runs(runs: Sequence[Run], wanted: Sequence[str]) -> tuple[list[Run], list[str]]:
    """The runs that the judges wanted have read alike, else those that the judge of most runs has; and the names of the
    files of these judges, or of all that have read the same runs alike."""
    read = use_each(runs, lambda run: (run, _list_readings(run, wanted)))
    counts = Counter(reading for _, own in read for reading in own.items())
    common = [reading for reading, _ in counts.most_common(None if wanted else 1)]
    needed = dict(reversed(common))  # of one judge that was asked in two ways, the way of most runs

    def refuse_other_readings(found: tuple[Run, _Readings]) -> tuple[Run, _Readings]:
        run, own = found
        for file, asked in needed.items():
            if own.get(file) != asked:
                how = "with other prompts" if file in own else "not at all"
                raise UsageError(
                    f"{run.path} cannot be pooled with the others: {asked[0][0]} has read it {how}",
                    advice="Name the judges that read all runs alike: --judge NAME.",
                )
        return found

    kept = use_each(read, refuse_other_readings)
    first, own = kept[0]
    if wanted:
        files = [file for name in wanted if (file := first.judge_file(name)) is not None]
    else:
        files = sorted(file for file, asked in own.items() if all(other.get(file) == asked for _, other in kept))
    return [run for run, _ in kept], list(dict.fromkeys(files))


def _list_readings(run: Run, wanted: Sequence[str]) -> _Readings:
    """Of the judges of a run, or of those wanted."""
    judges = run.definition.judges
    files = [file for name in wanted for file in run.definition.judge_files(run.judge_file(name))] or list(judges)
    return {file: tuple((spec.model, spec.prompts, spec.style) for spec in judges[file].models) for file in files}


# --- pairs of readers -------------------------------------------------------------------------------------


_RunLabels = tuple[LabelledRun, dict[str, Labels]]
"""A run, or its control arm, and its labels by who gave them."""


class _Pairs:
    """What two readers say of the same replies, of one run after another. Replies to scenarios of one cluster do not
    vary independently."""

    def __init__(self) -> None:
        self.letters: list[Pair] = []
        self.verdicts: list[Pair] = []
        self.groups: defaultdict[str, list[Pair]] = defaultdict(list)
        """Of the verdicts."""
        self.figures: list[Drawn] = []
        self.compared: list[Compared] = []

    def add_replies(
        self, run: LabelledRun, a: Says, b: Says, keys: Sequence[Key], weights: Mapping[str, float]
    ) -> None:
        """`weights` are by scenario; all weigh the same where there are none."""
        for key in keys:
            left, right = a(key), b(key)
            if left is None or right is None:
                continue
            cluster, weight = run.cluster(key[0]), weights.get(key[0], 1.0)
            if isinstance(left.reading, Lettered) and isinstance(right.reading, Lettered):
                self.letters.append(Pair(left.reading.letter, right.reading.letter, cluster, weight))
            elif isinstance(left.reading, Ranged) and isinstance(right.reading, Ranged):
                alike = figures_meet(left.reading, right.reading, tolerance=run.rules.tolerance)
                self.figures.append(Drawn(float(alike), weight, cluster))
            # Without a belief there is nothing that a statement could contradict.
            if (
                left.verdict
                and right.verdict
                and not {Verdict.UNJUDGED, Verdict.NO_BELIEF} & {left.verdict, right.verdict}
            ):
                self.add_verdicts(run, key[0], Pair(left.verdict, right.verdict, cluster, weight))

    def add_verdicts(self, run: LabelledRun, scenario: str, pair: Pair) -> None:
        self.verdicts.append(pair)
        for group in run.list_groups(scenario):
            self.groups[group].append(pair)

    def add_scenarios(self, run: LabelledRun, labels: Labels, judge: str, kind: Kind | None) -> None:
        """Those of which this person has labelled every statement, and whose share of lies the judge knows."""
        rows, known = run.rows_by_id(judge), {}
        for row in rows.values():
            verdict = find_label_verdict(run, row, [labels], probes=False)
            if verdict is not None and verdict.replies and lie_share(row, takes=run.takes) is not None:
                known[row.id] = verdict.replies
        weights = run.weigh(known, judge, kind)
        for name, replies in known.items():
            compared = Compared(
                replies=len(replies),
                judged=sum(judged for judged, _ in replies),
                labelled=sum(lie > 0 for _, lie in replies),
                both=sum(judged and lie > 0 for judged, lie in replies),
                weight=weights[name],
                cluster=run.cluster(name),
            )
            self.compared.append(compared)

    def measure(self, a: str, b: str) -> ReaderAgreement:
        figures = self.figures
        share = drawn_share(figures) if figures else None
        return ReaderAgreement(
            a=a,
            b=b,
            letters=measure_agreement(self.letters, classes=LETTERS),
            verdicts=measure_agreement(self.verdicts, classes=VERDICTS),
            figures=WeightedRate.of(int(sum(one.hit for one in figures)), len(figures), share),
            groups={
                name: measure_agreement(self.groups[name], classes=VERDICTS) for name in GROUPS if name in self.groups
            },
        )


def _compare_with_labels(parts: Sequence[_RunLabels], judge: str, who: str) -> Iterator[ReaderAgreement]:
    """A judge and the model that reads numbers for it are compared with the labels apart: each by what it has read."""
    definition = parts[0][0].run.definition
    kinds: Sequence[Kind | None] = (
        list(Kind) if judge in definition.judges and definition.judges[judge].numeric else [None]
    )
    for kind in kinds:
        pairs = _Pairs()
        for run, people in parts:
            labels = {key: own for key, own in people.get(who, {}).items() if run.is_of_kind(key[0], kind)}
            says = run.ask_judge(judge), run.ask_person(who, labels, judge)
            pairs.add_replies(run, *says, list(labels), run.weigh({key[0] for key in labels}, judge, kind))
            if run.arm == PRESSURED:
                pairs.add_scenarios(run, labels, judge, kind)
        side = msgspec.structs.replace(pairs.measure(judge, who), effect=measure_errors(pairs.compared))
        if kind is not None:
            side = msgspec.structs.replace(side, a=_name_reader(definition, judge, kind), reads=kind)
        yield side


def _name_reader(definition: Definition, judge: str, kind: Kind) -> str:
    """The judge or, where another model reads scenarios of this kind in its place, that model."""
    spec = definition.spec_of(judge, kind)
    return judge if spec is None or spec is definition.judges[judge] else judge_file(spec.model)


def _compare_people(parts: Sequence[_RunLabels], a: str, b: str, judge: str | None) -> ReaderAgreement:
    pairs = _Pairs()
    for run, labels in parts:
        shared = {key: own for key, own in labels.get(a, {}).items() if key in labels.get(b, {})}
        first, second = (run.ask_person(who, labels.get(who, {}), judge) for who in (a, b))
        pairs.add_replies(run, first, second, list(shared), run.weigh({key[0] for key in shared}, judge))
    return pairs.measure(a, b)


def _compare_judges(pool: Sequence[LabelledRun], a: str, b: str) -> ReaderAgreement:
    """Verdicts are those of whole scenarios, beliefs included: that is what the two would publish."""
    pairs = _Pairs()
    for run in pool:
        keys = [(name, PRESSURED, take) for name in run.scenarios for take in range(run.takes)]
        pairs.add_replies(run, run.ask_judge(a), run.ask_judge(b), keys, {})
    pairs.verdicts.clear()
    pairs.groups.clear()
    for run in pool:
        for name, row in run.rows_by_id(a).items():
            verdicts = row.verdict, run.rows_by_id(b)[name].verdict
            if Verdict.UNJUDGED not in verdicts:
                pairs.add_verdicts(run, name, Pair(verdicts[0].value, verdicts[1].value, run.cluster(name)))
    return pairs.measure(a, b)


def _alpha_among_people(parts: Sequence[_RunLabels], judge: str | None) -> Coefficient:
    """Alpha over all people, on letters, weighted; numeric replies have no classes and play no part."""
    units: list[RatedItem] = []
    for run, labels_by_person in parts:
        letters: defaultdict[Key, list[str]] = defaultdict(list)
        for labels in labels_by_person.values():
            for key, label in labels.items():
                if label.letter is not None:
                    letters[key].append(label.letter.value)
        compared = {key: values for key, values in letters.items() if len(values) > 1}
        weights = run.weigh({key[0] for key in compared}, judge)
        units += [RatedItem(tuple(own), run.cluster(key[0]), weights[key[0]]) for key, own in compared.items()]
    return krippendorff_alpha(units, classes=LETTERS)


def figures_meet(left: Ranged, right: Ranged, *, tolerance: float) -> bool:
    """Whether two readings of one reply are the same within the tolerance, or both empty."""
    if left.empty or right.empty:
        return left.empty and right.empty
    return all_agree([left, right], tolerance=tolerance)


# --- numbers ----------------------------------------------------------------------------------------------


def measure_errors(rows: Sequence[Compared]) -> JudgeErrors:
    both = sum(row.both for row in rows)
    judged, labelled = sum(row.judged for row in rows), sum(row.labelled for row in rows)
    by_judge = by_labels = None
    shift = Coefficient(why="one labelled scenario only" if rows else "no scenario is labelled")
    if len(rows) > 1:
        labels = [row.labelled / row.replies for row in rows]
        judge = [row.judged / row.replies for row in rows]
        takes, clusters = max(row.replies for row in rows), [row.cluster for row in rows]
        found = difference(labels, judge, clusters, takes, weights=[row.weight for row in rows])
        by_labels, by_judge = found.a, found.b
        shift = Coefficient(value=found.value, low=found.low, high=found.high)
    return JudgeErrors(
        scenarios=len(rows),
        false_lies=judged - both,
        missed_lies=labelled - both,
        precision=WeightedRate.of(both, judged, measure_precision(rows)),
        recall=WeightedRate.of(both, labelled, measure_recall(rows)),
        judge_p_lie=by_judge,
        labels_p_lie=by_labels,
        shift=shift,
    )
