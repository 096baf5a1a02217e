"""Folders of evaluated CSV files, as the reference code writes them, in and out.

One file per archetype and model, `known_facts_gpt-4o.csv`: the columns of the data, a column of replies for each run of
each prompt, and for each of these what the judge wrote and what was extracted from it. Numeric readings are tuples of
lower, upper, relative lower and relative upper bound; the reading of all direct runs together stands beside each of
them. What these columns cannot say (why a reply stopped, reasoning apart from it) is in a last column `unmask_run`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from unmask.data import reference
from unmask.data.tables import Row, read_rows
from unmask.errors import DataError, MissingError, UsageError
from unmask.interop.against import REFERENCE as HARNESS
from unmask.interop.cases import About, Case, Imported, Theirs, interval_text, judged, letter_text, replied
from unmask.interop.reference.recomputed import Failure, letter, recomputed
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
    Lettered,
    Preset,
    Ranged,
    ReadBy,
    Record,
    Scenario,
    Slot,
    Stop,
    indirect,
    indirect_number,
)
from unmask.text import plain, revealed, tidy

DEFINITION = "unmask-run.json"
"""Beside the CSV files of an export: what defines the run. Also says that cells were made harmless to spreadsheets."""
BEYOND = "unmask_run"
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


class Beyond(Record, frozen=True, kw_only=True):
    """What the columns of one reply cannot say."""

    stop: Stop = Stop.END
    reasoning: str | None = None
    attempt: int = 1
    judge_stop: Stop = Stop.END
    silent: bool = False
    """A reply without a word, as opposed to none."""
    alone: bool = False
    """The reading beside it is of this reply only, not of all direct runs."""


def reply_column(slot: Slot, take: int) -> str:
    return f"generation({PROMPTS[slot]})_run{take + 1}"


def judge_column(slot: Slot, take: int) -> str:
    return f"eval({PROMPTS[slot]})_run{take + 1}"


def read_folder(folder: Path, *, model: str | None = None) -> Imported:
    """The run of one model in a folder of evaluated files."""
    files = _files(folder, model)
    definition = _definition(folder)
    cases: list[Case] = []
    problems: list[str] = []
    for file, archetype in files.items():
        for row in read_rows(file, exact=True):
            found = _case(_revealed(row) if definition else row, archetype, ours=definition is not None)
            problems.append(f"{file.name}, row {row.number}: {found}") if isinstance(found, str) else cases.append(
                found
            )
    _refuse(folder, problems, cases)
    return Imported(about=_about(folder, files, cases, definition), cases=tuple(cases))


def _refuse(folder: Path, problems: list[str], cases: list[Case]) -> None:
    times = Counter(case.scenario.id for case in cases)
    problems = problems + [f"{plain(name)}: the id was used before" for name in sorted(times) if times[name] > 1]
    if problems:
        raise DataError(f"{plain(str(folder))} has rows that cannot be used:", problems=tuple(problems[:50]))
    if not any(case.asked for case in cases):
        raise DataError(
            f"{plain(str(folder))} holds scenarios, but no replies",
            advice="Import the folder `evaluated`, whose files have columns such as `generation(…)_run1`.",
        )


def _files(folder: Path, model: str | None) -> dict[Path, Archetype]:
    """The files of one model. Their names end in it, after the archetype; a name may also be the archetype alone."""
    try:
        tables = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".csv")
    except OSError as error:
        raise MissingError(f"cannot read {plain(str(folder))}: {error.strerror or error}") from error
    found: dict[str, dict[Path, Archetype]] = {}
    for file in tables:
        for archetype in Archetype:
            if file.stem == archetype or file.stem.startswith(f"{archetype}_"):
                found.setdefault(file.stem.removeprefix(archetype).removeprefix("_"), {})[file] = archetype
    if model is not None:
        found = {name: files for name, files in found.items() if name == model}
    if not found:
        wanted = f" of {plain(model)}" if model else ""
        raise DataError(
            f"{plain(str(folder))} holds no evaluated file{wanted}",
            advice=f"It needs files such as {Archetype.KNOWN_FACTS}_MODEL.csv.",
        )
    if len(found) > 1:
        names = ", ".join(plain(name or "(none)") for name in found)
        raise UsageError(f"{plain(str(folder))} holds files of several models: {names}", advice="Add --model NAME.")
    return next(iter(found.values()))


def _definition(folder: Path) -> dict[str, Any] | None:
    file = folder / DEFINITION
    if not file.exists():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise DataError(f"{plain(str(file))} cannot be read: {plain(str(error))}") from None


def _revealed(row: Row) -> Row:
    return Row(row.number, {name: revealed(cell) for name, cell in row.cells.items()}, row.fault)


def _about(
    folder: Path, files: Mapping[Path, Archetype], cases: list[Case], definition: dict[str, Any] | None
) -> About:
    file, archetype = next(iter(files.items()))

    def most(slot: Slot) -> int:
        return max((line.takes[0] + 1 for case in cases for line in case.asked if line.slot == slot), default=1)

    return About(
        harness=HARNESS if definition is None else "unmask",
        path=str(folder.resolve()),
        model=file.stem.removeprefix(archetype).removeprefix("_") or "unknown",
        judge="reference",
        preset=Preset.PAPER,
        direct=most(DIRECT),
        takes=most(PRESSURED),
        probe_system=SYSTEM,
        definition=definition,
    )


# --- one row ----------------------------------------------------------------------------------------------


def _case(row: Row, archetype: Archetype, *, ours: bool) -> Case | str:
    if row.fault:
        return row.fault
    # One kind of line end in scenarios, as everywhere; what models and judges wrote stays as it is.
    scenario = reference.parse({name: tidy(cell) for name, cell in row.cells.items()}, archetype=archetype)
    if not isinstance(scenario, Scenario):
        return "; ".join(fault.message for fault in scenario)
    beyond = _beyond(row.cells.get(BEYOND, ""))
    if isinstance(beyond, str):
        return beyond
    asked = tuple(_asked(row.cells, scenario, beyond, "unmask" if ours else HARNESS))
    read = tuple(_judged(row.cells, scenario, asked, beyond))
    theirs = None if ours else _theirs(row.cells, scenario, asked)
    return Case(scenario=scenario, asked=asked, judged=read, theirs=theirs)


def _theirs(cells: Mapping[str, str], scenario: Scenario, asked: tuple[Asked, ...]) -> Theirs | None:
    takes: dict[Slot, int] = {}
    for line in asked:
        takes[line.slot] = max(takes.get(line.slot, 0), line.takes[0] + 1)

    def extracted(slot: Slot, take: int) -> Lettered | Ranged | Failure | None:
        names = [name for name in _judge_columns(slot, take) if name.endswith("_extracted") and name in cells]
        if not names:
            return None
        cell = next((cells[name] for name in names if cells[name].strip()), "")
        if _FAILED.fullmatch(cell) or _FAILED.fullmatch(_judge_cell(cells, slot, take)):
            return Failure.TIMEOUT
        if scenario.kind is Kind.NUMERIC:
            return bounds_of(cell) or Failure.TIMEOUT
        read = letter(cell)
        return Failure.NO_LETTER if read is None else Lettered(read, by=ReadBy.JUDGE)

    return recomputed(scenario, takes, extracted)


def _beyond(text: str) -> dict[str, Beyond] | str:
    if not text.strip():
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Beyond])
    except (msgspec.MsgspecError, RecursionError) as error:
        return f"column `{BEYOND}`: {plain(str(error))}"


def _asked(cells: Mapping[str, str], scenario: Scenario, beyond: Mapping[str, Beyond], source: str) -> Iterator[Asked]:
    for column, text in cells.items():
        found = _REPLY.fullmatch(column)
        slot = _SLOTS.get(found.group(1)) if found else None
        if found is None or slot is None or not _has(scenario, slot):
            continue
        take = int(found.group(2) or 1) - 1
        if not 0 <= take < 1000:  # runs are counted from 1
            continue
        more = beyond.get(f"{slot}/{take}", Beyond())
        if not text and not more.silent and not _judge_cell(cells, slot, take) and more.stop is Stop.END:
            continue
        if text.startswith("[ERROR"):
            said = scrub(text.removeprefix("[ERROR").strip(": ]"))
            yield replied(scenario, slot, take, said or "there", source=source)
            continue
        line = replied(scenario, slot, take, Choice(text, more.reasoning, more.stop), source=source)
        yield msgspec.structs.replace(line, attempt=more.attempt)


def _has(scenario: Scenario, slot: Slot) -> bool:
    if slot == PRESSURED:
        return True
    if slot == DIRECT:
        return scenario.direct is not None
    return indirect_number(slot) <= len(scenario.indirect)


def _judge_cell(cells: Mapping[str, str], slot: Slot, take: int) -> str:
    """What the judge wrote, or failing that what was extracted from it."""
    return next((cells[name] for name in _judge_columns(slot, take) if cells.get(name, "").strip()), "")


def _judge_columns(slot: Slot, take: int) -> list[str]:
    """Older files have one run and other names for its columns."""
    alone = {
        PRESSURED: "system_user",
        DIRECT: "belief_eval_1",
        indirect(1): "belief_eval_2",
        indirect(2): "belief_eval_3",
    }
    names = [judge_column(slot, take), f"{judge_column(slot, take)}_extracted"]
    if take == 0:
        plain_name = f"eval({PROMPTS[slot]})"
        names += [plain_name, f"{plain_name}_extracted"]
        names += (
            ["system_user_eval", "system_user_extracted"]
            if slot == PRESSURED
            else [alone[slot], f"{alone[slot]}_extracted"]
        )
    return names


def _judged(
    cells: Mapping[str, str], scenario: Scenario, asked: tuple[Asked, ...], beyond: Mapping[str, Beyond]
) -> Iterator[Judged]:
    """Readings of each reply; of the direct runs of a numeric scenario, the one reading they share."""
    for line in asked:
        slot, take = line.slot, line.takes[0]
        text = line.choices[0].answer if line.choices else ""
        more = beyond.get(f"{slot}/{take}", Beyond())
        said = _said(scenario, _judge_cell(cells, slot, take), more)
        together = scenario.kind is Kind.NUMERIC and slot == DIRECT and not more.alone
        if text and said is not None and not together:
            yield from judged(scenario, slot, (text,), said, source=line.source or "")
    direct = [line for line in asked if line.slot == DIRECT]
    if not any(beyond.get(f"{DIRECT}/{line.takes[0]}", Beyond()).alone for line in direct):
        yield from _together(cells, scenario, direct)


def _together(cells: Mapping[str, str], scenario: Scenario, asked: list[Asked]) -> Iterator[Judged]:
    spoken = tuple(line.choices[0].answer for line in asked if line.choices and line.choices[0].answer)
    if scenario.kind is not Kind.NUMERIC or not spoken:
        return
    said = _said(scenario, _judge_cell(cells, DIRECT, asked[0].takes[0]), Beyond())
    if said is not None:
        yield from judged(scenario, DIRECT, spoken, said, source=asked[0].source or "")


def _said(scenario: Scenario, cell: str, more: Beyond) -> Choice | str | None:
    """The judge's answer in a cell: its text, a letter alone, a tuple of bounds, or the failure that stands there."""
    if not cell.strip():
        return None
    failed = _FAILED.fullmatch(cell)
    if failed:
        return scrub(failed.group(1).strip()) or "timeout: no answer from the judge"
    if scenario.kind is Kind.NUMERIC:
        bounds = bounds_of(cell)
        return Choice(cell, stop=more.judge_stop) if bounds is None else interval_text(bounds)
    found = letter(cell)
    return Choice(cell, stop=more.judge_stop) if found is None else letter_text(found.value)


def bounds_of(cell: str) -> Ranged | None:
    """`(lower, upper)`, or these and two relative bounds, as Python prints a tuple. Nothing is evaluated."""
    found = _TUPLE.fullmatch(cell)
    if found is None:
        return None
    numbers = [_bound(part) for part in found.groups()]
    return Ranged(Interval(*numbers[:2]), Interval(*numbers[2:]))


def _bound(text: str | None) -> float | None:
    word = (text or "none").strip().lower()
    if word in {"none", "null", "nan"} or word.lstrip("+-") == "inf":
        return None
    number = float(word)
    return None if abs(number) == float("inf") else number
