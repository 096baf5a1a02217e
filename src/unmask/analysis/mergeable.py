"""Which runs may be made one: parts of the same data, with the same settings, that contradict each other nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from unmask.errors import MixedRunError, UsageError
from unmask.records import Letter
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder
from unmask.runs.polarity import find_sides

_OWN_FIELDS = {"id", "created", "grown"}


_SELECTION = {f"data.{name}" for name in ("source", "hash", "counts", "archetypes", "ids", "limit", "shard")}


_ADDRESSES = {"endpoint", "base_url", "path"}


_LATER = {"preset", "effort", "reader", "judge", "role_play"}
"""What a command that goes on with the merged run may set anew."""


class OpenedShard(NamedTuple):
    folder: Folder
    definition: Definition
    ids: tuple[str, ...]


def open_shards(paths: Sequence[str | Path], target: Path) -> list[OpenedShard]:
    if not paths:
        raise UsageError("no shard is named", advice="Name their folders: unmask merge runs/x/shard-* --out runs/x")
    places: dict[Path, str | Path] = {}
    for path in paths:
        place = Path(path).resolve()
        if place in places:
            raise UsageError(f"{path} is named twice", advice="Name every shard once.")
        if place == target.resolve() or place in target.resolve().parents:
            raise UsageError(
                f"--out {target} is in the shard {path}", advice="Shards are only read: choose another --out."
            )
        places[place] = path
    shards = []
    for path in paths:
        folder = Folder(path)
        shards.append(OpenedShard(folder, folder.definition(), tuple(row.id for row in folder.each_scenario())))
        folder.refuse_other_scenarios(shards[-1].definition.data)
    return sorted(shards, key=lambda shard: shard.definition.data.shard.number if shard.definition.data.shard else 0)


def refuse_differences(
    definitions: Sequence[Definition], paths: Sequence[Path], ignored: frozenset[str] = frozenset()
) -> None:
    """One line for each setting in which runs differ, besides selection, address, id and time."""
    settings = [dict(_flatten_settings(msgspec.to_builtins(definition))) for definition in definitions]
    rows = []
    for name in dict.fromkeys(name for values in settings for name in values):
        values = [_show_setting(run[name]) if name in run else "not" for run in settings]
        if len(set(values)) == 1 or name.split(".")[0] in ignored:
            continue
        groups = {value: [path for path, own in zip(paths, values, strict=True) if own == value] for value in values}
        rows.append(f"  {name}: " + "; ".join(f"{value} in {_name_some(group)}" for value, group in groups.items()))
    if rows:
        advice = (
            "Parts of one run have the same settings. Leave the odd ones out, or make them anew as the others were."
        )
        if any(row.startswith("  judges.") for row in rows):
            advice += " A judge that has not read some of them does so with: unmask judge SHARD --judge NAME."
        raise MixedRunError("these runs are no parts of one run:\n" + "\n".join(rows), advice=advice)


def _flatten_settings(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Every setting of a definition by its path, but for those that parts of one run may differ in."""
    last, in_additions = name.rpartition(".")[2], ".params." in name or ".headers." in name
    if name in _OWN_FIELDS | _SELECTION or (last in _ADDRESSES and not in_additions):
        return
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flatten_settings(part, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for number, part in enumerate(value):
            yield from _flatten_settings(part, f"{name}.{number}")
    else:
        yield name, value


def _show_setting(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"


def _name_some(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def refuse_other_wholes(shards: Sequence[OpenedShard]) -> None:
    """Shards are parts of one selection in the same number; and no scenario is in two of them."""
    wholes: dict[tuple[object, ...], Path] = {}
    owners: dict[str, OpenedShard] = {}
    for shard in shards:
        spec = shard.definition.data.shard
        wholes.setdefault((spec.of, spec.scenarios, spec.hash) if spec else (), shard.folder.path)
        both = [name for name in shard.ids if name in owners]
        if both:
            owner = owners[both[0]]
            raise MixedRunError(
                f"{owner.folder.path} and {shard.folder.path} overlap in {len(both)} scenarios, {both[0]} among them",
                advice="Every scenario may be in one part only. Leave one of the two out.",
            )
        owners |= dict.fromkeys(shard.ids, shard)
    if len(wholes) > 1:
        rows = [
            f"{path} is of {f'{size[0]} shards of {size[1]} scenarios' if size else 'no shards'}"
            for size, path in wholes.items()
        ]
        raise MixedRunError(
            f"these are shards of different selections: {'; '.join(rows)}",
            advice="Continue all of them with the same --limit, --archetype and --ids: a shard grows as any run does.",
        )


def refuse_another_run(shards: Sequence[OpenedShard], before: OpenedShard) -> None:
    """What stands in the place of the merged run must be that run, which may have got judges of its own."""
    judges = shards[0].definition.judges
    ours = {file: spec for file, spec in before.definition.judges.items() if file in judges}
    paths = [shards[0].folder.path, before.folder.path]
    refuse_differences([shards[0].definition, replace(before.definition, judges=ours)], paths, frozenset(_LATER))
    if before.definition.data.shard:
        raise UsageError(f"--out {before.folder.path} is a shard itself", advice="Choose another --out.")


def refuse_contradictions(sources: Sequence[OpenedShard]) -> None:
    """What a judge said about the side of *yes* holds for the question, whichever scenarios ask it."""
    for judge in sources[0].definition.judges:
        first: dict[str, tuple[Letter, str, Path]] = {}
        for source in sources:
            sides = find_sides(source.folder, judge)[0].from_judge
            for place, side in sides.items():
                name, _, question = place.rpartition(" ")
                if side is Letter.C:  # it could not tell, which contradicts nothing
                    continue
                first_side, first_name, path = first.setdefault(question, (side, name, source.folder.path))
                if first_side is not side and path != source.folder.path:
                    raise MixedRunError(
                        f"{judge} says that yes to one question means {first_side} in {path} ({first_name}) and"
                        f" {side} in {source.folder.path} ({name})",
                        advice=f"Delete the lines of slot `polarity` about these scenarios from readings/{judge}.jsonl"
                        " of both, and run the commands of both again one after the other on one machine: the second"
                        " one takes over what the judge says in the first.",
                    )
