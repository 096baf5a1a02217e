"""Which replies people should read: a random sample of scenarios, drawn by the judge's own verdict, with every chance
recorded.

Half of the sample are scenarios that the judge calls lies, or all of these where they are fewer: without them a low
rate would rest on a handful of labels. Half of what is left goes to what another judge of the run calls a lie, again
at most to all of these, and the others are drawn from what no judge calls one. Within each stratum the draw is spread
over verdicts and archetypes, and all have the same chance.
Each drawn scenario carries a weight, one over its chance, which sets right whatever is estimated from the labels later.
The sample is kept in `labels/sample.json`, so that all who label see the same replies and stopping loses nothing.

A run may grow, or get another judge, after the sample was drawn. Then it is extended: scenarios that are new form
strata of their own, strata that the new verdicts part are parted, and more is drawn where too little is. Within each
such part the drawn ones, old and new, are again a random draw of known chance, so each of them weighs the size of the
part over the number drawn from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from unmask.analysis.label_sheets import Item
from unmask.analysis.labels import labellers, list_items
from unmask.errors import JournalError, UsageError
from unmask.files import Lock, file_exists, lock_path, read_bytes, refuse_linked_folder, write_atomically
from unmask.records import PRESSURED, NoBelief, Record, Verdict
from unmask.runs.folder import LONGEST_CHANGE
from unmask.runs.run import Run

if TYPE_CHECKING:
    from numpy.random import Generator

SIZE = 150
"""As many as the published check of the judge."""
LIE, OTHER_LIE, NO_LIE = "lie", "lie by another judge", "no lie"
"""Names of strata: by the judge of the run, then by the others."""
LEAST = 2
"""Drawn from every stratum that has as many, where the size allows; one at the very least."""


class DrawnScenario(Record, frozen=True):
    scenario: str
    weight: float
    """One over its chance to be drawn."""


class Stratum(Record, frozen=True, kw_only=True, omit_defaults=False):
    scenarios: int
    drawn: int
    ids: tuple[str, ...]
    """All its scenarios, drawn or not."""


class SampleExtension(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What was added to a sample after it was drawn, and why."""

    why: str
    scenarios: int
    """Scenarios that could not have been drawn before."""
    drawn: int


class Sample(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`labels/sample.json`."""

    size: int
    """As asked for; extensions come on top."""
    seed: int
    probes: bool
    """Whether probe replies are to be read as well; then errors in beliefs can be corrected too."""
    judges: tuple[str, ...]
    """Whose verdicts were looked at."""
    judge: str | None
    """Whose verdicts made the strata."""
    strata: dict[str, Stratum]
    drawn: tuple[DrawnScenario, ...]
    """In the order they are shown, which is random; those of extensions come last."""
    extended: tuple[SampleExtension, ...] = ()


def load_or_draw_sample(
    run: Run, *, size: int | None = None, seed: int | None = None, probes: bool | None = None
) -> Sample:
    """The sample of a run: the one it has, or a new one. A wish that differs from the one it has is refused.

    One that was drawn before the run grew or got another judge is extended.
    """
    existing = load_sample(run)
    if existing is None:
        drawn = draw_sample(run, size=size or SIZE, seed=seed or 0, probes=bool(probes))
        return _write_sample(run, drawn) or load_or_draw_sample(run, size=size, seed=seed, probes=probes)
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
    extended = extend_sample(run, existing)
    return existing if extended is None else _write_sample(run, extended, before=existing) or load_or_draw_sample(run)


def _write_sample(run: Run, sample: Sample, *, before: Sample | None = None) -> Sample | None:
    """Write the sample that comes after `before`. None where another process has written one meanwhile: people who
    label at the same time share one sample."""
    path = _sample_path(run)
    with Lock(lock_path(path), advice="Try again once it has ended.", wait=LONGEST_CHANGE):
        if load_sample(run) != before:
            return None
        write_atomically(path, msgspec.json.format(msgspec.json.encode(sample), indent=1) + b"\n")
    return sample


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


class Candidate(NamedTuple):
    """A scenario that a label could change."""

    scenario: str
    stratum: str
    spread: tuple[str, str]
    """Verdict and archetype, over which the draw is spread."""


def _list_candidates(run: Run, *, probes: bool) -> list[Candidate]:
    """Scenarios with a reply to read, a belief that some judge sees, and a verdict of some judge."""
    own = run.rows()
    by_judge = [run.rows(judge=judge) for judge in sorted(run.definition.full_judges)] or [own]
    items_by_scenario = list_items(run, own, probes=probes)
    candidates = []
    for row, *views in zip(own, *by_judge, strict=True):
        verdicts = {view.verdict for view in views} - {Verdict.UNJUDGED}
        believed = probes or any(not isinstance(view.belief, NoBelief) for view in views)
        if verdicts and believed and items_by_scenario[row.id]:
            stratum = LIE if row.verdict is Verdict.LIE else OTHER_LIE if Verdict.LIE in verdicts else NO_LIE
            candidates.append(Candidate(row.id, stratum, (row.verdict.value, row.archetype.value)))
    return candidates


def draw_sample(run: Run, *, size: int, seed: int, probes: bool) -> Sample:
    import numpy as np

    if size < 1:
        raise UsageError(f"--size {size} is too small", advice="Give at least 1.")
    candidates = _list_candidates(run, probes=probes)
    if not candidates:
        raise UsageError(
            f"{run.path} has no reply that a label could change", advice="Finish the run first: unmask run …"
        )
    rng = np.random.default_rng(seed)
    strata: dict[str, list[str]] = {}
    for candidate in _shuffle_and_spread(candidates, rng):
        strata.setdefault(candidate.stratum, []).append(candidate.scenario)
    drawn = draw_scenarios(strata, size=size, rng=rng)
    return Sample(
        size=size,
        seed=seed,
        probes=probes,
        judges=tuple(sorted(run.definition.full_judges)),
        judge=run.judge_file(None),
        strata=_describe_strata(strata, {scenario.scenario for scenario in drawn}),
        drawn=drawn,
    )


def _shuffle_and_spread(candidates: Sequence[Candidate], rng: Generator) -> list[Candidate]:
    """In random order within each verdict and archetype, so that a draw at even steps is random and spread."""
    return sorted(
        (candidates[place] for place in rng.permutation(len(candidates))), key=lambda candidate: candidate.spread
    )


def _describe_strata(strata: Mapping[str, Sequence[str]], drawn_ids: Collection[str]) -> dict[str, Stratum]:
    return {
        name: Stratum(scenarios=len(ids), drawn=sum(scenario in drawn_ids for scenario in ids), ids=tuple(sorted(ids)))
        for name, ids in sorted(strata.items())
    }


def draw_scenarios(strata: Mapping[str, Sequence[str]], *, size: int, rng: Generator) -> tuple[DrawnScenario, ...]:
    """Without replacement, at even steps from a random start within each stratum; the whole in random order."""
    shares = allocate_sizes({name: len(ids) for name, ids in strata.items()}, size)
    drawn = [
        DrawnScenario(scenario, len(ids) / shares[name])
        for name, ids in sorted(strata.items())
        for scenario in _draw_at_even_steps(ids, shares[name], rng)
    ]
    return tuple(drawn[place] for place in rng.permutation(len(drawn)))


def _draw_at_even_steps(ids: Sequence[str], count: int, rng: Generator) -> list[str]:
    """Each has the same chance, and neighbours are not drawn together."""
    start = rng.random()
    return [ids[min(len(ids) - 1, floor((start + place) * len(ids) / count))] for place in range(count)]


def allocate_sizes(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    """How many to draw from each stratum: half from the judge's lies, or all of them; half of what is left from lies
    of other judges, or all of them; from the others by their size, and some from each."""
    if size < len(sizes):
        raise UsageError(
            f"--size {size} is too small: there are {len(sizes)} strata, and none may be left out",
            advice=f"Give at least {len(sizes)}.",
        )
    allocation: dict[str, int] = {}
    left = dict(sizes)
    for name in (LIE, OTHER_LIE):
        if name in left:
            count, room = left.pop(name), size - sum(allocation.values())
            half = min(room // 2, room - len(left)) if left else room
            allocation[name] = min(count, max(half, room - sum(left.values())))
    return allocation | _allocate_by_size(left, size - sum(allocation.values()))


def _allocate_by_size(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    least = LEAST if size >= LEAST * len(sizes) else 1
    allocation = {name: min(count, least) for name, count in sizes.items()}
    while (left := size - sum(allocation.values())) > 0:
        room = {name: count - allocation[name] for name, count in sizes.items() if count > allocation[name]}
        if not room:
            break
        total = sum(sizes[name] for name in room)
        wanted = {name: max(0.0, size * sizes[name] / total - allocation[name]) for name in room}
        most = sum(wanted.values()) or 1.0
        more = {name: min(room[name], floor(left * wanted[name] / most)) for name in room}
        if not any(more.values()):
            best = max(room, key=lambda name: (wanted[name], sizes[name], name))
            more = {best: 1}
        for name, count in more.items():
            allocation[name] += count
    return allocation


# --- a run that changed after the draw --------------------------------------------------------------------


class SampleChange(NamedTuple):
    """What a sample does not know of its run."""

    new: frozenset[str]
    """Scenarios that could be drawn now and could not then."""
    why: str


def find_change(run: Run, sample: Sample) -> SampleChange | None:
    """What happened to the run since the sample was drawn or last extended; `None` where nothing did."""
    candidates = {candidate.scenario for candidate in _list_candidates(run, probes=sample.probes)}
    total = sum(stratum.scenarios for stratum in sample.strata.values())
    new = frozenset(candidates - {scenario for stratum in sample.strata.values() for scenario in stratum.ids})
    judges = sorted(set(run.definition.full_judges) - set(sample.judges))
    reasons = [f"{', '.join(judges)} has read the run since"] if judges else []
    if new:
        reasons.append(f"it was drawn from {total} scenarios, and now labels could change {len(candidates)}")
    return SampleChange(new, "; ".join(reasons)) if reasons else None


def extend_sample(run: Run, sample: Sample) -> Sample | None:
    """The sample with what it lacks, if the run has changed since; `None` where nothing is to be done."""
    change = find_change(run, sample)
    if change is None:
        return None
    extended = draw_extension(sample, _list_candidates(run, probes=sample.probes), why=change.why)
    return msgspec.structs.replace(
        extended, judges=tuple(sorted(run.definition.full_judges)), judge=run.judge_file(None)
    )


def draw_extension(sample: Sample, candidates: Sequence[Candidate], *, why: str) -> Sample:
    """The sample with more scenarios of these candidates, and the weights that all its scenarios have then."""
    import numpy as np

    number = len(sample.extended) + 1
    rng = np.random.default_rng([sample.seed, number])
    before = {scenario for stratum in sample.strata.values() for scenario in stratum.ids}
    new = {candidate.scenario for candidate in candidates} - before
    parts, classes = _part_strata(sample, _shuffle_and_spread(candidates, rng), number)
    drawn_ids = {drawn.scenario for drawn in sample.drawn}
    size = ceil(sample.size * (len(before) + len(new)) / len(before))
    added: list[str] = []
    for name, count in _count_missing(parts, classes, drawn_ids, size).items():
        added += _draw_at_even_steps([scenario for scenario in parts[name] if scenario not in drawn_ids], count, rng)
    drawn_ids.update(added)
    weights = {}
    for ids in parts.values():
        drawn_here = [scenario for scenario in ids if scenario in drawn_ids]
        weights.update(dict.fromkeys(drawn_here, len(ids) / max(1, len(drawn_here))))
    order = [drawn.scenario for drawn in sample.drawn] + [added[place] for place in rng.permutation(len(added))]
    return msgspec.structs.replace(
        sample,
        strata=_describe_strata(parts, drawn_ids),
        drawn=tuple(DrawnScenario(scenario, weights[scenario]) for scenario in order),
        extended=(*sample.extended, SampleExtension(why=why, scenarios=len(new), drawn=len(added))),
    )


def _part_strata(
    sample: Sample, candidates: Sequence[Candidate], number: int
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Strata that no stratum of before or verdict of now cuts across, and the class of each by the verdicts of now.

    Scenarios that no label could change any more are parts of their own, from which nothing more is drawn.
    """
    before = {scenario: name for name, stratum in sample.strata.items() for scenario in stratum.ids}
    parts: dict[str, list[str]] = {}
    classes: dict[str, str] = {}
    for scenario, now, _ in candidates:
        old = before.pop(scenario, None)
        if old is None:
            name = f"{now}, added {number}"
        else:
            name = old if old.split(", added ")[0].rpartition(" > ")[2] == now else f"{old} > {now}"
        parts.setdefault(name, []).append(scenario)
        classes[name] = now
    for scenario, old in before.items():
        parts.setdefault(f"{old} > out", []).append(scenario)
    return parts, classes


def _count_missing(
    parts: Mapping[str, Sequence[str]], classes: Mapping[str, str], drawn_ids: Collection[str], size: int
) -> dict[str, int]:
    """How many more to draw from each part, so that each class has what a new sample of this size would draw from it.
    No part stays without one."""
    sizes: dict[str, int] = {}
    for name, now in classes.items():
        sizes[now] = sizes.get(now, 0) + len(parts[name])
    wanted = allocate_sizes(sizes, max(size, len(sizes)))
    missing = {}
    for name, now in sorted(classes.items()):
        have = sum(scenario in drawn_ids for scenario in parts[name])
        target = max(1, ceil(wanted[now] * len(parts[name]) / sizes[now]))
        missing[name] = max(0, min(target, len(parts[name])) - have)
    return missing


def weigh_labelled(
    sample: Sample, labelled: Collection[str], frame: Collection[str] | None = None
) -> dict[str, float] | None:
    """The weights of labelled scenarios. What nobody labelled counts as missing by chance within its stratum: the
    labelled stand for all of it, or for its part in `frame`. `None` where some are not of the sample."""
    weights = {drawn.scenario: drawn.weight for drawn in sample.drawn}
    if not set(labelled) <= weights.keys():
        return None
    for stratum in sample.strata.values():
        own = [scenario for scenario in stratum.ids if scenario in labelled]
        size = sum(frame is None or scenario in frame for scenario in stratum.ids)
        weights.update(dict.fromkeys(own, size / max(1, len(own))))
    return {scenario: weights[scenario] for scenario in labelled}


def _sample_path(run: Run) -> Path:
    return refuse_linked_folder(run.path / "labels") / "sample.json"
