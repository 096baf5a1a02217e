"""The grid: what a sweep is made of, as typed records read from a TOML file. Everything that is wrong with it is said
at once, by its path."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec

from unmask.data.load import bundled_sets
from unmask.errors import MissingError, UsageError
from unmask.records import Record
from unmask.runs.options import SHIPPED_PROMPTS
from unmask.text import suggest_names

T = TypeVar("T")
Many = Annotated[int, msgspec.Meta(ge=1)]
Index = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class SweepTable(Record, frozen=True, kw_only=True):
    """`[sweep]`."""

    max_cost: float | None = None


class LocalTable(Record, frozen=True, kw_only=True):
    """`[local]`: servers run on this machine, on these of its GPUs, by index."""

    gpus: tuple[Index, ...] = ()


class RayTable(Record, frozen=True, kw_only=True):
    """`[ray]`: servers run on the Ray cluster at this address, or on a local Ray."""

    address: str | None = None
    gpus: Index | None = None
    """Of a local Ray that cannot see them."""


class OptionsTable(Record, frozen=True, kw_only=True):
    """`[options]`: settings of `unmask run` for all units, those from `timeout` on for subjects and judges."""

    preset: str | None = None
    effort: str | None = None
    tags: str | None = None
    direct: int | None = None
    control: bool | None = None
    also: str | tuple[str, ...] | None = None
    max_connections: int | None = None
    requests_per_minute: int | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    timeout: float | None = None
    wait_for_server: float | None = None
    give_up_after: float | None = None


class DataRow(Record, frozen=True, kw_only=True):
    """`[[data]]`: a source and what is selected of it."""

    source: str
    limit: int | None = None
    archetype: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    sample_seed: int = 0


class ServeTable(Record, frozen=True, kw_only=True):
    """`serve = {…}`: a server that the sweep starts, by an engine or by any command that serves the OpenAI protocol."""

    engine: Literal["vllm"] | None = None
    model: str | None = None
    lora: str | None = None
    """An adapter. All adapters on one base are served together."""
    command: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    """What starts the engine, where that is not its usual command."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    tensor_parallel: Many = 1
    data_parallel: Many = 1
    gpus: Index | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    keep: bool | None = None
    """Whether the server of a judge stays from the first unit to the last, as that of the first judge usually does."""
    ready_within: Seconds = 900.0
    answers_within: Seconds = 120.0
    """Seconds after which a server that gives no answer counts as lost."""


class ModelRow(Record, frozen=True, kw_only=True):
    """A model at an address, or one that the sweep serves. What is `None` is as `unmask run` has it."""

    name: str = ""
    model: str = ""
    key: str | None = None
    """The variable that holds its API key."""
    batch: bool = False
    """Whether it is asked in batches, at half price. A subject only with its judges."""
    max_connections: int | None = None
    requests_per_minute: int | None = None
    serve: ServeTable | None = None
    base_url: str | None = None
    params: dict[str, Any] | None = None
    headers: dict[str, str] | None = None
    tier: str | None = None
    price: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    timeout: float | None = None
    wait_for_server: float | None = None
    give_up_after: float | None = None
    takes_per_call: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What it gives of `unmask.models.settings.ModelSettings`."""
        return {name: value for name, value in given(self).items() if name in _MODEL_SETTINGS}


_OWN = ("name", "model", "key", "batch", "max_connections", "requests_per_minute", "serve")
_MODEL_SETTINGS = tuple(name for name in ModelRow.__struct_fields__ if name not in _OWN)


class Condition(Record, frozen=True, kw_only=True):
    """A table of `exclude`: `subject`, `data` and `developer_prompt` are patterns with `*`, the others values. All of
    them have to hold."""

    subject: str | tuple[str, ...] | None = None
    data: str | tuple[str, ...] | None = None
    developer_prompt: str | tuple[str, ...] | None = None
    takes: int | tuple[int, ...] | None = None
    seed: int | tuple[int, ...] | None = None
    temperature: float | tuple[float, ...] | None = None


class MatrixTable(Record, frozen=True, kw_only=True):
    """`[matrix]`: every combination is a unit."""

    takes: tuple[int, ...] = (1,)
    seed: tuple[int | None, ...] = (None,)
    temperature: tuple[float, ...] = (1.0,)
    developer_prompt: tuple[str, ...] = ("",)
    exclude: tuple[Condition, ...] = ()


class Grid(Record, frozen=True, kw_only=True):
    """A grid that has been read and checked as far as that needs no data and no model."""

    path: str
    sweep: SweepTable
    local: LocalTable | None
    ray: RayTable | None
    options: OptionsTable
    data: tuple[DataRow, ...]
    subjects: tuple[ModelRow, ...]
    judges: tuple[ModelRow, ...]
    matrix: MatrixTable

    @property
    def folder(self) -> Path:
        """What its paths are relative to."""
        return Path(self.path).parent


_TABLES = ("sweep", "local", "ray", "options", "matrix")
_ROWS = ("data", "subject", "judge")
_LISTS = {"archetype", "ids", "takes", "seed", "temperature", "developer_prompt"}
"""Keys of `[[data]]` and `[matrix]` that take one value without its brackets."""


def given(record: Record) -> dict[str, Any]:
    """The fields that are not `None`, as plain values."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return {name: value for name, value in fields.items() if value is not None}


def read_grid(path: Path) -> Grid:
    """The grid in a file. Raises one error that names everything wrong with it."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingError(f"there is no grid {path}", advice="docs/sweep.md has one.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from None
    reader = _Reader()
    grid = reader.read(tree, path)
    refuse_grid(path, [*reader.problems, *(_check_grid(grid) if grid else ())])
    assert grid is not None
    return grid


def refuse_grid(path: str | Path, problems: Iterable[str]) -> None:
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

    def __init__(self) -> None:
        self.problems: list[str] = []

    def read(self, tree: Mapping[str, Any], path: Path) -> Grid | None:
        for name in tree:
            if name not in (*_TABLES, *_ROWS):
                self.problems.append(f"{name}: there is no such table. {_suggest(name, (*_TABLES, *_ROWS))}")
        tables = {name: self._take(tree, name, dict) for name in _TABLES}
        rows = {name: self._take(tree, name, list) for name in _ROWS}
        local = self._convert(tables["local"], LocalTable, "local") if "local" in tree else None
        ray = self._convert(tables["ray"], RayTable, "ray") if "ray" in tree else None
        sweep = self._convert(tables["sweep"], SweepTable, "sweep")
        options = self._convert(tables["options"], OptionsTable, "options")
        matrix = self._convert(_wrap_lists(tables["matrix"]), MatrixTable, "matrix")
        data = [
            self._convert(_wrap_lists(table), DataRow, f"data {number}")
            for number, table in enumerate(rows["data"], start=1)
        ]
        subjects, judges = (
            [row for number, table in enumerate(rows[kind], start=1) for row in self._read_models(table, kind, number)]
            for kind in ("subject", "judge")
        )
        if sweep is None or options is None or matrix is None or self.problems:
            return None
        return Grid(
            path=str(path),
            sweep=sweep,
            local=local,
            ray=ray,
            options=options,
            data=tuple(_find_data(row, path.parent) for row in data if row),
            subjects=tuple(subjects),
            judges=tuple(judges),
            matrix=_find_prompts(matrix, path.parent),
        )

    def _take(self, tree: Mapping[str, Any], name: str, kind: type[T]) -> T:
        found = tree.get(name, kind())
        wrong = f"{name}: write [{name}]" if kind is dict else f"{name}: write [[{name}]], at least once"
        if not isinstance(found, kind) or (kind is list and not all(isinstance(table, dict) for table in found)):  # type: ignore[attr-defined]
            self.problems.append(wrong)
            return kind()
        if kind is list and not found:
            self.problems.append(wrong)
        return found

    def _read_models(self, table: dict[str, Any], kind: str, number: int) -> Iterator[ModelRow]:
        """The rows that one table stands for: one for each combination of `for`."""
        where = f"{kind} {number}"
        axes = table.get("for", {}) if kind == "subject" else {}
        if not isinstance(axes, dict) or not all(isinstance(values, list) and values for values in axes.values()):
            self.problems.append(f"{where}.for: give a list of values, as in for.step = [100, 200]")
            return
        if kind == "subject" and "temperature" in table:
            self.problems.append(f"{where}.temperature: that of the subjects is in [matrix]")
        rest = {name: value for name, value in table.items() if name != "for" or kind != "subject"}
        for values in product(*axes.values()):
            filled = _fill_in(rest, dict(zip(axes, values, strict=True)))
            row = self._convert(filled, ModelRow, where)
            if row is not None:
                yield self._complete(row, where)

    def _complete(self, row: ModelRow, where: str) -> ModelRow:
        """The row with a name and a model, checked."""
        serve = row.serve
        if serve is None:
            if not row.model:
                self.problems.append(f"{where}: give model = 'provider/name', or serve = {{…}}")
            return msgspec.structs.replace(row, name=row.name or row.model)
        for name in ("model", "base_url", "key", "tier", "batch"):
            if getattr(row, name):
                self.problems.append(f"{where}.{name}: it belongs to a model with an address, and this one is served")
        if bool(serve.command) == (serve.engine is not None):
            self.problems.append(f"{where}.serve: give either engine and model, or command")
        elif serve.engine is not None and not serve.model:
            self.problems.append(f"{where}.serve.model: give the weights that {serve.engine} loads")
        name = row.name or Path(serve.lora or serve.model or "").name
        if not name:
            self.problems.append(f"{where}.name: a server that is started by a command needs one")
        return msgspec.structs.replace(row, name=name, model=f"{'openai' if serve.command else 'vllm'}/{name}")

    def _convert(self, table: Mapping[str, Any], kind: type[T], where: str) -> T | None:
        unknown = [f"{where}{path}" for path in _find_unknown(table, kind)]
        self.problems += unknown
        if unknown:
            return None
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            words, _, path = str(error).partition(" - at `$")
            self.problems.append(f"{where}{path.rstrip('`')}: {words}")
            return None


def _find_unknown(table: Mapping[str, Any], kind: Any, path: str = "") -> Iterator[str]:
    """Every key that these records do not have, by its path."""
    fields = get_type_hints(kind)
    names = tuple(name for name in kind.__struct_fields__)
    for name, value in table.items():
        if name not in names:
            yield f"{path}.{name}: there is no such key. {_suggest(name, names)}"
            continue
        inner = next((part for part in _list_types(fields[name]) if issubclass(part, Record)), None)
        if inner is not None:
            several = isinstance(value, list)
            for number, part in enumerate(value if several else [value], start=1):
                if isinstance(part, dict):
                    yield from _find_unknown(part, inner, f"{path}.{name}{f' {number}' if several else ''}")


def _list_types(hint: Any) -> Iterator[type]:
    if isinstance(hint, type):
        yield hint
    for part in get_args(hint):
        yield from _list_types(part)


def _suggest(name: str, names: Iterable[str]) -> str:
    return suggest_names(name, names) or f"There are: {', '.join(names)}."


def _wrap_lists(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [value] if name in _LISTS and not isinstance(value, list) else value for name, value in table.items()}


def _fill_in(value: Any, steps: Mapping[str, Any]) -> Any:
    """Every text of a tree with `{step}` replaced. Other braces stay: a command has `{port}`."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: str(steps.get(match[1], match[0])), value)
    if isinstance(value, dict):
        return {name: _fill_in(part, steps) for name, part in value.items()}
    return [_fill_in(part, steps) for part in value] if isinstance(value, list) else value


# --- paths, which are relative to the folder of the grid --------------------------------------------------------


def find_checkpoint(text: str, folder: Path) -> str:
    """A path in full, because a server may be started in another folder; a name on the hub stays. What is no path here
    is none on the hub either where a folder of the owner's name is next to the grid: then a checkpoint is missing."""
    path, (owner, _, name) = folder / Path(text).expanduser(), text.rpartition("/")
    may_be_on_hub = not text.startswith(("/", ".", "~")) and "/" not in owner and bool(name)
    is_missing_here = bool(owner) and (folder / owner).is_dir()
    return os.path.abspath(path) if path.exists() or not may_be_on_hub or is_missing_here else text


def find_program(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """A command whose program is a path, not a name that the system looks for, with that path in full."""
    path = os.path.abspath(folder / os.path.expanduser(command[0])) if command else ""
    return (path, *command[1:]) if "/" in "".join(command[:1]) and os.path.exists(path) else command


def _find_path(text: str, folder: Path) -> str:
    text = os.path.expanduser(text)
    beside = folder / text
    return str(beside) if text and not os.path.isabs(text) and beside.exists() else text


def _find_data(row: DataRow, folder: Path) -> DataRow:
    is_ours = row.source in bundled_sets()
    return row if is_ours else msgspec.structs.replace(row, source=_find_path(row.source, folder))


def _find_prompts(matrix: MatrixTable, folder: Path) -> MatrixTable:
    names = (name if name in ("", *SHIPPED_PROMPTS) else _find_path(name, folder) for name in matrix.developer_prompt)
    return msgspec.structs.replace(matrix, developer_prompt=tuple(names))


def _check_grid(grid: Grid) -> Iterator[str]:
    """What is wrong although every table is right by itself."""
    served = [row.serve for row in (*grid.subjects, *grid.judges) if row.serve is not None]
    if grid.local is not None and grid.ray is not None:
        yield "servers run either on this machine, [local], or on a cluster, [ray]"
    if grid.local is None and grid.ray is None and served:
        yield "serve needs a place for its servers: [local] with gpus = […], or [ray]"
    for kind, rows in (("subject", grid.subjects), ("judge", grid.judges)):
        for row in rows:
            for name in ("model", "lora"):
                text = None if row.serve is None else getattr(row.serve, name)
                path = find_checkpoint(text, grid.folder) if text else ""
                if os.path.isabs(path) and not os.path.exists(path):
                    yield f"{kind} {row.name}, serve.{name}: there is no checkpoint {path}"
    for name in ("takes", "seed", "temperature", "developer_prompt"):
        values = getattr(grid.matrix, name)
        if not values or len(set(values)) < len(values):
            yield f"matrix.{name}: {'a value is there twice' if values else 'there is no value'}"
