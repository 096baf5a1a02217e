"""What every import ends in: scenarios with journal lines, and the run folder made of them.

A line that was not paid for by this run has a `source`, the harness it comes from, so that it counts as no call.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.data.dataset import content_hash, count_by_archetype, hash_sides, in_order
from unmask.errors import DataError, UsageError
from unmask.files import file_exists
from unmask.judges import letters
from unmask.judges.base import Style, Tags
from unmask.protocol.belief import join_figures
from unmask.protocol.presets import Rules
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


class ImportedRun(Record, frozen=True, kw_only=True):
    harness: str
    """Name and version, as in the `source` of its lines."""
    definition: Definition
    """What run.json will say; its data is described when the folder is written."""
    cases: tuple[ImportedScenario, ...]
    theirs: Rules | None = None
    """The rules of the other harness, where it left verdicts."""


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


def define_imported(
    harness: str,
    path: Path,
    *,
    model: str,
    judge: str,
    preset: Preset,
    direct: int,
    takes: int,
    probe_system: str,
    sampling: Sampling = Sampling(),  # noqa: B008  frozen
    judge_sampling: Sampling = Sampling(temperature=None, max_tokens=None),  # noqa: B008  frozen
) -> Definition:
    """The definition of a run made by another harness, with that harness's own readings."""
    file = judge_file(judge)
    readings = JudgeSpec(
        model=judge,
        endpoint=None,
        **msgspec.structs.asdict(judge_sampling),
        prompts=harness,
        style=Style.LETTERS,
    )
    return Definition(
        id=secrets.token_hex(8),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        unmask=__version__,
        data=DataSpec(
            name=path.name, source=path.name, revision=None, hash="", full_hash="", yes_means=None, counts={}
        ),
        subject=SubjectSpec(model=model, endpoint=harness, **msgspec.structs.asdict(sampling)),
        prompts=digest((probe_system,)),
        developer_prompt=None,
        beliefs_from=None,
        direct=direct,
        takes=takes,
        effort=Effort.FULL,
        preset=preset,
        tags=Tags.JUDGE,  # every reading is the other harness's own; ours by rule would replace some of them
        control=False,
        check=False,
        judge=file,
        judges={file: readings},
    )


def write_run(imported: ImportedRun, out: Path) -> None:
    """Make a run folder. An existing one is refused: an import never adds to a run."""
    folder, scenarios = Folder(out), in_order(case.scenario for case in imported.cases)
    if not scenarios:
        raise DataError("there is no scenario in it")
    whole = content_hash(scenarios)
    data = msgspec.structs.replace(
        imported.definition.data,
        hash=whole,
        full_hash=imported.definition.data.full_hash or whole,
        yes_means=hash_sides(scenarios),
        counts={archetype.value: number for archetype, number in count_by_archetype(scenarios).items()},
    )
    definition = msgspec.structs.replace(imported.definition, data=data)
    with folder.lock_replies(), folder.lock_definition():
        if folder.exists or file_exists(folder.replies.path):
            raise UsageError(f"{out} already holds a run", advice="Choose another --out.")
        folder.write_scenarios(scenarios)
        _append_records(folder.replies, (line for case in imported.cases for line in case.asked))
        if definition.judge is not None:
            readings = JournalFile(folder.readings_path(definition.judge))
            _append_records(readings, (line for case in imported.cases for line in case.judged))
        folder.write_definition(definition)  # last: a folder without it is not a run


def _append_records(lines: JournalFile, records: Iterable[msgspec.Struct]) -> None:
    try:
        for record in records:
            lines.append(record)
    finally:
        lines.close()
