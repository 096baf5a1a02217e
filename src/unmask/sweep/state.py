"""What of a sweep is done: counted by the planner from the run folders each time, and stored nowhere.

`sweep.json` holds the units as they were expanded last time, so that a changed grid can say what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.errors import JournalError
from unmask.files import file_exists, read_bytes, write_atomically
from unmask.protocol.plan import plan
from unmask.records import Record
from unmask.runs.cost import Bill
from unmask.runs.definition import Definition, judge_file
from unmask.runs.folder import Folder
from unmask.sweep.grid import ModelRow
from unmask.sweep.units import Expansion, Unit, name_judge_file

SWEEP_FILE = "sweep.json"


class StoredUnit(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A unit as `sweep.json` has it."""

    folder: str
    digest: str
    title: str


class StoredSweep(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`sweep.json`."""

    unmask: str
    units: tuple[StoredUnit, ...]


class UnitState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How far one judge of a unit is: `done` of `total` scenarios have nothing left to send."""

    unit: str
    title: str
    judge: str
    done: int
    failed: int
    """Of those done, the scenarios in which a request has failed. The next start tries it again."""
    total: int

    @property
    def word(self) -> str:
        return "done" if self.done >= self.total else f"partial {self.done}/{self.total}" if self.done else "missing"


def file_of_judge(judge: ModelRow) -> str:
    return name_judge_file(judge) or judge_file(judge.model)


def locate_units(expansion: Expansion, out: Path) -> dict[str, Path]:
    """The folder of every unit by its digest. One that is there already keeps its name, whatever the readable part of
    it would be today."""
    runs = out / "runs"
    present = {path.name.rpartition("-")[2]: path for path in sorted(runs.iterdir())} if runs.is_dir() else {}
    return {unit.digest: present.get(unit.digest, runs / unit.name) for unit in expansion.units}


def choose_lenders(expansion: Expansion, folders: dict[str, Path]) -> dict[str, str]:
    """Which unit lends its probes to which, by digest. A unit that has asked its own keeps them; among the others one
    without a developer prompt lends, so that a treatment that is added later borrows from what is there."""
    groups: dict[str, list[Unit]] = {}
    for unit in expansion.units:
        groups.setdefault(unit.group, []).append(unit)
    lenders: dict[str, str] = {}
    for group in groups.values():
        definitions = {unit.digest: _read_definition(folders[unit.digest]) for unit in group}
        asked = {name for name, definition in definitions.items() if definition and definition.beliefs_from is None}
        lender = min(group, key=lambda unit: (unit.digest not in asked, bool(unit.developer_prompt)))
        for unit in group:
            if unit is not lender and unit.digest not in asked:
                lenders[unit.digest] = lender.digest
    return lenders


def _read_definition(path: Path) -> Definition | None:
    folder = Folder(path)
    return folder.definition() if folder.exists else None


def describe_units(expansion: Expansion, folders: dict[str, Path]) -> tuple[StoredUnit, ...]:
    return tuple(
        StoredUnit(folder=folders[unit.digest].name, digest=unit.digest, title=unit.title) for unit in expansion.units
    )


def store_sweep(out: Path, units: tuple[StoredUnit, ...]) -> None:
    stored = StoredSweep(unmask=__version__, units=units)
    write_atomically(out / SWEEP_FILE, msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n")


def load_sweep(out: Path) -> StoredSweep | None:
    """What was expanded last time; `None` where nothing was."""
    path = out / SWEEP_FILE
    if not file_exists(path):
        return None
    try:
        return msgspec.json.decode(read_bytes(path), type=StoredSweep)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(
            f"{path} cannot be read: {error}",
            advice="Delete it: the state is in the run folders, and the next start writes it anew.",
        ) from None


def describe_changes(before: StoredSweep | None, now: Iterable[StoredUnit]) -> Iterator[str]:
    """Which units a grid has now and had not at the last start, and the other way round."""
    if before is None:
        return
    old, new = ({unit.digest: unit for unit in units} for units in (before.units, now))
    if added := [unit for name, unit in new.items() if name not in old]:
        yield f"{_count_units(added)} new: {_list_titles(added)}"
    if gone := [unit for name, unit in old.items() if name not in new]:
        yield f"{_count_units(gone)} no longer in the grid, with the folder kept: {_list_titles(gone)}"


def _count_units(units: list[StoredUnit]) -> str:
    return "1 unit is" if len(units) == 1 else f"{len(units)} units are"


def _list_titles(units: list[StoredUnit]) -> str:
    return "; ".join(unit.title for unit in units[:3]) + (f" and {len(units) - 3} more" if len(units) > 3 else "")


def count_states(expansion: Expansion, out: Path) -> list[UnitState]:
    """How far every judge of every unit is. Reads the journals and writes nothing."""
    folders = locate_units(expansion, out)
    return [state for unit in expansion.units for state in _count_unit(unit, Folder(folders[unit.digest]), expansion)]


def _count_unit(unit: Unit, folder: Folder, expansion: Expansion) -> Iterator[UnitState]:
    """For each judge. Whoever asks the subject is the first: the others only read, and are done with a scenario once
    the first is. A failure is data, as for a score, and tried again by the next start."""
    chosen = set(expansion.datasets[unit.data].ids)
    definition = folder.definition() if folder.exists else None
    ready = chosen
    for place, file in enumerate(map(file_of_judge, expansion.grid.judges)):
        done, failed = set(), 0
        if definition is not None and file in definition.judges:
            settings = msgspec.structs.replace(definition.settings(file), ask=place == 0)
            states = folder.states(file)
            for scenario in folder.scenarios():
                state = states[scenario.id]
                if scenario.id in ready and not plan(scenario, state, settings):
                    done.add(scenario.id)
                    state.forget_errors()
                    failed += bool(plan(scenario, state, settings))
        yield UnitState(
            unit=folder.path.name, title=unit.title, judge=file, done=len(done), failed=failed, total=len(chosen)
        )
        ready = done if place == 0 else ready


def sum_costs(out: Path) -> float:
    """What all runs of the sweep have cost so far, those that left the grid included."""
    total = 0.0
    runs = out / "runs"
    for path in sorted(runs.iterdir()) if runs.is_dir() else ():
        folder = Folder(path)
        if folder.exists:
            bill = Bill()
            for asked in folder.asked():
                bill.add("subject", asked)
            for judge in folder.judge_files():
                for judged in folder.judged(judge):
                    bill.add("judge", judged)
            total += bill.known_cost
    return total
