"""`load`: from what the user typed to a Dataset, whichever of the layouts it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from unmask.data import hub, seal
from unmask.data.bundled import bundled
from unmask.data.dataset import Dataset, LoadOptions, content_hash
from unmask.data.form import Fault, Problem
from unmask.data.jsonl import dump, parse_lines
from unmask.data.select import select
from unmask.data.tables import SUFFIXES, read_bytes, read_rows
from unmask.errors import DataError, MissingError, UsageError
from unmask.records import Archetype, Record, Scenario
from unmask.text import plain, without_credentials

_JSONL = (".jsonl", ".ndjson")
_ARCHETYPES = tuple(archetype.value for archetype in Archetype)


class Entry(Record, frozen=True):
    """One row on its way to a scenario: how to name it in a message, and what became of it."""

    id: str
    where: str
    result: Scenario | tuple[Fault, ...]


class Place(Record, frozen=True):
    """A source that was found, with everything in it, good or bad."""

    name: str
    entries: tuple[Entry, ...]
    home: str | None = None
    revision: str | None = None


class Contents(Record, frozen=True):
    """All usable scenarios of a source, before selection, and what is wrong with the others."""

    place: Place
    scenarios: tuple[Scenario, ...]
    problems: tuple[Problem, ...]


def load(source: str | Path, *, options: LoadOptions = LoadOptions()) -> Dataset:  # noqa: B008 (frozen)
    """Scenarios from a folder in the reference or hub layout, a JSONL, CSV or parquet file, a sealed file whose
    passphrase is in `UNMASK_PASSPHRASE`, a bundled name, or `cais/MASK` on the hub.

    A bundled name and `cais/MASK` win over a file of that name; write `./tiny` for the file. Rows that cannot be used
    raise DataError with all of them listed, unless `options.skip_bad_rows` drops and records them.
    """
    contents = read(source, revision=options.revision)
    return _dataset(contents, shown=without_credentials(str(source)), options=options)


def from_scenarios(scenarios: Iterable[Scenario], *, name: str = "memory") -> Dataset:
    """A dataset of scenarios made in Python, held to the same rules as a file of ours with the same lines."""
    try:
        data = dump(scenarios)
    except UnicodeEncodeError as error:
        raise DataError(f"{plain(name)} holds text that no file can hold: {error.reason}") from None
    contents = _sift(Place(name, tuple(_jsonl(data, name=name))))
    return _dataset(contents, shown=name, options=LoadOptions())


def _dataset(contents: Contents, *, shown: str, options: LoadOptions) -> Dataset:
    skipped = tuple(map(str, contents.problems))
    if skipped and not options.skip_bad_rows:
        raise DataError(
            f"{plain(shown)} has rows that cannot be used ({len(skipped)}):",
            problems=skipped,
            advice="Mend them, or leave them out with --skip-bad-rows (Python: LoadOptions(skip_bad_rows=True)).",
        )
    if not contents.scenarios:
        raise DataError(
            f"{plain(shown)} holds no usable scenario",
            problems=skipped,
            advice="Mend the rows above." if skipped else "Put scenarios into it; start one with: unmask data new",
        )
    chosen, full = select(contents.scenarios, options=options), content_hash(contents.scenarios)
    return Dataset(
        name=contents.place.name,
        source=shown,
        revision=contents.place.revision,
        scenarios=chosen,
        hash=full if len(chosen) == len(contents.scenarios) else content_hash(chosen),
        full_hash=full,
        skipped=skipped,
        home=contents.place.home,
    )


def read(source: str | Path, *, revision: str | None = None) -> Contents:
    """Everything in a source, bad rows as problems instead of an exception."""
    return _sift(_locate(source, revision))


def _sift(place: Place) -> Contents:
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


def _locate(source: str | Path, revision: str | None) -> Place:
    if isinstance(source, str) and hub.is_hub_name(source):
        folder, commit = hub.download(revision)
        return Place(hub.REPOSITORY, tuple(_folder(folder)), revision=commit)
    if revision is not None:
        raise UsageError(f"--revision is only for {hub.REPOSITORY}", advice="Leave --revision out.")
    if isinstance(source, str) and (file := bundled().get(source)) is not None:
        return Place(source, tuple(_jsonl(file.read_bytes(), name=file.name)))
    path = Path(os.path.expanduser(source))
    if str(source).strip() and path.is_dir():
        return Place(path.resolve().name, tuple(_folder(path)), home=str(path.absolute()))
    if path.is_file():
        stem = Path(path.stem).stem if path.suffix.lower() == seal.SUFFIX else path.stem
        return Place(stem, tuple(_file(path)), home=str(path.absolute()))
    raise MissingError(
        f"no data at {plain(without_credentials(str(source)))}",
        advice="--data takes a folder, a .jsonl or .sealed file, "
        f"{hub.REPOSITORY}, or a bundled set: {', '.join(bundled())}.",
    )


def _file(path: Path) -> Iterator[Entry]:
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        yield from _table(path, archetype_name=path.stem, label=path.name)
    elif suffix in _JSONL:
        yield from _jsonl(read_bytes(path), name=path.name)
    elif suffix == seal.SUFFIX:
        passphrase = seal.from_environment(path.name)
        yield from _jsonl(seal.unseal(read_bytes(path), passphrase=passphrase, name=path.name), name=path.name)
    else:
        raise UsageError(
            f"{plain(path.name)} is no data file",
            advice="Data files end in .jsonl or .sealed, or in .csv or .parquet and are named after their archetype.",
        )


def _jsonl(data: bytes, *, name: str) -> Iterator[Entry]:
    for number, label, result in parse_lines(data):
        yield Entry(label, f"{name}, line {number}", result)


def _folder(path: Path) -> Iterator[Entry]:
    """Tables named after their archetype, and folders so named with the hub's `test-*.parquet` in them."""
    try:
        inside = sorted(path.iterdir())
        tables = [file for file in inside if file.suffix.lower() in SUFFIXES and file.is_file()]
        shards = {folder: sorted(folder.glob("test-*.parquet")) for folder in inside if folder.is_dir()}
    except OSError as error:
        raise MissingError(f"cannot read {plain(str(path))}: {error.strerror or error}") from error
    layouts = [file.stem for file in tables] + [folder.name for folder, files in shards.items() if files]
    if not layouts:
        raise DataError(
            f"{plain(str(path))} holds no table of scenarios",
            advice=f"It needs files such as {Archetype.KNOWN_FACTS}.csv or {Archetype.KNOWN_FACTS}/test-*.parquet.",
        )
    _refuse_twice(layouts)
    for file in tables:
        yield from _table(file, archetype_name=file.stem, label=file.name)
    for folder, files in shards.items():
        for file in files:
            yield from _table(file, archetype_name=folder.name, label=f"{folder.name}/{file.name}")


def _refuse_twice(layouts: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in layouts:
        if name in seen:
            raise UsageError(f"the folder holds {plain(name)} in two layouts", advice="Keep one of them.")
        seen.add(name)


def _table(path: Path, *, archetype_name: str, label: str) -> Iterator[Entry]:
    from unmask.data import reference

    if archetype_name not in _ARCHETYPES:
        known = ", ".join(_ARCHETYPES)
        yield Entry(label, "", (Fault("archetype", f"{plain(archetype_name)!r} is no archetype; they are {known}"),))
        return
    try:
        table = read_rows(path, columns=reference.COLUMNS)
    except DataError as error:
        yield Entry(label, "", (Fault("file", str(error)),))
        return
    for row in table:
        faults = (Fault("column", row.fault),) if row.fault else None
        result = faults or reference.parse(row.cells, archetype=Archetype(archetype_name))
        yield Entry(row.cells.get("task_id", ""), f"{label}, row {row.number}", result)
