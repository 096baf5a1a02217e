"""Every check finds its fault in a scenario that is otherwise complete, and nothing in one that has it not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.data.complete import binary, numeric, provided
from tests.data.made import sets
from unmask.data.check import CHECKS, WARNINGS, Check, check_source, find_errors, find_warnings
from unmask.data.checks import balance
from unmask.data.checks.completeness import (
    LONGEST_CONVERSATION,
    LONGEST_PROBE,
    asks_for_tags,
    has_evidence,
    within_length,
)
from unmask.data.checks.shape import two_statements
from unmask.data.form import write_jsonl
from unmask.records import Archetype, Letter, Message, Scenario


def codes(look: Check, *scenarios: Scenario) -> list[str]:
    return [problem.code for problem in look(scenarios)]


@pytest.mark.parametrize("complete", [binary(), numeric(), provided()], ids=lambda scenario: scenario.archetype)
def test_a_complete_scenario_has_neither_errors_nor_warnings(complete: Scenario):
    """So each test below spoils exactly one thing."""
    assert find_errors([complete]) + find_warnings([complete]) == []


def test_every_check_is_in_one_list():
    """No check is forgotten and none runs twice."""
    assert len({*CHECKS, *WARNINGS}) == len(CHECKS) + len(WARNINGS) == 12


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(sets)
def test_no_scenario_that_loads_breaks_a_check(scenarios: list[Scenario]):
    """Every problem belongs to a scenario, an archetype or the whole set."""
    names = {scenario.id for scenario in scenarios} | set(Archetype) | {"all"}
    assert {problem.id for problem in find_errors(scenarios) + find_warnings(scenarios)} <= names


# --- statements -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pivotal", ["Six/six", "six/six.", "six legs/six  legs", "“six”/six", "it is/It is!"])
def test_statements_that_say_the_same_are_an_error(pivotal: str):
    """Case, spacing and punctuation make no rival statements."""
    spoilt = binary(proposition=f"A spider has <pivotal>{pivotal}</pivotal> legs.")
    assert [problem.code for problem in find_errors([spoilt])] == ["statements"]


@pytest.mark.parametrize("pivotal", ["-5/5", "1.5/15", "C/C++", "six/eight", "does/does not", "5 %/5"])
def test_statements_that_differ_in_a_sign_that_counts_are_none(pivotal: str):
    """A minus, a decimal point or a plus is not punctuation."""
    assert codes(two_statements, binary(proposition=f"It is <pivotal>{pivotal}</pivotal>.")) == []


# --- balance ----------------------------------------------------------------------------------------------


def several(*, a_true: int, yes_true: int, explicit: int, size: int = 20) -> list[Scenario]:
    """That many scenarios; truth A in the first ones, yes the truth in every other one, then in more."""
    made = []
    order = [*range(0, size, 2), *sorted(range(1, size, 2), key=lambda place: (place % (size // 2), place))]
    for place in range(size):
        truth = Letter.A if place < a_true else Letter.B
        other = Letter.B if truth is Letter.A else Letter.A
        yes = truth if order.index(place) < yes_true else other
        pressure = "explicit" if place < explicit else "situational"
        made.append(binary(f"s{place}", truth=truth, yes_means=yes, pressure=pressure))
    return made


def test_a_balanced_archetype_is_fine():
    """Half, half and 30 %."""
    assert codes(balance.balanced_archetypes, *several(a_true=10, yes_true=10, explicit=6)) == []


@pytest.mark.parametrize(
    ("sizes", "code", "words"),
    [
        ({"a_true": 13, "yes_true": 10, "explicit": 6}, "truth_balance", "the truth is A in 13 of 20 (65 %)"),
        ({"a_true": 10, "yes_true": 13, "explicit": 6}, "yes_balance", "yes is the true answer in 13 of 20"),
        ({"a_true": 10, "yes_true": 10, "explicit": 3}, "pressure_balance", "the pressure is explicit in 3 of 20"),
        ({"a_true": 10, "yes_true": 10, "explicit": 9}, "pressure_balance", "the pressure is explicit in 9 of 20"),
    ],
)
def test_a_lopsided_archetype_is_reported_with_its_share(sizes: dict[str, int], code: str, words: str):
    """Just beyond the limit, and under the archetype's name."""
    (problem,) = balance.balanced_archetypes(several(**sizes))
    assert (problem.id, problem.code) == ("known_facts", code)
    assert words in problem.message


def test_what_is_true_and_what_yes_means_must_be_independent():
    """Half and half each, but yes always means A: a subject that says yes to everything states A everywhere."""
    made = [binary(f"s{place}", truth=Letter("AB"[place % 2]), yes_means=Letter.A) for place in range(20)]
    (problem,) = (problem for problem in balance.balanced_archetypes(made) if problem.code == "yes_balance")
    assert "yes means A in 20 of 20" in problem.message


@pytest.mark.parametrize(("up", "found"), [(10, []), (12, []), (13, ["pressure_balance"]), (7, ["pressure_balance"])])
def test_figures_are_pushed_up_as_often_as_down(up: int, found: list[str]):
    """Those pushed anywhere are left out."""
    pushes = ["up"] * up + ["down"] * (20 - up) + ["any"] * 5
    kinds = ["explicit"] * 7 + ["situational"] * 18
    made = [
        numeric(f"s{i}", pushes=way, pressure=kind) for i, (way, kind) in enumerate(zip(pushes, kinds, strict=True))
    ]
    assert codes(balance.balanced_archetypes, *made) == found


def test_small_archetypes_are_not_judged():
    """Below twenty scenarios chance alone is lopsided."""
    assert codes(balance.balanced_archetypes, *several(a_true=19, yes_true=0, explicit=0, size=19)) == []


def test_what_the_data_does_not_say_is_not_judged():
    """The public data has no pressure and no meaning of yes; only its truth is lopsided."""
    made = [binary(f"s{i}", truth=Letter.A, yes_means=None, pressure=None) for i in range(30)]
    assert codes(balance.balanced_archetypes, *made) == ["truth_balance"]


# --- completeness -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "found"), [(LONGEST_CONVERSATION, []), (LONGEST_CONVERSATION + 1, ["too_long"])])
def test_a_conversation_over_length_is_reported(length: int, found: list[str]):
    """Over all its messages."""
    turns = (Message("system", "a" * (length - 10)), Message("user", "b" * 10))
    assert codes(within_length, binary(conversation=turns)) == found


@pytest.mark.parametrize("field", ["direct", "indirect", "check"])
@pytest.mark.parametrize(("length", "found"), [(LONGEST_PROBE, []), (LONGEST_PROBE + 1, ["too_long"])])
def test_a_question_over_length_is_reported(field: str, length: int, found: list[str]):
    """Each by itself."""
    text = "a" * length
    assert codes(within_length, binary(**{field: (text,) if field == "indirect" else text})) == found


@pytest.mark.parametrize("evidence", [None, "", "  "])
def test_missing_evidence_is_reported(evidence: str | None):
    """By the id of the scenario without it."""
    assert [problem.id for problem in has_evidence([binary("x", evidence=evidence), binary("y")])] == ["x"]


def test_a_set_without_any_evidence_is_reported_once():
    """The public data has none; a thousand lines would hide everything else."""
    (problem,) = has_evidence([binary(f"s{place}", evidence=None) for place in range(5)])
    assert (problem.id, "5 scenarios" in problem.message) == ("all", True)


def test_a_yes_no_question_without_tags_is_reported():
    """Numeric questions need none."""
    assert codes(asks_for_tags, binary(direct="Six legs?"), numeric(direct="How many hours?")) == ["untagged"]


# --- a whole source ---------------------------------------------------------------------------------------


def test_warnings_of_a_source_stand_apart_from_its_errors(tmp_path: Path):
    """Errors stop a script, warnings do not."""
    path = tmp_path / "set.jsonl"
    write_jsonl([binary("x", evidence=None), binary("y", proposition="It <pivotal>is</pivotal>.")], path=path)
    checked = check_source(path)
    assert ([p.id for p in checked.errors], [p.id for p in checked.warnings]) == (["y"], ["x"])
