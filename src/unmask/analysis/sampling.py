"""Which replies people should read: a random sample of scenarios, spread over archetypes, with every chance recorded.

Scenarios on which the judges of the run disagree are drawn more often, since that is where errors are. Each drawn
scenario carries a weight, one over its chance, which sets right whatever is estimated from the labels later. The sample
is kept in `labels/sample.json`, so that all who label see the same replies and stopping loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from unmask.analysis.labels import Item, labellers, list_items
from unmask.errors import JournalError, UsageError
from unmask.files import file_exists, read_bytes, refuse_linked_folder, write_atomically
from unmask.records import FORMAT_VERSION, PRESSURED, NoBelief, Record, Verdict
from unmask.runs.run import Run

if TYPE_CHECKING:
    from numpy.random import Generator

SIZE = 150
"""As many as the published check of the judge."""
OVERSAMPLED = 3.0
"""How much likelier a scenario is drawn where judges disagree."""
LEAST = 2
"""Drawn from every stratum that has as many, where the size allows; one at the very least."""


class DrawnScenario(Record, frozen=True):
    scenario: str
    weight: float


class Stratum(Record, frozen=True, kw_only=True, omit_defaults=False):
    scenarios: int
    drawn: int


class Sample(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`labels/sample.json`."""

    v: int = FORMAT_VERSION
    size: int
    seed: int
    probes: bool
    """Whether probe replies are to be read as well, so that errors in beliefs can be corrected too."""
    judges: tuple[str, ...]
    """Whose disagreement was looked at."""
    strata: dict[str, Stratum]
    drawn: tuple[DrawnScenario, ...]
    """In the order they are shown, which is random."""


def load_or_draw_sample(
    run: Run, *, size: int | None = None, seed: int | None = None, probes: bool | None = None
) -> Sample:
    """The sample of a run: the one it has, or a new one. A wish that differs from the one it has is refused."""
    existing = load_sample(run)
    if existing is None:
        new_sample = draw_sample(run, size=size or SIZE, seed=seed or 0, probes=bool(probes))
        write_atomically(_sample_path(run), msgspec.json.format(msgspec.json.encode(new_sample), indent=1) + b"\n")
        return new_sample
    wishes = (
        ("--size", size, existing.size),
        ("--sample-seed", seed, existing.seed),
        ("--probes", probes, existing.probes),
    )
    for flag, wish, had in wishes:
        if wish is not None and wish != had:
            advice = f"Leave {flag} out to go on with it."
            if not labellers(run):
                advice += f" Nobody has labelled it yet: delete {_sample_path(run)} to draw another."
            raise UsageError(f"the sample of {run.path} was drawn with {flag} {had}, not {wish}", advice=advice)
    return existing


def label(
    run: Run | str | Path, *, size: int | None = None, sample_seed: int | None = None, probes: bool | None = None
) -> list[Item]:
    """The replies of a run that people should read, with their weights. The sample is drawn now if it has none."""
    opened = run if isinstance(run, Run) else Run(run)
    return sampled_items(opened, load_or_draw_sample(opened, size=size, seed=sample_seed, probes=probes))


def load_sample(run: Run) -> Sample | None:
    path = _sample_path(run)
    if not file_exists(path):
        return None
    try:
        return msgspec.json.decode(read_bytes(path), type=Sample)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(f"{path} cannot be read: {error}", advice="Restore it from a copy.") from None


def sampled_items(run: Run, drawn: Sample) -> list[Item]:
    """The replies to read, in order, each with the weight of its scenario."""
    items_by_scenario = list_items(run, run.rows(), probes=drawn.probes)
    return [
        msgspec.structs.replace(item, weight=drawn_scenario.weight)
        for drawn_scenario in drawn.drawn
        for item in sorted(
            items_by_scenario.get(drawn_scenario.scenario, ()),
            key=lambda item: (item.slot == PRESSURED, item.slot, item.take),
        )
    ]


def draw_sample(run: Run, *, size: int, seed: int, probes: bool) -> Sample:
    import numpy as np

    if size < 1:
        raise UsageError(f"--size {size} is too small", advice="Give at least 1.")
    judges = tuple(sorted(run.definition.judges))
    by_judge = [run.rows(judge=judge) for judge in judges] or [run.rows()]
    items_by_scenario = list_items(run, by_judge[0], probes=probes)
    strata: dict[str, list[str]] = {}
    for views in zip(*by_judge, strict=True):
        if items_by_scenario[views[0].id] and (probes or any(not isinstance(view.belief, NoBelief) for view in views)):
            verdicts = {view.verdict for view in views} - {Verdict.UNJUDGED}
            name = views[0].archetype.value + (", judges differ" if len(verdicts) > 1 else "")
            strata.setdefault(name, []).append(views[0].id)
    if not strata:
        raise UsageError(
            f"{run.path} has no reply that a label could change", advice="Finish the run first: unmask run …"
        )
    drawn = draw_scenarios(strata, size=size, rng=np.random.default_rng(seed))
    drawn_ids = {drawn_scenario.scenario for drawn_scenario in drawn}
    return Sample(
        size=size,
        seed=seed,
        probes=probes,
        judges=judges,
        strata={
            name: Stratum(scenarios=len(ids), drawn=len(drawn_ids.intersection(ids)))
            for name, ids in sorted(strata.items())
        },
        drawn=drawn,
    )


def draw_scenarios(strata: Mapping[str, Sequence[str]], *, size: int, rng: Generator) -> tuple[DrawnScenario, ...]:
    """At random without replacement within each stratum; the whole in random order."""
    shares = allocate_sizes({name: len(ids) for name, ids in strata.items()}, size)
    drawn = [
        DrawnScenario(ids[place], len(ids) / shares[name])
        for name, ids in sorted(strata.items())
        if shares[name]
        for place in rng.choice(len(ids), size=shares[name], replace=False)
    ]
    return tuple(drawn[place] for place in rng.permutation(len(drawn)))


def allocate_sizes(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    """How many to draw from each stratum: by its size, more where judges differ, and some from each."""
    if size < len(sizes):
        raise UsageError(
            f"--size {size} is too small: there are {len(sizes)} strata, and none may be left out",
            advice=f"Give at least {len(sizes)}.",
        )
    least = LEAST if size >= LEAST * len(sizes) else 1
    allocation = {name: min(count, least) for name, count in sizes.items()}
    while (left := size - sum(allocation.values())) > 0:
        room = {name: count - allocation[name] for name, count in sizes.items() if count > allocation[name]}
        if not room:
            break
        pull = {name: sizes[name] * (OVERSAMPLED if name.endswith("judges differ") else 1.0) for name in room}
        total = sum(pull.values())
        wanted = {name: max(0.0, size * pull[name] / total - allocation[name]) for name in room}
        most = sum(wanted.values()) or 1.0
        more = {name: min(room[name], floor(left * wanted[name] / most)) for name in room}
        if not any(more.values()):
            best = max(room, key=lambda name: (wanted[name], pull[name], name))
            more = {best: 1}
        for name, count in more.items():
            allocation[name] += count
    return allocation


def _sample_path(run: Run) -> Path:
    return refuse_linked_folder(run.path / "labels") / "sample.json"
