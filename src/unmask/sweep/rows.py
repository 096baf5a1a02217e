"""The models behind the rows of a grid, opened and checked before anything is sent."""

from __future__ import annotations

from unmask.engine.define import NO_MODEL
from unmask.engine.session import price_for
from unmask.errors import UnmaskError
from unmask.models.base import Model
from unmask.models.keys import Role
from unmask.models.providers import open_model
from unmask.models.user_params import refuse_unknown_additions
from unmask.records import Record
from unmask.runs.options import Options
from unmask.sweep.grid import ModelRow, refuse_grid
from unmask.sweep.units import Expansion


class OpenedRow(Record, frozen=True):
    """A row of the grid with the model behind it. `None` is one that the sweep serves."""

    row: ModelRow
    model: Model | str | None


def open_rows(expansion: Expansion) -> tuple[dict[str, OpenedRow], list[OpenedRow]]:
    """The models of all rows that have an address, checked as far as that sends nothing. One error names all that is
    wrong with them."""
    grid, problems = expansion.grid, []
    opened: dict[tuple[str, str], OpenedRow] = {}
    firsts = {unit.subject.name: unit for unit in reversed(expansion.units)}
    rows: list[tuple[Role, ModelRow]] = [("subject", unit.subject) for unit in firsts.values()]
    rows += [("judge", judge) for judge in grid.judges]
    for role, row in rows:
        unit = firsts[row.name] if role == "subject" else expansion.units[0]
        options = expansion.options(unit, grid.judges[0] if role == "subject" else row)
        try:
            opened[role, row.name] = OpenedRow(row, _open_row(row, role, options))
        except UnmaskError as error:
            problems.append(f"{role} {row.name}: {' '.join(str(error).split())}")
    refuse_grid(grid.path, problems)
    subjects = {name: row for (role, name), row in opened.items() if role == "subject"}
    return subjects, [opened["judge", judge.name] for judge in grid.judges]


def _open_row(row: ModelRow, role: Role, options: Options) -> Model | str | None:
    settings = options.of(role)
    if role == "judge" and row.model == NO_MODEL:
        refuse_unknown_additions(NO_MODEL, settings.sampling, role=role)
        return NO_MODEL
    model = open_model(
        row.model,
        role=role,
        base_url=settings.base_url,
        timeout=settings.timeout,
        asks_for_key=row.serve is None,
        tier=settings.tier,
        key_variable=row.key,
    )
    refuse_unknown_additions(model, settings.sampling, role=role)
    price_for(model, role, options)
    return None if row.serve is not None else model
