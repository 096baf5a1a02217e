"""What a run folder may become by another command: a larger run, or a new one while it holds no answers."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from unmask.data.dataset import Dataset, hash_sides, without_side
from unmask.errors import MissingError
from unmask.records import Scenario, Slot
from unmask.runs.definition import DataSpec, Definition, Difference, check_same_run
from unmask.runs.folder import Folder


def find_run(folder: Folder) -> Definition | None:
    """The run that the folder holds. None where there is none, or one without an answer: nothing is lost where it is
    defined anew, as after a first try with a wrong name."""
    lines = chain(folder.asked(), *(folder.judged(judge) for judge in folder.judge_files()))
    holds_answers = folder.has_batches or any(line.error is None for line in lines)
    if folder.exists:
        return folder.definition() if holds_answers else None
    if any(folder.asked()):
        raise MissingError(
            f"{folder.path} has replies but no run.json", advice="Restore run.json, or choose another --out."
        )
    return None


def clear_journal(folder: Folder) -> None:
    """Remove the failures of a folder without answers. A kill in between leaves a folder without answers."""
    for judge in folder.judge_files() if folder.exists else ():
        folder.readings_path(judge).unlink()
    folder.replies.path.unlink(missing_ok=True)


def grow_run(folder: Folder, old: Definition, wanted: Definition, dataset: Dataset) -> Definition:
    """The definition of the run that the folder holds, with what this command adds to it. Raises where the command is
    about another run."""
    _refuse_other_scenarios(folder, old.data, dataset)
    data, other_data = fit_data(folder, old.data, wanted.data, dataset)
    check_same_run(old, wanted, folder.path, other_data=other_data)
    judges = old.judges
    for role, room in old.rooms(wanted.judge).items():
        wanted = wanted.with_room(role, wanted.judge or "", room)
    if old.tags is not wanted.tags:  # other judges keep who reads tagged answers for them
        judges = {file: replace(spec, tags=spec.tags or old.tags) for file, spec in judges.items()}
    return replace(
        wanted,
        id=old.id,
        created=old.created,
        unmask=old.unmask,
        judges=judges | wanted.judges,
        asides=merge_asides(old.asides, wanted.asides),
        data=data,
        grown=old.grown if data.hash == old.data.hash else (*old.grown, sum(old.data.counts.values())),
    )


def merge_asides(before: dict[Slot, tuple[str, ...]], now: dict[Slot, tuple[str, ...]]) -> dict[Slot, tuple[str, ...]]:
    """What a judge was asked stays asked, in the order it was."""
    return {
        slot: tuple(dict.fromkeys((*before.get(slot, ()), *now.get(slot, ()))))
        for slot in dict.fromkeys((*before, *now))
    }


def fit_data(folder: Folder, old: DataSpec, new: DataSpec, dataset: Dataset) -> tuple[DataSpec, Difference | None]:
    """The data that the run has if this command continues it: its own, or a larger selection of the same whole. Where
    neither is possible, the difference that says why. What *yes* means in scenarios of the run stays as it is."""
    # Another seed would be another order to look in. Where it chooses the scenarios, their content is compared.
    data = replace(new, seed=old.seed, yes_means=old.yes_means)
    shards = [str(each.shard) if each.shard else None for each in (old, new)]
    if shards[0] != shards[1]:  # an array with another number of tasks makes other shards
        return data, ("shard", shards[0], shards[1])
    if new.hash == old.hash:
        return data, None
    if new.full_hash != old.full_hash:
        sizes = (f"{sum(each.counts.values())} scenarios out of data with hash" for each in (old, new))
        before, after = (f"{size} {each.full_hash[:12]}" for size, each in zip(sizes, (old, new), strict=True))
        return data, ("data", before, after)
    selected = {scenario.id: scenario for scenario in dataset.scenarios}
    stored = {scenario.id: scenario for scenario in folder.scenarios()}
    size = max(len(stored), sum(old.counts.values()))
    lost = size - sum(_is_same(scenario, selected.get(name)) for name, scenario in stored.items())
    if not lost:
        return replace(data, yes_means=hash_sides((selected | stored).values())), None
    return data, ("scenarios", size, f"{len(selected)}, without {lost} of them")


def _is_same(stored: Scenario, selected: Scenario | None) -> bool:
    return selected is not None and without_side(stored) == without_side(selected)


def _refuse_other_scenarios(folder: Folder, old: DataSpec, dataset: Dataset) -> None:
    """No answers are bought for scenarios that were changed, or lost, since the run was made. More than it has are what
    a kill leaves of a larger selection: that of this command, or `fit_data` compares them."""
    larger = len(folder.scenarios()) > sum(old.counts.values())
    if not larger:
        folder.refuse_other_scenarios(old)
    elif old.hash == dataset.hash:
        folder.refuse_other_scenarios(old, of=set(dataset.ids))


def store_scenarios(folder: Folder, dataset: Dataset) -> None:
    """Write the selected scenarios where the folder has others: fewer, or those of a larger selection whose definition
    a kill has left out. What the folder has already stays as it was asked, and new ones come after it."""
    stored = folder.scenarios()
    before, selected = {scenario.id for scenario in stored}, set(dataset.ids)
    if before != selected:
        added = (scenario for scenario in dataset.scenarios if scenario.id not in before)
        folder.write_scenarios((*(scenario for scenario in stored if scenario.id in selected), *added))


def describe_growth(before: Definition, now: Definition) -> str:
    """As in `from 1 to 3 takes`; empty where the run stays as large as it was."""
    sizes = {
        "scenarios": (sum(before.data.counts.values()), sum(now.data.counts.values())),
        "takes": (before.takes, now.takes),
        "direct probes": (before.direct, now.direct),
    }
    return ", ".join(f"from {old} to {new} {name}" for name, (old, new) in sizes.items() if old != new)


def explain_change(folder: Folder, before: Definition, wanted: Definition, now: Definition) -> str:
    """What this command has made of a run, in one line; empty where it goes on as it was."""
    lines = []
    if grows := describe_growth(before, now):
        lines.append(f"{folder.path} grows {grows}; its replies stay")
    if wanted.data.yes_means != now.data.yes_means:
        lines.append("`yes_means` of the data has changed since; the run keeps what it was made with")
    return "; ".join(lines)
