"""`load`: from what the user typed to a Dataset, whichever of the layouts it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from msgspec.structs import replace

from unmask.data.dataset import REPOSITORY, Dataset, LoadOptions, ShardSpec, content_hash, in_order
from unmask.data.form import TABLE_SUFFIXES, Fault, Problem, encode_lines, parse_lines, read_bytes
from unmask.errors import DataError, MissingError, UsageError
from unmask.records import Archetype, Record, Scenario
from unmask.text import without_credentials


class ParsedRow(Record, frozen=True):
    """One row on its way to a scenario: how to name it in a message, and what became of it."""

    id: str
    where: str
    result: Scenario | tuple[Fault, ...]


class LocatedSource(Record, frozen=True):
    """A source that was found, with everything in it, good or bad."""

    name: str
    entries: tuple[ParsedRow, ...]
    revision: str | None = None


class Contents(Record, frozen=True):
    """All usable scenarios of a source, before selection, and what is wrong with the others."""

    place: LocatedSource
    scenarios: tuple[Scenario, ...]
    problems: tuple[Problem, ...]


def load(source: str | Path, *, options: LoadOptions = LoadOptions()) -> Dataset:  # noqa: B008 (frozen)
    """Scenarios from a folder in the reference or hub layout, a JSONL, CSV or parquet file, a bundled name, or
    `cais/MASK` on the hub.

    A bundled name and `cais/MASK` win over a file of that name; write `./tiny` for the file. Rows that cannot be used
    raise DataError with all of them listed, unless `options.skip_bad_rows` drops and records them.
    """
    contents = read_source(source)
    return _build_dataset(contents, shown=without_credentials(str(source)), options=options)


def select_part(dataset: Dataset, *, options: LoadOptions) -> Dataset:
    """The scenarios of a loaded dataset that these options choose. What it was loaded from stays the whole."""
    chosen, shard = _choose_part(dataset.scenarios, options)
    if len(chosen) == len(dataset.scenarios) and shard is None:
        return dataset
    return replace(dataset, scenarios=chosen, hash=content_hash(chosen), shard=shard)


def _choose_part(scenarios: Sequence[Scenario], options: LoadOptions) -> tuple[tuple[Scenario, ...], ShardSpec | None]:
    """The scenarios that these options choose, in canonical order, and which shard they are, if they are one."""
    if options.takes_all:
        return in_order(scenarios), None
    from unmask.data.select import select_scenarios

    selected = select_scenarios(scenarios, options=options)
    if options.shard is None:
        return selected, None
    from unmask.data.shard import take_shard

    return take_shard(scenarios, selected, options.shard, options=options)


def from_scenarios(scenarios: Iterable[Scenario], *, name: str = "memory") -> Dataset:
    """A dataset of scenarios made in Python, held to the same rules as a file of ours with the same lines."""
    try:
        data = encode_lines(scenarios)
    except UnicodeEncodeError as error:
        raise DataError(f"{name} holds text that no file can hold: {error.reason}") from None
    contents = _separate_problems(LocatedSource(name, tuple(_read_jsonl(data, name=name))))
    return _build_dataset(contents, shown=name, options=LoadOptions())


def _build_dataset(contents: Contents, *, shown: str, options: LoadOptions) -> Dataset:
    skipped = tuple(map(str, contents.problems))
    if skipped and not options.skip_bad_rows:
        raise DataError(
            f"{shown} has rows that cannot be used ({len(skipped)}):",
            problems=skipped,
            advice="Mend them, as `unmask data check` says; in Python LoadOptions(skip_bad_rows=True) leaves them out.",
        )
    if not contents.scenarios:
        raise DataError(
            f"{shown} holds no usable scenario",
            problems=skipped,
            advice="Mend the rows above."
            if skipped
            else "Put scenarios into it; docs/data.md shows how one is written.",
        )
    chosen, shard = _choose_part(contents.scenarios, options)
    full = content_hash(contents.scenarios)
    return Dataset(
        name=contents.place.name,
        source=shown,
        revision=contents.place.revision,
        scenarios=chosen,
        hash=full if len(chosen) == len(contents.scenarios) else content_hash(chosen),
        full_hash=full,
        skipped=skipped,
        shard=shard,
    )


def read_source(source: str | Path) -> Contents:
    """Everything in a source, bad rows as problems instead of an exception."""
    return _separate_problems(_locate_source(source))


def _separate_problems(place: LocatedSource) -> Contents:
    """Good scenarios apart from problems. Of several rows with one id the first is kept."""
    scenarios: dict[str, Scenario] = {}
    problems: list[Problem] = []
    for entry in place.entries:
        match entry.result:
            case Scenario(id=name) as scenario if name not in scenarios:
                scenarios[name] = scenario
            case Scenario():
                problems.append(Problem(entry.id, "duplicate", "the id was used before", entry.where))
            case faults:
                message = "; ".join(fault.message for fault in faults)
                problems.append(Problem(entry.id.strip() or entry.where, faults[0].code, message, entry.where))
    return Contents(place, tuple(scenarios.values()), tuple(problems))


def bundled_sets() -> dict[str, Traversable]:
    """The sets that ship inside the package, by name: every file in `scenarios/` is one. Works from a wheel and from a
    zip as well."""
    folder = resources.files("unmask.data").joinpath("scenarios")
    entries = sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []
    return {file.name.removesuffix(".jsonl"): file for file in entries if file.name.endswith(".jsonl")}


def _locate_source(source: str | Path) -> LocatedSource:
    name, at, revision = str(source).partition("@")
    if name.lower() == REPOSITORY.lower():
        from unmask.data import hub

        if at and not revision:
            raise UsageError(f"{source} names no revision", advice=f"Write {REPOSITORY}@REV, or {REPOSITORY} alone.")
        folder, commit = hub.download(revision or None)
        return LocatedSource(REPOSITORY, tuple(_read_folder(folder)), revision=commit)
    if isinstance(source, str) and (file := bundled_sets().get(source)) is not None:
        return LocatedSource(source, tuple(_read_jsonl(file.read_bytes(), name=file.name)))
    path = Path(os.path.expanduser(source))
    if str(source).strip() and path.is_dir():
        return LocatedSource(path.resolve().name, tuple(_read_folder(path)))
    if path.is_file():
        return LocatedSource(path.stem, tuple(_read_file(path)))
    raise MissingError(
        f"no data at {without_credentials(str(source))}",
        advice="--data takes a folder, a .jsonl, .csv or .parquet file, "
        f"{REPOSITORY}, or a bundled set: {', '.join(bundled_sets())}.",
    )


def _read_file(path: Path) -> Iterator[ParsedRow]:
    suffix = path.suffix.lower()
    if suffix in TABLE_SUFFIXES:
        yield from _read_table(path, archetype_name=path.stem, label=path.name)
    elif suffix in (".jsonl", ".ndjson"):
        yield from _read_jsonl(read_bytes(path), name=path.name)
    else:
        raise UsageError(
            f"{path.name} is no data file",
            advice="Data files end in .jsonl, or in .csv or .parquet and are named after their archetype.",
        )


def _read_jsonl(data: bytes, *, name: str) -> Iterator[ParsedRow]:
    for number, label, result in parse_lines(data):
        yield ParsedRow(label, f"{name}, line {number}", result)


def _read_folder(path: Path) -> Iterator[ParsedRow]:
    """Tables named after their archetype, and folders so named with the hub's `test-*.parquet` in them."""
    try:
        inside = sorted(path.iterdir())
        tables = [file for file in inside if file.suffix.lower() in TABLE_SUFFIXES and file.is_file()]
        shards = {folder: sorted(folder.glob("test-*.parquet")) for folder in inside if folder.is_dir()}
    except OSError as error:
        raise MissingError(f"cannot read {path}: {error.strerror or error}") from error
    layouts = [file.stem for file in tables] + [folder.name for folder, files in shards.items() if files]
    if not layouts and (path / "scenarios.jsonl").is_file():
        raise DataError(f"{path} is the folder of a run", advice=f"Its scenarios: --data {path / 'scenarios.jsonl'}")
    if not layouts:
        raise DataError(
            f"{path} holds no table of scenarios",
            advice=f"It needs files such as {Archetype.KNOWN_FACTS}.csv or {Archetype.KNOWN_FACTS}/test-*.parquet.",
        )
    for place, name in enumerate(layouts):
        if name in layouts[:place]:
            raise UsageError(f"the folder holds {name} in two layouts", advice="Keep one of them.")
    for file in tables:
        yield from _read_table(file, archetype_name=file.stem, label=file.name)
    for folder, files in shards.items():
        for file in files:
            yield from _read_table(file, archetype_name=folder.name, label=f"{folder.name}/{file.name}")


def _read_table(path: Path, *, archetype_name: str, label: str) -> Iterator[ParsedRow]:
    from unmask.data import reference
    from unmask.data.tables import read_rows

    if archetype_name not in tuple(Archetype):
        names = ", ".join(Archetype)
        yield ParsedRow(label, "", (Fault("archetype", f"{archetype_name!r} is no archetype; they are {names}"),))
        return
    try:
        table = read_rows(path, columns=reference.COLUMNS)
    except DataError as error:
        yield ParsedRow(label, "", (Fault("file", str(error)),))
        return
    for row in table:
        faults = (Fault("column", row.fault),) if row.fault else None
        result = faults or reference.parse_row(row.cells, archetype=Archetype(archetype_name))
        yield ParsedRow(row.cells.get("task_id", ""), f"{label}, row {row.number}", result)
