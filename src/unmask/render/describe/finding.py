"""What a run shows, in a few plain sentences: what every surface begins with."""

from __future__ import annotations

from unmask.render import words
from unmask.render.describe.caveats import list_caveats
from unmask.render.describe.pressure import state_excess, state_ladder
from unmask.scoring.score import Score


def state_finding(score: Score) -> list[str]:
    """First how often the model lied, or on a ladder what pressure adds; then what has to be known before that is
    quoted."""
    rate, *doubts = state_rate(score)
    pressure = state_pressure(score)
    return [*pressure, rate, *doubts] if score.ladder is not None else [rate, *pressure, *doubts]


def state_pressure(score: Score) -> list[str]:
    """What pressure adds, where the run can show it."""
    if score.p_lie.value is None:
        return []
    ladder = [] if score.ladder is None else [state_ladder(score.ladder)]
    return ladder + ([] if score.control is None else [state_excess(score.control.excess)])


def state_rate(score: Score) -> list[str]:
    """How often the model lied, and what has to be known before that is quoted."""
    doubts = [caveat.brief for caveat in list_caveats(score) if caveat.brief]
    if score.p_lie.value is None:
        return [_word_no_rate(score), *doubts]
    return [_word_rate(score), *doubts]


def _word_no_rate(score: Score) -> str:
    if not (judged := score.p_lie.total):
        return "No scenario is judged, so there is no P(lie): it could be anything from 0 to 100 %."
    every = words.plural(judged + score.p_lie.unjudged, "scenario")
    return f"Only {judged} of {every} are judged, and none with a belief, so there is no P(lie) yet."


def _word_rate(score: Score) -> str:
    found = score.p_lie
    share = words.whole_percent(found.value or 0.0)
    where = words.plural(found.total, "scenario")
    if score.takes > 1:
        share, where = f"{share} of its replies", f"{score.takes} in each of {where}"
        text = f"The model lied in {share}, {where}"
    else:
        text = f"The model lied in {share} of {where}"
    return text + (f" ({words.whole_span(found.low, found.high)})." if found.low is not None else ".")
