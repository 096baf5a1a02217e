"""Several runs over parts of the same data made one: the shards that the tasks of a scheduler have left.

Every line of a journal names its scenario, and every scenario is in one shard, so the merged run has the lines of all
of them, each as it was written, and scores as one run over everything. The shards are only read.

A run that was merged before may have gone on since, and so may its shards: of each scenario the longer of two journals
is taken where it begins with the other one. Everything is built in a folder beside the run and then put in its place,
so that a kill in between loses nothing, and the same command completes it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from unmask.analysis.mergeable import (
    OpenedShard,
    open_shards,
    refuse_another_run,
    refuse_contradictions,
    refuse_differences,
    refuse_other_wholes,
)
from unmask.data.dataset import ShardSpec, content_hash, count_by_archetype, in_order
from unmask.errors import JournalError, MissingError, MixedRunError
from unmask.files import Lock, cannot_write, file_exists, lock_path, read_bytes, refuse_file_name, refuse_linked_folder
from unmask.records import Asked, Judged, Label, Record, Scenario
from unmask.runs.definition import DataSpec, Definition
from unmask.runs.folder import Folder
from unmask.runs.journal import LineIndex, LineSummary
from unmask.runs.run import Run

_KNOWN_FILES = {"run.json", "scenarios.jsonl", "replies.jsonl", "readings", "labels", "fluency.json", "status.json"}
_FLEETING = (".lock", ".torn", ".new")


class Merge(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `unmask merge` has made."""

    run: str
    shards: int
    scenarios: int
    selected: int | None
    """Scenarios of all shards together; `None` where the runs are no shards, so that nobody knows."""
    missing_shards: tuple[int, ...]
    not_taken: tuple[str, ...]
    """Files of the shards that no run has, and the merged one has not either."""


def merge(shards: Sequence[str | Path], *, out: str | Path) -> Run:
    """Make one run of shards, or of other runs over parts of the same data, and open it. See `unmask merge`."""
    return Run(merge_shards(shards, out=out).run)


def merge_shards(paths: Sequence[str | Path], *, out: str | Path) -> Merge:
    """Make one run of several, or add to what was merged before. Raises an error before anything is written where they
    are not parts of one run."""
    target = Path(out)
    refuse_file_name(target)
    shards = open_shards(paths, target)
    refuse_differences([shard.definition for shard in shards], [shard.folder.path for shard in shards])
    refuse_other_wholes(shards)
    beside = target.with_name(target.name + ".merging")
    advice = "Wait for it to finish: two commands that merge into one run would be in each other's way."
    with contextlib.ExitStack() as locks:
        locks.enter_context(Lock(lock_path(beside), advice=advice))
        before = _open_before(target, locks)
        if before is not None:
            refuse_another_run(shards, before)
        sources = [*shards, *filter(None, [before])]
        scenarios = _unite_scenarios(shards, before)
        refuse_contradictions(sources)
        try:
            if refuse_linked_folder(beside).exists():  # a kill has left it
                shutil.rmtree(beside)
            _build(beside, shards, before, scenarios)
            _put_in_place(beside, target)
        except OSError as error:
            raise cannot_write(target, error) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return _describe_merge(target, shards, scenarios)


def _open_before(target: Path, locks: contextlib.ExitStack) -> OpenedShard | None:
    """The run that is to be added to, with everything of it locked; None where there is none."""
    folder = Folder(target)
    if not folder.exists:
        if any(folder.asked()):
            advice = "Restore run.json, or choose another --out."
            raise MissingError(f"{target} has replies but no run.json", advice=advice)
        return None
    locks.enter_context(folder.lock_replies())
    for judge in folder.definition().judges:
        locks.enter_context(folder.lock_readings(judge))
    for file in _label_files(folder):
        locks.enter_context(Lock(lock_path(file), advice="Wait until that person has left it."))
    locks.enter_context(folder.lock_definition())
    return OpenedShard(folder, folder.definition(), tuple(row.id for row in folder.each_scenario()))


def _unite_scenarios(shards: Sequence[OpenedShard], before: OpenedShard | None) -> tuple[Scenario, ...]:
    """The scenarios of all, in canonical order; what the merged run has already stays as it was asked."""
    sources = [*shards, *filter(None, [before])]
    return in_order({row.id: row for source in sources for row in source.folder.each_scenario()}.values())


# --- what is written


def _build(
    beside: Path, shards: Sequence[OpenedShard], before: OpenedShard | None, scenarios: Sequence[Scenario]
) -> None:
    """The merged run as a folder that nobody reads yet."""
    sources = [*shards, *filter(None, [before])]
    folder = Folder(beside)
    folder.write_scenarios(tuple(scenarios))
    copy = partial(_copy_lines, beside, shards, before, [scenario.id for scenario in scenarios])
    copy(file=Path("replies.jsonl"), kind=Asked)
    for judge in dict.fromkeys(judge for source in sources for judge in source.definition.judges):
        copy(file=folder.readings_path(judge).relative_to(beside), kind=Judged)
    for name in dict.fromkeys(file.name for source in sources for file in _label_files(source.folder)):
        copy(file=Path("labels", name), kind=Label)
    for source in reversed(sources):
        if file_exists(source.folder.path / "fluency.json"):
            _write(beside / "fluency.json", read_bytes(source.folder.path / "fluency.json"))
            break
    # Read again: lines of a newer format may have come while they were copied.
    folder.write_definition(_define(shards, before, scenarios))


def _copy_lines(
    beside: Path,
    shards: Sequence[OpenedShard],
    before: OpenedShard | None,
    ids: Sequence[str],
    *,
    file: Path,
    kind: type[Asked | Judged | Label],
) -> None:
    """Write one file of the merged run: shard by shard, and in each scenario by scenario."""
    numbers = {name: number for number, name in enumerate(ids)}

    def open_index(source: OpenedShard) -> LineIndex[Any]:
        own = set(source.ids)

        def place(line: LineSummary) -> int:
            if line.scenario not in own:
                raise JournalError(
                    f"{source.folder.path / file} has a line about scenario {line.scenario!r}, which the run does not"
                    " contain",
                    advice="The folder holds files of two runs. Restore it from a copy.",
                )
            return numbers[line.scenario]

        return LineIndex(source.folder.path / file, kind, scenarios=len(ids), place=place)

    if not any(file_exists(source.folder.path / file) for source in (*shards, *filter(None, [before]))):
        return
    (beside / file).parent.mkdir(parents=True, exist_ok=True)
    with (
        contextlib.closing(open_index(before)) if before else contextlib.nullcontext() as old,
        open(beside / file, "xb") as target,
    ):
        left = dict.fromkeys(before.ids) if before else {}
        for shard in shards:
            with contextlib.closing(open_index(shard)) as index:
                for name in shard.ids:
                    lines = _whole_lines(index, numbers[name])
                    if old is not None and name in left:
                        del left[name]
                        lines = _choose_lines(lines, _whole_lines(old, numbers[name]), name, shard, before)
                    target.writelines(lines)
        for name in left:
            target.writelines(_whole_lines(old, numbers[name]) if old is not None else ())
        target.flush()
        os.fsync(target.fileno())


def _whole_lines(index: LineIndex[Any], scenario: int) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + b"\n" for line in index.texts_of(scenario)]


def _choose_lines(
    ours: list[bytes], merged: list[bytes], name: str, shard: OpenedShard, before: OpenedShard | None
) -> list[bytes]:
    """The longer of two journals of one scenario, if it begins with the other."""
    longer, shorter = (ours, merged) if len(ours) >= len(merged) else (merged, ours)
    if longer[: len(shorter)] != shorter:
        where = before.folder.path if before else ""
        raise MixedRunError(
            f"{shard.folder.path} and {where} have both gone on with scenario {name}, each in its own way",
            advice="Merge the shards into another --out. Then go on with the merged run or with the shards, not both.",
        )
    return longer


def _define(shards: Sequence[OpenedShard], before: OpenedShard | None, scenarios: Sequence[Scenario]) -> Definition:
    first = shards[0].definition
    newest = [source.folder.definition() for source in (*shards, *filter(None, [before]))]
    base = (
        before.definition
        if before
        else replace(first, id=secrets.token_hex(8), created=min(definition.created for definition in newest))
    )
    return replace(
        base,
        data=_define_data(first.data, before, scenarios),
        judges=first.judges | base.judges,
        role_play=tuple(dict.fromkeys((*base.role_play, *first.role_play))),
        grown=base.grown if before else (),
    )


def _define_data(data: DataSpec, before: OpenedShard | None, scenarios: Sequence[Scenario]) -> DataSpec:
    """The selection of all shards together; of runs that are no shards, the ids of their scenarios."""
    spec = data.shard or None
    if before is not None and sum(before.definition.data.counts.values()) == len(scenarios):
        return before.definition.data
    hash_ = spec.hash if spec and spec.scenarios == len(scenarios) else content_hash(scenarios)
    counts = {archetype.value: count for archetype, count in count_by_archetype(scenarios).items()}
    merged = replace(data, shard=msgspec.UNSET, hash=hash_, counts=counts)
    if spec is None:
        ids = () if hash_ == data.full_hash else tuple(scenario.id for scenario in scenarios)
        merged = replace(merged, archetypes=(), limit=None, ids=ids)
    return merged


def _label_files(folder: Folder) -> list[Path]:
    return sorted(refuse_linked_folder(folder.path / "labels").glob("*.jsonl"))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(beside: Path, target: Path) -> None:
    """A new run comes in one step. One that exists gets one file after the other, each with all that the old one has:
    first the scenarios, then what defines the run, then the lines about them."""
    if not target.is_dir() or not any(target.iterdir()):
        with contextlib.suppress(FileNotFoundError):
            target.rmdir()
        beside.rename(target)
        return
    first = [beside / "scenarios.jsonl", beside / "run.json"]
    for file in [*first, *(file for file in sorted(beside.rglob("*")) if file.is_file() and file not in first)]:
        place = target / file.relative_to(beside)
        refuse_linked_folder(place.parent).mkdir(exist_ok=True)
        file.replace(place)


def _describe_merge(target: Path, shards: Sequence[OpenedShard], scenarios: Sequence[Scenario]) -> Merge:
    spec: ShardSpec | None = shards[0].definition.data.shard or None
    numbers = {shard.definition.data.shard.number for shard in shards if shard.definition.data.shard}
    missing = spec is not None and spec.scenarios > len(scenarios)
    unknown = {
        file.name
        for shard in shards
        for file in shard.folder.path.iterdir()
        if file.name not in _KNOWN_FILES and not file.name.endswith(_FLEETING) and file.name[0] != "."
    }
    return Merge(
        run=str(target),
        shards=len(shards),
        scenarios=len(scenarios),
        selected=spec.scenarios if spec else None,
        missing_shards=tuple(number for number in range(1, spec.of + 1) if number not in numbers)
        if spec and missing
        else (),
        not_taken=tuple(sorted(unknown)),
    )
