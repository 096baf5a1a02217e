"""The grid: what a sweep is made of, read from a TOML file. Everything that is wrong with it is said at once."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from unmask.data.load import bundled_sets
from unmask.errors import MissingError, UnmaskError, UsageError
from unmask.models.settings import ModelSettings
from unmask.records import Record
from unmask.runs.options import SHIPPED_PROMPTS
from unmask.sweep.fleets import FLEETS, FleetSettings
from unmask.text import suggest_names

T = TypeVar("T")

OPTIONS = (
    *("preset", "effort", "tags", "direct", "also", "max_connections", "requests_per_minute"),
    *("max_tokens", "top_p", "timeout", "wait_for_server", "give_up_after"),
)
"""Settings of `unmask run` that hold for all units, the last three for subjects and judges."""

MODEL_SETTINGS = (
    *("base_url", "params", "headers", "tier", "price", "max_tokens", "temperature", "top_p"),
    *("timeout", "wait_for_server", "give_up_after", "takes_per_call"),
)
"""Settings of `unmask run` about one model, as a row may have them. The temperature of a subject is in the matrix."""

ENGINES = ("vllm",)


class SweepSettings(Record, frozen=True, kw_only=True):
    """`[sweep]`."""

    fleet: str = "none"
    max_cost: float | None = None


class DataRow(Record, frozen=True, kw_only=True):
    """`[[data]]`: a source and what is selected of it."""

    source: str
    limit: int | None = None
    archetype: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    sample_seed: int = 0


class ServeRow(Record, frozen=True, kw_only=True):
    """`serve = {…}`: a server of our own, of an engine or by any command that serves the OpenAI protocol."""

    engine: str | None = None
    model: str | None = None
    lora: str | None = None
    """An adapter. All adapters on one base are served together."""
    command: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    """What starts the engine, where that is not its usual command."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    tensor_parallel: int = 1
    gpus: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    replicas: int = 1
    keep: bool = False
    """Whether a judge stays from the first unit to the last. One that does not is placed when it is needed."""
    ready_within: float = 900.0
    answers_within: float = 120.0
    """Seconds after which a server that gives no answer counts as lost."""


class ModelRow(Record, frozen=True, kw_only=True):
    """`[[subject]]` or `[[judge]]`, with its placeholders filled in: a model at an address, or one to be placed."""

    name: str = ""
    model: str = ""
    key: str | None = None
    """The variable that holds its API key."""
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    """Those of `MODEL_SETTINGS` that the row has."""
    batch: bool = False
    """Whether it is asked in batches, at half price. A subject only with its judges."""
    max_connections: int | None = None
    requests_per_minute: int | None = None
    serve: ServeRow | None = None
    steps: dict[str, Any] = msgspec.field(default_factory=dict)
    """The values of `for` that this row was made with."""
    weights: str | None = None
    """`serve.model` as the grid has it: a unit's name must not depend on where the grid is started from."""
    adapter: str | None = None
    """`serve.lora` as the grid has it."""

    @property
    def base_url(self) -> str | None:
        url: str | None = self.settings.get("base_url")
        return url


class Matrix(Record, frozen=True, kw_only=True):
    """`[matrix]`: every combination is a unit."""

    takes: tuple[int, ...] = (1,)
    seed: tuple[int | None, ...] = (None,)
    temperature: tuple[float, ...] = (1.0,)
    developer_prompt: tuple[str, ...] = ("",)
    exclude: tuple[dict[str, Any], ...] = ()


class Grid(Record, frozen=True, kw_only=True):
    """A grid that has been read and checked as far as that needs no data and no model."""

    path: str
    sweep: SweepSettings
    fleet: FleetSettings
    options: dict[str, Any]
    data: tuple[DataRow, ...]
    subjects: tuple[ModelRow, ...]
    judges: tuple[ModelRow, ...]
    matrix: Matrix


CONDITIONS = ("subject", "data", "takes", "seed", "temperature", "developer_prompt")
"""What an exclusion may name."""

_FILLED_IN = ("steps", "weights", "adapter", "settings")
"""Fields of a row that no grid names: they are made from the others."""

_ROW_KEYS = tuple(name for name in ModelRow.__struct_fields__ if name not in _FILLED_IN)
_KEYS = {
    "data": DataRow.__struct_fields__,
    "subject": (*_ROW_KEYS, *(name for name in MODEL_SETTINGS if name != "temperature"), "for"),
    "judge": (*_ROW_KEYS, *MODEL_SETTINGS),
    "serve": ServeRow.__struct_fields__,
    "sweep": SweepSettings.__struct_fields__,
    "matrix": Matrix.__struct_fields__,
    "options": OPTIONS,
}
_TABLES = ("sweep", "fleet", "options", "data", "subject", "judge", "matrix")


def refuse_grid(path: str, problems: Iterable[str]) -> None:
    """Raise one error with a line for each problem, where there is any."""
    lines = tuple(dict.fromkeys(problems))
    if lines:
        count = f"{len(lines)} things are" if len(lines) > 1 else "one thing is"
        raise UsageError(
            f"{path}: {count} wrong with the grid, and nothing was started:",
            problems=lines,
            advice="docs/sweep.md has every key of a grid.",
        )


class _Reader:
    """Turns tables of TOML into records, and collects what is wrong with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []

    def check_keys(self, table: Mapping[str, Any], kind: str, where: str, allowed: Iterable[str] | None = None) -> None:
        names = tuple(_KEYS[kind] if allowed is None else allowed)
        for name in table:
            if name not in names:
                meant = suggest_names(name, names) or f"Keys are: {', '.join(names) or 'none'}."
                self.problems.append(f"{where}: there is no key {name!r}. {meant}")

    def convert(self, table: Mapping[str, Any], kind: type[T], where: str) -> T | None:
        fields = {
            name: value
            for name, value in table.items()
            if name in getattr(kind, "__struct_fields__", ()) and name not in _FILLED_IN
        }
        try:
            return msgspec.convert(fields, kind)
        except msgspec.ValidationError as error:
            self.problems.append(f"{where}: {error}")
            return None

    def tables_of(self, tree: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        tables = tree.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.problems.append(f"{name} is no list of tables: write [[{name}]]")
            return []
        if not tables:
            self.problems.append(f"there is no [[{name}]]")
        return tables

    def table_of(self, tree: Mapping[str, Any], name: str) -> dict[str, Any]:
        table = tree.get(name, {})
        if not isinstance(table, dict):
            self.problems.append(f"{name} is no table: write [{name}]")
            return {}
        return table

    def find_path(self, text: str) -> str:
        """A path as it is from here. Those of a grid are relative to its folder; what is no path there stays."""
        text = os.path.expanduser(text)
        beside = self.folder / text
        return str(beside) if text and not os.path.isabs(text) and beside.exists() else text

    def find_program(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A command whose program is a path, not a name that the system looks for, with that path in full."""
        path = os.path.abspath(self.folder / os.path.expanduser(command[0])) if command else ""
        return (path, *command[1:]) if "/" in "".join(command[:1]) and os.path.exists(path) else command

    def find_checkpoint(self, text: str) -> str:
        """A path in full, because a server may be started in another folder; a name on the hub stays."""
        path = self.folder / Path(text).expanduser()
        return os.path.abspath(path) if path.exists() or not self.may_be_on_hub(text) else text

    def may_be_on_hub(self, text: str) -> bool:
        """Whether a text that is no path here may be `name` or `owner/name` of a hub. It is not where a folder of the
        owner's name stands beside the grid: then a checkpoint is missing there."""
        owner, _, name = text.rpartition("/")
        if text.startswith(("/", ".", "~")) or "/" in owner:
            return False
        return bool(name) and not (owner and (self.folder / owner).is_dir())

    def read_data(self, table: dict[str, Any], where: str) -> DataRow | None:
        self.check_keys(table, "data", where)
        row = self.convert(_wrap_lists(table, "archetype", "ids"), DataRow, where)
        if row is None or row.source in bundled_sets():
            return row
        return msgspec.structs.replace(row, source=self.find_path(row.source))

    def read_models(self, table: dict[str, Any], kind: str, where: str) -> Iterator[ModelRow]:
        """The rows that one table stands for: one for each combination of `for`."""
        self.check_keys(table, kind, where)
        if isinstance(table.get("serve"), dict):
            self.check_keys(table["serve"], "serve", f"{where} serve")
        axes = table.get("for", {}) if kind == "subject" else {}
        if not isinstance(axes, dict) or not all(isinstance(values, list) and values for values in axes.values()):
            self.problems.append(f"{where}: for needs a list of values, as in for.step = [100, 200]")
            return
        for values in product(*axes.values()):
            steps = dict(zip(axes, values, strict=True))
            filled = _fill_in(table, steps)
            own = {name: value for name, value in filled.items() if name in MODEL_SETTINGS}
            row = self.convert(filled, ModelRow, where)
            if row is not None and self.convert(own, ModelSettings, where) is not None:
                yield from self.complete_model(msgspec.structs.replace(row, steps=steps, settings=own), where)

    def complete_model(self, row: ModelRow, where: str) -> Iterator[ModelRow]:
        """The row with a name and a model, or nothing where it lacks one."""
        serve = row.serve
        if serve is None:
            if not row.model:
                self.problems.append(f"{where}: give model = 'provider/name', or serve = {{…}}")
                return
            yield msgspec.structs.replace(row, name=row.name or row.model)
            return
        self.check_server(row, serve, where)
        paths = {name: self.find_checkpoint(value) for name in ("model", "lora") if (value := getattr(serve, name))}
        for name, path in paths.items():
            if os.path.isabs(path) and not os.path.exists(path):
                self.problems.append(f"{where}: there is no checkpoint {path} ({name})")
        name = row.name or Path(serve.lora or serve.model or "").name
        if not name:
            self.problems.append(f"{where}: a server that is started by a command needs a name")
            return
        provider = "openai" if serve.command else "vllm"
        yield msgspec.structs.replace(
            row,
            name=name,
            model=f"{provider}/{name}",
            serve=msgspec.structs.replace(
                serve, **paths, command=self.find_program(serve.command), program=self.find_program(serve.program)
            ),
            weights=_normalise_path(serve.model),
            adapter=_normalise_path(serve.lora),
        )

    def check_server(self, row: ModelRow, serve: ServeRow, where: str) -> None:
        for name in ("model", "base_url", "key", "tier", "batch"):
            if row.settings.get(name) or getattr(row, name, None):
                self.problems.append(f"{where}: {name} belongs to a model with an address, and this one is served")
        if serve.engine is not None and serve.engine not in ENGINES:
            self.problems.append(f"{where}: engine {serve.engine!r} is none of: {', '.join(ENGINES)}")
        elif bool(serve.command) == (serve.engine is not None):
            self.problems.append(f"{where}: serve needs either engine and model, or command")
        elif serve.engine is not None and not serve.model:
            self.problems.append(f"{where}: serve lacks model, the weights that {serve.engine} loads")
        if min(serve.tensor_parallel, serve.replicas) < 1:
            self.problems.append(f"{where}: tensor_parallel and replicas are at least 1")
        if serve.gpus is not None and serve.gpus < 0:
            self.problems.append(f"{where}: gpus is {serve.gpus}; it is at least 0")
        if min(serve.ready_within, serve.answers_within) <= 0:
            self.problems.append(f"{where}: ready_within and answers_within are seconds, and more than 0")

    def read_fleet(self, table: dict[str, Any], fleet: str) -> FleetSettings:
        if fleet not in FLEETS:
            return FleetSettings()
        kind = FLEETS[fleet].settings
        self.check_keys(table, "", "[fleet]", kind.__struct_fields__)
        settings = self.convert(table, kind, "[fleet]")
        try:
            (settings or FleetSettings()).check()
        except UnmaskError as error:
            self.problems.append(" ".join(filter(None, ("[fleet]:", str(error), error.advice))))
        return settings or FleetSettings()

    def read_matrix(self, table: dict[str, Any]) -> Matrix | None:
        self.check_keys(table, "matrix", "[matrix]")
        lists = _wrap_lists(table, "takes", "seed", "temperature", "developer_prompt")
        matrix = self.convert(lists, Matrix, "[matrix]")
        if matrix is None:
            return None
        for name in ("takes", "seed", "temperature", "developer_prompt"):
            values = getattr(matrix, name)
            if not values:
                self.problems.append(f"[matrix]: {name} has no value")
            elif len(set(values)) < len(values):
                self.problems.append(f"[matrix]: {name} has a value twice")
        for number, condition in enumerate(matrix.exclude, start=1):
            self.check_keys(condition, "", f"[matrix] exclude {number}", CONDITIONS)
        prompts = tuple(
            name if name in ("", *SHIPPED_PROMPTS) else self.find_path(name) for name in matrix.developer_prompt
        )
        return msgspec.structs.replace(matrix, developer_prompt=prompts)


def _normalise_path(text: str | None) -> str | None:
    """`./step_1` and `step_1` are one checkpoint."""
    return text if text is None or os.path.isabs(text) else str(Path(text))


def _wrap_lists(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The table with lists where a value stands alone."""
    return {name: [value] if name in names and not isinstance(value, list) else value for name, value in table.items()}


def _fill_in(value: Any, steps: Mapping[str, Any]) -> Any:
    """Every text of a tree with `{step}` replaced. Other braces stay: a command has `{port}`."""
    if isinstance(value, str):
        for name, step in steps.items():
            value = value.replace(f"{{{name}}}", str(step))
        return value
    if isinstance(value, dict):
        return {name: _fill_in(part, steps) for name, part in value.items() if name != "for"}
    return [_fill_in(part, steps) for part in value] if isinstance(value, list) else value


def read_grid(path: Path) -> Grid:
    """The grid in a file. Raises one error that names everything wrong with it."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingError(f"there is no grid {path}", advice="docs/sweep.md has one.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from None
    reader = _Reader(path.parent)
    for name in tree:
        if name not in _TABLES:
            meant = suggest_names(name, _TABLES) or f"Tables are: {', '.join(_TABLES)}."
            reader.problems.append(f"there is no table {name!r}. {meant}")
    tables = {name: reader.table_of(tree, name) for name in ("sweep", "fleet", "options", "matrix")}
    for name in ("sweep", "options"):
        reader.check_keys(tables[name], name, f"[{name}]")
    sweep = reader.convert(tables["sweep"], SweepSettings, "[sweep]") or SweepSettings()
    if sweep.fleet not in FLEETS:
        meant = suggest_names(sweep.fleet, FLEETS) or f"Choose from: {', '.join(FLEETS)}."
        reader.problems.append(f"[sweep]: there is no fleet {sweep.fleet!r}. {meant}")
    fleet = reader.read_fleet(tables["fleet"], sweep.fleet)
    data = [
        reader.read_data(table, f"data {number}")
        for number, table in enumerate(reader.tables_of(tree, "data"), start=1)
    ]
    models = {
        kind: [
            row
            for number, table in enumerate(reader.tables_of(tree, kind), start=1)
            for row in reader.read_models(table, kind, f"{kind} {number}")
        ]
        for kind in ("subject", "judge")
    }
    if sweep.fleet == "none" and any(row.serve is not None for rows in models.values() for row in rows):
        reader.problems.append("serve needs a fleet that starts servers: [sweep] fleet = 'local'")
    matrix = reader.read_matrix(tables["matrix"]) or Matrix()
    refuse_grid(str(path), reader.problems)
    return Grid(
        path=str(path),
        sweep=sweep,
        fleet=fleet,
        options=tables["options"],
        data=tuple(filter(None, data)),
        subjects=tuple(models["subject"]),
        judges=tuple(models["judge"]),
        matrix=matrix,
    )
