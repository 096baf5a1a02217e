"""Logs that unmask made itself, by `unmask export --format inspect` or as the Inspect task `unmask/mask`, read back.

Every sample carries its scenario and its journal lines, the header what defines the run: nothing is derived.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from unmask.errors import DataError, UsageError
from unmask.interop.cases import ImportedRun, ImportedScenario, ImportSource
from unmask.interop.inspect.log import Log, LogSample
from unmask.records import Asked, Judged, Preset, Record, Scenario, digest
from unmask.runs.definition import plain_name
from unmask.text import escape_line

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


def read_exported_log(log: Log, *, path: str) -> ImportedRun:
    if any(sample.epoch != 1 for sample in log.samples):
        raise UsageError(
            f"{escape_line(path)} has several epochs of the whole benchmark",
            advice="Ask for several replies with -T takes=N in place of --epochs N.",
        )
    journals = [_read_journal(sample, path) for sample in log.samples]
    about = ImportSource(
        harness="unmask",
        path=path,
        model=str(log.header.eval.get("model") or "unknown"),
        judge="unknown",
        preset=Preset.PAPER,
        definition=read_definition(log) or {},
    )
    scenarios = tuple(
        ImportedScenario(scenario=journal.scenario, asked=journal.asked, judged=journal.judged) for journal in journals
    )
    return ImportedRun(about=about, cases=scenarios)


def read_definition(log: Log) -> dict[str, Any] | None:
    """What defines the run, where the log is one of ours."""
    metadata = log.header.eval.get("metadata")
    definition = metadata.get(KEY) if isinstance(metadata, dict) else None
    return definition if isinstance(definition, dict) else None


def _read_journal(sample: LogSample, path: str) -> SampleJournal:
    raw = sample.store.get(KEY)
    if raw is None:
        raise DataError(f"{escape_line(path)}: sample {escape_line(str(sample.id))} has nothing of unmask in its store")
    try:
        return msgspec.json.decode(raw, type=SampleJournal)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DataError(
            f"{escape_line(path)}: sample {escape_line(str(sample.id))}: {escape_line(str(error))}"
        ) from None
