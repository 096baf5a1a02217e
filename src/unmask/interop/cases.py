"""What every import ends in: scenarios with journal lines, and the run folder made of them.

A line that was not paid for by this run has a `source`, the harness it comes from, so that it counts as no call.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from unmask import __version__
from unmask.data.dataset import content_hash, count_by_archetype, hash_sides, in_order
from unmask.errors import DataError, UsageError
from unmask.files import file_exists
from unmask.judges import letters
from unmask.judges.base import Style, Tags
from unmask.protocol.belief import join_figures
from unmask.records import (
    DIRECT,
    Asked,
    Choice,
    Effort,
    Judged,
    Kind,
    Method,
    Pending,
    Preset,
    Ranged,
    Record,
    Sampling,
    Scenario,
    Slot,
    digest,
)
from unmask.runs.definition import DataSpec, Definition, JudgeSpec, SubjectSpec, judge_file
from unmask.runs.folder import Folder
from unmask.runs.imported import TheirVerdict
from unmask.runs.journal import JournalFile


class ImportedScenario(Record, frozen=True, kw_only=True):
    """One scenario as another harness left it."""

    scenario: Scenario
    asked: tuple[Asked, ...] = ()
    judged: tuple[Judged, ...] = ()
    theirs: TheirVerdict | None = None
    reread: bool = False
    """Whether the other harness read identical replies in different ways. Here the first reading counts."""


class ImportSource(Record, frozen=True, kw_only=True):
    """What is known about a run made elsewhere."""

    harness: str
    """Name and version, as it stands in `source`."""
    path: str
    model: str
    judge: str
    preset: Preset
    direct: int = 3
    takes: int = 1
    sampling: Sampling = Sampling()
    judge_sampling: Sampling = Sampling(temperature=None, max_tokens=None)
    probe_system: str = ""
    tolerant: bool = True
    """Inspect only: whether unclear probes are tolerated when a belief is made of readings."""
    tolerance: float | None = None
    """Inspect only: by which bounds are widened before figures are compared. `None` where that is not known."""
    definition: dict[str, Any] | None = None
    """`run.json` of the run, where the file was exported by unmask."""


class ImportedRun(Record, frozen=True, kw_only=True):
    about: ImportSource
    cases: tuple[ImportedScenario, ...]


# --- journal lines ----------------------------------------------------------------------------------------


def reply_line(scenario: Scenario, slot: Slot, take: int, reply: Choice | str, *, source: str) -> Asked:
    """A reply, or the reason why there is none."""
    if isinstance(reply, str):
        return Asked(scenario=scenario.id, slot=slot, takes=(take,), error=reply, source=source)
    return Asked(scenario=scenario.id, slot=slot, takes=(take,), choices=(reply,), source=source)


def judge_lines(
    scenario: Scenario, slot: Slot, texts: tuple[str, ...], answer: Choice | str, *, source: str
) -> tuple[Judged, ...]:
    """What a judge said about these texts, or why it said nothing.

    An answer without a reading is there twice: the other harness does not ask again, and nobody will for this run.
    """
    method = Method.LETTER if scenario.kind is Kind.BINARY else Method.INTERVAL
    line = Judged(scenario=scenario.id, slot=slot, digest=digest(texts), method=method, source=source)
    if isinstance(answer, str):
        return (msgspec.structs.replace(line, error=answer),)
    line = msgspec.structs.replace(line, choices=(answer,))
    if isinstance(letters.reading([line], kind=scenario.kind), Pending):
        return line, msgspec.structs.replace(line, attempt=2)
    return (line,)


def letter_choice(letter: str) -> Choice:
    return Choice(text=f"Answer: {letter}")


def interval_choice(reading: Ranged) -> Choice:
    keys = ("lower", "upper", "relative_lower", "relative_upper")
    bounds = (reading.absolute.lower, reading.absolute.upper, reading.relative.lower, reading.relative.upper)
    return Choice(text=msgspec.json.encode({"reason": ""} | dict(zip(keys, bounds, strict=True))).decode())


def joint_judge_lines(
    scenario: Scenario, texts: Sequence[str], lines: Mapping[str, Sequence[Judged]], *, source: str
) -> Iterable[Judged]:
    """One reading of all direct takes, made of the readings of each: the preset `paper` wants one.

    It is the part they share, nothing where they differ or two give no figure, unread where one could not be read.
    """
    replies = tuple(text for text in texts if text)
    if scenario.kind is not Kind.NUMERIC or len(replies) < 2:
        return ()
    readings = [letters.reading(lines.get(text, ()), kind=Kind.NUMERIC) for text in replies]
    figures = [reading for reading in readings if isinstance(reading, Ranged)]
    if len(figures) < len(readings):
        return judge_lines(scenario, DIRECT, replies, "unreadable: a direct take could not be read", source=source)
    return judge_lines(scenario, DIRECT, replies, interval_choice(join_figures(figures)), source=source)


# --- the folder -------------------------------------------------------------------------------------------


def write_run(imported: ImportedRun, out: Path) -> Definition:
    """Make a run folder. An existing one is refused: an import never adds to a run."""
    folder = Folder(out)
    if not imported.cases:
        raise DataError(f"{imported.about.path} holds no scenario")
    definition = _make_definition(imported)
    with folder.lock_replies(), folder.lock_definition():
        if folder.exists or file_exists(folder.replies.path):
            raise UsageError(f"{out} already holds a run", advice="Choose another --out.")
        folder.write_scenarios(in_order(case.scenario for case in imported.cases))
        _append_records(folder.replies, (line for case in imported.cases for line in case.asked))
        if definition.judge is not None:
            readings = JournalFile(folder.readings_path(definition.judge))
            _append_records(readings, (line for case in imported.cases for line in case.judged))
        folder.write_definition(definition)  # last: a folder without it is not a run
    return definition


def _append_records(lines: JournalFile, records: Iterable[msgspec.Struct]) -> None:
    try:
        for record in records:
            lines.append(record)
    finally:
        lines.close()


def _make_definition(imported: ImportedRun) -> Definition:
    about = imported.about
    scenarios = tuple(case.scenario for case in imported.cases)
    file = judge_file(about.judge)
    definition = Definition(
        id=secrets.token_hex(8),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        unmask=__version__,
        data=DataSpec(
            name=Path(about.path).name,
            source=Path(about.path).name,
            revision=None,
            hash=content_hash(scenarios),
            full_hash=content_hash(scenarios),
            yes_means=hash_sides(scenarios),
            counts={archetype.value: number for archetype, number in count_by_archetype(scenarios).items()},
        ),
        subject=SubjectSpec(model=about.model, endpoint=about.harness, **msgspec.structs.asdict(about.sampling)),
        prompts=digest((about.probe_system,)),
        developer_prompt=None,
        beliefs_from=None,
        direct=about.direct,
        takes=about.takes,
        effort=Effort.FULL,
        preset=about.preset,
        tags=Tags.JUDGE,  # every reading is the other harness's own; ours by rule would replace some of them
        control=False,
        check=False,
        judge=file,
        judges={
            file: JudgeSpec(
                model=about.judge,
                endpoint=None,
                **msgspec.structs.asdict(about.judge_sampling),
                prompts=about.harness,
                style=Style.LETTERS,
            )
        },
    )
    return _restore_definition(definition, about) if about.definition is not None else definition


def _restore_definition(definition: Definition, about: ImportSource) -> Definition:
    """The definition of a run that unmask itself exported, with the judge it was exported with."""
    try:
        old = msgspec.convert(about.definition, Definition)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DataError(f"the exported definition of the run cannot be used: {error}") from None
    data = msgspec.structs.replace(old.data, hash=definition.data.hash, counts=definition.data.counts)
    used = {file: old.judges[file] for file in old.judge_files(old.judge) if file in old.judges} or definition.judges
    old = msgspec.structs.replace(old, data=data, beliefs_from=None, judges=used)
    if not old.subject.model.removeprefix("inspect/"):  # the task is described before Inspect knows its model
        subject = msgspec.structs.replace(old.subject, model=f"inspect/{about.model}")
        old = msgspec.structs.replace(old, subject=subject)
    return old
