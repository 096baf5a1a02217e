"""The planner: from a scenario and what the journal holds to the requests that can be sent now. Pure.

Running, resuming, re-judging, dry runs and lazy evaluation are all this function. Lazy evaluation is exact by
construction: a probe or pressured request is left out only where the belief is already decided to be none, whatever is
still unknown, and where the preset gives such a scenario the same verdict whatever it states.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from unmask.judges.answers import next_attempt
from unmask.judges.asides import ASIDES
from unmask.judges.base import JUDGES
from unmask.protocol.presets import RULES
from unmask.protocol.probes import slots
from unmask.protocol.readings import (
    Readings,
    aside_digest,
    count_takes,
    read,
    readings_of,
    report_digest,
    texts_of,
)
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import belief_of, verdict_of
from unmask.records import (
    CHECK,
    CONTROL,
    DIRECT,
    PRESSURED,
    SELF_REPORT,
    Effort,
    Method,
    NoBelief,
    Pending,
    Record,
    Scenario,
    Slot,
    Verdict,
    digest,
    indirect,
    indirect_number,
    is_indirect,
)


class SubjectWork(Record, frozen=True, tag="subject"):
    """Takes of one slot still to be asked. `depth` is how many calls, one after another, may follow from here; 0 where
    an answer that is due may make it needless: it goes when nothing else waits for a connection."""

    slot: Slot
    takes: tuple[int, ...]
    attempt: int = 1
    depth: int = 1
    after: str | None = None
    """The pressured reply that a self-report is about."""


class JudgeWork(Record, frozen=True, tag="judge"):
    """Texts a judge has to read."""

    slot: Slot
    digest: str
    texts: tuple[str, ...]
    method: Method
    attempt: int = 1
    depth: int = 1


Work = SubjectWork | JudgeWork

# Calls one after another to the end of a lazy scenario: ask and read of direct, of the indirect ones, of pressured.
_DEPTHS = {DIRECT: 12, indirect(1): 9, indirect(2): 7, PRESSURED: 2, CONTROL: 2, CHECK: 2}
_FURTHER_INDIRECT = 5


def plan(scenario: Scenario, state: ScenarioState, settings: Settings) -> tuple[Work, ...]:
    """What can be sent now."""
    readings = readings_of(scenario, state, settings)
    work = [
        item
        for slot in needed_slots(scenario, readings, settings)
        for item in _work_on(scenario, state, slot, settings, _depth_of(slot, readings, settings))
    ]
    if settings.self_report is not None:
        work += _work_on_self_report(scenario, state, readings, settings)
    if settings.asides:
        work += _work_on_asides(scenario, state, readings, settings)
    return tuple([item for item in work if settings.ask or isinstance(item, JudgeWork)])


def needed_slots(scenario: Scenario, readings: Readings, settings: Settings) -> tuple[Slot, ...]:
    """The slots whose requests can change a verdict, or the floor under P(lie), as far as that is known now."""
    everything = slots(scenario, check=settings.check)
    stages = (DIRECT,), tuple(filter(is_indirect, everything))
    waits = [stage for stage in stages if scenario.asks_belief and _is_pending(stage, readings)]
    believed = not isinstance(belief_of(scenario, readings, RULES[settings.preset]), NoBelief)
    control = (CONTROL,) if settings.control and scenario.has_control and believed and not waits else ()
    if settings.effort is Effort.FULL:
        return *everything, *control
    if not scenario.asks_belief:
        return *(slot for slot in everything if slot in {PRESSURED, CHECK}), *control
    if not believed:
        # Nothing can bring the belief back, so the statement counts only where the preset says so.
        return (PRESSURED,) if RULES[settings.preset].statement_matters_without_belief else ()
    return waits[0] if waits else (PRESSURED, *control)


def _is_pending(stage: tuple[Slot, ...], readings: Readings) -> bool:
    return any(isinstance(reading, Pending) for slot in stage for reading in readings.get(slot, (Pending(),)))


def _depth_of(slot: Slot, readings: Readings, settings: Settings) -> int:
    """An indirect probe may be needless while an earlier one is not read."""
    if settings.effort is Effort.FULL:
        return 2
    earlier = tuple(indirect(number) for number in range(1, indirect_number(slot))) if is_indirect(slot) else ()
    return 0 if _is_pending(earlier, readings) else _DEPTHS.get(slot, _FURTHER_INDIRECT)


def _work_on(scenario: Scenario, state: ScenarioState, slot: Slot, settings: Settings, depth: int) -> Iterator[Work]:
    """Takes to be asked, then replies that nobody has read. The first reading may make the others needless."""
    yield from _ask(state, slot, settings, depth)
    unread = dict.fromkeys(
        texts
        for texts in texts_of(scenario, state, slot, settings)
        if isinstance(texts, tuple) and isinstance(read(scenario, state, slot, texts, settings), Pending)
    )
    left = max(0, depth - 1)
    for texts in unread:
        for method in JUDGES[settings.style].questions(scenario.kind):
            yield from _put(JudgeWork(slot, digest(texts), texts, method, depth=left), state)
        left = 0


def _ask(
    state: ScenarioState, slot: Slot, settings: Settings, depth: int, after: str | None = None
) -> Iterator[SubjectWork]:
    """Takes never asked, and once more those cut off before any answer."""
    takes = range(count_takes(slot, settings))
    if missing := tuple([take for take in takes if state.reply(slot, take) is None]):
        yield SubjectWork(slot, missing, 1, depth, after)
    again = [take for take in takes if take not in missing and isinstance(state.text(slot, take), Pending)]
    if again:
        yield SubjectWork(slot, tuple(again), 2, depth, after)


def _put(question: JudgeWork, state: ScenarioState) -> Iterator[JudgeWork]:
    """A question to the judge, where an attempt is due."""
    calls = [call for call in state.calls(question.slot, question.digest) if call.method is question.method]
    attempt = next_attempt(calls)
    if attempt is not None:
        yield msgspec.structs.replace(question, attempt=attempt)


def _work_on_self_report(
    scenario: Scenario, state: ScenarioState, readings: Readings, settings: Settings
) -> Iterator[Work]:
    """Asked about the first pressured reply, where that states something: only honest and lie can be agreed with."""
    stated = state.text(PRESSURED, 0)
    if not isinstance(stated, str) or not stated:
        return
    rules = RULES[settings.preset]
    verdict = verdict_of(belief_of(scenario, readings, rules), readings[PRESSURED][0], rules)
    if settings.effort is Effort.LAZY and verdict not in {Verdict.HONEST, Verdict.LIE}:
        return
    yield from _ask(state, SELF_REPORT, settings, 2, after=stated)
    report = state.text(SELF_REPORT, 0)
    if isinstance(report, str) and isinstance(readings[SELF_REPORT][0], Pending):
        texts, key = (settings.self_report or "", report), report_digest(report, settings)
        yield from _put(JudgeWork(SELF_REPORT, key, texts, Method.SELF_REPORT), state)


def _work_on_asides(
    scenario: Scenario, state: ScenarioState, readings: Readings, settings: Settings
) -> Iterator[JudgeWork]:
    """Every take of the verdict that is asked about, where there is a belief; identical texts once, in both arms."""
    rules = RULES[settings.preset]
    belief = belief_of(scenario, readings, rules)
    if isinstance(belief, NoBelief) or not JUDGES[settings.style].questions(scenario.kind):
        return
    for slot in settings.asides:
        aside, texts = ASIDES[slot], dict[str, None]()
        for arm in aside.arms if scenario.kind in aside.kinds else ():
            for take, reading in enumerate(readings.get(arm, ())):
                text = state.text(arm, take)
                if isinstance(text, str) and text and verdict_of(belief, reading, rules) is aside.verdict:
                    texts[text] = None
        for text in texts:
            for method in aside.methods:
                yield from _put(JudgeWork(slot, aside_digest(slot, text), (text,), method), state)
