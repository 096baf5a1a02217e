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
from pathlib import Path

from unmask.data import reference
from unmask.data.tables import read_rows
from unmask.errors import DataError, MissingError, UsageError
from unmask.interop.cases import (
    ImportedRun,
    ImportedScenario,
    ImportSource,
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
    indirect_number,
)
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
_NUMBER = r"\s*(None|null|nan|[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?inf)\s*"
_TUPLE = re.compile(rf"\s*[(\[]{_NUMBER},{_NUMBER}(?:,{_NUMBER},{_NUMBER})?,?\s*[)\]]\s*", re.IGNORECASE | re.ASCII)
_FAILED = re.compile(r"\s*(?:TIMEOUT_ERROR|ERROR\b:?)\s*(.*)", re.DOTALL)


def judge_column(slot: Slot, take: int) -> str:
    return f"eval({PROMPTS[slot]})_run{take + 1}"


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
    return ImportedRun(about=_describe_source(folder, files, cases), cases=tuple(cases))


def _find_files(folder: Path, model: str | None) -> dict[Path, Archetype]:
    """The files of one model. Their names end in it, after the archetype; a name may also be the archetype alone."""
    try:
        tables = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".csv")
    except OSError as error:
        raise MissingError(f"cannot read {folder}: {error.strerror or error}") from error
    files_by_model: dict[str, dict[Path, Archetype]] = {}
    for file in tables:
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


def _describe_source(folder: Path, files: Mapping[Path, Archetype], cases: list[ImportedScenario]) -> ImportSource:
    file, archetype = next(iter(files.items()))

    def count_takes(slot: Slot) -> int:
        return max((line.takes[0] + 1 for case in cases for line in case.asked if line.slot == slot), default=1)

    return ImportSource(
        harness=HARNESS,
        path=str(folder.resolve()),
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
        if not 0 <= take < 1000:  # runs are counted from 1
            continue
        if not text and not _judge_cell(cells, slot, take):
            continue
        if text.startswith("[ERROR"):
            error = scrub(text.removeprefix("[ERROR").strip(": ]"))
            yield reply_line(scenario, slot, take, error or "there", source=HARNESS)
        else:
            yield reply_line(scenario, slot, take, Choice(text), source=HARNESS)


def _judge_cell(cells: Mapping[str, str], slot: Slot, take: int) -> str:
    """What the judge wrote, or failing that what was extracted from it."""
    return next((cells[name] for name in _judge_columns(slot, take) if cells.get(name, "").strip()), "")


def _judge_columns(slot: Slot, take: int) -> list[str]:
    """Older files have one run and other names for its columns."""
    names = [judge_column(slot, take), f"{judge_column(slot, take)}_extracted"]
    if take == 0:
        plain_name = f"eval({PROMPTS[slot]})"
        names += [plain_name, f"{plain_name}_extracted"]
        if slot == PRESSURED:
            names += ["system_user_eval", "system_user_extracted"]
        else:
            probe = 1 if slot == DIRECT else indirect_number(slot) + 1
            names += [f"belief_eval_{probe}", f"belief_eval_{probe}_extracted"]
    return names


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
    match = _TUPLE.fullmatch(cell)
    if match is None:
        return None
    numbers = [_parse_bound(part) for part in match.groups()]
    return Ranged(Interval(*numbers[:2]), Interval(*numbers[2:]))


def _parse_bound(text: str | None) -> float | None:
    word = (text or "none").strip().lower()
    if word in {"none", "null", "nan"} or word.lstrip("+-") == "inf":
        return None
    number = float(word)
    return None if abs(number) == float("inf") else number
