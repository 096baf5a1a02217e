"""`load`: from what the user typed to a Dataset, whichever of the layouts it is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from msgspec.structs import replace

from unmask.data.dataset import REPOSITORY, Dataset, LoadOptions, content_hash, in_order
from unmask.data.form import TABLE_SUFFIXES, Fault, ParsedRow, Problem, encode_lines, parse_lines, read_bytes
from unmask.errors import DataError, MissingError, UsageError
from unmask.records import Archetype, Record, Scenario
from unmask.text import without_credentials


class Contents(Record, frozen=True):
    """All usable scenarios of a source, before selection, and what is wrong with the others."""

    name: str
    revision: str | None
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
    if options.takes_all:
        return dataset
    from unmask.data.select import select_scenarios

    chosen, shard = select_scenarios(dataset.scenarios, options=options), None
    if options.shard is not None:
        from unmask.data.shard import take_shard

        chosen, shard = take_shard(dataset.scenarios, chosen, options.shard, options=options)
    return replace(dataset, scenarios=chosen, hash=content_hash(chosen), shard=shard)


def from_scenarios(scenarios: Iterable[Scenario], *, name: str = "memory") -> Dataset:
    """A dataset of scenarios made in Python, held to the same rules as a file of ours with the same lines."""
    try:
        data = encode_lines(scenarios)
    except UnicodeEncodeError as error:
        raise DataError(f"{name} holds text that no file can hold: {error.reason}") from None
    contents = _separate_problems(parse_lines(data, name=name), name)
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
        advice = "Mend the rows above." if skipped else "Put scenarios into it; docs/data.md shows how one is written."
        raise DataError(f"{shown} holds no usable scenario", problems=skipped, advice=advice)
    full = content_hash(contents.scenarios)
    whole = Dataset(
        name=contents.name,
        source=shown,
        revision=contents.revision,
        scenarios=in_order(contents.scenarios),
        hash=full,
        full_hash=full,
        skipped=skipped,
    )
    return select_part(whole, options=options)


def _separate_problems(rows: Iterable[ParsedRow], name: str, revision: str | None = None) -> Contents:
    """Good scenarios apart from problems. Of several rows with one id the first is kept."""
    scenarios: dict[str, Scenario] = {}
    problems: list[Problem] = []
    for row in rows:
        match row.result:
            case Scenario(id=own) as scenario if own not in scenarios:
                scenarios[own] = scenario
            case Scenario():
                problems.append(Problem(row.id, "duplicate", "the id was used before", row.where))
            case faults:
                message = "; ".join(fault.message for fault in faults)
                problems.append(Problem(row.id.strip() or row.where, faults[0].code, message, row.where))
    return Contents(name, revision, tuple(scenarios.values()), tuple(problems))


def bundled_sets() -> dict[str, Traversable]:
    """The sets that ship inside the package, by name: every file in `scenarios/` is one. Works from a wheel and from a
    zip as well."""
    files = resources.files("unmask.data").joinpath("scenarios").iterdir()
    found = {file.name.removesuffix(".jsonl"): file for file in files if file.name.endswith(".jsonl")}
    return dict(sorted(found.items()))


def read_source(source: str | Path) -> Contents:
    """Everything in a source, bad rows as problems instead of an exception."""
    name, at, revision = str(source).partition("@")
    if name.lower() == REPOSITORY.lower():
        from unmask.data import hub

        if at and not revision:
            raise UsageError(f"{source} names no revision", advice=f"Write {REPOSITORY}@REV, or {REPOSITORY} alone.")
        folder, commit = hub.download(revision or None)
        return _separate_problems(_read_folder(folder), REPOSITORY, commit)
    if isinstance(source, str) and (file := bundled_sets().get(source)) is not None:
        return _separate_problems(parse_lines(file.read_bytes(), name=file.name), source)
    path = Path(os.path.expanduser(source))
    if str(source).strip() and path.is_dir():
        return _separate_problems(_read_folder(path), path.resolve().name)
    if path.is_file():
        return _separate_problems(_read_file(path), path.stem)
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
        yield from parse_lines(read_bytes(path), name=path.name)
    else:
        raise UsageError(
            f"{path.name} is no data file",
            advice="Data files end in .jsonl, or in .csv or .parquet and are named after their archetype.",
        )


def _read_folder(path: Path) -> Iterator[ParsedRow]:
    """Tables named after their archetype, and folders so named with the hub's `test-*.parquet` in them."""
    inside = sorted(path.iterdir())
    tables = [file for file in inside if file.suffix.lower() in TABLE_SUFFIXES and file.is_file()]
    shards = {folder: sorted(folder.glob("test-*.parquet")) for folder in inside if folder.is_dir()}
    layouts = [file.stem for file in tables] + [folder.name for folder, files in shards.items() if files]
    if not layouts and (path / "scenarios.jsonl").is_file():
        raise DataError(f"{path} is the folder of a run", advice=f"Its scenarios: --data {path / 'scenarios.jsonl'}")
    if not layouts:
        raise DataError(
            f"{path} holds no table of scenarios",
            advice=f"It needs files such as {Archetype.KNOWN_FACTS}.csv or {Archetype.KNOWN_FACTS}/test-*.parquet.",
        )
    if twice := [name for name, times in Counter(layouts).items() if times > 1]:
        raise UsageError(f"the folder holds {twice[0]} in two layouts", advice="Keep one of them.")
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
