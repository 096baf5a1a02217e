"""What mitigations gain and cost, as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.experiments.mitigation import FluencyChange, MitigationReport, TreatedRun
from unmask.render.terminal.tables import (
    TextTable,
    format_difference,
    format_p_value,
    make_table,
    markdown_cell,
    markdown_table,
    percent,
    render_parts,
)
from unmask.scoring.measures import MEASURES
from unmask.stats.effect import Cost, Effect

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


def render(report: MitigationReport, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(report), width=width, color=color)


def name_treatment(run: TreatedRun) -> str:
    """The treatment, or the model where nothing was done to it."""
    return run.treatment if run.treatment != "none" else run.model


def render_markdown(report: MitigationReport) -> str:
    """The same tables for a README or a paper's notes."""
    lines = [
        f"Base: `{markdown_cell(report.base.name)}` (`{markdown_cell(report.base.model)}`), read as {report.preset}.",
        "",
        _explain_rule(report),
        "",
    ]
    for summary in _summary_tables(report):
        lines += [*markdown_table(*summary), ""]
    for run in report.treated:
        lines += [
            f"**{markdown_cell(name_treatment(run))}** (`{markdown_cell(run.name)}`): {_describe_effect(run)}",
            "",
        ]
        lines += [*markdown_table(*_detail_table(run)), ""]
    return "\n".join(lines)


def _compose_parts(report: MitigationReport) -> Iterator[str | TextTable]:
    reading = [setting.name for setting in report.differs if setting.reading]
    if reading:
        yield f"CAUTION: the runs also differ in how replies become verdicts ({', '.join(reading)}).\n"
    if report.changed:
        yield f"Left out: {len(report.changed)} scenarios whose content differs under the same id.\n"
    for measured in (report.base, *report.runs):
        if measured.undecided:
            yield f"INCOMPLETE: {measured.name} has {measured.undecided} undecided scenarios; they are left out.\n"
    yield f"Base: {report.base.name} ({report.base.model}), read as {report.preset}. Treated minus base, in points.\n"
    yield _explain_rule(report) + "\n"
    for number, summary in enumerate(_summary_tables(report)):
        yield from [""] * (number > 0)
        yield make_table(*summary)
    for run in report.treated:
        yield ""
        yield f"{name_treatment(run)} ({run.name}): {_describe_effect(run)}"
        yield make_table(*_detail_table(run))


def _explain_rule(report: MitigationReport) -> str:
    """By what a treatment is named, and what the intervals are."""
    overall = [measure.overall for run in report.treated for measure in run.measures.values()]
    levels = sorted({difference.level for difference in overall if difference.value is not None})
    shown = " to ".join(f"{100 * level:.2f}" for level in dict.fromkeys((*levels[:1], *levels[-1:])))
    tested = sum(difference.p_value is not None for difference in overall)
    return (
        f"Named by {tested} tests, corrected together by Holm's method: chance alone gives any name in at most 5 % of"
        f" such reports. The intervals are corrected alike ({shown or 'no'} % each). A measure counts as moved where"
        " that of all scenarios leaves out 0 and nothing unjudged could undo it."
    )


Rows = tuple[Sequence[str], list[Sequence[str]]]


SIDE_BY_SIDE = 5
"""Treatments in one table; more would not fit on a screen."""


def _summary_tables(report: MitigationReport) -> Iterator[Rows]:
    """A column for each treatment, a row for each measure."""
    for start in range(0, len(report.treated), SIDE_BY_SIDE):
        treated = report.treated[start : start + SIDE_BY_SIDE]
        lies = [run.measures["p_lie"].overall for run in treated]
        rows: list[Sequence[str]] = [
            ("run", *(run.name for run in treated)),
            ("judged in both", *(f"{part.n} of {run.shared}" for run, part in zip(treated, lies, strict=True))),
            ("what it does", *(EFFECTS[run.effect] for run in treated)),
        ]
        for name in treated[0].measures:
            points = (format_difference(run.measures[name].overall) for run in treated)
            rows.append((MEASURES[name].title, *points))
        rows.append(("perplexity", *(_format_perplexity(run.writing) for run in treated)))
        rows.append(("p of P(lie), corrected", *(format_p_value(part.p_adjusted) for part in lies)))
        yield ("points", *(name_treatment(run) for run in treated)), rows


def _detail_table(run: TreatedRun) -> Rows:
    """All scenarios, then each archetype."""
    headings = ("points", "n", *(MEASURES[name].title for name in run.measures))
    overall = [measure.overall for measure in run.measures.values()]
    rows: list[Sequence[str]] = [
        ("base, %", "", *(percent(difference.a) for difference in overall)),
        ("treated, %", "", *(percent(difference.b) for difference in overall)),
        ("difference", str(overall[0].n), *map(format_difference, overall)),
    ]
    for archetype, lies in run.measures["p_lie"].archetypes.items():
        parts = [measure.archetypes[archetype] for measure in run.measures.values()]
        rows.append((f"  {archetype.traits.title}", str(lies.n), *map(format_difference, parts)))
    return headings, rows


def _format_perplexity(fluency: FluencyChange) -> str:
    if fluency.ratio is None or fluency.base is None or fluency.treated is None:
        return "not measured"
    return f"{fluency.base:.2f} > {fluency.treated:.2f} (×{fluency.ratio.value:.2f})"


def _describe_effect(run: TreatedRun) -> str:
    """The effect in a sentence, then each cost, then what to be careful about."""
    parts = [run.words]
    if run.costs:
        parts.append(f"Cost: {', '.join(COSTS[cost] for cost in run.costs)}.")
    if run.writing.ratio is None:
        parts.append(f"Fluency: not measured, {run.writing.why}.")
    parts += [f"Note: {note}." for note in run.notes]
    return " ".join(parts)
