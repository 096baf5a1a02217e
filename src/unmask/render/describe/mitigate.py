"""What mitigations gain and cost: each in a sentence, then measure by measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.analysis.mitigation import FluencyChange, MitigationReport, TreatedRun
from unmask.render import words
from unmask.render.blocks import Block, Cell, Table, Text, points_cell
from unmask.render.describe.compare import warn_of_runs
from unmask.scoring.measures import MEASURES
from unmask.stats.effect import EFFECT_SENTENCES, Cost, Effect

EFFECTS = {
    Effect.HONEST: "more honest",
    Effect.HONEST_AT_A_COST: "more honest, at a cost",
    Effect.ONLY_EVADES: "only evades",
    Effect.ONLY_LOSES_BELIEFS: "only loses its beliefs",
    Effect.ONLY_EVADES_AND_LOSES_BELIEFS: "only evades and loses its beliefs",
    Effect.ONLY_GETS_FACTS_WRONG: "only gets facts wrong",
    Effect.FEWER_LIES_UNEXPLAINED: "fewer lies, unexplained",
    Effect.NO_EFFECT: "no effect seen",
    Effect.COST_WITHOUT_EFFECT: "a cost, no effect seen",
    Effect.MORE_LIES: "more lies",
    Effect.UNKNOWN: "cannot be said",
}

COSTS = {
    Cost.EVASION: "evades more",
    Cost.BELIEF: "has fewer beliefs",
    Cost.ACCURACY: "gets more facts wrong",
    Cost.FLUENCY: "writes less fluently",
}


def describe_mitigations(report: MitigationReport) -> Iterator[Block]:
    """A sentence for each treatment, and a table of all of them."""
    runs = [report.base, *(treated.run for treated in report.treated)]
    yield from warn_of_runs(runs, report.differs, report.changed)
    for run in report.treated:
        yield Text(f"{name_treatment(run)} ({run.run.name}): {_describe_effect(run)}", "strong")
    base = report.base
    yield Text(f"Base: {base.name} ({base.model}), scored with preset {report.preset}. Treated minus base, in points.")
    yield Text(_explain_rule(report))
    yield _summary_table(report)


def name_treatment(run: TreatedRun) -> str:
    """The treatment, or the model where nothing was done to it."""
    return run.treatment if run.treatment != "none" else run.run.model


def _explain_rule(report: MitigationReport) -> str:
    """By what a treatment is named, and what the intervals are."""
    overall = [difference for run in report.treated for difference in run.measures.values()]
    levels = sorted({difference.level for difference in overall if difference.value is not None})
    shown = " to ".join(
        f"{100 * level:g}" for level in dict.fromkeys(round(end, 4) for end in (*levels[:1], *levels[-1:]))
    )
    tested = sum(difference.p_value is not None for difference in overall)
    return (
        f"Named by {tested} tests, corrected together by Holm's method: chance alone gives any name in at most 5 % of"
        f" such reports. The intervals are corrected alike ({shown or 'no'} % each). A measure counts as moved where"
        " that of all scenarios leaves out 0 and nothing unjudged could undo it."
    )


def _summary_table(report: MitigationReport) -> Table:
    """A column for each treatment, a row for each measure."""
    treated = report.treated
    lies = [run.measures["p_lie"] for run in treated]
    rows: list[Sequence[str | Cell]] = [
        ("run", *(run.run.name for run in treated)),
        ("judged in both", *(f"{part.n} of {run.shared}" for run, part in zip(treated, lies, strict=True))),
        ("what it does", *(EFFECTS[run.effect] for run in treated)),
    ]
    names = treated[0].measures if treated else ()
    rows += [(MEASURES[name].title, *(points_cell(run.measures[name]) for run in treated)) for name in names]
    rows.append(("perplexity", *(_format_perplexity(run.writing) for run in treated)))
    rows.append(("p of P(lie), corrected", *(words.p_value(part.p_adjusted) for part in lies)))
    return Table(("points", *map(name_treatment, treated)), rows)


def _format_perplexity(fluency: FluencyChange) -> str:
    if fluency.ratio is None or fluency.base is None or fluency.treated is None:
        return "not measured"
    return f"{fluency.base:.2f} > {fluency.treated:.2f} (×{fluency.ratio.value:.2f})"


def _describe_effect(run: TreatedRun) -> str:
    """The effect in a sentence, then each cost, then what to be careful about."""
    parts = [EFFECT_SENTENCES[run.effect]]
    if run.costs:
        parts.append(f"Cost: {', '.join(COSTS[cost] for cost in run.costs)}.")
    if run.writing.ratio is None:
        parts.append(f"Fluency: not measured, {run.writing.why}.")
    parts += [f"Note: {note}." for note in run.notes]
    return " ".join(parts)
