"""One scenario as a page shows it: a row that says what it comes to, and the conversation behind it, with the answers
of several runs side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from unmask.records import PRESSURED, Kind, Letter, Outcome, Pending, Preset, Scenario, Unread, Verdict
from unmask.render import words
from unmask.render.describe.conversation import (
    Exchange,
    Replies,
    Shown,
    pressured_exchanges,
    probe_exchanges,
    reading_key,
)
from unmask.runs.run import Run

PENDING = "pending"
"""Why what is not asked or not read so far is unread."""


class Finding(NamedTuple):
    """What one run shows in a scenario, in words."""

    verdict: Verdict
    belief: str
    said: str
    """Under pressure, in the words of the proposition."""
    short: str
    """The same in as few of them as tell it from its opposite."""
    why: str


class ScenarioRow(NamedTuple):
    """A scenario in the list: what each run shows, and what the filter goes by."""

    scenario: Scenario
    outcomes: tuple[Outcome | None, ...]
    """`None` for a run that does not show it."""
    anchor: str
    about: str
    """The proposition, both sides of it."""
    findings: tuple[Finding | None, ...]
    change: str = ""
    """`became` or `stopped` where it is a lie in a later run and none in the first, or the other way round."""

    @property
    def archetype(self) -> str:
        return self.scenario.archetype.traits.title

    @property
    def pressure(self) -> str:
        return self.scenario.pressure or "unknown"

    @property
    def verdicts(self) -> list[Verdict]:
        return [outcome.verdict for outcome in self.outcomes if outcome is not None]

    @property
    def reasons(self) -> list[str]:
        return sorted({reason for outcome in self.outcomes if outcome for reason in unread_reasons(outcome)})

    @property
    def keys(self) -> str:
        """What the filter goes by, for the script of the page."""
        verdicts = (words.NAMES[one.verdict] if one else "" for one in self.findings)
        return "|".join((self.archetype, ",".join(verdicts), self.pressure, self.change, ",".join(self.reasons)))


class Conversation(NamedTuple):
    """What is behind a row."""

    sides: str
    """What A and B are, and which is true."""
    others: tuple[str, ...]
    """For each run what other rules and judges make of it, where that is something else."""
    pressured: tuple[Exchange, ...] = ()
    """The pressured request, and whatever was asked after it."""
    probes: tuple[Exchange, ...] = ()
    judged: tuple[tuple[str, str], ...] = ()
    """What the judge was sent about the first reply under pressure, message by message."""

    @property
    def texts(self) -> Iterator[str]:
        """Everything that is quoted."""
        return (text for exchange in (*self.pressured, *self.probes) for text in exchange.texts)


def name_anchor(scenario_id: str, variant: int = 1) -> str:
    """A name for links that holds nothing of the id itself. Other content under the same id is another variant."""
    digest = hashlib.blake2b(scenario_id.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
    return f"s-{digest}" if variant == 1 else f"s-{digest}-{variant}"


def unread_reasons(outcome: Outcome) -> set[str]:
    """Why readings of a scenario are missing."""
    readings = (reading for slot in outcome.readings.values() for reading in slot)
    reasons = {reading.reason.partition(":")[0] for reading in readings if isinstance(reading, Unread)}
    return reasons | {PENDING} if outcome.undecided else reasons


def build_row(
    scenario: Scenario, outcomes: Sequence[Outcome | None], *, variant: int = 1, change: str = "", redact: bool = False
) -> ScenarioRow:
    return ScenarioRow(
        scenario=scenario,
        outcomes=tuple(outcomes),
        anchor=name_anchor(scenario.id, variant),
        about="" if redact else words.proposition(scenario),
        findings=tuple(one if one is None else describe_finding(scenario, one, redact=redact) for one in outcomes),
        change=change,
    )


def build_conversation(
    row: ScenarioRow, replies: Sequence[Replies | None], others: Sequence[str], *, whole: bool
) -> Conversation:
    """What was asked and answered, and what was made of it; `others` are the words of `list_other_verdicts`, `whole`
    quotes every take."""
    shown: Shown = [
        None if outcome is None or said is None else (outcome, said)
        for outcome, said in zip(row.outcomes, replies, strict=True)
    ]
    return Conversation(
        sides=_describe_sides(row.scenario),
        others=tuple(others),
        pressured=tuple(pressured_exchanges(row.scenario, shown, whole=whole)),
        probes=tuple(probe_exchanges(row.scenario, shown, whole=whole)),
    )


Readers = Sequence[tuple[str | None, Preset, str]]
"""Judges and rules by which a scenario is read, each pair with its name."""


def list_readers(run: Run, *, preset: Preset, judge: str | None) -> Readers:
    """All but the pair in use."""
    files = dict.fromkeys([judge, *filter(run.has_readings, run.definition.judges)])
    return [
        (file, rules, rules.value if file == judge else f"{run.definition.typed_judge(file)} under {rules.value}")
        for file in files
        for rules in Preset
        if (file, rules) != (judge, preset)
    ]


def list_other_verdicts(own: Outcome, others: Iterable[tuple[str, Outcome]]) -> str:
    """What other rules and other judges make of a scenario, where that is another verdict."""
    found: dict[Verdict, list[str]] = {}
    for name, outcome in others:
        if outcome.verdict is not own.verdict:
            found.setdefault(outcome.verdict, []).append(name)
    return "; ".join(f"{words.NAMES[verdict]} by {words.listed(names)}" for verdict, names in found.items())


def describe_finding(scenario: Scenario, outcome: Outcome, *, redact: bool) -> Finding:
    read = (reading for reading in outcome.readings.get(PRESSURED, ()) if not isinstance(reading, Pending))
    readings = list({reading_key(reading): reading for reading in read}.values())  # ten takes say one thing as a rule
    silent = "nothing yet" if outcome.verdict is Verdict.UNJUDGED else "nothing, not asked"
    said, short = (
        " / ".join(
            dict.fromkeys(words.statement(scenario, reading, whole=whole, redact=redact) for reading in readings)
        )
        or silent
        for whole in (True, False)
    )
    return Finding(
        verdict=outcome.verdict,
        belief=words.explain_belief(scenario, outcome, redact=redact),
        said=said,
        short=short,
        why=words.why_unjudged(outcome, redact=redact),
    )


def _describe_sides(scenario: Scenario) -> str:
    if scenario.kind is Kind.NUMERIC:
        return f"True: {words.truth(scenario)}"
    sides = (f"{letter.value} {words.short_side(scenario, letter)}" for letter in (Letter.A, Letter.B))
    return f"{', '.join(sides)}; true: {words.truth(scenario)}"
