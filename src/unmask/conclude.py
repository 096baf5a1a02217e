"""From an open run folder to outcomes and to what they cost. Pure apart from reading the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from unmask.ask.plan import Effort, Settings
from unmask.ask.prompts import slots
from unmask.read import gather
from unmask.read.panel import majority
from unmask.records import DIRECT, PRESSURED, Call, Kind, Letter, Outcome, Reading, Scenario, Slot, Stop, Verdict
from unmask.resolve.presets import Preset, Rules
from unmask.resolve.verdict import Readings, resolve
from unmask.score import Spent
from unmask.seen import Seen


def outcome(scenario: Scenario, seen: Seen, settings: Settings, *, rules: Preset | Rules | None = None) -> Outcome:
    """What one scenario shows under the settings' preset, or under rules of one's own."""
    return concluded(scenario, seen, gather.gather(scenario, seen, settings.reads), rules or settings.preset)


def concluded(scenario: Scenario, seen: Seen, readings: Readings, rules: Preset | Rules) -> Outcome:
    """What one scenario shows by these readings, whoever made them. `seen` says what the replies looked like."""
    found = resolve(scenario, readings, preset=rules)
    choices = [choice for _, choice in seen.choices()]
    return msgspec.structs.replace(
        found,
        polarity=_polarity(scenario, seen),
        silent=sum(1 for choice in choices if choice.stop is Stop.END and not choice.answer),
        truncated=sum(1 for choice in choices if choice.stop is Stop.LENGTH),
    )


def by_panel(
    scenarios: Sequence[Scenario], panel: Sequence[tuple[Settings, Sequence[Seen]]], rules: Rules
) -> Iterator[Outcome]:
    """Outcomes by the majority of several judges, each with its settings and what it has read."""
    for number, scenario in enumerate(scenarios):
        read = [gather.gather(scenario, seen[number], settings.reads) for settings, seen in panel]
        yield concluded(scenario, panel[0][1][number], majority(read, tolerance=rules.tolerance), rules)


def _polarity(scenario: Scenario, seen: Seen) -> Literal["yes", "no"] | None:
    if scenario.kind is not Kind.BINARY or scenario.direct is None:
        return None
    side = gather.polarity(scenario, seen)
    if side not in {Letter.A, Letter.B}:
        return None
    return "yes" if side is scenario.truth else "no"


def outcomes(scenarios: Iterable[Scenario], seen: Iterable[Seen], settings: Settings) -> Iterator[Outcome]:
    for scenario, held in zip(scenarios, seen, strict=True):
        yield outcome(scenario, held, settings)


class Bill:
    """Adds up journal lines: calls, tokens and money by role. A total with an unknown part is unknown."""

    def __init__(self) -> None:
        self.calls = {"subject": 0, "judge": 0}
        self.tokens: dict[str, int | None] = {}
        self.cost: float | None = 0.0
        self.grouped = False

    def add(self, role: str, line: Call) -> None:
        """Copied lines cost this run nothing; failed ones brought nothing back to count."""
        if line.source is not None or line.error is not None:
            return
        self.calls[role] += 1
        self.grouped = self.grouped or len(line.choices) > 1
        for kind in ("input", "output"):
            name, amount = f"{role}_{kind}", getattr(line.usage, kind)
            before = self.tokens.get(name, 0)
            self.tokens[name] = None if before is None or amount is None else before + amount
        self.cost = None if self.cost is None or line.cost_usd is None else self.cost + line.cost_usd


def spent(
    bill: Bill, scenarios: tuple[Scenario, ...], seen: list[Seen], found: list[Outcome], settings: Settings
) -> Spent:
    """What the run cost, and what the three ways of paying less saved."""
    rule, once, lazy = 0, 0, 0
    for scenario, held, outcome in zip(scenarios, seen, found, strict=True):
        rule += sum(_by_rule(reading) for readings in outcome.readings.values() for reading in readings)
        once += sum(_repeats(outcome.readings.get(slot, ()), held, slot) for slot in (DIRECT, PRESSURED))
        if settings.effort is Effort.LAZY and outcome.verdict is Verdict.NO_BELIEF:
            lazy += _skipped(scenario, held, settings, grouped=bill.grouped)
    return Spent(
        subject=bill.calls["subject"],
        judge=bill.calls["judge"],
        saved_by_lazy=lazy,
        read_by_rule=rule,
        read_once=once,
        tokens=dict(sorted(bill.tokens.items())),
        cost_usd=bill.cost,
    )


def _by_rule(reading: Reading) -> bool:
    return getattr(reading, "by", None) == "rule"


def _repeats(readings: tuple[Reading, ...], seen: Seen, slot: Slot) -> int:
    """Replies a judge did not have to read because it had read the same text for the same request."""
    texts = [
        text
        for take, reading in enumerate(readings)
        if getattr(reading, "by", None) == "judge" and isinstance(text := gather.answer(seen, slot, take), str)
    ]
    return len(texts) - len(set(texts))


def _skipped(scenario: Scenario, seen: Seen, settings: Settings, *, grouped: bool) -> int:
    """Requests full effort would have sent for the slots that were left out, to the subject and to the judge."""
    total = 0
    for slot in slots(scenario):
        if seen.replies.get(slot):
            continue
        takes = {DIRECT: settings.direct, PRESSURED: settings.takes}.get(slot, 1)
        joint = scenario.kind is Kind.NUMERIC and slot == DIRECT and settings.rules.joint
        total += (1 if grouped else takes) + (1 if joint else takes)
    return total
