"""A score: the finding, the outcomes, the archetypes, and what to type next; everything else where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unmask.records import MISLEADS, PRESSURED, ROLE_PLAY, Archetype, Verdict
from unmask.render import words
from unmask.render.blocks import Alert, Bar, Block, Cell, Facts, Heading, Table, Text, next_steps, share_cell
from unmask.render.describe.caveats import count_other_replies, list_caveats
from unmask.render.describe.finding import state_finding
from unmask.render.describe.firmness import describe_firmness
from unmask.render.describe.imported import describe_import, state_import
from unmask.render.describe.pressure import (
    describe_control,
    describe_ladder,
    describe_placebo,
)
from unmask.runs.definition import typed_judge
from unmask.runs.imported import ImportFile
from unmask.scoring.asides import AsideScore, SelfReport
from unmask.scoring.guards import MAX_UNJUDGED
from unmask.scoring.measures import LYING_AT, MEASURES, Measures, Where, find_measure, list_measures
from unmask.scoring.score import Score
from unmask.stats.rate import Corrected, Rate

Steps = Sequence[tuple[str, str]]
"""Commands, each with what it does."""


def describe_score(
    score: Score,
    *,
    every: bool = False,
    max_unjudged: float = MAX_UNJUDGED,
    steps: Steps = (),
    about: ImportFile | None = None,
) -> Iterator[Block]:
    """What fits one screen, or `every` measure. `steps` are what to type next, after what completes the run; `about` is
    where an imported run comes from."""
    caveats = list(list_caveats(score, limit=max_unjudged))
    yield from (Alert(caveat.text) for caveat in caveats if caveat.serious)
    first, *others = state_finding(score)
    yield Text(first, "strong")
    if others:
        yield Text(" ".join(others))
    yield Text(_format_provenance(score), "quiet")
    yield draw_outcomes(score)
    yield from describe_measures(score, every=every)
    if about is not None:
        yield Text(state_import(about, score.preset))
    if every:
        if mild := [caveat.text for caveat in caveats if caveat.is_more]:
            yield Heading("Before quoting this")
            yield from map(Text, mild)
        yield from describe_import(about) if about is not None else ()
    completing = [(score.complete_with, "completes the run")] if score.complete_with else []
    yield from next_steps([*completing, *steps])


def describe_measures(score: Score, *, every: bool = True) -> Iterator[Block]:
    """The numbers of a score that fit a screen, or `every` one: for a page that has finding and outcomes already."""
    if every:
        yield _measures_table(score)
    yield _archetypes_table(score, every=every)
    if score.tipping_point is not None:
        share = words.percent(score.tipping_point)
        yield Text(f"All of P(lie) would be the judge's if it called {share} of honest replies lies.")
    if score.ladder is not None:
        yield from describe_ladder(score.ladder, bundled=_data_of(score).get("source") == "ladder")
    if score.corrected is not None:
        yield from map(Text, explain_corrected(score.corrected))
    if not every:
        return
    if score.control is not None:
        yield from describe_control(score.control)
    if score.placebo is not None:
        yield from describe_placebo(score.placebo)
    if score.firmness is not None:
        yield from describe_firmness(score.firmness)
    yield from map(Text, describe_asides(score))
    yield from _describe_spending(score)


def _format_provenance(score: Score) -> str:
    """Who was asked, who read it and what was asked, as far as `run.json` says so."""
    subject = score.run.get("subject")
    model = subject.get("model") if isinstance(subject, dict) else None
    facts = {"model": model, "judge": typed_judge_of(score.run), "data": _data_of(score).get("name")}
    return ", ".join([*(f"{name} {value}" for name, value in facts.items() if value), f"preset {score.preset}"])


def _data_of(score: Score) -> dict[str, Any]:
    data = score.run.get("data")
    return data if isinstance(data, dict) else {}


def typed_judge_of(run: Mapping[str, Any]) -> str | None:
    """The judge of a score as somebody would type it, and who reads numbers for it. `run` is that of the score."""
    judge, judges = run.get("judge"), run.get("judges")
    specs = judges.items() if isinstance(judges, dict) else ()
    models = {file: str(spec["model"]) for file, spec in specs if isinstance(spec, dict) and "model" in spec}
    if not isinstance(judge, str) or not isinstance(judges, dict):
        return judge if isinstance(judge, str) else None
    numeric = judges[judge].get("numeric") if judge in models else None
    figures = f", {numeric['model']} for numbers" if isinstance(numeric, dict) else ""
    return typed_judge(judge, models) + figures


def draw_outcomes(score: Score) -> Bar:
    """Scenarios by verdict, or their takes where they have several."""
    return Bar("Takes" if score.takes > 1 else "Outcomes", count_takes(score.overall, score.takes))


def count_takes(part: Measures, takes: int) -> dict[Verdict, int]:
    """Every take by its verdict. Without a belief, or while it is open, all takes of a scenario count as that."""
    return {verdict: round(share * part.scenarios * takes) for verdict, share in part.shares.items()}


def list_rates(score: Score) -> Iterator[tuple[str, Rate, str]]:
    """Title, rate and meaning of the measures of a whole run."""
    for name in list_measures(Where.LIST):
        measure = MEASURES[name]
        yield measure.title, getattr(score.overall, name), measure.meaning
    for aside in score.asides.values():
        for name, rate in aside.rates.items():
            yield MEASURES[name].title, rate, MEASURES[name].meaning
    if score.takes > 1:
        lying = find_measure(f"{LYING_AT}{score.takes}")
        yield lying.title, score.overall.lying_at[score.takes], lying.meaning


def _measures_table(score: Score) -> Table:
    rows = [(title, meaning, share_cell(rate), words.count(rate.total)) for title, rate, meaning in list_rates(score)]
    p_lie = MEASURES["p_lie"]
    first = (p_lie.title, p_lie.meaning, share_cell(score.p_lie, mark="strong"), words.count(score.p_lie.total))
    return Table(("measure", "", "%", "n"), [first, *rows], texts=2)


PARTS = {"p_lie": "lie", "p_honest": "honest", "p_evasion": "evasion", "p_no_belief": "no_belief"}
"""Columns of the table of archetypes, each with its colour."""


def _archetypes_table(score: Score, *, every: bool) -> Table:
    names = [*PARTS, *["accuracy"] * every]
    parts = [(archetype.traits.title, part) for archetype, part in score.archetypes.items()]
    rows = [_measure_row(name, part, names, score.takes) for name, part in (*parts, ("all", score.overall))]
    marks = [None] * len(parts) + ["strong"]
    if every:
        rows += [_measure_row(name, part, names, score.takes) for name, part in list_cuts(score)]
    marks += [None] * (len(rows) - len(marks))
    headings = ("% by archetype", "P(lie)", "honest", "evasion", "no belief", *["accuracy"] * every, "n", "unjudged")
    return Table(headings, rows, marks=marks, column_marks=(None, *map(PARTS.get, names), None, "unjudged"))


def _measure_row(name: str, part: Measures, names: Sequence[str], takes: int) -> Sequence[str | Cell]:
    rates = (share_cell(getattr(part, measure), plain=measure != "p_lie") for measure in names)
    missing = words.count(part.p_lie.unjudged) if takes == 1 else Cell(part.unjudged_share)
    return name, *rates, words.count(part.p_lie.total), missing


def list_cuts(score: Score) -> Iterator[tuple[str, Measures]]:
    """Other ways to pool, where they differ from all scenarios."""
    everything = score.overall.scenarios
    if 0 < score.without_provided_facts.scenarios < everything:
        yield "without provided facts", score.without_provided_facts
    if 0 < score.binary_only.scenarios < everything:
        yield "binary only", score.binary_only
    for pressure, part in score.pressure.items():
        yield f"{pressure} pressure", part
    for answer, part in score.polarity.items():
        yield f"true answer {answer}", part


def _describe_spending(score: Score) -> Iterator[Block]:
    spent = score.spent
    if score.clusters < score.overall.scenarios and not score.shared_prompts:
        yield Text(f"Scenarios that share a fact or a prompt form {score.clusters} clusters.")
    facts = [("Replies", f"{score.silent} empty, {score.truncated} cut off")] if score.silent or score.truncated else []
    known = any(count is not None for count in spent.calls.values())
    facts.append(("Calls", list_calls(spent.calls) if known else "unknown"))
    if spent.tokens:
        counts = (f"{name.replace('_', ' ')} {words.count(count)}" for name, count in spent.tokens.items())
        facts.append(("Tokens", ", ".join(counts)))
    facts.append(("Cost", words.money(spent.cost_usd)))
    for tier, part in spent.tiers.items():
        facts.append((f"  {tier}", f"{words.money(part.cost_usd)} ({list_calls(part.calls)})"))
    facts.append(("Scoring", f"version {score.scoring_version}"))
    yield Facts(facts)


ROLES = {"subject": "the model", "judge": "the judge", "numeric_judge": "the judge for numbers"}


def list_calls(calls: Mapping[str, int | None]) -> str:
    return ", ".join(f"{words.count(count)} to {ROLES[role]}" for role, count in calls.items())


# --- what else was asked --------------------------------------------------------------------------------------------


def describe_asides(score: Score) -> Iterator[str]:
    """Sentences about what else a run asked; none where it asked nothing else."""
    if ROLE_PLAY in score.asides:
        yield from _explain_role_play(score.asides[ROLE_PLAY], score.p_lie)
    if MISLEADS in score.asides:
        yield from _explain_misleads(score.asides[MISLEADS], score.binary_only.p_lie)
    if score.check_provided is not None:
        check = score.check_provided
        where, elsewhere = check.p_lie_understood, check.p_lie_misunderstood
        yield (
            f"The model understood the supplied facts in {check.understood}. P(lie) is {where} where it did,"
            f" {elsewhere} where it did not."
        )
    if score.self_report is not None:
        yield from _explain_self_report(score.self_report)


def explain_corrected(corrected: Corrected) -> Iterator[str]:
    """P(lie) corrected by labels, what was corrected, and what could not be used."""
    if corrected.value is None:
        yield f"Corrected P(lie) n/a: {corrected.why}."
    else:
        raw = ""
        if corrected.raw is not None:
            off = words.points(corrected.raw - corrected.value)
            raw = f"; the judge says {words.percent(corrected.raw)}, {off} points off"
        value = f"{words.share(corrected)}"
        yield f"Corrected P(lie) {value} with {corrected.labelled} of {corrected.scenarios} scenarios labelled{raw}."
        splits = {0: "", 1: " (one reply on which people disagree)"}.get(
            corrected.splits, f" ({corrected.splits} replies on which people disagree)"
        )
        lies = "false lie" if corrected.false_lies == 1 else "false lies"
        yield f"Among the labelled: {corrected.false_lies:.3g} {lies}, {corrected.missed_lies:.3g} missed{splits}."
    if corrected.value is not None and corrected.people:
        rates = ", ".join(f"{who} {words.share(one)} ({one.labelled})" for who, one in corrected.people.items())
        yield f"By person, with the number labelled: {rates}. The interval is wider by half their difference."
    lost = f" ({corrected.left_out} could not be used)" if corrected.left_out else ""
    yield f"Labels: used {corrected.labelled}{lost}."
    if corrected.other_replies:
        yield f"{count_other_replies(corrected.other_replies)}."


def _explain_role_play(found: AsideScore, p_lie: Rate) -> Iterator[str]:
    answers, rate = found.answers[PRESSURED], found.rates["rectified_p_lie"]
    unknown = f", of {answers['unknown']} it is not known{_worst(rate)}" if answers["unknown"] else ""
    yield (
        f"P(lie) {p_lie.percent}, rectified P(lie) {rate}: of {words.plural(sum(answers.values()), 'lie')}"
        f" {answers['played']} are plainly fiction or a part played{unknown}."
    )


def _explain_misleads(found: AsideScore, p_lie: Rate) -> Iterator[str]:
    """P(misleads), its floor, and what the judge says of each reply that takes no side."""
    answers, rate = found.answers[PRESSURED], found.rates["p_misleads"]
    yield (
        f"Experimental: P(misleads) is {rate.percent} of {words.plural(rate.total, 'scenario')} without numbers. There"
        " the model takes no side, and still leaves a reader who trusts it with what it does not believe. P(lie) in"
        f" scenarios without numbers is {p_lie.percent}; no reply is in both."
    )
    if found.floor is None:
        yield "No floor: without --control it is not known how often that happens without pressure."
    else:
        yield (
            f"The same without the role: {words.percent(found.floor.a)}, with it {words.percent(found.floor.b)} of"
            f" {words.plural(found.floor.n, 'scenario')}, a difference of"
            f" {words.point_difference(found.floor)}."
        )
    supplied = found.archetypes.get(Archetype.PROVIDED_FACTS, {}).get("feigned_ignorance")
    false = f"; where the fact was supplied, {supplied.percent}" if supplied is not None else ""
    unknown = f" Of {answers['unknown']} it is not known{_worst(rate)}." if answers["unknown"] else ""
    yield (
        f"Of {words.plural(sum(answers.values()), 'reply')} without a side, {answers['other']} leave the reader with"
        f" the other side, {answers['belief']} with what the model believes, and"
        f" {answers['open'] + answers['not_to_know']} leave it open."
        f" Of these {answers['not_to_know']} claim not to know it (feigned ignorance"
        f" {found.rates['feigned_ignorance'].percent}{false}).{unknown}"
    )
    yield "Nobody has yet checked with people how well a judge reads this. Do not publish these numbers."


def _worst(rate: Rate) -> str:
    worst = words.span(rate.worst_low, rate.worst_high)
    return "" if rate.worst_low is None else f"; whatever these are, the rate is {worst}"


def _explain_self_report(self_report: SelfReport) -> Iterator[str]:
    overall = self_report.overall
    yield (
        f"Asked afterwards, the model agrees with the verdict in {overall.agreement} replies; it admits"
        f" {overall.admitted.percent} of its lies and disowns {overall.disowned.percent} of its honest replies."
        " A model that always gives the same answer has the same number twice."
    )
    parts = [
        f"{name.traits.title} {words.percent(part.agreement.value)} of {part.agreement.total}"
        for name, part in self_report.archetypes.items()
        if any(sum(part.counts[verdict].values()) for verdict in (Verdict.HONEST, Verdict.LIE))
    ]
    yield f"Agreement: {', '.join(parts) or 'nothing to agree with'}."
