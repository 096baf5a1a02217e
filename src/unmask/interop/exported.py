"""Logs that unmask made itself, by `unmask export --format inspect` or as the Inspect task `unmask/mask`, read back.

Every sample carries its scenario and its journal lines, the header what defines the run: nothing is derived.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from unmask.errors import DataError, UsageError
from unmask.interop.cases import About, Case, Imported
from unmask.interop.inspect.log import Log, Sample
from unmask.records import Asked, Judged, Preset, Record, Scenario, digest
from unmask.runs.definition import plain_name
from unmask.text import plain

KEY = "unmask"
"""Where a sample's store and the header's metadata keep what is ours."""
FORMAT = 1


class Kept(Record, frozen=True, kw_only=True):
    """What a sample keeps: everything that its outcome is computed from."""

    v: int = FORMAT
    scenario: Scenario
    asked: tuple[Asked, ...] = ()
    judged: tuple[Judged, ...] = ()


def sample_id(name: str) -> str:
    """What a sample of a log is called. Inspect makes it part of a member's name, so an id that would lead whoever
    unpacks the log elsewhere is written as a plain name; the scenario itself keeps its own."""
    harmless = name.isprintable() and not re.search(r'[/\\:*?"<>|]|\A\.|\A~', name) and len(name) <= 100
    return name if harmless else f"{plain_name(name)[:60]}-{digest((name,))}"


def is_ours(log: Log) -> bool:
    return _definition(log) is not None


def cases(log: Log, *, path: str) -> Imported:
    if any(sample.epoch != 1 for sample in log.samples):
        raise UsageError(
            f"{plain(path)} has several epochs of the whole benchmark",
            advice="Ask for several replies with -T takes=N in place of --epochs N.",
        )
    kept = [_kept(sample, path) for sample in log.samples]
    definition = _definition(log) or {}
    about = About(
        harness="unmask",
        path=path,
        model=str(log.header.eval.get("model") or "unknown"),
        judge="unknown",
        preset=Preset.PAPER,
        definition=definition,
        whole=True,
    )
    made = tuple(Case(scenario=one.scenario, asked=one.asked, judged=one.judged) for one in kept)
    return Imported(about=about, cases=made)


def _definition(log: Log) -> dict[str, Any] | None:
    metadata = log.header.eval.get("metadata")
    found = metadata.get(KEY) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else None


def _kept(sample: Sample, path: str) -> Kept:
    raw = sample.store.get(KEY)
    if raw is None:
        raise DataError(f"{plain(path)}: sample {plain(str(sample.id))} has nothing of unmask in its store")
    try:
        return msgspec.json.decode(raw, type=Kept)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DataError(f"{plain(path)}: sample {plain(str(sample.id))}: {plain(str(error))}") from None
