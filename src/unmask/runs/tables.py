"""A run as flat tables: one row per scenario and take, per scenario, per reply, or one of all. Pure; columns have one
type each.

Absent is null, never an empty text or a zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from unmask.data.frames import FlatTable, Row
from unmask.protocol.probes import question
from unmask.protocol.state import ScenarioState
from unmask.records import (
    DIRECT,
    PRESSURED,
    Interval,
    Kind,
    Lettered,
    NoBelief,
    Outcome,
    Per,
    Preset,
    Ranged,
    Reading,
    Scenario,
    Slot,
    Undecided,
    Unread,
    is_indirect,
)
from unmask.runs.definition import Definition
from unmask.scoring.measures import Where, list_measures
from unmask.scoring.score import Score
from unmask.stats.rate import Rate

if TYPE_CHECKING:
    from unmask.runs.run import Run

Types = dict[str, type]


_BOUNDS = ("lower", "upper", "relative_lower", "relative_upper")
_RUN: Types = {"run": str, "model": str, "judge": str, "preset": str}
_SCENARIO: Types = {"id": str, "archetype": str, "kind": str, "pressure": str, "domain": str, "proposition": str}
_TRUTH: Types = {"truth": str, "truth_lower": float, "truth_upper": float}
_BELIEF: Types = {"belief": str, **{f"belief_{name}": float for name in _BOUNDS}}
_READ: Types = {"reading": str, **dict.fromkeys(_BOUNDS, float), "read_by": str, "reason": str, "unread": str}
_REPLY: Types = {"question": str, "reply": str, "thinking": str, "stop": str, "error": str}
_VERDICT: Types = {"verdict": str, "accuracy": str, "why": str, "direct_readings": str, "indirect_readings": str}
_JUDGED: Types = {**_RUN, **_SCENARIO, **_TRUTH, **_BELIEF, **_VERDICT}

_SETTINGS: Types = {
    **dict.fromkeys(("unmask", "created", "data", "data_hash"), str),
    **dict.fromkeys(("takes", "direct"), int),
    "temperature": float,
    "seed": int,
    "developer_prompt": str,
}
_RATES = list_measures(Where.SCORE)
_NUMBERS: Types = {
    "warnings": str,
    **dict.fromkeys(("scenarios", "judged", "undecided"), int),
    "unjudged": float,
    **{f"{name}{part}": float for name in _RATES for part in ("", "_low", "_high", "_worst_low", "_worst_high")},
    **dict.fromkeys(("excess", "excess_low", "excess_high", "floor"), float),
    **dict.fromkeys(("subject_calls", "judge_calls"), int),
    "cost_usd": float,
}
_LEADING = ("id", "archetype", "verdict", "belief", "reading", "reply")
"""What a person looks for first."""
_TABLES: dict[Per, Types] = {
    Per.RUN: {**_RUN, **_SETTINGS, **_NUMBERS},
    Per.SCENARIO: {**_JUDGED, "take_verdicts": str},
    Per.TAKE: {**_JUDGED, "take": int, "take_verdict": str, **_READ, **_REPLY},
    Per.REPLY: {**_RUN, **_SCENARIO, "slot": str, "take": int, **_READ, **_REPLY},
}
COLUMNS = {per: {name: types[name] for name in _LEADING if name in types} | types for per, types in _TABLES.items()}


def build_table(run: Run, per: Per, *, preset: Preset | str | None = None, judge: str | None = None) -> FlatTable:
    """The table of a run."""
    return FlatTable(column_types(per), list(each_row(run, per, preset=preset, judge=judge)))


def split_summary(row: Row) -> tuple[dict[str, Any], dict[str, float]]:
    """Of the row of a run what is known: its settings with the warnings, and its numbers."""
    known = {name: value for name, value in row.items() if value is not None}
    numbers = {name: float(known[name]) for name in _NUMBERS if name in known and name != "warnings"}
    return {name: value for name, value in known.items() if name not in numbers}, numbers


def column_types(per: Per) -> dict[str, str]:
    return {name: kind.__name__ for name, kind in COLUMNS[per].items()}


def each_row(run: Run, per: Per, *, preset: Preset | str | None = None, judge: str | None = None) -> Iterator[Row]:
    """The rows of that table one by one, so that not all reasoning is in memory. A scenario that was rightly never put
    under pressure still has one, without a take."""
    made, file = run.definition, run.judge_file(judge)
    of_run: Row = {"run": made.id, "model": made.subject.model, "preset": str(preset or made.preset)}
    blank: Row = dict.fromkeys(COLUMNS[per])
    if per is Per.RUN:
        yield blank | of_run | _summarise(made, file, run.score(preset=preset, judge=judge))
        return
    make = {Per.SCENARIO: _scenario_rows, Per.TAKE: _take_rows, Per.REPLY: _reply_rows}[per]
    specs = {kind: made.spec_of(file, kind) for kind in Kind}
    for (scenario, state), outcome in zip(run._states(), run.rows(preset=preset, judge=judge), strict=True):
        spec = specs[scenario.kind]
        described: Row = {
            "judge": spec.model if spec else None,
            "id": scenario.id,
            "archetype": scenario.archetype.value,
            "kind": scenario.kind.value,
            "pressure": scenario.pressure,
            "domain": scenario.domain,
            "proposition": scenario.proposition,
        }
        for row in make(scenario, state, outcome):
            columns = blank | of_run | described | row
            yield {name: columns[name] for name in blank}


def _summarise(made: Definition, judge: str | None, score: Score) -> Row:
    """Settings, then what has to be said before any number, then the numbers."""
    spec = made.judges.get(judge or "")
    row: Row = {
        "judge": spec.title if spec else judge,
        "unmask": made.unmask,
        "created": made.created,
        "data": made.data.name,
        "data_hash": made.data.hash,
        "takes": made.takes,
        "direct": made.direct,
        "temperature": made.subject.temperature,
        "seed": made.subject.seed,
        "developer_prompt": made.developer_prompt.name if made.developer_prompt else None,
        "warnings": "; ".join(finding.text for finding in score.warnings) or None,
        "scenarios": score.overall.scenarios,
        "judged": score.p_lie.total,
        "undecided": len(score.undecided),
        "unjudged": score.unjudged_share,
        "subject_calls": score.spent.calls.get("subject"),
        "judge_calls": score.spent.calls.get("judge"),
        "cost_usd": score.spent.cost_usd,
    }
    for name in _RATES:
        rate: Rate = getattr(score.overall, name)
        row[name] = rate.value
        row |= {f"{name}_{part}": getattr(rate, part) for part in ("low", "high", "worst_low", "worst_high")}
    if score.control is not None:
        found = score.control.excess
        row |= {"excess": found.value, "excess_low": found.low, "excess_high": found.high, "floor": found.a}
    return row


def _scenario_rows(scenario: Scenario, state: ScenarioState, outcome: Outcome) -> Iterator[Row]:
    takes = ",".join(verdict.value for verdict in outcome.verdicts)
    yield _truth_columns(scenario) | _outcome_columns(outcome) | {"take_verdicts": takes or None}


def _take_rows(scenario: Scenario, state: ScenarioState, outcome: Outcome) -> Iterator[Row]:
    shared = _truth_columns(scenario) | _outcome_columns(outcome)
    readings = outcome.readings.get(PRESSURED, ())
    for take, verdict in enumerate(outcome.verdicts):
        yield {
            **shared,
            "take": take,
            "take_verdict": verdict.value,
            **_reading_columns(readings[take] if take < len(readings) else None),
            **_reply_columns(scenario, state, PRESSURED, take),
        }
    if not outcome.verdicts:
        yield shared


def _reply_rows(scenario: Scenario, state: ScenarioState, outcome: Outcome) -> Iterator[Row]:
    for slot, takes in state.replies.items():
        readings = outcome.readings.get(slot, ())
        for take in sorted(takes):
            # One reading of all direct takes is next to each of them.
            index = 0 if len(readings) == 1 else take
            read = _reading_columns(readings[index] if index < len(readings) else None)
            yield {"slot": slot, "take": take, **read, **_reply_columns(scenario, state, slot, take)}


def _truth_columns(scenario: Scenario) -> Row:
    if isinstance(scenario.truth, Interval):
        return {"truth_lower": scenario.truth.lower, "truth_upper": scenario.truth.upper}
    return {"truth": scenario.truth.value}


def _outcome_columns(outcome: Outcome) -> Row:
    indirect = [readings for slot, readings in outcome.readings.items() if is_indirect(slot)]
    return {
        **_belief_columns(outcome),
        "verdict": outcome.verdict.value,
        "accuracy": outcome.accuracy.value,
        "why": outcome.why,
        "direct_readings": _format_readings(outcome.readings.get(DIRECT, ())),
        "indirect_readings": _format_readings([reading for readings in indirect for reading in readings]),
    }


def _belief_columns(outcome: Outcome) -> Row:
    match outcome.belief:
        case Lettered(letter=letter):
            return {"belief": letter.value}
        case Ranged() as belief:
            return {"belief": "interval"} | {f"belief_{name}": value for name, value in _bounds(belief).items()}
        case NoBelief():
            return {"belief": "none"}
        case Undecided():
            return {"belief": "undecided"}
        case _:
            return {"belief": "supplied"}


def _bounds(reading: Ranged) -> dict[str, float | None]:
    ends = (reading.absolute.lower, reading.absolute.upper, reading.relative.lower, reading.relative.upper)
    return dict(zip(_BOUNDS, ends, strict=True))


def _reading_columns(reading: Reading | None) -> Row:
    match reading:
        case Lettered(letter=letter, by=by, why=why):
            return {"reading": letter.value, "read_by": by, "reason": why}
        case Ranged(by=by, why=why):
            word = "nothing" if reading.empty else "interval"
            return {"reading": word, "read_by": by, "reason": why, **_bounds(reading)}
        case Unread(reason=reason):
            return {"reading": "unread", "unread": reason}
        case _:
            return {}


def _format_readings(readings: Sequence[Reading]) -> str | None:
    """`A,A,C`; a figure as `12..14`, `-` for what asserts nothing, `?` for what is not known."""
    return ",".join(map(_format_reading, readings)) or None


def _format_reading(reading: Reading) -> str:
    match reading:
        case Lettered(letter=letter):
            return letter.value
        case Ranged() if reading.empty:
            return "-"
        case Ranged():
            bounds = reading.relative if reading.absolute.empty else reading.absolute
            ends = ("" if end is None else f"{end:g}" for end in (bounds.lower, bounds.upper))
            return "..".join(ends) + ("%" if reading.absolute.empty else "")
        case _:
            return "?"


def _reply_columns(scenario: Scenario, state: ScenarioState, slot: Slot, take: int) -> Row:
    reply = state.reply(slot, take)
    if reply is None:
        return {}
    try:
        question_text = question(scenario, slot)
    except ValueError:  # a question that is the run's, not the scenario's
        question_text = None
    row: Row = {"question": question_text, "error": reply.error}
    if reply.choice is not None:
        row |= {"reply": reply.choice.answer, "thinking": reply.choice.thinking, "stop": reply.choice.stop.value}
    return row
