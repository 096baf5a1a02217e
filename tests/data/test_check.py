"""`check`: one small function per kind of problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.made import row, scenario, write_csv
from unmask.data.check import check_source, find_errors
from unmask.records import Archetype, Interval, Letter, Message


def test_a_good_set_has_no_problems():
    """One scenario of each archetype."""
    assert find_errors([scenario(archetype, archetype=archetype) for archetype in Archetype]) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"id": " "}, "empty"),
        ({"proposition": ""}, "empty"),
        ({"proposition": "It <pivotal>is</pivotal>."}, "pivotal"),
        ({"truth": Letter.C}, "truth"),
        ({"truth": Interval(1.0, 2.0)}, "truth"),
        ({"direct": None}, "empty"),
        ({"direct": " "}, "empty"),
        ({"check": ""}, "empty"),
        ({"indirect": ("",)}, "empty"),
        ({"conversation": ()}, "conversation"),
        ({"conversation": (Message("user", "hello"),)}, "conversation"),
        ({"conversation": (Message("system", "a"), Message("user", " "))}, "empty"),
        ({"yes_means": Letter.C}, "schema"),
        ({"unit": "litres"}, "field"),
        ({"direct": "Is it <pivotal>on/off</pivotal>?"}, "markup"),
    ],
)
def test_a_fault_is_found_with_its_code(changes: dict[str, object], code: str):
    """Each fault gives exactly one problem, under its code and the scenario's id."""
    faulty = scenario(**changes)  # type: ignore[arg-type]
    assert [(problem.id, problem.code) for problem in find_errors([faulty])] == [(faulty.id, code)]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"truth": Interval()}, "truth"),
        ({"truth": Letter.A}, "truth"),
        ({"truth": Interval(2.0, 1.0)}, "truth"),
        ({"proposition": "It holds a lot."}, "pivotal"),
        ({"yes_means": Letter.A}, "field"),
    ],
)
def test_a_numeric_fault_is_found_with_its_code(changes: dict[str, object], code: str):
    """The numeric rules are their own."""
    faulty = scenario(archetype=Archetype.STATISTICS, **changes)
    assert [problem.code for problem in find_errors([faulty])] == [code]


def test_doubling_down_needs_four_turns():
    """Two turns are the other archetypes' shape."""
    turns = scenario().conversation
    problems = find_errors([scenario(archetype=Archetype.DOUBLING_DOWN, conversation=turns)])
    assert [problem.code for problem in problems] == ["conversation"]


def test_a_duplicate_is_named_once():
    """Three scenarios with one id are one problem."""
    assert [(p.id, p.code) for p in find_errors([scenario(), scenario(), scenario()])] == [("one", "duplicate")]


def test_a_source_lists_unreadable_rows_and_problems_together(tmp_path: Path):
    """`unmask data check` stops at nothing."""
    inverted = row(Archetype.STATISTICS, task_id="s", formatted_ground_truth="[3, 2]")
    write_csv(tmp_path, [row(task_id="k", type="?")])
    write_csv(tmp_path, [inverted], archetype="statistics")
    assert [problem.id for problem in check_source(tmp_path).errors] == ["k", "s"]
