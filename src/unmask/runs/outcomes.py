"""From an open run folder to outcomes and to what they cost. Pure apart from reading the journal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, TypeVar

import msgspec

from unmask.protocol.panel import majority
from unmask.protocol.plan import PlannerSettings
from unmask.protocol.presets import Rules
from unmask.protocol.probes import slots
from unmask.protocol.readings import answer_text, readings_of, side_of_yes
from unmask.protocol.score import Spending
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import Readings, resolve
from unmask.records import (
    DIRECT,
    PRESSURED,
    Effort,
    Kind,
    Letter,
    Lettered,
    Outcome,
    Pending,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Scenario,
    Slot,
    Stop,
    Unread,
    Verdict,
)
from unmask.runs.cost import Bill

V = TypeVar("V")


def outcome_of(
    scenario: Scenario, state: ScenarioState, settings: PlannerSettings, *, rules: Preset | Rules | None = None
) -> Outcome:
    """What one scenario shows under the settings' preset, or under rules of one's own."""
    return conclude(scenario, state, readings_of(scenario, state, settings.reads), rules or settings.preset)


def conclude(scenario: Scenario, state: ScenarioState, readings: Readings, rules: Preset | Rules) -> Outcome:
    """What one scenario shows by these readings, whoever made them. `seen` says what the replies looked like."""
    side = side_of_yes(scenario, state) if scenario.kind is Kind.BINARY and scenario.direct is not None else None
    polarity: Literal["yes", "no"] | None = None
    if side in {Letter.A, Letter.B}:
        polarity = "yes" if side is scenario.truth else "no"
    choices = [choice for _, choice in state.choices()]
    return msgspec.structs.replace(
        resolve(scenario, readings, preset=rules),
        polarity=polarity,
        # As `read.interpret` sees silence: nothing but reasoning is none.
        silent=sum(c.stop is Stop.END and not c.answer and c.thinking is None for c in choices),
        truncated=sum(1 for choice in choices if choice.stop is Stop.LENGTH),
    )


def conclude_by_panel(
    scenario: Scenario, panel: Sequence[tuple[PlannerSettings, ScenarioState]], rules: Rules
) -> Outcome:
    """What one scenario shows by the majority of several judges, each with its settings and what it has read."""
    readings = [readings_of(scenario, state, settings.reads) for settings, state in panel]
    return conclude(scenario, panel[0][1], majority(readings, tolerance=rules.tolerance), rules)


def unread_replies(row: Outcome, state: ScenarioState, *, unasked: Reading) -> int:
    """The replies of a scenario without a verdict that no rule reads, and about which no judge was asked. `unasked` is
    what the judge makes of such a reply."""
    if row.verdict is not Verdict.UNJUDGED:
        return 0
    total = 0
    for slot, readings in row.readings.items():
        if not readings:
            continue
        for take in state.replies.get(slot, ()):
            reading = readings[0] if len(readings) == 1 else readings[take] if take < len(readings) else None
            total += reading == unasked and bool(answer_text(state, slot, take))
    return total


class Compactor:
    """Takes the words of judges out of outcomes and stores equal parts once.

    A score of millions of replies holds one such outcome for each scenario, and needs no more of it.
    """

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}
        self._readings: dict[tuple[tuple[Slot, tuple[Reading, ...]], ...], dict[Slot, tuple[Reading, ...]]] = {}

    def compact(self, outcome: Outcome) -> Outcome:
        return msgspec.structs.replace(
            outcome,
            readings=self.compact_readings(outcome.readings),
            belief=self._share(outcome.belief),
            verdicts=self._share(outcome.verdicts),
            why=self._share(outcome.why),
        )

    def compact_readings(self, readings: Readings) -> dict[Slot, tuple[Reading, ...]]:
        wordless = tuple((slot, tuple(map(self._without_words, of_slot))) for slot, of_slot in readings.items())
        return self._readings.setdefault(wordless, dict(wordless))

    def _without_words(self, reading: Reading) -> Reading:
        match reading:
            case Lettered(letter, by):
                return self._share(Lettered(letter, by=by))
            case Ranged(absolute, relative, by):
                return self._share(Ranged(absolute, relative, by=by))
            case Unread(reason):
                return self._share(Unread(reason))
            case Pending():
                return self._share(reading)

    def _share(self, value: V) -> V:
        shared: V = self._parts.setdefault(value, value)
        return shared


class Savings:
    """Adds up, scenario by scenario, what the three ways of paying less have saved. `grouped` is that of the bill."""

    def __init__(self, settings: PlannerSettings, *, grouped: bool) -> None:
        self._settings, self._grouped = settings, grouped
        self.by_rule = self.once = self.lazy = 0

    def add(self, scenario: Scenario, state: ScenarioState, outcome: Outcome) -> None:
        readings = chain.from_iterable(outcome.readings.values())
        self.by_rule += sum(getattr(reading, "by", None) == ReadBy.RULE for reading in readings)
        self.once += sum(_count_repeats(outcome.readings.get(slot, ()), state, slot) for slot in (DIRECT, PRESSURED))
        if self._settings.effort is Effort.LAZY and outcome.verdict is Verdict.NO_BELIEF:
            self.lazy += _count_skipped_requests(scenario, state, self._settings, grouped=self._grouped)


def spending_of(bill: Bill, savings: Savings) -> Spending:
    """What the run cost, and what was saved."""
    return Spending(
        subject=bill.calls["subject"],
        judge=bill.calls["judge"],
        saved_by_lazy=savings.lazy,
        read_by_rule=savings.by_rule,
        read_once=savings.once,
        tokens=dict(sorted(bill.tokens.items())),
        cost_usd=bill.cost,
    )


def _count_repeats(readings: tuple[Reading, ...], state: ScenarioState, slot: Slot) -> int:
    """Replies a judge did not have to read because it had read the same text for the same request."""
    texts = [
        text
        for take, reading in enumerate(readings)
        if getattr(reading, "by", None) == ReadBy.JUDGE and isinstance(text := answer_text(state, slot, take), str)
    ]
    return len(texts) - len(set(texts))


def _count_skipped_requests(
    scenario: Scenario, state: ScenarioState, settings: PlannerSettings, *, grouped: bool
) -> int:
    """Requests full effort would have sent for the slots that were left out, to the subject and to the judge."""
    total = 0
    for slot in slots(scenario):
        if state.replies.get(slot):
            continue
        takes = {DIRECT: settings.direct, PRESSURED: settings.takes}.get(slot, 1)
        joint = scenario.kind is Kind.NUMERIC and slot == DIRECT and settings.rules.joint
        total += (1 if grouped else takes) + (1 if joint else takes)
    return total
