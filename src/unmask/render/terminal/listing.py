"""Scenarios in lists: those of a set, and those of a run with what the model believes and what it said, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from unmask.data.checks.words import pivotal_sides
from unmask.records import (
    PIVOTAL,
    PRESSURED,
    Archetype,
    Interval,
    Letter,
    Lettered,
    NoBelief,
    Outcome,
    Pending,
    Ranged,
    Reading,
    Scenario,
    Undecided,
    Unread,
    Verdict,
)
from unmask.render.colours import VERDICTS
from unmask.render.terminal.tables import make_table, render_parts
from unmask.render.words import NAMES
from unmask.text import format_figures, format_interval, strip_controls

NO_SIDE = {Letter.C: "takes no side", Letter.D: "denies both sides"}
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
        believes=_word_belief(scenario, outcome),
        said=tuple(_word_statement(scenario, reading) for reading in stated),
    )


def _word_belief(scenario: Scenario, outcome: Outcome) -> str | None:
    match outcome.belief:
        case None:  # the scenario supplies it
            truth = scenario.truth
            if isinstance(truth, Interval):
                return _fill_hole(scenario, format_interval(truth))
            return _word_letter(scenario, truth, in_full=True)
        case Lettered(letter=letter):
            return _word_letter(scenario, letter, in_full=True)
        case Ranged() as belief:
            return _fill_hole(scenario, format_figures(belief))
        case NoBelief() | Undecided():
            return None


def _word_statement(scenario: Scenario, reading: Reading) -> str:
    match reading:
        case Lettered(letter=letter):
            return _word_letter(scenario, letter, in_full=False)
        case Ranged():
            unit = f" {scenario.unit}" if scenario.unit else ""
            return "names no figure" if reading.empty else format_figures(reading) + unit
        case Unread():
            return "unread"
        case Pending():
            return "not read yet"


def _word_letter(scenario: Scenario, letter: Letter, *, in_full: bool) -> str:
    """The statement: `in_full`, or only the words that differ from the other one's."""
    if letter in NO_SIDE:
        return NO_SIDE[letter]
    sides = None if in_full else pivotal_sides(scenario)
    return (sides or scenario.statements)["AB".index(letter)].strip()


def _fill_hole(scenario: Scenario, figures: str) -> str:
    """The numeric proposition with the figures in its hole."""
    return PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", figures)


def list_verdicts(rows: Sequence[ScenarioSummary], *, width: int | None = None, color: bool = False) -> str:
    """The table of `unmask show RUN`."""
    cells = [
        (
            "undecided" if row.undecided else NAMES[row.verdict],
            row.id,
            row.believes or ("not known yet" if row.undecided else "nothing steady"),
            _count_statements(row.said) or ("not read yet" if row.undecided else "not needed"),
        )
        for row in rows
    ]
    styles = [None if row.undecided else VERDICTS[row.verdict].terminal for row in rows]
    table = make_table(("verdict", "scenario", "believes", "said"), cells, left=4, styles=styles)
    return render_parts([table], width=width, color=color)


def _count_statements(statements: Sequence[str]) -> str:
    """What was said, how often where there are several takes."""
    if len(statements) < 2:
        return "".join(statements)
    return ", ".join(f"{text} ({number} of {len(statements)})" for text, number in Counter(statements).most_common())


def list_scenarios(scenarios: Sequence[Scenario], *, width: int | None = None) -> str:
    """The table of `unmask data list NAME`: ids, archetypes and what each is about, in one line each where it fits."""
    cells = [(scenario.id, scenario.archetype.value, _shorten_proposition(scenario)) for scenario in scenarios]
    return render_parts([make_table(("scenario", "archetype", "about"), cells, left=3)], width=width)


def _shorten_proposition(scenario: Scenario) -> str:
    text = PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", "…")
    line = " ".join(strip_controls(text).split())
    return line if len(line) <= PROPOSITION else f"{line[: PROPOSITION - 1].rstrip()}…"
