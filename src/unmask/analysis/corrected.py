"""P(lie) of a run corrected with its labels, and the difference of two runs so corrected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import fsum
from pathlib import Path

import msgspec

from unmask.analysis.label_sheets import Labels
from unmask.analysis.labelled_run import LabelledRun, can_be_labelled, find_label_verdict
from unmask.analysis.labels import ALL, label_file, labellers, sort_labels
from unmask.errors import UsageError
from unmask.files import file_exists
from unmask.records import PRESSURED, Outcome, Preset, Record, Verdict
from unmask.runs.run import Run
from unmask.stats.compare import Difference
from unmask.stats.corrected import Labelled, correct_rate, difference_interval, weigh_influences, widen_by_people
from unmask.stats.rate import Corrected


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
    corrected, _ = _correct_run(run, labels, preset=preset, judge=judge)
    return corrected


def _correct_run(
    run: Run,
    labels: Sequence[str],
    *,
    preset: Preset | str | None,
    judge: str | None,
    only: Collection[str] | None = None,
) -> tuple[Corrected, dict[str, float]]:
    """The corrected rate, and by how much each labelled scenario moves it. `only` leaves out all other scenarios."""
    labelled_run = LabelledRun(run, preset)
    labels_by_person, other_replies = sort_labels(run, labels)
    probes = any(slot != PRESSURED for own in labels_by_person.values() for _, slot, _ in own)
    every_row = [row for row in labelled_run.rows_by_id(judge).values() if only is None or row.id in only]
    rows = [row for row in every_row if row.verdict is not Verdict.UNJUDGED]
    frame = {row.id: row for row in rows if can_be_labelled(row, probes=probes)}

    def correct(people: Sequence[Labels]) -> tuple[Corrected, dict[str, float]]:
        verdicts = {
            row.id: label_verdict
            for row in every_row
            if (label_verdict := find_label_verdict(labelled_run, row, people, probes=probes))
        }
        used = {name: verdict for name, verdict in verdicts.items() if name in frame and verdict.lie is not None}
        weights = labelled_run.weigh(used, judge, probes=probes, only=frame)
        labelled = {
            name: Labelled(verdict.lie or 0.0, frame[name].verdict is Verdict.LIE, weights[name])
            for name, verdict in used.items()
        }
        found = correct_rate(
            judged, list(labelled.values()), certain=len(rows) - len(frame), left_out=len(verdicts) - len(used)
        )
        splits = sum(verdict.split for verdict in used.values())
        found = msgspec.structs.replace(found, splits=splits, other_replies=other_replies)
        return found, weigh_influences(judged, labelled, scenarios=len(rows))

    judged = [row.verdict is Verdict.LIE for row in frame.values()]
    corrected, influences = correct(list(labels_by_person.values()))
    if len(labels_by_person) > 1:
        each = {who: correct([own])[0] for who, own in labels_by_person.items()}
        corrected = widen_by_people(corrected, each)
    return corrected, influences


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
                advice=f"Labelled by: {names}. Label it with: unmask label {run.path} --who NAME",
            )


def correct_difference(
    runs: tuple[Run, Run],
    rows: tuple[Mapping[str, Outcome], Mapping[str, Outcome]],
    labels: Sequence[str],
    *,
    ids: Collection[str],
    preset: Preset,
    judge: str | None,
) -> CorrectedDifference:
    """The difference of the corrected rates. `rows` are what the judge makes of the two runs, `ids` what they share."""
    both = sorted(name for name in ids if all(row[name].verdict is not Verdict.UNJUDGED for row in rows))
    (a, by_a), (b, by_b) = (_correct_run(run, labels, preset=preset, judge=judge, only=set(both)) for run in runs)
    why = next((f"{run.path}: {side.why}" for run, side in zip(runs, (a, b), strict=True) if side.why), None)
    if runs[0].definition.takes != runs[1].definition.takes:
        why = f"{runs[0].path} has {runs[0].definition.takes} takes and {runs[1].path} {runs[1].definition.takes}"
    if why is not None or a.value is None or b.value is None:
        return CorrectedDifference(a=a, b=b, difference=Difference(n=len(both), why=why))
    by_labels = fsum(by_a[name] * by_b[name] for name in by_a.keys() & by_b.keys())
    low, high = difference_interval(a, b, covariance=_covariance(a, b, rows, both) + by_labels)
    gap = Difference(n=len(both), a=a.value, b=b.value, value=b.value - a.value, low=low, high=high, method="mover")
    return CorrectedDifference(a=a, b=b, difference=gap)


def _covariance(a: Corrected, b: Corrected, rows: Sequence[Mapping[str, Outcome]], ids: Sequence[str]) -> float:
    """Of the two rates, as far as it comes from which scenarios the runs share: what the judge's verdict on each is
    worth by the labels of its run."""
    worths = []
    for side, outcomes in zip((a, b), rows, strict=True):
        worth = {Verdict.LIE: side.lies_confirmed or 0.0, Verdict.NO_BELIEF: 0.0}
        worths.append([worth.get(outcomes[name].verdict, side.others_missed or 0.0) for name in ids])
    means = [fsum(values) / len(ids) for values in worths]
    products = ((left - means[0]) * (right - means[1]) for left, right in zip(*worths, strict=True))
    return fsum(products) / len(ids) ** 2
