"""A run as the folder of evaluated CSV files the reference code would have written."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from unmask.data.dataset import count_by_archetype
from unmask.data.export import reference_cells, reference_columns
from unmask.data.reference import EXTRA
from unmask.errors import JournalError
from unmask.files import write_atomically
from unmask.interop.reference.importing import (
    DEFINITION,
    EXTRAS_COLUMN,
    PROMPTS,
    ReplyExtras,
    judge_column,
    reply_column,
)
from unmask.judges.answers import IN_WORDS
from unmask.protocol.state import Reply, ScenarioState
from unmask.records import (
    DIRECT,
    PRESSURED,
    Archetype,
    Judged,
    Kind,
    Lettered,
    Outcome,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Scenario,
    Slot,
    Stop,
    Unread,
    UnreadReason,
    digest,
)
from unmask.runs.run import Run
from unmask.text import guard_formula

Cells = dict[str, str]


def write_folder(run: Run, folder: Path, *, preset: Preset | str | None, judge: str | None) -> None:
    """One CSV per archetype, named after it and the model, and `unmask-run.json` with what defines the run."""
    folder.mkdir(parents=True, exist_ok=True)
    file = run.judge_file(judge)
    model = re.sub(r"[^A-Za-z0-9.@+-]+", "-", run.definition.subject.model).strip("-.") or "model"
    rows = list(zip(run.scenarios, run._seen(judge), run.rows(preset=preset, judge=judge), strict=True))
    for archetype in count_by_archetype(run.scenarios):
        table = [
            _make_row(scenario, seen, outcome) for scenario, seen, outcome in rows if scenario.archetype is archetype
        ]
        _write_csv(folder / f"{archetype}_{model}.csv", table, archetype, run)
    definition = msgspec.structs.replace(
        run.definition, judge=file, preset=Preset(preset) if preset else run.definition.preset
    )
    write_atomically(folder / DEFINITION, msgspec.json.format(msgspec.json.encode(definition), indent=2) + b"\n")


def _write_csv(path: Path, table: list[Cells], archetype: Archetype, run: Run) -> None:
    names = list(reference_columns(archetype, extra=any(row.get(EXTRA) for row in table)))
    runs = {PRESSURED: run.definition.takes, DIRECT: run.definition.direct}
    places = [
        (slot, take)
        for slot in PROMPTS
        for take in range(runs.get(slot, 1))
        if any(reply_column(slot, take) in row for row in table)
    ]
    names += [reply_column(*place) for place in places] + ["ground_truth_extracted"]
    names += [name for place in places for name in (judge_column(*place), f"{judge_column(*place)}_extracted")]
    try:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            writer = csv.DictWriter(
                file,
                [*names, EXTRAS_COLUMN],
                restval="",
                extrasaction="ignore",
                quoting=csv.QUOTE_ALL,
                lineterminator="\n",
            )
            writer.writeheader()
            writer.writerows({name: guard_formula(cell) for name, cell in row.items()} for row in table)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def _make_row(scenario: Scenario, seen: ScenarioState, outcome: Outcome) -> Cells:
    row = reference_cells(scenario)
    row["ground_truth_extracted"] = row["formatted_ground_truth"]
    beyond: dict[str, ReplyExtras] = {}
    for slot in PROMPTS:
        readings = outcome.readings.get(slot, ())
        joint = scenario.kind is Kind.NUMERIC and slot == DIRECT and len(readings) == 1
        for take, reply in sorted(seen.replies.get(slot, {}).items()):
            reading = readings[0 if joint else take] if readings and (joint or take < len(readings)) else None
            line = _judge_line(seen, slot, reply) if not joint else None
            choice = reply.choice if reply.error is None else None
            row[reply_column(slot, take)] = choice.text if choice is not None else f"[ERROR: {reply.error}]"
            row |= dict(_reading_cells(slot, take, reading, line))
            more = _reply_extras(reply, line, alone=not joint and scenario.kind is Kind.NUMERIC and slot == DIRECT)
            if more != ReplyExtras():
                beyond[f"{slot}/{take}"] = more
    return row | {EXTRAS_COLUMN: msgspec.json.encode(beyond).decode() if beyond else ""}


def _judge_line(seen: ScenarioState, slot: Slot, reply: Reply) -> Judged | None:
    """The judge's last answer in words about this reply."""
    if reply.choice is None or not reply.choice.answer:
        return None
    calls = seen.calls(slot, digest((reply.choice.answer,)))
    lines = [line for line in calls if line.choices and line.method in IN_WORDS]
    return lines[-1] if lines else None


def _reading_cells(slot: Slot, take: int, reading: Reading | None, line: Judged | None) -> Iterator[tuple[str, str]]:
    column = judge_column(slot, take)
    match reading:
        case Lettered(letter=letter, by=by):
            judge = by == ReadBy.JUDGE and line is not None
            yield column, line.choices[-1].text if judge and line else f"Answer: {letter.value}"
            yield f"{column}_extracted", letter.value
        case Ranged(absolute=absolute, relative=relative):
            bounds = str((absolute.lower, absolute.upper, relative.lower, relative.upper))
            yield column, bounds
            yield f"{column}_extracted", bounds
        case Unread(reason=reason) if line is not None and not reason.startswith(UnreadReason.FAILED):
            yield column, line.choices[-1].text
        case Unread(reason=reason):
            yield column, f"ERROR: {reason.removeprefix(f'{UnreadReason.FAILED}: ')}"
        case _:
            return


def _reply_extras(reply: Reply, line: Judged | None, *, alone: bool) -> ReplyExtras:
    choice = reply.choice
    if choice is None or reply.error is not None:
        return ReplyExtras(alone=alone)
    return ReplyExtras(
        stop=choice.stop,
        reasoning=choice.reasoning,
        attempt=reply.attempt,
        judge_stop=line.choices[-1].stop if line is not None else Stop.END,
        silent=not choice.text,
        alone=alone,
    )
