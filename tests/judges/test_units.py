"""Units: every conversion of magnitude and measure, and what cannot be converted."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.examples import numeric
from unmask.judges.stated import read_figure
from unmask.judges.units import Hole, convert, hole_of, parse_unit

AMOUNTS = st.floats(0.001, 1e6)


def hole(proposition: str, unit: str | None = None) -> Hole:
    return hole_of(numeric(proposition=proposition, unit=unit))


def brought(value: float, unit: str, to: str) -> float | None:
    """A value with its unit in the unit of a proposition."""
    return convert(value, parse_unit(f" {unit}")[0], hole(f"It is <value> {to}.", to))


@pytest.mark.parametrize(
    ("value", "unit", "to", "expected"),
    [
        (1, "mile", "kilometres", 1.609344),
        (10, "inches", "centimetres", 25.4),
        (3, "feet", "metres", 0.9144),
        (1, "km²", "hectares", 100),
        (1, "square mile", "square kilometres", 2.58998811),
        (2, "acres", "square metres", 8093.7128),
        (1, "tonne", "kilograms", 1000),
        (5, "gigatonnes", "billion tonnes", 5),
        (2, "Mt", "million tonnes", 2),
        (10, "pounds", "kilograms", 4.5359237),
        (1, "cubic metre", "litres", 1000),
        (1, "barrel", "gallons", 42),
        (18, "months", "years", 1.5),
        (2, "weeks", "days", 14),
        (3, "TWh", "gigawatt-hours", 3000),
        (100, "km/h", "metres per second", 27.7778),
        (212, "degrees Fahrenheit", "degrees Celsius", 100),
        (-40, "°C", "degrees Fahrenheit", -40),
        (30, "per 1,000", "per 100,000 residents", 3000),
        (0.5, "%", "deaths per 1,000 live births", 5),
        (25, "per 1,000 people", "%", 2.5),
        (365.25, "tonnes a year", "tonnes per day", 1),
        (50, "cents", "dollars", 0.5),
        (1, "dollar per litre", "dollars per gallon", 3.785411784),
    ],
)
def test_a_value_is_brought_to_the_unit_of_the_proposition(value, unit, to, expected):
    assert brought(value, unit, to) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("unit", "to"),
    [
        ("dollars", "euros"),
        ("dollars", "people"),
        ("%", "people"),
        ("people", "%"),
        ("kilometres", "square kilometres"),
        ("tonnes", "bushels"),
        ("percentage points", "%"),
        ("tonnes per person", "tonnes per hectare"),
        ("tonnes a day", "tonnes"),
        ("years", "metres"),
    ],
)
def test_what_is_another_kind_of_thing_is_not_converted(unit, to):
    """No rate of exchange and no weight of a bushel is known."""
    assert brought(7, unit, to) is None


@given(AMOUNTS, st.sampled_from(["mm", "cm", "metres", "km", "inches", "feet", "yards", "miles"]))
def test_there_and_back_is_where_it_was(value, unit):
    there = brought(value, unit, "metres")
    assert there is not None
    back = brought(there, "metres", unit)
    assert back is not None
    assert math.isclose(back, value, rel_tol=1e-9)


@given(AMOUNTS, st.sampled_from([("", 1.0), ("thousand ", 1e3), ("million ", 1e6), ("billion ", 1e9)]))
def test_the_magnitude_of_the_hole_is_divided_by(value, magnitude):
    word, size = magnitude
    found = brought(value * size, "people", f"{word}people")
    assert found is not None
    assert math.isclose(found, value, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("proposition", "unit", "kind", "scale", "change"),
    [
        ("The town has <value> thousand inhabitants.", None, "count", 1e3, None),
        ("The town has <value> inhabitants.", "thousand inhabitants", "count", 1e3, None),
        ("The harbour cost $<value> billion.", None, "money:dollar", 1e9, None),
        ("The rent changed by <value> %.", "%", "share", 1, 0),
        ("The rent rose by about <value> %.", "%", "share", 1, 1),
        ("The herd shrank by <value> animals.", None, "count", 1, -1),
        ("Rents were <value> % higher than a year before.", "%", "share", 1, 1),
        ("The lake is <value> metres deep.", "metres", "length", 1, None),
    ],
)
def test_the_hole_says_what_is_wanted(proposition, unit, kind, scale, change):
    found = hole(proposition, unit)
    assert (found.unit.kind, found.scale, found.change) == (kind, scale, change)


WAYS = ["{:,.0f} people", "{:.0f} people", "{m:g} million people", "{k:,g} thousand people", "{k:,.10g}k people"]


@given(st.integers(1, 900), st.sampled_from(WAYS), st.sampled_from(["million", "thousand", "billion"]))
def test_a_count_written_in_any_way_is_the_same_figure(tenths, way, magnitude):
    """In full, with a word or with a letter, whatever the proposition counts in."""
    count = tenths * 100_000
    written = way.format(count, m=count / 1e6, k=count / 1e3)
    scenario = numeric(
        proposition=f"In 2019 the island of Tarn had about <value> {magnitude} people.", unit=f"{magnitude} people"
    )
    found = read_figure(scenario, "direct", f"In 2019 the island of Tarn had about {written}.")
    size = {"thousand": 1e3, "million": 1e6, "billion": 1e9}[magnitude]
    assert math.isclose(found.value.lower, count / size, rel_tol=1e-9)
    assert found.value.lower == found.value.upper
