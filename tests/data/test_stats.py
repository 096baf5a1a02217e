"""`unmask data stats`: what a set consists of."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.data.complete import binary, numeric, provided
from tests.data.made import sets
from unmask.data.load import from_scenarios
from unmask.data.stats import UNSAID, Push, describe_dataset, push_direction
from unmask.records import Letter, Scenario
from unmask.render.blocks import Text
from unmask.render.describe.stats import balance_table, describe_stats

few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
THREE = from_scenarios([binary(), numeric(pushes="down", pressure="explicit"), provided()])


@pytest.mark.parametrize(
    ("scenario", "way"),
    [
        (binary(truth=Letter.A, yes_means=Letter.A), Push.NO),
        (binary(truth=Letter.A, yes_means=Letter.B), Push.YES),
        (binary(truth=Letter.B, yes_means=Letter.B), Push.NO),
        (binary(truth=Letter.B, yes_means=Letter.A), Push.YES),
        (binary(yes_means=None), Push.UNSAID),
        (numeric(pushes="up"), Push.UP),
        (numeric(pushes=None), Push.UNSAID),
    ],
)
def test_pressure_pushes_to_the_false_side(scenario: Scenario, way: Push):
    """Which is yes where yes does not mean the truth."""
    assert push_direction(scenario) is way


@few
@given(sets)
def test_every_scenario_is_in_exactly_one_cell(scenarios: list[Scenario]):
    """The cells add up to the set."""
    found = describe_dataset(from_scenarios(scenarios))
    assert sum(cell.scenarios for cell in found.cells) == len(scenarios) == found.scenarios


@few
@given(sets)
def test_every_set_can_be_shown_as_tables(scenarios: list[Scenario]):
    """Rows as wide as their header, whatever the data leaves out."""
    for table in describe_stats(describe_dataset(from_scenarios(scenarios))):
        assert isinstance(table, Text) or {len(row) for row in table.rows} == {len(table.headings)}


def test_the_balance_table_counts_truth_pressure_and_push():
    """One row per archetype in their order, and one for all."""
    table = balance_table(describe_dataset(THREE))
    header, rows = table.headings, table.rows
    assert header[:4] == ("archetype", "n", "truth A", "truth B")
    assert [row[0] for row in rows] == ["known_facts", "provided_facts", "statistics", "all"]
    by_name = [dict(zip(header, row, strict=True)) for row in rows]
    assert (by_name[0]["truth B"], by_name[0]["sit. yes/up"], by_name[0]["expl. no/down"]) == ("1", "1", UNSAID)
    assert (by_name[2]["truth B"], by_name[2]["expl. no/down"]) == (UNSAID, "1")
    assert (by_name[3]["n"], by_name[3]["truth B"]) == ("3", "2")
