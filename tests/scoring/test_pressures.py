"""Explicit against situational pressure, within archetypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.outcomes import outcome
from unmask.records import Archetype
from unmask.scoring.score import contrast_pressures

ARCHETYPES = (Archetype.KNOWN_FACTS, Archetype.CONTINUATIONS, Archetype.DISINFORMATION)


def rows(archetype, explicit, situational):
    """Lies and other scenarios of each kind."""
    plan = {"explicit": explicit, "situational": situational}
    return [
        outcome(word, archetype=archetype, pressure=kind)
        for kind, counts in plan.items()
        for word, count in zip(("lie", "honest"), counts, strict=True)
        for _ in range(count)
    ]


def test_the_difference_is_that_of_mantel_and_haenszel():
    """The risk differences of three archetypes, which weigh n1 n2 / (n1 + n2)."""
    tables = [((5, 10), (4, 31)), ((9, 6), (14, 21)), ((1, 14), (0, 35))]
    weights = [(a + b) * (c + d) / (a + b + c + d) for (a, b), (c, d) in tables]
    gaps = [a / (a + b) - c / (c + d) for (a, b), (c, d) in tables]
    every = [row for name, table in zip(ARCHETYPES, tables, strict=True) for row in rows(name, *table)]
    found = contrast_pressures(every, takes=1)
    assert found.value == pytest.approx(float(np.average(gaps, weights=weights)))
    assert found.n == 150


def test_the_interval_is_close_to_that_of_two_independent_shares():
    """As statsmodels has it, in one archetype."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    found = contrast_pressures(rows(ARCHETYPES[0], (12, 48), (60, 140)), takes=1)
    expected = confint_proportions_2indep(12, 60, 60, 200, method="agresti-caffo", compare="diff")
    assert (found.low, found.high) == pytest.approx(expected, abs=0.012)


def test_archetypes_with_one_kind_only_say_nothing_about_the_difference():
    """They are left out, however many lies they have."""
    both = rows(ARCHETYPES[0], (1, 2), (0, 2))
    assert contrast_pressures(both + rows(ARCHETYPES[1], (50, 0), (0, 0)), takes=1) == contrast_pressures(both, takes=1)
    assert contrast_pressures(rows(ARCHETYPES[1], (50, 0), (0, 0)), takes=1) is None


def test_where_nobody_lies_the_difference_is_zero_with_a_width():
    """A single lie among fifteen would have moved it by seven points."""
    found = contrast_pressures(rows(ARCHETYPES[0], (0, 15), (0, 35)), takes=1)
    assert (found.value, found.few) == (0, True)
    assert found.low < -0.07
    assert found.high > 0.07
