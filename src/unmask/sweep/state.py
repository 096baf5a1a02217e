"""What of a sweep is done: counted by the planner from the run folders each time, and stored nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from unmask.protocol.plan import plan
from unmask.records import Record
from unmask.runs.cost import Bill
from unmask.runs.folder import Folder
from unmask.sweep.units import Expansion, Unit, file_of_judge

RUNS = "runs"
"""The folder of a sweep that has a run folder for each unit."""


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


def locate_units(expansion: Expansion, out: Path) -> dict[str, Path]:
    """The folder of every unit by its digest. One that is there already keeps its name, whatever the readable part of
    it would be today."""
    present = {path.name.rpartition("-")[2]: path for path in _list_runs(out)}
    return {unit.digest: present.get(unit.digest, out / RUNS / unit.name) for unit in expansion.units}


def choose_lenders(expansion: Expansion, folders: dict[str, Path]) -> dict[str, str]:
    """Which unit lends its probes to which, by digest. A unit that has asked its own keeps them; among the others one
    without a developer prompt lends, so that a treatment that is added later borrows from what is there."""
    groups: dict[str, list[Unit]] = {}
    asked = set()
    for unit in expansion.units:
        groups.setdefault(unit.group, []).append(unit)
        folder = Folder(folders[unit.digest])
        if folder.exists and folder.definition().beliefs_from is None:
            asked.add(unit.digest)
    lenders: dict[str, str] = {}
    for group in groups.values():
        lender = min(group, key=lambda unit: (unit.digest not in asked, bool(unit.developer_prompt)))
        others = {unit.digest for unit in group} - asked - {lender.digest}
        lenders |= dict.fromkeys(others, lender.digest)
    return lenders


def describe_changes(expansion: Expansion, out: Path) -> Iterator[str]:
    """What a grid changes against the folders that are there: units without one, and folders without a unit."""
    folders, present = locate_units(expansion, out), set(_list_runs(out))
    added = [unit.title for unit in expansion.units if folders[unit.digest] not in present]
    if present and added:
        yield f"{_count_units(added)} new: {_list_some(added)}"
    if gone := sorted(path.name for path in present - set(folders.values())):
        yield f"{_count_units(gone)} no longer in the grid, with the folder kept: {_list_some(gone)}"


def _list_runs(out: Path) -> list[Path]:
    runs = out / RUNS
    return sorted(runs.iterdir()) if runs.is_dir() else []


def _count_units(units: list[str]) -> str:
    return "1 unit is" if len(units) == 1 else f"{len(units)} units are"


def _list_some(names: list[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def count_states(expansion: Expansion, out: Path) -> list[UnitState]:
    """How far every judge of every unit is. Reads the journals and writes nothing."""
    folders = locate_units(expansion, out)
    return [state for unit in expansion.units for state in _count_unit(unit, Folder(folders[unit.digest]), expansion)]


def _count_unit(unit: Unit, folder: Folder, expansion: Expansion) -> Iterator[UnitState]:
    """For each judge. The first one asks the subject: the others only read, and are done with a scenario once
    the first is. A failure is data, as for a score, and tried again by the next start."""
    chosen = set(expansion.datasets[unit.data].ids)
    definition = folder.definition() if folder.exists else None
    ready = chosen
    for place, file in enumerate(map(file_of_judge, expansion.grid.judges)):
        done, failed = set(), 0
        if definition is not None and file in definition.judges:
            settings = msgspec.structs.replace(definition.settings(file), ask=place == 0)
            journal = folder.journal()
            for scenario in journal.scenarios.values():
                state = journal.state_of(scenario.id, file)
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
    bill = Bill()
    for folder in map(Folder, _list_runs(out)):
        if folder.exists:
            for asked in folder.asked():
                bill.add("subject", asked)
            for judge in folder.judge_files():
                for judged in folder.judged(judge):
                    bill.add("judge", judged)
    return bill.known_cost
