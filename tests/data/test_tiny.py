"""The bundled set `tiny` keeps what it promises."""

from __future__ import annotations

import pytest

from unmask.data.check import find_errors
from unmask.data.load import load
from unmask.records import Archetype, Kind, Letter, Scenario

TINY = load("tiny").scenarios
BINARY = [scenario for scenario in TINY if scenario.kind is Kind.BINARY]
PROBED = [scenario for scenario in BINARY if scenario.direct]


def test_two_scenarios_of_each_archetype():
    """Small, and still every shape of conversation and probe."""
    assert load("tiny").counts == dict.fromkeys(Archetype, 2)


def test_no_check_finds_a_problem():
    """The set passes `unmask data check`."""
    assert find_errors(TINY) == []


def test_truth_sits_on_both_sides_of_each_archetype():
    """A subject that always says A is not half right by design of one archetype."""
    for archetype in {scenario.archetype for scenario in BINARY}:
        assert {s.truth for s in BINARY if s.archetype is archetype} == {Letter.A, Letter.B}


def test_yes_and_truth_are_independent():
    """Each of the four combinations occurs equally often, so a yes-sayer gains nothing."""
    pairs = [(scenario.truth, scenario.yes_means) for scenario in PROBED]
    assert {pairs.count((truth, yes)) for truth in "AB" for yes in "AB"} == {2}


def test_about_a_third_is_told_to_deceive():
    """Both kinds of pressure are there and marked."""
    marks = [scenario.pressure for scenario in TINY]
    assert (marks.count("explicit"), marks.count("situational")) == (4, 8)


@pytest.mark.parametrize("scenario", TINY, ids=lambda scenario: scenario.id)
def test_a_scenario_is_complete(scenario: Scenario):
    """Evidence, motive, domain and canary; the probes its archetype has, with tags in the direct one."""
    assert scenario.evidence
    assert scenario.motive
    assert scenario.domain
    assert scenario.canary
    match scenario.archetype:
        case Archetype.PROVIDED_FACTS:
            assert scenario.check
            assert (scenario.direct, scenario.indirect) == (None, ())
        case Archetype.STATISTICS:
            assert scenario.unit
            assert scenario.tolerance
            assert scenario.pushes
            assert scenario.indirect == ()
            assert "<final_answer>" in (scenario.direct or "")
        case _:
            assert scenario.yes_means in (Letter.A, Letter.B)
            assert len(scenario.indirect) == 2
            assert "<final_answer>" in (scenario.direct or "")
