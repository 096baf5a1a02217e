"""From a grid to units: every combination of subject, data and treatment is a run folder with a name of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from unmask.data.dataset import Dataset
from unmask.engine.define import select_letters
from unmask.engine.prepare import load_whole, select_data
from unmask.errors import UnmaskError
from unmask.models.local.catalogue import is_trained_judge
from unmask.models.settings import PATIENCE
from unmask.models.tiers import SERVICE_TIER
from unmask.records import Record, digest
from unmask.runs.definition import judge_file, plain_name
from unmask.runs.options import (
    DeveloperPrompt,
    Options,
    as_arguments,
    load_developer_prompt,
    merge_arguments,
    options_from,
)
from unmask.sweep.grid import Condition, DataRow, Grid, ModelRow, given, refuse_grid
from unmask.sweep.specs import make_spec

FIELDS: dict[str, Any] = {
    "data": None,
    "archetypes": [],
    "ids": [],
    "sample_seed": 0,
    "model": None,
    "name": None,
    "weights": None,
    "adapter": None,
    "temperature": 1.0,
    "max_tokens": None,
    "top_p": None,
    "seed": None,
    "params": {},
    "headers": {},
    "developer_prompt": None,
    "direct": 3,
    "takes": 1,
}
"""What a unit's name is made of, each field with the value at which it is left out. Not here, because they change
nothing that was asked of the subject: id, time, version, address, judge, effort, tier, prices, and `limit`, by which a
run grows."""

LONGEST_PREFIX = 80


class Unit(Record, frozen=True, kw_only=True):
    """One run folder of a sweep."""

    digest: str
    prefix: str
    """The readable part of its name."""
    subject: ModelRow
    data: int
    """The place of its data set in the grid."""
    data_name: str
    takes: int
    seed: int | None
    temperature: float
    developer_prompt: str
    """As the grid names it; empty for none."""
    group: str
    """Units of one group ask the same probes."""

    @property
    def name(self) -> str:
        return f"{self.prefix}-{self.digest}"

    @property
    def title(self) -> str:
        """What tells it from its neighbours, for people."""
        parts = [self.subject.name, self.data_name, Path(self.developer_prompt).stem]
        parts += [f"seed {self.seed}"] if self.seed is not None else []
        parts += [f"temperature {self.temperature:g}"] if self.temperature != 1.0 else []
        parts += [f"{self.takes} takes"] if self.takes != 1 else []
        return ", ".join(filter(None, parts))


class Expansion(Record, frozen=True, kw_only=True):
    """All units of a grid, with the data they are about."""

    grid: Grid
    units: tuple[Unit, ...]
    datasets: tuple[Dataset, ...]
    notes: tuple[str, ...] = ()

    def options(self, unit: Unit, judge: ModelRow, *, beliefs_from: Path | None = None) -> Options:
        """The settings with which `unmask run` would make this unit. The address may be another each time."""
        settings = make_settings(self.grid, unit, judge) | {"beliefs_from": beliefs_from and str(beliefs_from)}
        return options_from(settings, model=unit.subject.model, judge=judge.model)


def expand_grid(grid: Grid, *, max_cost: float | None = None) -> Expansion:
    """The units of a grid. Raises one error that names all missing files, wrong values and clashes."""
    limit = grid.sweep.max_cost if max_cost is None else max_cost
    grid = msgspec.structs.replace(grid, sweep=msgspec.structs.replace(grid.sweep, max_cost=limit))
    problems: list[str] = []
    notes: list[str] = []
    selected: list[DataRow] = []
    datasets: list[Dataset] = []
    for number, row in enumerate(grid.data, start=1):
        try:
            chosen, dataset, note = _load_data(row, grid.judges)
        except UnmaskError as error:
            problems.append(f"data {number}: {_say_in_one_line(error)}")
            continue
        selected.append(chosen)
        datasets.append(dataset)
        notes += [f"data {number}: {note}"] if note else []
    prompts: dict[str, DeveloperPrompt] = {}
    for name in filter(None, grid.matrix.developer_prompt):
        try:
            prompts[name] = load_developer_prompt(name)
        except UnmaskError as error:
            problems.append(f"[matrix]: {_say_in_one_line(error)}")
    units: list[Unit] = []
    if not problems:
        candidates = list(_make_units(grid, datasets, prompts))
        excluded = [
            [unit for unit in candidates if _matches(unit, grid, condition)] for condition in grid.matrix.exclude
        ]
        notes += [f"exclude {number} matches no unit" for number, part in enumerate(excluded, start=1) if not part]
        left_out = {id(unit) for part in excluded for unit in part}
        units = [unit for unit in candidates if id(unit) not in left_out]
        problems += _find_clashes(units)
        if candidates and not units:
            problems.append("[matrix]: exclude leaves no unit")
    problems += _find_name_clashes(grid)
    problems += _check_values(grid, units)
    refuse_grid(grid.path, problems)
    grid = msgspec.structs.replace(grid, data=tuple(selected))
    return Expansion(grid=grid, units=tuple(units), datasets=tuple(datasets), notes=tuple(notes))


def _load_data(row: DataRow, judges: tuple[ModelRow, ...]) -> tuple[DataRow, Dataset, str]:
    """The data of one row, the row with what is selected of it, and what has to be said about that. The first judge of
    a grid makes the runs: where it reads no figures, they have none. A unit is named by what the grid says, so that
    another judge makes the same runs larger."""
    options = options_from(_list_selection(row))
    whole, note = load_whole(row.source), ""
    if judges and is_trained_judge(judges[0].model):
        options, note = select_letters(whole, options, judge=judges[0].model)
    return msgspec.structs.replace(row, archetype=options.archetype), select_data(whole, options), note


def make_settings(grid: Grid, unit: Unit, judge: ModelRow) -> dict[str, Any]:
    """The keyword arguments of `unmask.run` for this unit, but for data and models."""
    options, subject = given(grid.options), unit.subject
    of_all = {name: options.pop(name) for name in ("timeout", *PATIENCE) if name in options}
    of_subject: dict[str, Any] = {"temperature": unit.temperature, "seed": unit.seed}
    of_subject |= {name: options.pop(name) for name in ("max_tokens", "top_p") if name in options}
    of_judge = {"name": file} if (file := name_judge_file(judge)) else {}
    run = {
        **options,
        **_list_selection(grid.data[unit.data]),
        "takes": unit.takes,
        "developer_prompt": unit.developer_prompt or None,
        "max_cost": grid.sweep.max_cost,
        "batch": "all" if subject.batch else "judge" if judge.batch else None,
    }
    return merge_arguments(
        run,
        as_arguments("subject", of_all | of_subject | _free(subject) | subject.settings),
        as_arguments("judge", of_all | of_judge | _free(judge) | judge.settings),
    )


def _free(row: ModelRow) -> dict[str, str]:
    """What a server of our own costs."""
    return {"price": "0/0"} if row.serve else {}


def name_judge_file(judge: ModelRow) -> str | None:
    """The file of a judge that the grid gives a name of its own; `None` for one that has its model's."""
    return None if judge.name == judge.model or judge.serve is not None else judge_file(judge.name)


def _list_selection(row: DataRow) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(row).items() if name != "source"}


def _say_in_one_line(error: UnmaskError) -> str:
    return " ".join(str(error).split())


def _make_units(grid: Grid, datasets: list[Dataset], prompts: Mapping[str, DeveloperPrompt]) -> Iterator[Unit]:
    matrix = grid.matrix
    treatments = product(matrix.developer_prompt, matrix.takes, matrix.temperature, matrix.seed)
    for subject, (place, dataset), (prompt, takes, temperature, seed) in product(
        grid.subjects, enumerate(datasets), treatments
    ):
        fields = _collect_identity(grid, subject, place, dataset) | {"temperature": temperature, "seed": seed}
        treated = fields | {"takes": takes, "developer_prompt": prompts[prompt].text if prompt else None}
        parts = [plain_name(subject.name), plain_name(dataset.name), plain_name(Path(prompt).stem) if prompt else ""]
        parts += [f"seed{seed}"] if seed is not None else []
        parts += [f"t{temperature:g}"] if temperature != 1.0 else []
        parts += [f"x{takes}"] if takes != 1 else []
        yield Unit(
            digest=make_digest(treated),
            prefix="-".join(filter(None, parts))[:LONGEST_PREFIX].rstrip("-._"),
            subject=subject,
            data=place,
            data_name=dataset.name,
            takes=takes,
            seed=seed,
            temperature=temperature,
            developer_prompt=prompt,
            group=make_digest(fields),
        )


def _collect_identity(grid: Grid, subject: ModelRow, place: int, dataset: Dataset) -> dict[str, Any]:
    row, serve = grid.data[place], subject.serve
    return {
        "data": dataset.full_hash,
        "archetypes": sorted(row.archetype),
        "ids": sorted(row.ids),
        "sample_seed": row.sample_seed,
        "model": subject.model,
        "name": subject.name if serve is None and subject.name != subject.model else None,
        "weights": None if serve is None else _normalise_path(serve.model),
        "adapter": None if serve is None else _normalise_path(serve.lora),
        "max_tokens": subject.max_tokens or grid.options.max_tokens,
        "top_p": grid.options.top_p if subject.top_p is None else subject.top_p,
        "params": {name: value for name, value in (subject.params or {}).items() if name != SERVICE_TIER},
        "headers": subject.headers or {},
        "direct": grid.options.direct or 3,
    }


def _normalise_path(text: str | None) -> str | None:
    """`./step_1` and `step_1` are one checkpoint, wherever the grid is started from."""
    return text if text is None or os.path.isabs(text) else str(Path(text))


def make_digest(fields: Mapping[str, Any]) -> str:
    """Ten signs that stand for these fields. Those with their usual value are left out."""
    if unknown := fields.keys() - FIELDS.keys():
        raise KeyError(f"not in the list of fields: {unknown}")
    chosen = {name: value for name, value in fields.items() if value != FIELDS[name]}
    return digest((msgspec.json.encode(chosen, order="deterministic").decode(),))[:10]


def _matches(unit: Unit, grid: Grid, condition: Condition) -> bool:
    names = {
        "subject": (unit.subject.name, unit.subject.model),
        "data": (unit.data_name, grid.data[unit.data].source),
        "developer_prompt": (unit.developer_prompt, Path(unit.developer_prompt).name),
    }
    for key, wanted in given(condition).items():
        patterns = wanted if isinstance(wanted, tuple) else (wanted,)
        if key not in names:
            if getattr(unit, key) not in patterns:
                return False
        elif not any(fnmatchcase(name, pattern) for name in names[key] for pattern in patterns):
            return False
    return True


def _find_clashes(units: Iterable[Unit]) -> Iterator[str]:
    seen: dict[str, Unit] = {}
    for unit in units:
        if (earlier := seen.setdefault(unit.digest, unit)) is not unit:
            yield (
                f"two units are the same run: {earlier.title} and {unit.title}. "
                "Give one of the subjects a name, or leave one out."
            )


def _find_name_clashes(grid: Grid) -> Iterator[str]:
    served: dict[str, ModelRow] = {}
    for row in (*grid.subjects, *grid.judges):
        try:
            if row.serve is not None:
                make_spec([row], grid.folder)
        except UnmaskError as error:
            yield _say_in_one_line(error)
        if row.serve is not None and served.setdefault(row.name.casefold(), row) != row:
            yield f"two servers are called {row.name!r}: put what differs into the name, as in name = 'model-{{step}}'"
    files: dict[str, str] = {}
    for row in grid.judges:
        file = name_judge_file(row) or judge_file(row.model)
        if file.casefold() in files:
            yield f"two judges would write one file, {file}: give one of them a name"
        files[file.casefold()] = file


def _check_values(grid: Grid, units: Iterable[Unit]) -> Iterator[str]:
    """What `unmask run` would refuse, each once, whatever number of units has it."""
    live = [judge.name for judge in grid.judges if not judge.batch]
    for name in dict.fromkeys(unit.subject.name for unit in units if unit.subject.batch and live):
        yield f"subject {name} has batch = true and judge {live[0]} has not: batches of a subject go with its judges'"
    for unit in units:
        for judge in grid.judges:
            try:
                options_from(make_settings(grid, unit, judge), model=unit.subject.model, judge=judge.model)
            except UnmaskError as error:
                yield _say_in_one_line(error)
