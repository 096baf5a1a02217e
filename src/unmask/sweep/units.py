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
from unmask.sweep.grid import Condition, DataRow, Grid, JudgeRow, ModelRow, SubjectRow, as_list, given, refuse_grid
from unmask.sweep.specs import make_spec

LONGEST_PREFIX = 80


class Identity(Record, frozen=True, kw_only=True):
    """What a unit asks, and of whom: its name has a digest of this, without the fields that have their default. Not
    here, because they change nothing that was asked of the subject: URL, judge, effort, tier, prices, and `limit`, by
    which a run grows."""

    data: str
    model: str
    archetypes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    sample_seed: int = 0
    name: str | None = None
    weights: str | None = None
    adapter: str | None = None
    temperature: float = 1.0
    max_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    direct: int = 3
    developer_prompt: str | None = None
    takes: int = 1

    @property
    def digest(self) -> str:
        return digest((msgspec.json.encode(self, order="sorted").decode(),))[:10]


class Unit(Record, frozen=True, kw_only=True):
    """One run folder of a sweep."""

    digest: str
    subject: SubjectRow
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
    def labels(self) -> list[str]:
        """What tells it from its neighbours."""
        labels = [self.subject.name, self.data_name, Path(self.developer_prompt).stem]
        labels += [f"seed {self.seed}"] if self.seed is not None else []
        labels += [f"temperature {self.temperature:g}"] if self.temperature != 1.0 else []
        labels += [f"{self.takes} takes"] if self.takes != 1 else []
        return [label for label in labels if label]

    @property
    def title(self) -> str:
        return ", ".join(self.labels)

    @property
    def name(self) -> str:
        prefix = "-".join(plain_name(label.replace(" ", "")) for label in self.labels)
        return f"{prefix[:LONGEST_PREFIX].rstrip('-._')}-{self.digest}"


class Expansion(Record, frozen=True, kw_only=True):
    """All units of a grid, with the data they are about."""

    grid: Grid
    units: tuple[Unit, ...]
    datasets: tuple[Dataset, ...]
    notes: tuple[str, ...] = ()

    def options(self, unit: Unit, judge: JudgeRow, *, beliefs_from: Path | None = None) -> Options:
        """The settings with which `unmask run` would make this unit. The address may be another each time."""
        settings = make_settings(self.grid, unit, judge) | {"beliefs_from": beliefs_from and str(beliefs_from)}
        return options_from(settings, model=unit.subject.model, judge=judge.model)


def expand_grid(grid: Grid, *, max_cost: float | None = None) -> Expansion:
    """The units of a grid. Raises one error that names all missing files, wrong values and clashes."""
    if max_cost is not None:
        grid = msgspec.structs.replace(grid, sweep=msgspec.structs.replace(grid.sweep, max_cost=max_cost))
    problems: list[str] = []
    notes: list[str] = []
    selected: list[DataRow] = []
    datasets: list[Dataset] = []
    for number, row in enumerate(grid.data, start=1):
        try:
            chosen, dataset, note = _load_data(row, grid.judges[0])
        except UnmaskError as error:
            problems.append(f"data {number}: {_say_in_one_line(error)}")
            continue
        selected.append(chosen)
        datasets.append(dataset)
        notes += [f"data {number}: {note}"] if note else []
    prompts: dict[str, DeveloperPrompt] = {}
    for name in filter(None, as_list(grid.matrix.developer_prompt)):
        try:
            prompts[name] = load_developer_prompt(name)
        except UnmaskError as error:
            problems.append(f"matrix: {_say_in_one_line(error)}")
    units: list[Unit] = []
    if not problems:
        units = list(_make_units(grid, datasets, prompts))
        for number, condition in enumerate(grid.matrix.exclude, start=1):
            kept = [unit for unit in units if not _matches(unit, grid, condition)]
            notes += [f"exclude {number} matches no unit"] if len(kept) == len(units) else []
            units = kept
        problems += [] if units else ["matrix: it leaves no unit"]
    problems += [*_find_clashes(units), *_find_name_clashes(grid), *_check_values(grid, units)]
    refuse_grid(grid.path, problems)
    grid = msgspec.structs.replace(grid, data=tuple(selected))
    return Expansion(grid=grid, units=tuple(units), datasets=tuple(datasets), notes=tuple(notes))


def _load_data(row: DataRow, judge: JudgeRow) -> tuple[DataRow, Dataset, str]:
    """The data of one row, the row with what is selected of it, and what has to be said about that. The first judge of
    a grid makes the runs: where it reads no figures, they have none. A unit is named by what the grid says, so that
    another judge makes the same runs larger."""
    options = options_from(_list_selection(row))
    whole, note = load_whole(row.source), ""
    if is_trained_judge(judge.model):
        options, note = select_letters(whole, options, judge=judge.model)
    return msgspec.structs.replace(row, archetype=options.archetype), select_data(whole, options), note


def make_settings(grid: Grid, unit: Unit, judge: JudgeRow) -> dict[str, Any]:
    """The keyword arguments of `unmask.run` for this unit, but for data and models."""
    options, subject = given(grid.options), unit.subject
    of_all = {name: options.pop(name) for name in ("timeout", *PATIENCE) if name in options}
    of_subject: dict[str, Any] = {"temperature": unit.temperature, "seed": unit.seed}
    of_subject |= {name: options.pop(name) for name in ("max_tokens", "top_p") if name in options}
    of_judge = {"name": file} if (file := _own_file(judge)) else {}
    run = {
        **options,
        **_list_selection(grid.data[unit.data]),
        "takes": unit.takes,
        "developer_prompt": unit.developer_prompt or None,
        "max_cost": grid.sweep.max_cost,
        "batch": "all" if subject.batch else "judge" if judge.batch else None,
    }
    free = {"price": "0/0"}  # a server of our own
    return merge_arguments(
        run,
        as_arguments("subject", of_all | of_subject | (free if subject.serve else {}) | subject.settings),
        as_arguments("judge", of_all | of_judge | (free if judge.serve else {}) | judge.settings),
    )


def file_of_judge(judge: ModelRow) -> str:
    return _own_file(judge) or judge_file(judge.model)


def _own_file(judge: ModelRow) -> str | None:
    """The file of a judge that the grid gives a name of its own; `None` for one that has its model's."""
    return None if judge.name == judge.model or judge.serve is not None else judge_file(judge.name)


def _list_selection(row: DataRow) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(row).items() if name != "source"}


def _say_in_one_line(error: UnmaskError) -> str:
    return " ".join(str(error).split())


def _make_units(grid: Grid, datasets: list[Dataset], prompts: Mapping[str, DeveloperPrompt]) -> Iterator[Unit]:
    matrix = grid.matrix
    treatments = product(*map(as_list, (matrix.developer_prompt, matrix.takes, matrix.temperature, matrix.seed)))
    for subject, (place, dataset), (prompt, takes, temperature, seed) in product(
        grid.subjects, enumerate(datasets), treatments
    ):
        row, serve = grid.data[place], subject.serve
        plain = Identity(
            data=dataset.full_hash,
            model=subject.model,
            archetypes=tuple(sorted(as_list(row.archetype))),
            ids=tuple(sorted(as_list(row.ids))),
            sample_seed=row.sample_seed,
            name=subject.name if serve is None and subject.name != subject.model else None,
            weights=serve and _normalise_path(serve.model),
            adapter=serve and _normalise_path(serve.lora),
            temperature=temperature,
            max_tokens=subject.max_tokens or grid.options.max_tokens,
            top_p=grid.options.top_p if subject.top_p is None else subject.top_p,
            seed=seed,
            params={name: value for name, value in (subject.params or {}).items() if name != SERVICE_TIER},
            headers=subject.headers or {},
            direct=grid.options.direct or 3,
        )
        text = prompts[prompt].text if prompt else None
        yield Unit(
            digest=msgspec.structs.replace(plain, takes=takes, developer_prompt=text).digest,
            subject=subject,
            data=place,
            data_name=dataset.name,
            takes=takes,
            seed=seed,
            temperature=temperature,
            developer_prompt=prompt,
            group=plain.digest,
        )


def _normalise_path(text: str | None) -> str | None:
    """`./step_1` and `step_1` are one checkpoint, wherever the grid is started from."""
    return text if text is None or os.path.isabs(text) else str(Path(text))


def _matches(unit: Unit, grid: Grid, condition: Condition) -> bool:
    names = {
        "subject": (unit.subject.name, unit.subject.model),
        "data": (unit.data_name, grid.data[unit.data].source),
        "developer_prompt": (unit.developer_prompt, Path(unit.developer_prompt).name),
    }
    for key, wanted in given(condition).items():
        if key not in names:
            if getattr(unit, key) not in as_list(wanted):
                return False
        elif not any(fnmatchcase(name, pattern) for name in names[key] for pattern in as_list(wanted)):
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
        if row.serve is not None:
            try:
                make_spec([row], grid.folder)
            except UnmaskError as error:
                yield _say_in_one_line(error)
            if served.setdefault(row.name.casefold(), row) != row:
                yield f"two servers are called {row.name!r}: put what differs into the name, as in 'model-{{step}}'"
    files: set[str] = set()
    for row in grid.judges:
        file = file_of_judge(row)
        if file.casefold() in files:
            yield f"two judges would write one file, {file}: give one of them a name"
        files.add(file.casefold())


def _check_values(grid: Grid, units: Iterable[Unit]) -> Iterator[str]:
    """What `unmask run` would refuse, each once, whatever number of units has it."""
    live = [judge.name for judge in grid.judges if not judge.batch]
    for unit in units:
        if unit.subject.batch and live:
            yield (
                f"subject {unit.subject.name} has batch = true and judge {live[0]} has not: batches of a subject go "
                "with its judges'"
            )
        for judge in grid.judges:
            try:
                options_from(make_settings(grid, unit, judge), model=unit.subject.model, judge=judge.model)
            except UnmaskError as error:
                yield _say_in_one_line(error)
