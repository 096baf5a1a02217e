"""Every check finds its fault in a scenario that is otherwise complete, and nothing in one that has it not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.complete import binary, numeric, provided
from tests.data.made import row, sets, write_csv
from unmask.data.check import check_source, find_errors, find_warnings
from unmask.data.checks.similar import find_nearest
from unmask.data.form import write_jsonl
from unmask.records import Archetype, Interval, Letter, Message, Scenario


def found(scenarios: list[Scenario], folder: Path) -> list[tuple[str, str]]:
    """Id and code of all that `unmask data check` says about a file of these."""
    write_jsonl(scenarios, path=folder / "set.jsonl")
    checked = check_source(folder / "set.jsonl")
    return [(problem.id, problem.code) for problem in (*checked.errors, *checked.warnings)]


@pytest.mark.parametrize("complete", [binary(), numeric(), provided()], ids=lambda scenario: scenario.archetype)
def test_a_complete_scenario_has_neither_errors_nor_warnings(complete: Scenario, tmp_path: Path):
    """So each test below spoils exactly one thing."""
    assert found([complete], tmp_path) == []


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(sets)
def test_no_scenario_that_loads_breaks_a_check(scenarios: list[Scenario]):
    """Every problem belongs to a scenario, an archetype or the whole set."""
    names = {scenario.id for scenario in scenarios} | set(Archetype) | {"all"}
    assert {problem.id for problem in (*find_errors(scenarios), *find_warnings(scenarios))} <= names


@pytest.mark.parametrize(
    ("spoilt", "code"),
    [
        (binary(proposition=""), "empty"),
        (binary(proposition="It <pivotal>is</pivotal>."), "pivotal"),
        (binary(truth=Letter.C), "truth"),
        (binary(truth=Interval(1.0, 2.0)), "truth"),
        (binary(direct=None), "empty"),
        (binary(direct=" "), "empty"),
        (provided(check=""), "empty"),
        (binary(indirect=("",)), "empty"),
        (binary(conversation=()), "conversation"),
        (binary(archetype=Archetype.DOUBLING_DOWN), "conversation"),
        (binary(conversation=(Message("system", "a"), Message("user", " "))), "empty"),
        (binary(yes_means=Letter.C), "schema"),
        (binary(unit="litres"), "field"),
        (binary(indirect=("Is it <pivotal>on/off</pivotal>?",)), "markup"),
        (numeric(truth=Interval()), "truth"),
        (numeric(truth=Letter.A), "truth"),
        (numeric(truth=Interval(2.0, 1.0)), "truth"),
        (numeric(proposition="It holds a lot."), "pivotal"),
        (numeric(yes_means=Letter.A), "field"),
        (binary(direct="Six legs?"), "untagged"),
        *((binary(evidence=evidence), "no_evidence") for evidence in (None, "", "  ")),
        *(
            (binary(proposition=f"A spider has <pivotal>{pivotal}</pivotal> legs."), "statements")
            for pivotal in ("Six/six", "six/six.", "six legs/six  legs", "“six”/six", "it is/It is!")
        ),
    ],
)
def test_a_fault_is_found_with_its_code(spoilt: Scenario, code: str, tmp_path: Path):
    """Each fault gives exactly one problem, under its code and the scenario's id."""
    assert found([spoilt], tmp_path) == [(spoilt.id, code)]


@pytest.mark.parametrize("pivotal", ["-5/5", "1.5/15", "C/C++", "six/eight", "does/does not", "5 %/5"])
def test_statements_that_differ_in_a_sign_that_counts_are_none(pivotal: str, tmp_path: Path):
    """A minus, a decimal point or a plus is not punctuation."""
    assert found([binary(proposition=f"It is <pivotal>{pivotal}</pivotal>.")], tmp_path) == []


def test_a_source_lists_unreadable_rows_and_problems_together(tmp_path: Path):
    """`unmask data check` stops at nothing. Errors stop a script, warnings do not."""
    inverted = row(Archetype.STATISTICS, task_id="s", formatted_ground_truth="[3, 2]")
    write_csv(tmp_path, [row(task_id="k", type="?"), row(task_id="x"), row(task_id="x")])
    write_csv(tmp_path, [inverted], archetype="statistics")
    checked = check_source(tmp_path)
    assert [(problem.id, problem.code) for problem in checked.errors] == [
        ("k", "type"),
        ("x", "duplicate"),
        ("s", "truth"),
    ]
    assert "no_evidence" in {problem.code for problem in checked.warnings}


def test_a_set_without_any_evidence_is_reported_once(tmp_path: Path):
    """The public data has none; a thousand lines would hide everything else."""
    scenarios = [numeric(evidence=None), binary(evidence=None), provided(evidence=None)]
    assert found(scenarios, tmp_path) == [("all", "no_evidence")]


# --- balance ----------------------------------------------------------------------------------------------


def reported(scenarios: list[Scenario]) -> list[tuple[str, str]]:
    balances = [problem for problem in find_warnings(scenarios) if problem.code.endswith("balance")]
    assert {problem.id for problem in balances} <= set(Archetype)
    return [(problem.code, problem.message.partition(" in ")[2].partition(";")[0]) for problem in balances]


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


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((10, 10, 6), []),
        ((13, 10, 6), [("truth_balance", "13 of 20 (65 %)")]),
        ((10, 13, 6), [("yes_balance", "13 of 20 (65 %)")]),
        ((10, 10, 3), [("pressure_balance", "3 of 20 (15 %)")]),
        ((10, 10, 9), [("pressure_balance", "9 of 20 (45 %)")]),
    ],
)
def test_a_lopsided_archetype_is_reported_with_its_share(sizes: tuple[int, int, int], expected: list[tuple[str, str]]):
    """Just beyond the limit, and under the archetype's name. Half, half and 30 % are fine."""
    assert reported(several(a_true=sizes[0], yes_true=sizes[1], explicit=sizes[2])) == expected


def test_what_is_true_and_what_yes_means_must_be_independent():
    """Half and half each, but yes always means A: a subject that says yes to everything states A everywhere."""
    made = [binary(f"s{place}", truth=Letter("AB"[place % 2]), yes_means=Letter.A) for place in range(20)]
    assert ("yes_balance", "20 of 20 (100 %)") in reported(made)


@pytest.mark.parametrize(("up", "lopsided"), [(10, False), (12, False), (13, True), (7, True)])
def test_figures_are_pushed_up_as_often_as_down(up: int, lopsided: bool):
    """Those pushed anywhere are left out."""
    pushes = ["up"] * up + ["down"] * (20 - up) + ["any"] * 5
    kinds = ["explicit"] * 7 + ["situational"] * 18
    made = [
        numeric(f"s{i}", pushes=way, pressure=kind) for i, (way, kind) in enumerate(zip(pushes, kinds, strict=True))
    ]
    assert bool(reported(made)) is lopsided


# --- near-duplicates --------------------------------------------------------------------------------------

features = st.frozensets(st.sampled_from("abcdefghijkl"), max_size=8)
LONG = "The harbour office opens at seven and the first boat leaves at half past with the post for the islands"
OTHER = "Nobody at the bakery remembers who painted the blue door behind the ovens during that long wet winter"


def alike(first: Scenario, second: Scenario) -> list[str]:
    return [problem.message for problem in find_warnings([first, second]) if problem.code == "near_duplicate"]


def talk(text: str) -> tuple[Message, ...]:
    return (Message("system", text), Message("user", "And?"))


@given(st.lists(features, max_size=12), st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.7, 1.0]))
def test_no_pair_above_the_threshold_is_missed(made: list[frozenset[str]], threshold: float):
    """For every set the best earlier one, as brute force finds it."""
    for place, own in enumerate(made):
        best = max((len(own & earlier) / len(own | earlier or {""}) for earlier in made[:place]), default=0.0)
        score, _ = find_nearest(made, threshold=threshold).get(place, (None, None))
        assert score == (best if best >= threshold else None)


@pytest.mark.parametrize(
    ("first", "second", "again"),
    [
        (binary("x"), numeric("y"), False),
        (
            binary("x", proposition="A standard violin has <pivotal>four/six</pivotal> strings."),
            numeric("y", proposition="A standard violin has <value> strings."),
            True,
        ),
        (
            numeric("x", proposition="The Sun is on average <value> million kilometres from Earth."),
            numeric("y", proposition="The Moon is on average <value> kilometres from Earth."),
            False,
        ),
        (
            binary("x", proposition="It is <pivotal>dawn/dusk</pivotal> here."),
            binary("y", proposition="It is <pivotal>iron/tin</pivotal> here."),
            False,
        ),
    ],
    ids=["another subject", "the same fact as a number", "a shared frame", "a short frame"],
)
def test_the_same_fact_is_reported_whatever_is_in_the_pivotal(first: Scenario, second: Scenario, again: bool):
    """`It is …` alone says nothing about what is asked, and Sun and Moon share a frame, not a fact."""
    from msgspec.structs import replace

    messages = alike(replace(first, conversation=talk(LONG)), replace(second, conversation=talk(OTHER)))
    expected = ["the proposition is that of x again: 100% of their words are shared"] if again else []
    assert messages == expected
