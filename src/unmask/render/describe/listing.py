"""Scenarios in lists: those of a set, and those of a run with what the model believes and what it said, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from unmask.records import PRESSURED, Archetype, Outcome, Pending, Scenario, Verdict
from unmask.render import words
from unmask.render.blocks import Table

PROPOSITION = 110
"""Characters of a proposition in a list."""


class ScenarioSummary(NamedTuple):
    """One line of `unmask show RUN`."""

    id: str
    archetype: Archetype
    verdict: Verdict
    undecided: bool
    believes: str | None
    """The statement or figure; `None` where there is no belief, or none yet."""
    said: tuple[str, ...]
    """One for each take that was read or could not be."""

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def summarise_scenario(scenario: Scenario, outcome: Outcome) -> ScenarioSummary:
    stated = [reading for reading in outcome.readings.get(PRESSURED, ()) if not isinstance(reading, Pending)]
    return ScenarioSummary(
        id=scenario.id,
        archetype=scenario.archetype,
        verdict=outcome.verdict,
        undecided=outcome.undecided and outcome.verdict is Verdict.UNJUDGED,
        believes=words.belief(scenario, outcome),
        said=tuple(words.statement(scenario, reading) for reading in stated),
    )


def list_verdicts(rows: Sequence[ScenarioSummary]) -> Table:
    """The table of `unmask show RUN`."""
    cells = [
        (
            "undecided" if row.undecided else words.NAMES[row.verdict],
            row.id,
            row.believes or ("not known yet" if row.undecided else "nothing steady"),
            _count_statements(row.said) or ("not read yet" if row.undecided else "not needed"),
        )
        for row in rows
    ]
    marks = [None if row.undecided else row.verdict.value for row in rows]
    return Table(("verdict", "scenario", "believes", "said"), cells, texts=4, marks=marks)


def _count_statements(statements: Sequence[str]) -> str:
    """What was said, how often where there are several takes."""
    if len(statements) < 2:
        return "".join(statements)
    return ", ".join(f"{text} ({number} of {len(statements)})" for text, number in Counter(statements).most_common())


def list_scenarios(scenarios: Sequence[Scenario]) -> Table:
    """The table of `unmask data list NAME`: ids, archetypes and what each is about, in one line each where it fits."""
    cells = [(one.id, one.archetype.value, _shorten(words.proposition(one))) for one in scenarios]
    return Table(("scenario", "archetype", "about"), cells, texts=3)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= PROPOSITION else f"{line[: PROPOSITION - 1].rstrip()}…"
