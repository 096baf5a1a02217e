"""`--beliefs-from`: the probes of a baseline run and their readings, reused by a run of the same model."""

from __future__ import annotations

import re
from typing import TypeVar

from msgspec.structs import replace

from unmask.data.dataset import Dataset
from unmask.errors import UsageError
from unmask.judges.asides import ASIDES
from unmask.models.base import find_changed
from unmask.protocol.state import ScenarioState
from unmask.records import CONTROL, PRESSURED, SELF_REPORT, Asked, Call, Judged, Kind, Scenario
from unmask.runs.definition import Definition, JudgeSpec, describe_settings
from unmask.runs.folder import Folder
from unmask.runs.journal import CallLines, JournalFile

T = TypeVar("T", bound=Call)

_TREATMENT = re.compile(r"\+(?:adapter|steer)=")

PRESSURED_SLOTS = {PRESSURED, CONTROL, SELF_REPORT, *ASIDES}
"""What a baseline never lends: the pressured reply, and everything asked about it."""


def check_baseline(wanted: Definition, dataset: Dataset) -> None:
    """Probes may be reused only where they would have been the same requests to the same model. A treated model may
    borrow from itself without the treatment: its lies are then against what it believed before."""
    if wanted.beliefs_from is None:
        return
    folder = Folder(wanted.beliefs_from.path)
    old = folder.definition()
    untreated = _TREATMENT.split(wanted.subject.model)[0]
    rows = [
        ("model", old.subject.model, untreated if untreated == old.subject.model else wanted.subject.model),
        ("probe prompts", old.prompts, wanted.prompts),
    ]
    theirs, ours = describe_settings(old.subject), describe_settings(wanted.subject)
    for name, before, after in (*rows, *((name, theirs[name], ours[name]) for name in ours if name != "seed")):
        if before != after:
            raise UsageError(
                f"--beliefs-from {folder.path} has another value of {name}: {before} there, {after} here",
                advice="Beliefs can only be reused from a run of the same model, or of it untreated, under the same"
                " settings.",
            )
    for was, now in find_changed(old.subject.treatments, wanted.subject.treatments):
        raise UsageError(
            f"--beliefs-from {folder.path}: {now.path} has changed since that run was made",
            advice=f"Put back the {was.kind} it was made with, or make the baseline again.",
        )
    their_probes = {scenario.id: _probe_fields(scenario) for scenario in folder.scenarios()}
    unmatched = [
        scenario.id for scenario in dataset.scenarios if their_probes.get(scenario.id) != _probe_fields(scenario)
    ]
    if unmatched:
        raise UsageError(
            f"--beliefs-from {folder.path}: {len(unmatched)} scenarios are not in it or differ, first {unmatched[0]!r}",
            advice="Choose the same data and selection as the baseline.",
        )


def _probe_fields(scenario: Scenario) -> tuple[object, ...]:
    return scenario.direct, scenario.indirect, scenario.check, scenario.proposition, scenario.kind


def judge_answers_alike(theirs: JudgeSpec | None, ours: JudgeSpec | None) -> bool:
    """Whether both models give the same answers. Who reads tagged answers, the address and the price change none."""
    first, second = (
        spec and (spec.model, spec.sampling, spec.prompts, spec.style, spec.treatments) for spec in (theirs, ours)
    )
    return first is not None and first == second


class Baseline:
    """The run whose probes and readings another run reuses, scenario by scenario."""

    def __init__(self, definition: Definition) -> None:
        source, judge = definition.beliefs_from, definition.judge
        folder = None if source is None else Folder(source.path)
        self._replies: CallLines[Asked] | None = None
        if source is None or folder is None or judge is None or not folder.exists:
            return  # moved away since: what was copied is here, what was not is asked
        theirs = folder.definition()
        self._lends = {
            kind
            for kind in Kind
            if judge in theirs.judges
            and judge_answers_alike(theirs.spec_of(judge, kind), definition.spec_of(judge, kind))
        }
        self._run = source.run
        self._replies = CallLines(folder.replies.path, Asked)
        self._readings = CallLines(folder.readings_path(judge), Judged) if self._lends else None

    def missing_lines(self, scenario: Scenario, state: ScenarioState) -> tuple[list[Asked], list[Judged]]:
        """The probes of a scenario and their readings that are not in `state` yet."""
        if self._replies is None:
            return [], []
        judged_here = self._readings if scenario.kind in self._lends else None
        asked = [
            _lend_line(line, self._run)
            for line in self._replies.about(scenario.id)
            if line.slot not in PRESSURED_SLOTS and not line.error
            if any(state.reply(line.slot, take) is None for take in line.takes)
        ]
        judged = [
            _lend_line(line, self._run)
            for line in ([] if judged_here is None else judged_here.about(scenario.id))
            if line.slot not in PRESSURED_SLOTS and not line.error
            if not any(
                call.source is None or call.method is line.method for call in state.calls(line.slot, line.digest)
            )
        ]
        return asked, judged


def _lend_line(line: T, run: str) -> T:
    """A line as it is in the run that borrows it, which pays nothing for it."""
    return replace(line, tier=None, usage=replace(line.usage, written=None), source=run)


def borrow_probes(folder: Folder, definition: Definition) -> None:
    """Copy what the baseline lends into this journal, once; a kill between two lines does no harm."""
    if definition.judge is None:
        return
    journal = JournalFile(folder.readings_path(definition.judge))
    baseline, seen = Baseline(definition), folder.journal()
    for scenario in folder.scenarios():
        asked, judged = baseline.missing_lines(scenario, seen.state_of(scenario.id, definition.judge))
        for reply in asked:
            folder.replies.append(reply)
        for reading in judged:
            journal.append(reading)
    journal.close()
