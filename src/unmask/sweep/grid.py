"""The grid: what a sweep is made of, as typed records read from a TOML file. What is wrong is named by its path."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from unmask.data.load import bundled_sets
from unmask.errors import MissingError, UsageError
from unmask.records import Record
from unmask.runs.options import SHIPPED_PROMPTS

Many = Annotated[int, msgspec.Meta(ge=1)]
Index = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
SomeValues = Annotated[tuple[Any, ...], msgspec.Meta(min_length=1)]


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
    archetype: str | tuple[str, ...] = ()
    ids: str | tuple[str, ...] = ()
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
    top_p: float | None = None
    timeout: float | None = None
    wait_for_server: float | None = None
    give_up_after: float | None = None
    takes_per_call: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What it gives of `unmask.models.settings.ModelSettings`."""
        return {name: value for name, value in given(self).items() if name not in _NO_SETTINGS}


class SubjectRow(ModelRow, frozen=True, kw_only=True):
    """`[[subject]]`: one subject, or one for each combination of the values of `for`."""

    axes: dict[str, SomeValues] = msgspec.field(name="for", default_factory=dict)
    """`{NAME}` is replaced by each of these values in every text of the row."""


class JudgeRow(ModelRow, frozen=True, kw_only=True):
    """`[[judge]]`."""

    temperature: float | None = None


_NO_SETTINGS = ("name", "model", "key", "batch", "max_connections", "requests_per_minute", "serve", "for")


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

    takes: int | tuple[int, ...] = 1
    seed: int | tuple[int, ...] | None = None
    temperature: float | tuple[float, ...] = 1.0
    developer_prompt: str | tuple[str, ...] = ""
    exclude: tuple[Condition, ...] = ()


class GridFile(Record, frozen=True, kw_only=True):
    """A grid as it is written."""

    data: Annotated[tuple[DataRow, ...], msgspec.Meta(min_length=1)]
    subjects: Annotated[tuple[SubjectRow, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="subject")
    judges: Annotated[tuple[JudgeRow, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="judge")
    sweep: SweepTable = SweepTable()
    local: LocalTable | None = None
    ray: RayTable | None = None
    options: OptionsTable = OptionsTable()
    matrix: MatrixTable = MatrixTable()


class Grid(GridFile, frozen=True, kw_only=True):
    """A grid that has been read and checked as far as that needs no data and no model. Every row has a name and a
    model, and every value of `for` a row."""

    path: str

    @property
    def folder(self) -> Path:
        """What its paths are relative to."""
        return Path(self.path).parent


def given(record: Record) -> dict[str, Any]:
    """The fields that are not `None`, as plain values."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return {name: value for name, value in fields.items() if value is not None}


def as_list(value: Any) -> tuple[Any, ...]:
    """One value that was written without its brackets, or all of a list."""
    return value if isinstance(value, tuple) else (value,)


def read_grid(path: Path) -> Grid:
    """The grid in a file. Raises what is wrong with it."""
    try:
        written = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), GridFile)
    except FileNotFoundError:
        raise MissingError(f"there is no grid {path}", advice="docs/sweep.md has one.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from None
    except msgspec.ValidationError as error:
        words, _, place = str(error).partition(" - at `$")
        place = re.sub(r"\[(\d+)\]", lambda match: f" {int(match[1]) + 1}", place.strip("`."))
        refuse_grid(path, [f"{place}: {words}" if place else words])
        raise AssertionError from None
    matrix = msgspec.structs.replace(
        written.matrix,
        developer_prompt=tuple(
            name if name in ("", *SHIPPED_PROMPTS) else _find_path(name, path.parent)
            for name in as_list(written.matrix.developer_prompt)
        ),
    )
    grid = Grid(
        path=str(path),
        data=tuple(
            row
            if row.source in bundled_sets()
            else msgspec.structs.replace(row, source=_find_path(row.source, path.parent))
            for row in written.data
        ),
        subjects=tuple(_complete(part) for row in written.subjects for part in _fill_in(row)),
        judges=tuple(map(_complete, written.judges)),
        matrix=matrix,
        **{name: getattr(written, name) for name in ("sweep", "local", "ray", "options")},
    )
    refuse_grid(path, _check_grid(grid))
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


def _fill_in(row: SubjectRow) -> Iterator[SubjectRow]:
    """A row for each combination of the values of `for`."""
    plain = msgspec.to_builtins(msgspec.structs.replace(row, axes={}))
    for values in product(*row.axes.values()):
        yield msgspec.convert(_replace(plain, dict(zip(row.axes, values, strict=True))), SubjectRow)


def _replace(value: Any, steps: Mapping[str, Any]) -> Any:
    """Every text of a tree with `{step}` replaced. Other braces stay: a command has `{port}`."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: str(steps.get(match[1], match[0])), value)
    if isinstance(value, dict):
        return {name: _replace(part, steps) for name, part in value.items()}
    return [_replace(part, steps) for part in value] if isinstance(value, list | tuple) else value


def _complete(row: Any) -> Any:
    """A row with a name and a model, where it says enough for both."""
    serve: ServeTable | None = row.serve
    if serve is None:
        return msgspec.structs.replace(row, name=row.name or row.model)
    name = row.name or Path(serve.lora or serve.model or "").name
    return msgspec.structs.replace(row, name=name, model=row.model or f"{'vllm' if serve.engine else 'openai'}/{name}")


def _check_grid(grid: Grid) -> Iterator[str]:
    """What is wrong although every value is right by itself."""
    if grid.local is not None and grid.ray is not None:
        yield "servers run either on this machine, [local], or on a cluster, [ray]"
    if grid.local is None and grid.ray is None and any(row.serve for row in (*grid.subjects, *grid.judges)):
        yield "serve needs a place for its servers: [local] with gpus = […], or [ray]"
    for kind, rows in (("subject", grid.subjects), ("judge", grid.judges)):
        for number, row in enumerate(rows, start=1):
            where = f"{kind} {row.name or number}"
            if row.serve is None:
                if not row.model:
                    yield f"{where}: give model = 'provider/name', or serve = {{…}}"
                continue
            yield from (f"{where}: {problem}" for problem in _check_served(row, row.serve, grid.folder))


def _check_served(row: ModelRow, serve: ServeTable, folder: Path) -> Iterator[str]:
    wrong = ["model"] * (row.model.partition("/")[2] != row.name)
    for name in wrong + [name for name in ("base_url", "key", "tier", "batch") if getattr(row, name)]:
        yield f"{name} belongs to a model with an address, and this one is served"
    if bool(serve.command) == bool(serve.engine) or bool(serve.engine) != bool(serve.model):
        yield "serve takes either engine and model, or command"
    elif not row.name:
        yield "a server that is started by a command needs a name"
    for name in ("model", "lora"):
        if (text := getattr(serve, name)) and _is_missing(text, folder):
            yield f"serve.{name}: there is no checkpoint {os.path.abspath(folder / Path(text).expanduser())}"


def _is_missing(checkpoint: str, folder: Path) -> bool:
    """Whether this is neither a path that exists nor a name on the hub. Where a folder of the owner's name is next to
    the grid, `owner/name` is a path."""
    owner, _, name = checkpoint.rpartition("/")
    is_name = not checkpoint.startswith(("/", ".", "~")) and "/" not in owner and bool(name)
    if is_name and not (owner and (folder / owner).is_dir()):
        return False
    return not (folder / Path(checkpoint).expanduser()).exists()


def _find_path(text: str, folder: Path) -> str:
    """What is there next to the grid, by its path; anything else as it was written."""
    path = folder / Path(text).expanduser()
    return str(path) if text and path.exists() else text
