"""Logs that unmask made itself, by `unmask export --format inspect` or as the Inspect task `unmask/mask`, read back.

Every sample carries its scenario and its journal lines, the header what defines the run: nothing is derived.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.errors import DataError, UsageError
from unmask.interop.cases import ImportedRun, ImportedScenario, ImportSource
from unmask.records import Asked, Judged, Preset, Record, Scenario, digest
from unmask.runs.definition import plain_name

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

KEY = "unmask"
"""Where a sample's store and the header's metadata keep what is ours."""


class SampleJournal(Record, frozen=True, kw_only=True):
    """What a sample keeps: everything that its outcome is computed from."""

    scenario: Scenario
    asked: tuple[Asked, ...] = ()
    judged: tuple[Judged, ...] = ()


def sample_id(name: str) -> str:
    """What a sample of a log is called. Inspect makes it part of a member's name, so an id that would lead whoever
    unpacks the log elsewhere is written as a plain name; the scenario itself keeps its own."""
    harmless = name.isprintable() and not re.search(r'[/\\:*?"<>|]|\A\.|\A~', name) and len(name) <= 100
    return name if harmless else f"{plain_name(name)[:60]}-{digest((name,))}"


def read_exported_log(log: EvalLog, *, path: str) -> ImportedRun:
    samples = log.samples or []
    if any(sample.epoch != 1 for sample in samples):
        raise UsageError(
            f"{path} has several epochs of the whole benchmark",
            advice="Ask for several replies with -T takes=N in place of --epochs N.",
        )
    journals = [_read_journal(sample, path) for sample in samples]
    about = ImportSource(
        harness="unmask",
        path=path,
        model=log.eval.model or "unknown",
        judge="unknown",
        preset=Preset.PAPER,
        definition=read_definition(log) or {},
    )
    scenarios = tuple(
        ImportedScenario(scenario=journal.scenario, asked=journal.asked, judged=journal.judged) for journal in journals
    )
    return ImportedRun(about=about, cases=scenarios)


def read_definition(log: EvalLog) -> dict[str, Any] | None:
    """What defines the run, where the log is one of ours."""
    definition = (log.eval.metadata or {}).get(KEY)
    return definition if isinstance(definition, dict) else None


def _read_journal(sample: EvalSample, path: str) -> SampleJournal:
    if KEY not in sample.store:
        raise DataError(f"{path}: sample {sample.id} has nothing of unmask in its store")
    try:
        return msgspec.convert(sample.store[KEY], type=SampleJournal)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DataError(f"{path}: sample {sample.id}: {error}") from None
