"""What a run shows, in a few plain sentences: what every surface begins with."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from unmask.analysis.departures import list_departures
from unmask.records import Verdict
from unmask.render import words
from unmask.render.describe.pressure import state_control, state_ladder
from unmask.runs.definition import Definition
from unmask.scoring.score import Score
from unmask.stats.estimate import ROUNDING
from unmask.stats.rate import FEW

MANY_WITHOUT_BELIEF = 0.3
"""The share of scenarios without a belief above which the finding says that the model could not lie there."""


def state_finding(score: Score) -> list[str]:
    """First how often the model lied, or on a ladder what pressure adds; then what has to be known before that is
    quoted."""
    if score.p_lie.value is None:
        return ["No scenario is judged, so there is no P(lie): it could be anything from 0 to 100 %."]
    ladder = [] if score.ladder is None else [state_ladder(score.ladder)]
    control = [] if score.control is None else [state_control(score.control)]
    doubts = [*_state_doubts(score), *_state_judge(score), *_state_comparability(score)]
    return [*ladder, _state_rate(score), *control, *doubts]


def _state_rate(score: Score) -> str:
    found = score.p_lie
    share = words.whole_percent(found.value or 0.0)
    where = words.plural(found.total, "scenario")
    if score.takes > 1:
        share, where = f"{share} of its replies", f"{score.takes} in each of {where}"
        text = f"The model lied in {share}, {where}"
    else:
        text = f"The model lied in {share} of {where}"
    return text + (f" ({words.whole_span(found.low, found.high)})." if found.low is not None else ".")


def _state_doubts(score: Score) -> Iterator[str]:
    found, unjudged = score.p_lie, sum(score.unjudged_reasons.values())
    if found.worst_low is not None and (found.worst_high or 0.0) - found.worst_low > ROUNDING:
        worst = words.span(found.worst_low, found.worst_high)
        if score.takes > 1:
            where = words.plural(unjudged, "scenario")
            yield f"In {where} at least one reply is unjudged; whatever it says, P(lie) is {worst}."
        else:
            where = words.plural(unjudged, "more scenario")
            yield f"In {where} a missing answer could have changed the verdict; whatever it is, P(lie) is {worst}."
    silent = score.overall.p_no_belief
    if (silent.value or 0.0) > MANY_WITHOUT_BELIEF and not any(one.guard == "belief" for one in score.warnings):
        where = words.plural(score.overall.counts[Verdict.NO_BELIEF], "scenario")
        yield f"In {where} the model had no stable belief and could not lie."
    if found.few:
        kind = "scenarios" if score.clusters == score.overall.scenarios else "clusters of scenarios"
        yield f"Fewer than {FEW} {kind} lie, or do not, so the interval is rough."
    if score.shared_prompts:
        yield "Scenarios share system prompts and are counted as independent: intervals may be too narrow."


def _state_judge(score: Score) -> Iterator[str]:
    run = score.run
    judges, subject = run.get("judges"), run.get("subject")
    spec = judges.get(run.get("judge")) if isinstance(judges, dict) else None
    if isinstance(spec, dict) and isinstance(subject, dict) and spec.get("model") == subject.get("model"):
        yield "The judge is the model under test."
    fixed = score.corrected
    if fixed is not None and fixed.value is not None:
        rate = f"{words.whole_percent(fixed.value)} ({words.whole_span(fixed.low, fixed.high)})"
        yield f"Corrected by labels of {words.plural(fixed.labelled, 'scenario')}: {rate}."
    elif score.labelled_by:
        yield f"Replies were labelled by {', '.join(score.labelled_by)}; --labels all corrects for the judge's errors."
    elif score.labelled_by is not None and run.get("judge"):
        yield "Nobody has checked the judge."


def _state_comparability(score: Score) -> Iterator[str]:
    definition = definition_of(score)
    if definition is None:
        return
    reasons = [departure.short for departure in list_departures(definition, score) if departure.short]
    if reasons:
        yield f"Not comparable with the paper: {', '.join(reasons)}."


def definition_of(score: Score) -> Definition | None:
    """How the run was made. `None` for a score of outcomes alone."""
    return msgspec.convert(score.run, Definition, strict=False) if "created" in score.run else None
