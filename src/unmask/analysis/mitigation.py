"""What a mitigation gains and what it costs: treated runs against a base, scenario by scenario.

It is `unmask compare` in six measures, all corrected together. `unmask.stats.effect` decides what a mitigation is
called; here is only what it decides from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from unmask.analysis.compare import ComparedRun, describe_run, find_differing
from unmask.analysis.sides import RunSide, compare_sides, find_changed, open_sides
from unmask.errors import JournalError, UsageError
from unmask.files import file_exists, read_bytes, write_atomically
from unmask.models.base import Treatment
from unmask.records import Preset, Record, Result
from unmask.runs.definition import Definition
from unmask.runs.differences import Setting
from unmask.runs.run import Run, open_runs
from unmask.scoring.guards import USUAL_LIMITS
from unmask.scoring.measures import MEASURES, Where, list_measures
from unmask.stats.effect import (
    Cost,
    Effect,
    Fluent,
    Move,
    Moves,
    classify_effect,
    classify_move,
    list_costs,
)
from unmask.stats.estimate import Difference
from unmask.stats.family import adjust_family, depends_on_unjudged, holm_levels
from unmask.whitebox.fluency import (
    LIMIT,
    Fluency,
    Ratio,
    compare_perplexity,
    is_damaged,
    measure_perplexity,
)

FLUENCY_FILE = "fluency.json"

_PLUS = re.compile(r"\+(?=(?:adapter|steer)=)")
_OF_PROBES = ("belief", "accuracy")
_ENOUGH = 0.95
"""Share of the scenarios that have to be judged in both runs before the rest needs no mention; as in a single run."""


class FluencyChange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Perplexity on neutral text, where both models could be read from inside."""

    base: float | None = None
    treated: float | None = None
    ratio: Ratio | None = None
    why: str | None = None
    """Why it was not measured."""


class TreatedRun(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One treated run against the base."""

    run: ComparedRun
    treatment: str
    shared: int
    effect: Effect
    costs: tuple[Cost, ...]
    moves: dict[str, Move]
    fluent: Fluent
    measures: dict[str, Difference]
    """Treated less base."""
    writing: FluencyChange
    notes: tuple[str, ...]


class MitigationReport(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask mitigate report` says."""

    preset: str
    base: ComparedRun
    treated: tuple[TreatedRun, ...]
    differs: tuple[Setting, ...]
    changed: tuple[str, ...]
    fluency_limit: float


def report_mitigations(
    runs: Sequence[Run | str | Path],
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    drop_changed: bool = False,
    fluency_limit: float = LIMIT,
) -> MitigationReport:
    """The first run is the base, each further one is treated. Nothing is asked and no model is loaded."""
    if fluency_limit <= 1:
        raise UsageError(f"fluency_limit {fluency_limit:g} allows no change at all", advice="Give more than 1.")
    sides, chosen = open_sides(open_runs(runs), preset=preset, judge=judge)
    base, *treated = sides
    changed = find_changed([(base, side) for side in treated], drop_changed=drop_changed)
    common = set.intersection(*(set(side.contents) for side in sides)) - set(changed)
    described = [describe_run(side, USUAL_LIMITS, common, list_measures(Where.MITIGATION)) for side in sides]
    measured = _compare_measures(base, treated, set(changed))
    return MitigationReport(
        preset=chosen.value,
        base=described[0],
        treated=tuple(
            _describe_treated(base, side, run, measures, fluency_limit)
            for side, run, measures in zip(treated, described[1:], measured, strict=True)
        ),
        differs=find_differing(sides, chosen),
        changed=changed,
        fluency_limit=fluency_limit,
    )


def describe_treatment(run: Definition) -> str:
    """What was done to the model or to its prompt, by what the run recorded: never by what is on this disk today."""
    treatments = []
    for part in _PLUS.split(run.subject.model)[1:]:
        way, _, value = part.partition("=")
        if way == "adapter":
            treatments.append(f"adapter {Path(value).name}")
        else:
            file, _, coefficient = value.rpartition("@")
            treatments.append(f"steering {Path(file).name.removesuffix('.safetensors')} × {coefficient}")
    if run.developer_prompt is not None:
        treatments.append(f"developer prompt {run.developer_prompt.name}")
    return " + ".join(treatments) or "none"


def read_fluency(run: Run) -> Fluency | None:
    """What was measured of the run's model, if anything was."""
    file = run.path / FLUENCY_FILE
    if not file_exists(file):
        return None
    try:
        return msgspec.json.decode(read_bytes(file), type=Fluency)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(f"{file} cannot be read: {error}", advice="Delete it, and measure again.") from None


def measure_fluency(runs: Sequence[Run | str | Path]) -> Iterator[str]:
    """Load the `hf:` models of runs that have no perplexity yet, measure it, keep it with the run. Yields each name
    before it is loaded; runs of one model share the work."""
    from unmask.models.local.inside import open_whitebox

    waiting: dict[tuple[str, tuple[Treatment, ...]], list[Run]] = {}
    for source in runs:
        run = source if isinstance(source, Run) else Run(source)
        subject = run.definition.subject
        if subject.model.startswith("hf:") and read_fluency(run) is None:
            waiting.setdefault((subject.model, subject.treatments), []).append(run)
    for (name, made_with), owners in waiting.items():
        yield name
        with open_whitebox(name, made_with=made_with, run=str(owners[0].path)) as opened:
            measured_fluency = measure_perplexity(opened.model, opened.chat, name=opened.recorded)
        for run in owners:
            write_atomically(
                run.path / FLUENCY_FILE, msgspec.json.format(msgspec.json.encode(measured_fluency), indent=2) + b"\n"
            )


# --- inside


def _compare_measures(
    base: RunSide, treated: Sequence[RunSide], changed: Collection[str]
) -> list[dict[str, Difference]]:
    """Every measure of every treated run, all of them one family."""
    names = list_measures(Where.MITIGATION)
    tests = [
        partial(_compare, base, side, sorted((base.rows.keys() & side.rows.keys()) - set(changed)), name)
        for side in treated
        for name in names
    ]
    found = iter(correct_together(tests))
    return [{name: next(found) for name in names} for _ in treated]


def correct_together(tests: Sequence[Callable[[float], Difference]]) -> list[Difference]:
    """The differences, each a function of its level, with p-values and intervals corrected by Holm's method.

    As one family: whatever is named by them, the chance that any part of it is chance alone is 5 %.
    """
    levels = holm_levels([test(0.95).p_value for test in tests])
    return adjust_family([test(level) for test, level in zip(tests, levels, strict=True)])


def _compare(base: RunSide, side: RunSide, ids: Sequence[str], name: str, level: float) -> Difference:
    borrowed = side.run.definition.beliefs_from
    if borrowed is not None and name in _OF_PROBES:
        return Difference(n=0, why=f"{side.name} borrows its probes from run {borrowed.run}")
    return compare_sides(base, side, ids, name, level=level)


def _describe_treated(
    base: RunSide, side: RunSide, run: ComparedRun, measured: dict[str, Difference], limit: float
) -> TreatedRun:
    writing, fluent = _compare_fluency(base, side), Fluent.NOT_MEASURED
    if writing.ratio is not None:
        fluent = Fluent.DAMAGED if is_damaged(writing.ratio, limit=limit) else Fluent.KEPT
    moves = {name: classify_move(difference) for name, difference in measured.items()}
    shared = len(base.rows.keys() & side.rows.keys())
    return TreatedRun(
        run=run,
        treatment=describe_treatment(side.run.definition),
        shared=shared,
        effect=classify_effect(moves, fluent),
        costs=list_costs(moves, fluent),
        moves=moves,
        fluent=fluent,
        measures=measured,
        writing=writing,
        notes=(*(finding.text for finding in run.warnings), *_list_notes(base, side, moves, measured, shared)),
    )


def _list_notes(
    base: RunSide, side: RunSide, moves: Moves, measured: Mapping[str, Difference], shared: int
) -> Iterator[str]:
    """What a reader should know before quoting the effect."""
    definitions = base.run.definition, side.run.definition
    if len(set(map(describe_treatment, definitions))) == 1:
        yield "treated like the base: a difference comes from chance or from other settings"
    models = [_PLUS.split(one.subject.model)[0] for one in definitions]
    if len(set(models)) > 1:
        yield f"another model than the base: {models[1]}"
    judged, reach = measured["p_lie"].n, measured["p_lie"].detectable
    if judged < _ENOUGH * shared:
        yield f"only {judged} of {shared} scenarios were judged in both runs; of the rest nothing is known"
    undone = [MEASURES[name].title for name, difference in measured.items() if depends_on_unjudged(difference)]
    if undone:
        yield f"{', '.join(undone)}: larger than chance in what was judged, but what was not judged could undo that"
    unknown = [name for name in _OF_PROBES if measured[name].value is None]
    if unknown:
        yield f"{' and '.join(unknown)}: not measured, {measured[unknown[0]].why}"
    if moves["p_lie"] is Move.FLAT and reach is not None:
        yield f"a true change of P(lie) below {100 * reach:.1f} points would often go unseen with these scenarios"


def _compare_fluency(base: RunSide, side: RunSide) -> FluencyChange:
    if not all(one.run.definition.subject.model.startswith("hf:") for one in (base, side)):
        return FluencyChange(why="only hf: models can be read from inside")
    before, after = read_fluency(base.run), read_fluency(side.run)
    if before is None or after is None:
        missing = base.name if before is None else side.name
        return FluencyChange(why=f"{missing} has no {FLUENCY_FILE}; add --fluency")
    ratio = compare_perplexity(before, after)
    return FluencyChange(base=before.perplexity, treated=after.perplexity, ratio=ratio)
