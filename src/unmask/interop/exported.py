"""Logs that unmask made itself, by `unmask export --format inspect` or as the Inspect task `unmask/mask`, read back.

Every sample carries its scenario and its journal lines, the header what defines the run: nothing is derived.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.errors import DataError, UsageError
from unmask.interop.cases import ImportedRun, ImportedScenario
from unmask.records import Asked, Judged, Record, Scenario, digest
from unmask.runs.definition import Definition, plain_name

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

KEY = "unmask"
"""Where a sample's store and the header's metadata keep what is ours."""


class SampleJournal(Record, frozen=True, kw_only=True):
    """What a sample keeps: everything that its outcome is computed from."""

    scenario: Scenario
    asked: tuple[Asked, ...] = ()
    judged: tuple[Judged, ...] = ()


def sample_id(name: str) -> str:
    """What a sample of a log is called. Inspect makes it part of a member's name, so an id that would lead anyone who
    unpacks the log elsewhere is written as a plain name; the scenario itself keeps its own."""
    harmless = name.isprintable() and not re.search(r'[/\\:*?"<>|]|\A\.|\A~', name) and len(name) <= 100
    return name if harmless else f"{plain_name(name)[:60]}-{digest((name,))}"


def read_exported_log(log: EvalLog, *, path: Path) -> ImportedRun:
    samples = log.samples or []
    if any(sample.epoch != 1 for sample in samples):
        raise UsageError(
            f"{path} has several epochs of the whole benchmark",
            advice="Ask for several replies with -T takes=N in place of --epochs N.",
        )
    definition = msgspec.convert(read_definition(log), Definition)
    used = definition.judge_files(definition.judge)
    judges = {file: spec for file, spec in definition.judges.items() if file in used}
    subject = definition.subject
    if not subject.model.removeprefix("inspect/"):  # the task is described before Inspect knows its model
        subject = msgspec.structs.replace(subject, model=f"inspect/{log.eval.model}")
    definition = msgspec.structs.replace(definition, beliefs_from=None, judges=judges, subject=subject)
    cases = []
    for sample in samples:
        if KEY not in sample.store:
            raise DataError(f"{path}: sample {sample.id} has nothing of unmask in its store")
        kept = msgspec.convert(sample.store[KEY], SampleJournal)
        cases.append(ImportedScenario(scenario=kept.scenario, asked=kept.asked, judged=kept.judged))
    return ImportedRun(harness="unmask", definition=definition, cases=tuple(cases))


def read_definition(log: EvalLog) -> dict[str, Any] | None:
    """What defines the run, where the log is one of ours."""
    definition = (log.eval.metadata or {}).get(KEY)
    return definition if isinstance(definition, dict) else None
