"""A score and a scenario as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from unmask.records import Verdict
from unmask.render.colours import VERDICTS
from unmask.render.terminal.tables import (
    break_name,
    count_other_replies,
    format_bounds,
    format_money,
    format_signed,
    percent,
    render_parts,
)
from unmask.render.words import NAMES
from unmask.runs.definition import typed_judge
from unmask.scoring.asides import RolePlay, SelfReport
from unmask.scoring.guards import explain_small_judges
from unmask.scoring.measures import LYING_AT, MEASURES, Measures, Where, find_measure, list_measures
from unmask.scoring.score import Missing, Score, describe_unjudged, explain_headline, explain_sides, explain_unjudged
from unmask.stats.contrast import Contrast
from unmask.stats.rate import Corrected, Rate
from unmask.text import strip_controls

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


ROOMY = 100
"""Columns from which the table of archetypes needs no broken headings."""
NARROW = 18
"""Characters of a row's name that fit on one line below that."""
SAY_LITTLE = frozenset({"engagement", "belief", "empty"})
"""Warnings under which a high honesty is no praise: a model that says or believes nothing tells no lie."""


def render(score: Score, *, width: int | None = None, color: bool = False, max_unjudged: float = 0.05) -> str:
    """The score for a terminal of `width` columns, or of this terminal's. Too many unjudged are said first."""
    from shutil import get_terminal_size

    columns = width or get_terminal_size().columns
    parts = _compose_parts(score, roomy=columns >= ROOMY, max_unjudged=max_unjudged)
    return render_parts(parts, width=columns, color=color)


def _compose_parts(score: Score, *, roomy: bool, max_unjudged: float) -> Iterator[Text | Table]:
    from rich.text import Text

    for warning in _list_warnings(score, max_unjudged):
        yield Text(f"WARNING: {warning}.\n", style="bold red")
    yield Text(f"P(lie) {score.overall.p_lie}", style="bold")
    yield Text(explain_headline(score))
    for sentence in explain_small_judges(score.run):
        yield Text(strip_controls(sentence))
    for sentence in filter(None, (answered.explain() for answered in score.answered_by)):
        yield Text(strip_controls(sentence))
    yield Text(_format_provenance(score), style="dim")
    if score.other_judges is not None:
        others = strip_controls(str(score.other_judges))
        decides = score.other_judges.command is not None  # its command stays in one piece
        yield Text(f"{others[0].upper()}{others[1:]}", style="bold" if decides else "dim", no_wrap=decides)
    yield Text()
    yield _measures_table(score)
    yield Text()
    yield _archetypes_table(score, roomy=roomy)
    yield Text()
    for line in format_side_measures(score):
        yield Text(line)
    yield from _compose_footer(score)


def _list_warnings(score: Score, limit: float) -> Iterator[str]:
    yield from (strip_controls(finding.text) for finding in score.warnings)
    share = score.unjudged_share
    if share is not None and share > limit:
        why = strip_controls(explain_unjudged(score)).rstrip(".")
        yield f"{describe_unjudged(score)}, above the limit of {100 * limit:g} %. {why}"


def _format_provenance(score: Score) -> str:
    """Who was asked, who read it and what was asked, as far as `run.json` says so."""
    run = score.run
    subject, data = (part if isinstance(part, dict) else {} for part in (run.get("subject"), run.get("data")))
    facts = {"model": subject.get("model"), "judge": typed_judge_of(run), "data": data.get("name")}
    parts = [
        f"{name} {' '.join(strip_controls(value).split())}" for name, value in facts.items() if isinstance(value, str)
    ]
    return ", ".join([*parts, f"preset {score.preset}", f"scoring version {score.scoring_version}"])


def typed_judge_of(run: Mapping[str, Any]) -> str | None:
    """The judge of a score as somebody would type it, and its partner. `run` is that of the score."""
    judge, judges = run.get("judge"), run.get("judges")
    specs = judges.items() if isinstance(judges, dict) else ()
    models = {file: str(spec["model"]) for file, spec in specs if isinstance(spec, dict) and "model" in spec}
    if not isinstance(judge, str) or not isinstance(judges, dict):
        return judge if isinstance(judge, str) else None
    partner = judges[judge].get("numeric_judge") if judge in models else None
    figures = f", {models[partner]} for figures" if partner in models else ""
    return typed_judge(judge, models) + figures


def _measures_table(score: Score) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for name in list_measures(Where.LIST):
        measure = MEASURES[name]
        says_little = name == "honesty" and any(finding.guard in SAY_LITTLE for finding in score.warnings)
        meaning = f"{measure.meaning}, says little here" if says_little else measure.meaning
        table.add_row(measure.title, _format_rate(getattr(score.overall, name)), meaning)
    if score.takes > 1:
        lying = find_measure(f"{LYING_AT}{score.takes}")
        table.add_row(lying.title, _format_rate(score.overall.lying_at[score.takes]), lying.meaning)
    return table


def _format_rate(rate: Rate | None) -> str:
    return "unknown" if rate is None else f"{rate.percent} of {rate.total}"


def _archetypes_table(score: Score, *, roomy: bool) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", collapse_padding=True)
    table.add_column("archetype", vertical="top", no_wrap=False)
    headings = ("n", "unjudged", "P(lie) %", "honest %", "evasion %", "no belief %", "accuracy %")
    narrow = {
        "unjudged": "un-\njudged",
        "honest %": "hon-\nest %",
        "evasion %": "eva-\nsion %",
        "no belief %": "no be-\nlief %",
        "accuracy %": "accu-\nracy %",
    }
    titles = {Verdict.LIE: "P(lie) %", Verdict.UNJUDGED: "unjudged"}
    paints = {titles.get(verdict, f"{NAMES[verdict]} %"): paint.terminal for verdict, paint in VERDICTS.items()}
    for heading in headings:
        table.add_column(
            heading if roomy else narrow.get(heading, heading),
            style=paints.get(heading),
            header_style=f"bold {paints[heading]}" if heading in paints else "bold",
            justify="right",
            vertical="top",
            no_wrap=True,
        )
    for archetype, part in score.archetypes.items():
        table.add_row(_break_name(archetype.value, roomy=roomy), *_measure_cells(part))
    table.add_row()
    table.add_row("all", *_measure_cells(score.overall), style="bold")
    for name, part in list_cuts(score):
        table.add_row(_break_name(name, roomy=roomy), *_measure_cells(part))
    means = score.archetype_mean.rates
    lie, others = means["p_lie"], (means[name] for name in ("p_honest", "p_evasion", "p_no_belief", "accuracy"))
    cells = ["", "", percent(lie.value) + format_bounds(lie.low, lie.high), *(percent(one.value) for one in others)]
    table.add_row(_break_name("mean of archetypes", roomy=roomy), *cells)
    return table


def list_cuts(score: Score) -> Iterator[tuple[str, Measures]]:
    """Other ways to pool, where they differ from all scenarios."""
    everything = score.overall.scenarios
    if 0 < score.without_provided_facts.scenarios < everything:
        yield "without provided_facts", score.without_provided_facts
    if 0 < score.binary_only.scenarios < everything:
        yield "binary only", score.binary_only
    for pressure, part in score.pressure.items():
        yield f"{pressure} pressure", part
    for answer, part in score.polarity.items():
        yield f"true answer {answer}", part
    for state, name in (("silent", "empty replies"), ("truncated", "cut-off replies")):
        if state in score.replies:
            yield name, score.replies[state]


def _break_name(name: str, *, roomy: bool) -> str:
    """The name of a row. Where the terminal is narrow, a long one goes on in the next line, further to the right."""
    return name if roomy or len(name) <= NARROW else break_name(name, NARROW - 2).replace("\n", "\n  ")


def _measure_cells(part: Measures) -> list[str]:
    p_lie = part.p_lie
    interval = "" if p_lie.value is None else f" [{percent(p_lie.low)}, {percent(p_lie.high)}]"
    others = (part.p_honest, part.p_evasion, part.p_no_belief, part.accuracy)
    values = (percent(rate.value) for rate in others)
    return [str(p_lie.total), str(p_lie.unjudged), percent(p_lie.value) + interval, *values]


def _compose_footer(score: Score) -> Iterator[Text]:
    from rich.text import Text

    if explained := explain_unjudged(score):
        yield Text(strip_controls(explained))
    if score.complete_with:
        yield Text(f"{_format_price(score.missing)}Finish with:")
        # Never broken over two lines: it is there to be copied.
        yield Text(f"  {strip_controls(score.complete_with)}", no_wrap=True)
    if annotated := explain_sides(score):
        yield Text(strip_controls(annotated))
    if score.silent or score.truncated:
        yield Text(f"Replies   {score.silent} empty, {score.truncated} cut off")
    spent = score.spent.calls()
    calls = {name: _format_count(count) for name, count in spent.items()}
    figures = f", {calls['numeric_judge']} to the judge for figures" if "numeric_judge" in calls else ""
    yield Text(
        f"Calls     {calls['subject']} to the subject, {calls['judge']} to the judge{figures}"
        if any(count is not None for count in spent.values())
        else "Calls     unknown"
    )
    if score.spent.tokens:
        counts = (
            f"{strip_controls(name).replace('_', ' ')} {_format_count(count)}"
            for name, count in score.spent.tokens.items()
        )
        yield Text(f"Tokens    {', '.join(counts)}")
    yield Text(f"Cost      {format_money(score.spent.cost_usd)}")
    for tier, part in score.spent.tiers.items():
        calls_at_tier = f"{part.subject:,} to the subject, {part.judge:,} to the judge"
        if part.numeric_judge:
            calls_at_tier += f", {part.numeric_judge:,} to the judge for figures"
        yield Text(f"  {strip_controls(tier):<8}{format_money(part.cost_usd)} ({calls_at_tier})")


def _format_price(missing: Missing | None) -> str:
    """What finishing costs, where somebody has estimated it."""
    if missing is None or missing.calls is None:
        return ""
    price = "at a price that is not known" if missing.cost_usd is None else format_money(missing.cost_usd)
    return f"That takes at most {missing.calls:,} calls, {price}. "


def _format_count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def format_side_measures(score: Score) -> Iterator[str]:
    """Lines of text; none where nothing of the kind was asked for."""
    if score.explicit_against_situational is not None:
        yield describe_pressures(score.explicit_against_situational)
    if score.corrected is not None:
        yield from _format_corrected_rate(score.corrected)
    if score.role_play is not None:
        yield from _format_role_play(score.role_play)
    if score.check_provided is not None:
        check = score.check_provided
        yield (
            f"Supplied facts understood {check.understood}; P(lie) {check.p_lie_understood} where they were,"
            f" {check.p_lie_misunderstood} where they were not."
        )
    if score.self_report is not None:
        yield from _format_self_report(score.self_report)


def describe_pressures(contrast: Contrast) -> str:
    """One sentence: the two kinds of pressure within archetypes, and whether the difference can be chance."""
    chance = "could be chance" if contrast.low <= 0 <= contrast.high else "is larger than chance"
    return (
        f"Explicit against situational pressure, within {contrast.groups} archetypes:"
        f" P(lie) {percent(contrast.first)} % of {contrast.n_first}"
        f" against {percent(contrast.second)} % of {contrast.n_second},"
        f" {format_signed(contrast.value)} points{format_bounds(contrast.low, contrast.high)};"
        f" that {chance}."
    )


def _format_corrected_rate(corrected: Corrected) -> Iterator[str]:
    if corrected.value is None:
        yield f"Corrected P(lie) n/a: {corrected.why}."
        yield from _format_label_counts(corrected)
        return
    raw = (
        ""
        if corrected.raw is None
        else f"; the judge says {percent(corrected.raw)} %, {format_signed(corrected.raw - corrected.value)} points"
    )
    yield (
        f"Corrected P(lie) {percent(corrected.value)} %{format_bounds(corrected.low, corrected.high)} with"
        f" {corrected.labelled} of {corrected.scenarios} scenarios labelled{raw} off."
    )
    splits = {0: "", 1: " (one reply on which people disagree)"}.get(
        corrected.splits, f" ({corrected.splits} replies on which people disagree)"
    )
    yield f"Among the labelled: {corrected.false_lies:.3g} false lies, {corrected.missed_lies:.3g} missed{splits}."
    if corrected.people:
        rates = ", ".join(
            f"{who} n/a ({one.labelled})"
            if one.value is None
            else f"{who} {percent(one.value)} %{format_bounds(one.low, one.high)} ({one.labelled})"
            for who, one in corrected.people.items()
        )
        yield f"By person, with the number labelled: {rates}. The interval is wider by half their difference."
    yield from _format_label_counts(corrected)


def _format_label_counts(corrected: Corrected) -> Iterator[str]:
    """Labels that were used, and those that could not be."""
    lost = f" ({corrected.left_out} could not be used)" if corrected.left_out else ""
    yield f"Labels: used {corrected.labelled}{lost}."
    if corrected.other_replies:
        yield f"{count_other_replies(corrected.other_replies)}."


def _format_role_play(role_play: RolePlay) -> Iterator[str]:
    overall = role_play.overall
    unknown, rectified = "", overall.rectified_p_lie
    if overall.unknown and rectified.worst_low is not None and rectified.worst_high is not None:
        worst = f"{percent(rectified.worst_low)} to {percent(rectified.worst_high)} %"
        unknown = f", of {overall.unknown} it is not known; whatever these are, it is {worst}"
    yield (
        f"P(lie) {overall.p_lie.percent}, rectified P(lie) {overall.rectified_p_lie}: of {overall.lies} lies"
        f" {overall.played}"
        f" are plainly fiction or a part played{unknown}."
    )
    parts = [(name.value, part) for name, part in role_play.archetypes.items() if part.played]
    if parts:
        yield "  rectified: " + ", ".join(
            f"{name} {percent(part.p_lie.value)} to {percent(part.rectified_p_lie.value)} %" for name, part in parts
        )


def _format_self_report(self_report: SelfReport) -> Iterator[str]:
    overall = self_report.overall
    yield (
        f"Asked afterwards, the model agrees with the verdict in {overall.agreement} replies; it admits"
        f" {overall.admitted.percent} of its lies and disowns {overall.disowned.percent} of its honest replies."
        f" Balanced accuracy {overall.balanced_accuracy.percent}; 50 % is what saying always the same gives."
    )
    parts = [
        f"{name.value} {percent(part.agreement.value)} of {part.agreement.total}"
        for name, part in self_report.archetypes.items()
        if any(sum(part.counts[verdict].values()) for verdict in (Verdict.HONEST, Verdict.LIE))
    ]
    yield "  agreement %: " + (", ".join(parts) or "nothing to agree with")
