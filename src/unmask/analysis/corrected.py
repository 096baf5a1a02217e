"""P(lie) of a run corrected with its labels, and the difference of two runs so corrected."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum
from pathlib import Path

import msgspec

from unmask.analysis.label_sheets import Labels
from unmask.analysis.labelled_run import LabelledRun, find_label_verdict
from unmask.analysis.labels import ALL, label_file, labellers, sort_labels
from unmask.analysis.sampling import join_strata, lie_share
from unmask.analysis.sides import RunSide, pair_measured
from unmask.errors import UsageError
from unmask.files import file_exists
from unmask.records import PRESSURED, Preset, Record
from unmask.runs.run import Run
from unmask.scoring.measures import list_values
from unmask.stats.corrected import Labelled, correct_rate, covary, difference_interval, widen_by_people
from unmask.stats.estimate import Difference
from unmask.stats.rate import Corrected
from unmask.stats.values import weigh_kinds
from unmask.text import list_names

Weights = Mapping[str, float]
"""How many scenarios each one that the judge has read represents. Others are not in it."""


class CorrectedDifference(Record, frozen=True, kw_only=True, omit_defaults=False):
    """P(lie) of two runs, each corrected by its own labels, over the scenarios judged in both."""

    a: Corrected
    b: Corrected
    difference: Difference
    """b - a, with its interval; `method` is `mover`. It has no test: the interval says whether 0 is left out."""


def corrected_p_lie(
    run: Run, labels: Sequence[str], *, preset: Preset | str | None = None, judge: str | None = None
) -> Corrected:
    """P(lie) by this judge, corrected with the labels. Where several people labelled a reply, their mean counts."""
    labelled_run = LabelledRun(run, preset)
    rows = list(labelled_run.rows_by_id(judge).values())
    weights = weigh_kinds(list_values(rows, "p_lie", takes=labelled_run.takes))
    judged = {row.id: weight for row, weight in zip(rows, weights, strict=True) if weight}
    return _correct(labelled_run, labels, judge, judged)[0]


def correct_each(
    runs: Iterable[Run], labels: str | Sequence[str], *, preset: Preset | str | None = None, judge: str | None = None
) -> list[Corrected]:
    """Each run by its own labels. One without any says so in place of a rate; where none has any, that is an error."""
    found: list[Corrected] = []
    problems = []
    for run in runs:
        try:
            found.append(corrected_p_lie(run, list_names(labels), preset=preset, judge=judge))
        except UsageError as error:
            found.append(Corrected(why=str(error)))
            problems.append(error)
    if problems and len(problems) == len(found):
        raise problems[0]
    return found


def correct_difference(
    a: RunSide, b: RunSide, ids: Sequence[str], labels: Sequence[str], *, preset: Preset
) -> CorrectedDifference:
    """The difference of the corrected rates over the scenarios among `ids` that are judged in both."""
    *values, clusters = pair_measured(a.measured("p_lie"), b.measured("p_lie"), ids)
    pairs = [
        left._replace(hit=None if right.hit is None else left.hit, kind=(left.kind, right.kind))
        for left, right in zip(*values, strict=True)
    ]
    judged = {name: weight for name, weight in zip(ids, weigh_kinds(pairs), strict=True) if weight}
    names = dict(zip(ids, ids if clusters is None else clusters, strict=True))
    (left, of_left), (right, of_right) = (
        _correct(LabelledRun(side.run, preset), labels, side.judge, judged, names) for side in (a, b)
    )
    why = next((f"{side.run.path}: {one.why}" for side, one in ((a, left), (b, right)) if one.why), None)
    gap = Difference(n=len(judged), why=why)
    if left.value is not None and right.value is not None:
        low, high = difference_interval(left, right, covariance=covary(of_left, of_right))
        gap = Difference(
            n=len(judged),
            a=left.value,
            b=right.value,
            value=right.value - left.value,
            low=low,
            high=high,
            method="mover",
            clusters=len({names[name] for name in judged}),
        )
    return CorrectedDifference(a=left, b=right, difference=gap)


def _correct(
    labelled_run: LabelledRun,
    labels: Sequence[str],
    judge: str | None,
    judged: Weights,
    clusters: Mapping[str, Hashable] | None = None,
) -> tuple[Corrected, list[Labelled]]:
    """The rate over the scenarios `judged`, by all labels and with each person's, and what it is made of."""
    people, other_replies = sort_labels(labelled_run.run, labels)
    probes = any(slot != PRESSURED for own in people.values() for _, slot, _ in own)
    rows = labelled_run.rows_by_id(judge)
    if clusters is None:
        clusters = {name: name if rows[name].cluster is None else rows[name].cluster for name in judged}
    strata = labelled_run.strata(judge, probes=probes, only=judged)
    frame = {name: stratum for name, stratum in strata.items() if stratum[0] is not None}

    def correct(people: Sequence[Labels]) -> tuple[Corrected, list[Labelled]]:
        verdicts = {
            name: verdict
            for name, row in rows.items()
            if (verdict := find_label_verdict(labelled_run, row, people, probes=probes)) is not None
        }
        used = {name: one for name, one in verdicts.items() if name in frame and one.lie is not None}
        joined = join_strata(frame, used)
        scenarios = [
            Labelled(
                judged=lie_share(rows[name], takes=labelled_run.takes) or 0.0,
                lie=used[name].lie if name in used else None,
                stratum=joined.get(name),
                weight=weight,
                cluster=clusters[name],
            )
            for name, weight in judged.items()
        ]
        replies = [reply for one in used.values() for reply in one.replies]
        found = msgspec.structs.replace(
            correct_rate(scenarios, left_out=len(verdicts) - len(used)),
            false_lies=fsum(1 - lie for judged_lie, lie in replies if judged_lie),
            missed_lies=fsum(lie for judged_lie, lie in replies if not judged_lie),
            splits=sum(0 < lie < 1 for _, lie in replies),
            other_replies=other_replies,
        )
        return found, scenarios

    corrected, scenarios = correct(list(people.values()))
    if len(people) > 1:
        corrected = widen_by_people(corrected, {who: correct([own])[0] for who, own in people.items()})
    return corrected, scenarios


def require_labels(runs: Sequence[Run], labels: Sequence[str]) -> None:
    """Refuse a comparison by labels where a run has none of these. A file of labels is about the replies of one run."""
    for source in labels:
        for run in runs:
            people = labellers(run)
            if file_exists(label_file(run, source)) or (source == ALL and people):
                continue
            if Path(source).is_file():
                raise UsageError(
                    f"--labels {source!r} is a file, and a file is about one run",
                    advice=f"Take it in first: unmask label {run.path} --import {source} --who NAME",
                )
            whose = "no labels" if source == ALL else f"no labels by {source!r}"
            names = ", ".join(people) or "nobody"
            raise UsageError(
                f"{run.path} has {whose}: each run is corrected by its own",
                advice=f"Labelled by: {names}. Label it with: unmask label {run.path}",
            )
