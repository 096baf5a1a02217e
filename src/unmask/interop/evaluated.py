"""Folders of evaluated CSV files, as the reference code writes them.

One file per archetype and model, `known_facts_gpt-4o.csv`: the columns of the data, a column of replies for each run of
each prompt, and for each of these what the judge wrote and what was extracted from it. Numeric readings are tuples of
lower, upper, relative lower and relative upper bound; each direct run repeats the reading of all of them. There are no
verdicts in these files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path

from unmask.data import reference
from unmask.data.tables import read_rows
from unmask.errors import DataError, UsageError
from unmask.interop.cases import (
    ImportedRun,
    ImportedScenario,
    define_imported,
    interval_choice,
    judge_lines,
    letter_choice,
    reply_line,
)
from unmask.models.keys import scrub
from unmask.records import (
    DIRECT,
    PRESSURED,
    Archetype,
    Asked,
    Choice,
    Interval,
    Judged,
    Kind,
    Letter,
    Preset,
    Ranged,
    Scenario,
    Slot,
    indirect,
)
from unmask.runs.definition import Definition
from unmask.text import unify_line_ends

HARNESS = "MASK reference code"
SYSTEM = "You are a helpful assistant."

PROMPTS: dict[Slot, str] = {
    PRESSURED: "System Prompt + User Prompt",
    DIRECT: "belief_system_1 + belief_elicit_1",
    indirect(1): "belief_system_1 + belief_elicit_2",
    indirect(2): "belief_system_1 + belief_elicit_3",
}
_SLOTS = {prompt: slot for slot, prompt in PROMPTS.items()}
_REPLY = re.compile(r"generation\((.+)\)(?:_run(\d{1,4}))?", re.DOTALL)
_FAILED = re.compile(r"\s*(?:TIMEOUT_ERROR|ERROR\b:?)\s*(.*)", re.DOTALL)


def read_folder(folder: Path, *, model: str | None = None) -> ImportedRun:
    """The run of one model in a folder of evaluated files."""
    files = _find_files(folder, model)
    cases: list[ImportedScenario] = []
    problems: list[str] = []
    for file, archetype in files.items():
        for row in read_rows(file, exact=True):
            imported = row.fault or _import_row(row.cells, archetype)
            if isinstance(imported, str):
                problems.append(f"{file.name}, row {row.number}: {imported}")
            else:
                cases.append(imported)
    times = Counter(case.scenario.id for case in cases)
    problems += [f"{name}: the id was used before" for name in sorted(times) if times[name] > 1]
    if problems:
        raise DataError(f"{folder} has rows that cannot be used:", problems=tuple(problems[:50]))
    if not any(case.asked for case in cases):
        raise DataError(
            f"{folder} holds scenarios, but no replies",
            advice="Import the folder `evaluated`, whose files have columns such as `generation(…)_run1`.",
        )
    return ImportedRun(harness=HARNESS, definition=_define(folder, files, cases), cases=tuple(cases))


def _find_files(folder: Path, model: str | None) -> dict[Path, Archetype]:
    """The files of one model. Their names end in it, after the archetype; a name may also be the archetype alone."""
    files_by_model: dict[str, dict[Path, Archetype]] = {}
    for file in sorted(file for file in folder.iterdir() if file.suffix.lower() == ".csv"):
        for archetype in Archetype:
            if file.stem == archetype or file.stem.startswith(f"{archetype}_"):
                files_by_model.setdefault(file.stem.removeprefix(archetype).removeprefix("_"), {})[file] = archetype
    if model is not None:
        files_by_model = {name: files for name, files in files_by_model.items() if name == model}
    if not files_by_model:
        wanted = f" of {model}" if model else ""
        raise DataError(
            f"{folder} holds no evaluated file{wanted}",
            advice=f"It needs files such as {Archetype.KNOWN_FACTS}_MODEL.csv.",
        )
    if len(files_by_model) > 1:
        names = ", ".join(name or "(none)" for name in files_by_model)
        raise UsageError(f"{folder} holds files of several models: {names}", advice="Add --model NAME.")
    return next(iter(files_by_model.values()))


def _define(folder: Path, files: Mapping[Path, Archetype], cases: list[ImportedScenario]) -> Definition:
    file, archetype = next(iter(files.items()))

    def count_takes(slot: Slot) -> int:
        return max((line.takes[0] + 1 for case in cases for line in case.asked if line.slot == slot), default=1)

    return define_imported(
        HARNESS,
        folder.resolve(),
        model=file.stem.removeprefix(archetype).removeprefix("_") or "unknown",
        judge="reference",
        preset=Preset.PAPER,
        direct=count_takes(DIRECT),
        takes=count_takes(PRESSURED),
        probe_system=SYSTEM,
    )


# --- one row ----------------------------------------------------------------------------------------------


def _import_row(cells: Mapping[str, str], archetype: Archetype) -> ImportedScenario | str:
    # One kind of line end in scenarios, as everywhere; what models and judges wrote stays as it is.
    scenario = reference.parse_row({name: unify_line_ends(cell) for name, cell in cells.items()}, archetype=archetype)
    if not isinstance(scenario, Scenario):
        return "; ".join(fault.message for fault in scenario)
    asked = tuple(_reply_lines(cells, scenario))
    read = tuple(_judge_lines(cells, scenario, asked))
    return ImportedScenario(scenario=scenario, asked=asked, judged=read)


def _reply_lines(cells: Mapping[str, str], scenario: Scenario) -> Iterator[Asked]:
    for column, text in cells.items():
        match = _REPLY.fullmatch(column)
        slot = _SLOTS.get(match.group(1)) if match else None
        if match is None or slot is None or slot not in (PRESSURED, *scenario.probes):
            continue
        take = int(match.group(2) or 1) - 1
        if not text and not _judge_cell(cells, slot, take):
            continue
        if text.startswith("[ERROR"):
            error = scrub(text.removeprefix("[ERROR").strip(": ]"))
            yield reply_line(scenario, slot, take, error or "there", source=HARNESS)
        else:
            yield reply_line(scenario, slot, take, Choice(text), source=HARNESS)


def _judge_cell(cells: Mapping[str, str], slot: Slot, take: int) -> str:
    """What the judge wrote, or failing that what was extracted from it. A file of a single run has no run numbers."""
    plain = f"eval({PROMPTS[slot]})"
    names = [f"{plain}_run{take + 1}", *([plain] if take == 0 else [])]
    columns = [column for name in names for column in (name, f"{name}_extracted")]
    return next((cells[column] for column in columns if cells.get(column, "").strip()), "")


def _judge_lines(cells: Mapping[str, str], scenario: Scenario, asked: tuple[Asked, ...]) -> Iterator[Judged]:
    """Readings of each reply; of the direct runs of a numeric scenario, the one reading they share."""
    numeric = scenario.kind is Kind.NUMERIC
    for line in asked:
        text = line.choices[0].answer if line.choices else ""
        answer = _parse_judge_cell(scenario, _judge_cell(cells, line.slot, line.takes[0]))
        if text and answer is not None and not (numeric and line.slot == DIRECT):
            yield from judge_lines(scenario, line.slot, (text,), answer, source=HARNESS)
    direct = [line for line in asked if line.slot == DIRECT]
    replies = tuple(line.choices[0].answer for line in direct if line.choices and line.choices[0].answer)
    if numeric and replies:
        answer = _parse_judge_cell(scenario, _judge_cell(cells, DIRECT, direct[0].takes[0]))
        if answer is not None:
            yield from judge_lines(scenario, DIRECT, replies, answer, source=HARNESS)


def _parse_judge_cell(scenario: Scenario, cell: str) -> Choice | str | None:
    """The judge's answer in a cell: its text, a letter alone, a tuple of bounds, or why there is none."""
    if not cell.strip():
        return None
    failed = _FAILED.fullmatch(cell)
    if failed:
        return scrub(failed.group(1).strip()) or "timeout: no answer from the judge"
    if scenario.kind is Kind.NUMERIC:
        bounds = parse_bounds(cell)
        return Choice(cell) if bounds is None else interval_choice(bounds)
    letter = cell.strip().upper()
    return letter_choice(letter) if letter in set(Letter) else Choice(cell)


def parse_bounds(cell: str) -> Ranged | None:
    """`(lower, upper)`, or these and two relative bounds, as Python prints a tuple. Nothing is evaluated."""
    parts = cell.strip().lower().strip("()[]").rstrip(",").split(",")
    if len(parts) not in (2, 4):
        return None
    try:
        numbers = [None if part.strip() in ("none", "null") else float(part) for part in parts]
    except ValueError:
        return None
    known = [number if number is not None and isfinite(number) else None for number in numbers]
    return Ranged(Interval(*known[:2]), Interval(*known[2:]))
