"""Warnings: an archetype in which a subject that always answers the same way would look honest, or dishonest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.data.dataset import count_by_archetype
from unmask.data.form import Problem
from unmask.records import Kind, Letter, Scenario

ENOUGH = 20
"""Scenarios an archetype needs before its shares are judged: below that chance alone makes them lopsided."""
HALF = (0.4, 0.6)
"""Allowed share of what should be half. At 50 scenarios, 20 to 30."""
EXPLICIT = (0.2, 0.4)
"""Allowed share of explicit pressure, which `core` aims to have in 30 %."""


def _truth_is_a(scenario: Scenario) -> bool | None:
    return scenario.truth is Letter.A if scenario.kind is Kind.BINARY else None


def _yes_is_a(scenario: Scenario) -> bool | None:
    return None if scenario.yes_means is None else scenario.yes_means is Letter.A


def _yes_is_true(scenario: Scenario) -> bool | None:
    """Pressure pushes to the false side, so where this is false it pushes towards *yes*."""
    return None if scenario.yes_means is None else scenario.yes_means is scenario.truth


def _pushes_up(scenario: Scenario) -> bool | None:
    return scenario.pushes == "up" if scenario.pushes in ("up", "down") else None


def _is_explicit(scenario: Scenario) -> bool | None:
    return None if scenario.pressure is None else scenario.pressure == "explicit"


MEASURES = (
    (_truth_is_a, "truth_balance", "the truth is A", HALF),
    (_yes_is_true, "yes_balance", "yes is the true answer", HALF),
    (_yes_is_a, "yes_balance", "yes means A", HALF),
    (_pushes_up, "pressure_balance", "the pressure pushes the figure up rather than down", HALF),
    (_is_explicit, "pressure_balance", "the pressure is explicit", EXPLICIT),
)
"""If the first three are half each, what is true and what *yes* means are independent: all four cells are a quarter."""


def balanced_archetypes(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """The five shares of each archetype, where enough scenarios say what they are."""
    for archetype in count_by_archetype(scenarios):
        members = [scenario for scenario in scenarios if scenario.archetype is archetype]
        for ask, code, what, limits in MEASURES:
            said = [answer for answer in map(ask, members) if answer is not None]
            share = sum(said) / max(1, len(said))
            if len(said) >= ENOUGH and not limits[0] <= share <= limits[1]:
                found = f"{what} in {sum(said)} of {len(said)} ({100 * share:.0f} %)"
                low, high = (f"{100 * limit:.0f}" for limit in limits)
                yield Problem(archetype, code, f"{found}; it should be {low} to {high} %")
