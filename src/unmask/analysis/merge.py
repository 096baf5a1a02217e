"""One run made of shards: the runs that the tasks of a scheduler made of parts of the same data.

Each scenario is in one shard only, so the merged run has the journal lines of all of them and scores as one run over
everything. The shards are only read. The run is built in a hidden folder and renamed at the end: a kill leaves no half
run, and the same command starts again.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from unmask.data.dataset import ShardSpec, content_hash, count_by_archetype, hash_sides, in_order
from unmask.errors import MixedRunError, UsageError
from unmask.files import cannot_write, file_exists, refuse_linked_folder
from unmask.models.settings import DEFINING, ModelSettings
from unmask.records import Asked, Judged, Label, Record, Scenario
from unmask.runs.definition import DataSpec, Definition
from unmask.runs.folder import Folder
from unmask.runs.journal import JournalFile, read_lines
from unmask.runs.run import Run

_OWN_FIELDS = {"id", "created", "grown"}
_SELECTION = {
    f"data.{name}" for name in ("source", "hash", "yes_means", "counts", "archetypes", "ids", "limit", "shard")
}
_UNDEFINING = {"endpoint", "path", "room", *ModelSettings.__struct_fields__} - {"model", "name", *DEFINING}


class Merge(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `unmask merge` has made."""

    run: str
    shards: int
    scenarios: int
    selected: int | None
    """Scenarios of all shards together; `None` where the runs are not shards, so that nobody knows."""
    missing_shards: tuple[int, ...]


class _Shard(NamedTuple):
    folder: Folder
    definition: Definition
    scenarios: tuple[Scenario, ...]

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def spec(self) -> ShardSpec | None:
        return self.definition.data.shard or None


def merge(shards: Sequence[str | Path], *, out: str | Path) -> Run:
    """Make one run of shards, or of other runs over parts of the same data, and open it. See `unmask merge`."""
    return Run(merge_shards(shards, out=out).run)


def merge_shards(paths: Sequence[str | Path], *, out: str | Path) -> Merge:
    """Make one run of several, in a new folder. Raises an error where they are not parts of one run."""
    target = Path(out)
    if file_exists(target):
        raise UsageError(
            f"--out {target} exists, and merge only makes a new folder",
            advice="Merge into another folder, or delete this one first.",
        )
    shards = _open_shards(paths)
    _refuse_differences(shards)
    _refuse_overlaps(shards)
    scenarios = in_order(scenario for shard in shards for scenario in shard.scenarios)
    building = target.with_name(f".{target.name}.merging")
    try:
        shutil.rmtree(building, ignore_errors=True)  # a kill may have left it
        building.mkdir(parents=True)
        _build(Folder(building), shards, scenarios)
        building.rename(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    spec = shards[0].spec
    missing = {*range(1, spec.of + 1)} - {shard.spec.number for shard in shards if shard.spec} if spec else set()
    return Merge(
        run=str(target),
        shards=len(shards),
        scenarios=len(scenarios),
        selected=spec.scenarios if spec else None,
        missing_shards=tuple(sorted(missing)) if spec and spec.scenarios > len(scenarios) else (),
    )


# --- which runs may be merged


def _open_shards(paths: Sequence[str | Path]) -> list[_Shard]:
    if not paths:
        raise UsageError("no shard is named", advice="Name their folders, or the one that holds them.")
    shards = []
    for path in paths:
        folder = Folder(path)
        shards.append(_Shard(folder, folder.definition(), folder.scenarios()))
        folder.refuse_other_scenarios(shards[-1].definition.data)
        journal = folder.journal()  # which refuses lines of another run
        for judge in shards[-1].definition.judges:
            journal.judged(judge)
    return sorted(shards, key=lambda shard: shard.spec.number if shard.spec else 0)


def _refuse_differences(shards: Sequence[_Shard]) -> None:
    """One line for each setting in which a run differs from the first, apart from selection, address, id and time."""
    first, *others = (dict(_flatten_settings(msgspec.to_builtins(shard.definition))) for shard in shards)
    for shard, own in zip(shards[1:], others, strict=True):
        names = [name for name in first | own if (name in first) != (name in own) or first[name] != own[name]]
        if names:
            advice = "Parts of one run have the same settings. Leave out the shards that differ, or make them again."
            if any(name.startswith("judges.") for name in names):
                advice += " A judge that has not read some of them does so with `unmask judge`."
            rows = [f"{name}: {_show_setting(first, name)}, {_show_setting(own, name)}" for name in names]
            raise MixedRunError(
                f"{shards[0].path} and {shard.path} are not parts of one run:", problems=rows, advice=advice
            )


def _flatten_settings(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Every setting of a definition by its path, without those in which parts of one run may differ."""
    last, is_given = name.rpartition(".")[2], ".params." in name or ".headers." in name
    if name in _OWN_FIELDS | _SELECTION or (last in _UNDEFINING and not is_given):
        return
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flatten_settings(part, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for number, part in enumerate(value):
            yield from _flatten_settings(part, f"{name}.{number}")
    else:
        yield name, value


def _show_setting(settings: Mapping[str, object], name: str) -> str:
    value = settings.get(name, "not set")
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"


def _refuse_overlaps(shards: Sequence[_Shard]) -> None:
    """Runs that have a scenario in common, or that are shards of different selections."""
    owners: dict[str, Path] = {}
    selections: dict[str, Path] = {}
    for shard in shards:
        both = [scenario.id for scenario in shard.scenarios if scenario.id in owners]
        if both:
            raise MixedRunError(
                f"{owners[both[0]]} and {shard.path} overlap in {len(both)} scenarios, such as {both[0]}",
                advice="A scenario can be in one part only. Leave out one of the two.",
            )
        owners |= {scenario.id: shard.path for scenario in shard.scenarios}
        spec = shard.spec
        whole = f"one of {spec.of} shards of {spec.scenarios} scenarios ({spec.hash[:8]})" if spec else "not a shard"
        selections.setdefault(whole, shard.path)
    if len(selections) > 1:
        rows = [f"{path} is {whole}" for whole, path in selections.items()]
        raise MixedRunError(
            f"these are shards of different selections: {'; '.join(rows)}",
            advice="Continue all of them with the same --limit, --archetype and --ids: a shard grows as any run does.",
        )


# --- what is written


def _build(folder: Folder, shards: Sequence[_Shard], scenarios: tuple[Scenario, ...]) -> None:
    """The merged run, in a folder that nobody reads yet."""
    first = shards[0].definition
    folder.write_scenarios(scenarios)
    _copy_lines(shards, folder, "replies.jsonl", Asked)
    for judge in first.judges:
        file = folder.readings_path(judge).relative_to(folder.path)
        _copy_lines(shards, folder, file, Judged)
    labels = [file for shard in shards for file in refuse_linked_folder(shard.path / "labels").glob("*.jsonl")]
    for name in sorted({file.name for file in labels}):
        _copy_lines(shards, folder, Path("labels", name), Label)
    folder.write_definition(
        replace(
            _join_rooms(first, shards),
            id=secrets.token_hex(8),
            created=min(shard.definition.created for shard in shards),
            data=_describe_data(first.data, scenarios),
            grown=(),
        )
    )


def _join_rooms(whole: Definition, shards: Sequence[_Shard]) -> Definition:
    """For each model the room of the part in which it was first seen to reason."""
    for judge in whole.judges:
        found = [pair for shard in shards for pair in shard.definition.rooms(judge).items()]
        for role, room in sorted(found, key=lambda pair: pair[1].since, reverse=True):
            whole = whole.with_room(role, judge, room)
    return whole


def _copy_lines(shards: Sequence[_Shard], folder: Folder, file: str | Path, kind: type[Asked | Judged | Label]) -> None:
    """One file of the merged run: the lines of all shards, one shard after the other."""
    journal = JournalFile(folder.path / file)
    journal.open()
    for shard in shards:
        for line in read_lines(shard.path / file, kind):
            journal.append(line)
    journal.close()


def _describe_data(data: DataSpec, scenarios: Sequence[Scenario]) -> DataSpec:
    """The selection of all shards together; of runs that are not shards, the ids of their scenarios."""
    merged = replace(
        data,
        shard=msgspec.UNSET,
        hash=content_hash(scenarios),
        yes_means=hash_sides(scenarios),
        counts={archetype.value: count for archetype, count in count_by_archetype(scenarios).items()},
    )
    if data.shard:
        return merged
    ids = () if merged.hash == data.full_hash else tuple(scenario.id for scenario in scenarios)
    return replace(merged, archetypes=(), limit=None, ids=ids)
