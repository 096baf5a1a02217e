"""What a run folder may become by another command: a larger run, or a new one while it holds no answers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from unmask.data.dataset import Dataset, hash_sides, without_side
from unmask.files import file_exists
from unmask.records import Call, Scenario, Usage
from unmask.runs.definition import DataSpec, Definition, Difference, find_differences
from unmask.runs.folder import Folder
from unmask.runs.options import Options


def find_run(folder: Folder, wanted: Definition) -> Definition | None:
    """The run that the folder holds. None where there is none, or one without answers that the command would change:
    nothing is lost where it is defined anew."""
    if not folder.exists:
        return None
    run = folder.definition()
    same_data = (run.data.hash, run.data.yes_means) == (wanted.data.hash, wanted.data.yes_means)
    same = same_data and not any(find_differences(run, wanted))
    return run if same or _holds_answers(folder, run) else None


def _holds_answers(folder: Folder, run: Definition) -> bool:
    """Whether something in the folder was paid for, labelled or measured. Failures and what was copied from elsewhere
    were not; a line that a kill has torn is none."""
    lender = run.beliefs_from.run if run.beliefs_from and Folder(run.beliefs_from.path).exists else None

    def was_made_here(line: Call) -> bool:
        if line.source is not None and line.source == lender:
            return False
        return line.error is None or line.usage != Usage() or bool(line.cost_usd)

    labels = folder.path / "labels"
    return (
        any(map(was_made_here, folder.asked()))
        or any(was_made_here(line) for judge in folder.judge_files() for line in folder.judged(judge))
        or (labels.is_dir() and any(labels.iterdir()))
        or file_exists(folder.path / "fluency.json")
    )


def keep_counts(folder: Folder, old: Definition | None, given: Mapping[str, object]) -> dict[str, int]:
    """Takes and direct probes of a run that has grown, where the command names none: it continues as it is."""
    names = [name for name in ("takes", "direct") if name not in given]
    more = {name: getattr(old, name) for name in names if old and getattr(old, name) > getattr(Options(), name)}
    return more if more and old and _holds_answers(folder, old) else {}


def clear_journal(folder: Folder) -> None:
    """Remove the lines of a folder without answers; torn ones are set aside as always. A kill in between leaves a
    folder without answers."""
    for judge in (None, *folder.judge_files()):
        folder.mend(judge)
        if judge:
            folder.readings_path(judge).unlink()
    folder.replies.path.unlink(missing_ok=True)


def fit_data(folder: Folder, old: DataSpec, new: DataSpec, dataset: Dataset) -> tuple[DataSpec, Difference | None]:
    """The data that the run has if this command continues it: its own, or a larger selection of the same whole. Where
    neither is possible, the difference that says why. What *yes* means in scenarios of the run stays as it is."""
    # Another seed would be another order to look in. Where it chooses the scenarios, their content is compared.
    data = replace(new, seed=old.seed, yes_means=old.yes_means)
    if _name_shard(old) != _name_shard(new):  # an array with another number of tasks makes other shards
        return data, ("shard", _name_shard(old), _name_shard(new))
    if new.hash == old.hash:
        return data, None
    if new.full_hash != old.full_hash:
        return data, ("data", _describe_data(old), _describe_data(new))
    selected = {scenario.id: scenario for scenario in dataset.scenarios}
    stored = {scenario.id: scenario for scenario in folder.scenarios()}
    kept = [scenario for name, scenario in stored.items() if _is_same(scenario, selected.get(name))]
    size = max(len(stored), sum(old.counts.values()))
    lost = size - len(kept)
    if not lost:
        return replace(data, yes_means=hash_sides((selected | stored).values())), None
    return data, ("scenarios", size, f"{len(selected)}, without {lost} of them")


def _is_same(stored: Scenario, selected: Scenario | None) -> bool:
    return selected is not None and without_side(stored) == without_side(selected)


def refuse_other_scenarios(folder: Folder, old: DataSpec, dataset: Dataset) -> None:
    """No answers are bought for scenarios that were changed, or lost, since the run was made. More than it has are what
    a kill leaves of a larger selection: that of this command, or `fit_data` compares them."""
    larger = len(folder.scenarios()) > sum(old.counts.values())
    if not larger:
        folder.refuse_other_scenarios(old)
    elif old.hash == dataset.hash:
        folder.refuse_other_scenarios(old, of=set(dataset.ids))


def _name_shard(data: DataSpec) -> str | None:
    return str(data.shard) if data.shard else None


def _describe_data(data: DataSpec) -> str:
    return f"{sum(data.counts.values())} scenarios out of data with hash {data.full_hash[:12]}"


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
    """What this command has made of the folder, in one line; empty where it goes on as it was."""
    if before.id != now.id:
        return f"{folder.path} held no answers and is redefined"
    lines = []
    if grows := describe_growth(before, now):
        lines.append(f"{folder.path} grows {grows}; its replies stay")
    if wanted.data.yes_means != now.data.yes_means:
        lines.append("`yes_means` of the data has changed since; the run keeps what it was made with")
    return "; ".join(lines)
