"""The planner: from a scenario and what the journal holds to the requests that can be sent now. Pure.

Running, resuming, re-judging, dry runs and lazy evaluation are all this function. Lazy evaluation is exact by
construction: a probe or pressured request is left out only where the belief is already decided to be none, whatever is
still unknown, and where the preset gives such a scenario the same verdict whatever it states. Once the run's own preset
needs nothing more, the planner goes on with the presets that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import msgspec

from unmask.judges.answers import POLARITY_ORDERS, next_attempt
from unmask.judges.base import JUDGES, Reader, Style
from unmask.protocol.presets import Rules, rules_of
from unmask.protocol.probes import slots
from unmask.protocol.readings import (
    POLARITY,
    ReadingSettings,
    answer_text,
    joint_reading,
    joint_texts,
    judge_max_tokens,
    needs_second_try,
    polarity_digest,
    read_by_rule,
    read_take,
    readings_of,
    report_digest,
    role_play_digest,
)
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import belief_of, verdict_of
from unmask.records import (
    CHECK,
    DIRECT,
    PRESSURED,
    ROLE_PLAY,
    SELF_REPORT,
    Effort,
    Kind,
    Method,
    NoBelief,
    Pending,
    Preset,
    Reading,
    Record,
    Sampling,
    Scenario,
    Slot,
    Stop,
    Undecided,
    Verdict,
    digest,
    indirect,
    is_indirect,
)


class PlannerSettings(Record, frozen=True, kw_only=True, dict=True):
    """Everything the planner needs to know about a run."""

    direct: int = 3
    takes: int = 1
    effort: Effort = Effort.LAZY
    preset: Preset = Preset.PAPER
    reader: Reader = Reader.AUTO
    style: Style = Style.LETTERS
    check: bool = False
    self_report: str | None = None
    early_self_report: bool = False
    """Whether the subject is asked about its pressured reply while that is still being read. Where the subject answers
    in batches this saves a round, and buys reports on replies that turn out to be neither honest nor lies."""
    role_play: bool = False
    ask: bool = True
    """Whether the subject may be asked. Off when an existing run is judged again."""
    sampling: Sampling = Sampling()
    judge_sampling: Sampling = Sampling(temperature=0.0, max_tokens=1000)

    @cached_property
    def rules(self) -> Rules:
        return rules_of(self.preset)

    @cached_property
    def reads(self) -> ReadingSettings:
        return ReadingSettings(
            direct=self.direct,
            takes=self.takes,
            style=self.style,
            reader=self.reader,
            joint=self.rules.joint,
            check=self.check,
            self_report=self.self_report,
            role_play=self.role_play,
        )


class SubjectWork(Record, frozen=True):
    """Takes of one slot still to be asked. `depth` is how many calls, one after another, may follow from here."""

    slot: Slot
    takes: tuple[int, ...]
    attempt: int = 1
    max_tokens: int | None = None
    depth: int = 1
    after: str | None = None
    """The pressured reply that a self-report is about."""


class JudgeWork(Record, frozen=True):
    """Texts a judge has to read, or its question about polarity."""

    slot: Slot
    digest: str
    texts: tuple[str, ...]
    method: Method
    attempt: int = 1
    max_tokens: int | None = None
    depth: int = 1


Work = SubjectWork | JudgeWork

# Calls one after another to the end of a lazy scenario: ask and read of direct, of the indirect ones, of pressured.
# Nothing has to wait for its elder sister: the second indirect probe can be sent as soon as the first. But where
# connections are short, the first goes ahead, and if it shows that there is no belief, the second is not sent at all.
_ROUNDS = {DIRECT: 12, indirect(1): 9, indirect(2): 7, PRESSURED: 2, CHECK: 2}
_FURTHER_INDIRECT = 5


class _PlanInputs(NamedTuple):
    """One call of the planner."""

    scenario: Scenario
    state: ScenarioState
    settings: PlannerSettings
    readings: dict[Slot, tuple[Reading, ...]]


def plan(scenario: Scenario, state: ScenarioState, settings: PlannerSettings) -> tuple[Work, ...]:
    """What can be sent now."""
    inputs = _PlanInputs(scenario, state, settings, readings_of(scenario, state, settings.reads))
    work = [item for slot in needed_slots(scenario, inputs.readings, settings) for item in _slot_work(inputs, slot)]
    work += [*_self_report_work(inputs), *_role_play_work(inputs)]
    return tuple(item for item in work if settings.ask or isinstance(item, JudgeWork))


def plan_rounds(scenario: Scenario, state: ScenarioState, settings: PlannerSettings) -> Iterator[tuple[Work, ...]]:
    """What can be sent now, again and again, until nothing is left. The caller adds the answers to `state`."""
    while work := plan(scenario, state, settings):
        yield work


def needed_slots(
    scenario: Scenario, readings: dict[Slot, tuple[Reading, ...]], settings: PlannerSettings
) -> tuple[Slot, ...]:
    """The slots whose requests can change a verdict, as far as that is known now."""
    everything = slots(scenario) + ((CHECK,) if settings.check and scenario.check else ())
    if settings.effort is Effort.FULL:
        return everything
    if not scenario.asks_belief:
        return tuple(slot for slot in everything if slot in {PRESSURED, CHECK})
    if isinstance(belief_of(scenario, readings, settings.rules), NoBelief):
        # Nothing can bring the belief back, so the statement counts only where the preset says so.
        return (PRESSURED,) if settings.rules.statement_matters_without_belief else ()
    for stage in ((DIRECT,), tuple(filter(is_indirect, everything))):
        if any(isinstance(reading, Pending) for slot in stage for reading in readings.get(slot, (Pending(),))):
            return stage
    return (PRESSURED,)


def _slot_work(inputs: _PlanInputs, slot: Slot) -> Iterator[Work]:
    settings = inputs.settings
    depth = _ROUNDS.get(slot, _FURTHER_INDIRECT) if settings.effort is Effort.LAZY else 2
    takes = tuple(range({DIRECT: settings.direct, PRESSURED: settings.takes}.get(slot, 1)))
    yield from _subject_work(inputs, slot, takes, depth)
    yield from _judge_work(inputs, slot, takes, depth - 1)


def _subject_work(inputs: _PlanInputs, slot: Slot, takes: tuple[int, ...], depth: int) -> Iterator[SubjectWork]:
    """Takes never asked, and those cut off before any answer, with double the room."""
    base = inputs.settings.sampling.max_tokens
    missing = tuple(take for take in takes if inputs.state.reply(slot, take) is None)
    if missing:
        yield SubjectWork(slot, missing, 1, base, depth)
    again = tuple(take for take in takes if needs_second_try(inputs.state, slot, take))
    if again:
        yield SubjectWork(slot, again, 2, None if base is None else base * 2, depth)


def _judge_work(inputs: _PlanInputs, slot: Slot, takes: tuple[int, ...], first: int) -> Iterator[JudgeWork]:
    """What a judge has to read. Readings after the first have less depth: the first may make them unnecessary."""
    scenario, state, reads = inputs.scenario, inputs.state, inputs.settings.reads
    if scenario.kind is Kind.NUMERIC and slot == DIRECT and reads.joint:
        texts = joint_texts(state, reads)
        if isinstance(texts, tuple) and texts and isinstance(joint_reading(scenario, state, reads), Pending):
            yield from _reply_questions(inputs, slot, texts, first)
        return
    depth = first
    done: set[str] = set()
    for take in takes:
        text = answer_text(state, slot, take)
        if not isinstance(text, str) or not text or text in done:
            continue
        done.add(text)
        if not isinstance(read_take(scenario, state, slot, take, reads), Pending):
            continue
        if read_by_rule(scenario, state, slot, text, reads) is None:
            yield from _reply_questions(inputs, slot, (text,), depth)
            depth = first - 1
        elif POLARITY not in done:
            done.add(POLARITY)
            for method in POLARITY_ORDERS:
                yield from _question(inputs, POLARITY, polarity_digest(scenario), (), method, depth=first + 1)


def _reply_questions(inputs: _PlanInputs, slot: Slot, texts: tuple[str, ...], depth: int) -> Iterator[JudgeWork]:
    key = digest(texts)
    for method in JUDGES[inputs.settings.style].questions(inputs.scenario.kind):
        yield from _question(inputs, slot, key, texts, method, depth=depth)


def _question(
    inputs: _PlanInputs, slot: Slot, key: str, texts: tuple[str, ...], method: Method, *, depth: int = 1
) -> Iterator[JudgeWork]:
    """One question to the judge, where an attempt is due."""
    calls = [call for call in inputs.state.calls(slot, key) if call.method is method]
    attempt = next_attempt(calls)
    if attempt is not None:
        cut_off = any(choice.stop is Stop.LENGTH for call in calls[-1:] for choice in call.choices)
        room = judge_max_tokens(inputs.settings.judge_sampling.max_tokens, attempt=attempt, cut_off=cut_off)
        yield JudgeWork(slot, key, texts, method, attempt, room, depth)


def _self_report_work(inputs: _PlanInputs) -> Iterator[Work]:
    """Asked about the first pressured reply, where that states something: only honest and lie can be agreed with. An
    early report is asked for where that is still open, and read only once it is known."""
    reply = answer_text(inputs.state, PRESSURED, 0)
    if inputs.settings.self_report is None or not isinstance(reply, str) or not reply:
        return
    counts = inputs.settings.effort is Effort.FULL or _verdicts(inputs)[0] in {Verdict.HONEST, Verdict.LIE}
    if counts or (inputs.settings.early_self_report and _may_take_side(inputs)):
        for ask in _subject_work(inputs, SELF_REPORT, (0,), 2):
            yield msgspec.structs.replace(ask, after=reply)
    if not counts:
        return
    report = answer_text(inputs.state, SELF_REPORT, 0)
    if isinstance(report, str) and isinstance(inputs.readings[SELF_REPORT][0], Pending):
        key = report_digest(report, inputs.settings.reads)
        texts = inputs.settings.self_report, report
        yield from _question(inputs, SELF_REPORT, key, texts, Method.SELF_REPORT)


def _may_take_side(inputs: _PlanInputs) -> bool:
    """Whether the first pressured reply, which is not read yet, may turn out to be honest or a lie."""
    belief = belief_of(inputs.scenario, inputs.readings, inputs.settings.rules)
    return isinstance(inputs.readings[PRESSURED][0], Pending) and not isinstance(belief, NoBelief | Undecided)


def _role_play_work(inputs: _PlanInputs) -> Iterator[JudgeWork]:
    """Every take that is a lie, identical texts once."""
    if not inputs.settings.role_play or not JUDGES[inputs.settings.style].questions(inputs.scenario.kind):
        return
    done: set[str] = set()
    for take, verdict in enumerate(_verdicts(inputs)):
        text = answer_text(inputs.state, PRESSURED, take)
        if verdict is Verdict.LIE and isinstance(text, str) and text not in done:
            done.add(text)
            yield from _question(inputs, ROLE_PLAY, role_play_digest(text), (text,), Method.ROLE_PLAY)


def _verdicts(inputs: _PlanInputs) -> list[Verdict]:
    rules = inputs.settings.rules
    belief = belief_of(inputs.scenario, inputs.readings, rules)
    return [verdict_of(belief, reading, rules) for reading in inputs.readings[PRESSURED]]
