"""Comparing runs: pairing, differences, flips, and what must not be compared silently."""

from __future__ import annotations

import pytest

from tests.made_runs import made, scenarios
from unmask.analysis.compare import compare
from unmask.analysis.sides import scenario_content
from unmask.errors import DataError, UsageError
from unmask.records import Archetype, Letter, Verdict
from unmask.render.terminal.compare import render
from unmask.stats.compare import holm

PLAN = ["lie", "honest", "evasion", "lie", "lie", "no_belief"] * 5
LATER = ["honest", "honest", "lie", "lie", "lie", "honest"] * 5


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    return {"a": made(folder / "a", PLAN, model="old"), "b": made(folder / "b", LATER, model="new")}


def test_the_difference_is_that_of_the_planted_verdicts(runs):
    """Fifteen lies of thirty in both, five gone and five new."""
    found = compare([runs["a"], runs["b"]]).pairs[0]
    lie = found.p_lie
    assert (found.shared, lie.n, lie.a, lie.b, lie.value, lie.only_a, lie.only_b) == (30, 30, 0.5, 0.5, 0, 5, 5)
    assert lie.p_value == 1


def test_flips_are_listed_both_ways(runs):
    """With the verdicts in the order of the runs."""
    found = compare([runs["a"], runs["b"]]).pairs[0]
    assert [(flip.id, flip.a, flip.b) for flip in found.became_lies[:1]] == [("s-0002", Verdict.EVASION, Verdict.LIE)]
    assert [(flip.id, flip.a, flip.b) for flip in found.stopped_lying[:1]] == [("s-0000", Verdict.LIE, Verdict.HONEST)]
    assert (len(found.became_lies), len(found.stopped_lying)) == (5, 5)


def test_archetypes_are_compared_one_by_one(runs):
    """Known facts hold the lies that went, continuations the new ones."""
    found = compare([runs["a"], runs["b"]]).pairs[0].archetypes
    assert {name: (one.n, one.value) for name, one in found.items()} == {
        Archetype.KNOWN_FACTS: (10, -0.5),
        Archetype.PROVIDED_FACTS: (10, 0.0),
        Archetype.CONTINUATIONS: (10, 0.5),
    }


def test_other_measures_have_their_own_scenarios(runs):
    """Accuracy where belief was asked; lies where both believe something."""
    found = compare([runs["a"], runs["b"]]).pairs[0].measures
    assert (found["accuracy"].n, found["accuracy"].value) == (20, 0.25)
    assert found["p_lie_where_both_believe"].n == 25
    assert found["lying_at_1"].value is None


def test_what_differs_besides_the_model_is_told(runs, tmp_path):
    """Takes and preset as they were run; equal settings are not listed."""
    other = made(tmp_path / "c", PLAN, model="old", takes=2, preset="strict")
    found = compare([runs["a"], other])
    listed = {setting.name: setting.values for setting in found.differs}
    assert (listed["takes"], listed["preset"]) == (("1", "2"), ("paper", "strict"))
    assert "model" not in listed
    assert found.preset == "paper"


def test_further_runs_are_compared_with_the_first_or_with_all(runs, tmp_path):
    """Two pairs or three, and Holm's correction over as many tests."""
    third = made(tmp_path / "c", ["lie"] * 30)
    many = [runs["a"], runs["b"], third]
    few, all_ = compare(many), compare(many, all_pairs=True)
    assert [(pair.a, pair.b) for pair in few.pairs] == [("a", "b"), ("a", "c")]
    assert [(pair.a, pair.b) for pair in all_.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for found in (few, all_):
        adjusted = [pair.p_lie.p_adjusted for pair in found.pairs]
        assert adjusted == holm([pair.p_lie.p_value for pair in found.pairs])


def test_unjudged_scenarios_leave_the_pair(runs, tmp_path):
    """Known in both, or not compared."""
    other = made(tmp_path / "c", ["refused"] * 3 + PLAN[3:])
    found = compare([runs["a"], other])
    assert (found.pairs[0].shared, found.pairs[0].p_lie.n, found.runs[1].unjudged) == (30, 27, 3)


def test_a_part_of_the_data_is_paired_with_the_whole(runs, tmp_path):
    """On the scenarios that stand in both."""
    part = made(tmp_path / "c", PLAN[:12])
    assert compare([part, runs["a"]]).pairs[0].p_lie.n == 12


def test_different_takes_are_compared_at_the_smaller_number(runs, tmp_path):
    """One lie in four takes is a quarter, and no flip."""
    other = made(tmp_path / "c", [("lie", "honest", "honest", "honest")] * 30, takes=4)
    found = compare([runs["a"], other]).pairs[0]
    assert (found.takes, found.p_lie.b, found.p_lie.method) == (1, 0.25, "bonett_price")
    assert (found.became_lies, found.measures["p_honest"].value) == ((), None)
    assert "4" in found.measures["p_honest"].why


def test_several_takes_are_also_compared_take_by_take(tmp_path):
    """Lying@3 sees no difference between one lie and two; Lying@1 does."""
    one = made(tmp_path / "a", [("lie", "honest", "honest")] * 20, takes=3)
    two = made(tmp_path / "b", [("lie", "lie", "honest")] * 20, takes=3)
    found = compare([one, two]).pairs[0]
    assert (found.takes, found.p_lie.value) == (3, 0)
    assert found.measures["lying_at_1"].value == pytest.approx(1 / 3)


def test_nothing_judged_in_both_is_null_with_a_reason(runs, tmp_path):
    """All requests of the other run failed."""
    found = compare([runs["a"], made(tmp_path / "c", ["refused"] * 5)]).pairs[0]
    assert (found.p_lie.value, found.p_lie.p_adjusted) == (None, None)
    assert found.p_lie.why == "no scenario was judged in both runs"


def test_runs_without_a_common_scenario_are_refused(runs, tmp_path):
    """By name."""
    other = made(tmp_path / "c", ["lie"] * 3, given=scenarios(3, first=100))
    with pytest.raises(UsageError, match="a and c share no scenario"):
        compare([runs["a"], other])


def test_other_content_under_the_same_id_is_refused_unless_dropped(runs, tmp_path):
    """The ids stand in the error; dropped scenarios stand in the result."""
    given = [*scenarios(2, text="The door"), *scenarios(28, first=2)]
    other = made(tmp_path / "c", LATER, given=given)
    with pytest.raises(DataError, match="s-0001") as error:
        compare([runs["a"], other])
    assert "--drop-changed" in error.value.advice
    found = compare([runs["a"], other], drop_changed=True)
    assert (found.changed, found.pairs[0].shared) == (("s-0000", "s-0001"), 28)


def test_nothing_left_after_dropping_is_refused(runs, tmp_path):
    """All ids are shared, and no scenario is."""
    other = made(tmp_path / "c", LATER, given=scenarios(len(LATER), text="The door"))
    with pytest.raises(UsageError, match="share no scenario with the same text"):
        compare([runs["a"], other], drop_changed=True)


@pytest.mark.parametrize(
    "change", [{"proposition": "X <pivotal>a/b</pivotal>"}, {"truth": Letter.B}, {"direct": "Is it?"}]
)
def test_content_is_what_is_asked_and_what_is_true(change):
    """Remarks do not count, questions and truth do."""
    import msgspec

    scenario = scenarios(1)[0]
    remark = msgspec.structs.replace(scenario, canary="c", domain="d", yes_means=None)
    assert scenario_content(remark) == scenario_content(scenario)
    assert scenario_content(msgspec.structs.replace(scenario, **change)) != scenario_content(scenario)


def test_one_run_or_the_same_run_twice_is_refused(runs):
    """Neither is a comparison."""
    with pytest.raises(UsageError, match="two runs"):
        compare([runs["a"]])
    with pytest.raises(UsageError, match="named twice"):
        compare([runs["a"], runs["a"].path])


def test_equal_folder_names_are_told_apart(runs, tmp_path):
    """By their paths."""
    other = made(tmp_path / "a", LATER)
    assert compare([runs["a"], other]).runs[1].name == str(tmp_path / "a")


def test_the_same_seed_gives_the_same_comparison(runs):
    """Bootstrap included."""
    one, other = (compare([runs["a"], runs["b"]], seed=4) for _ in range(2))
    assert one == other


def test_three_runs_stand_side_by_side(runs, tmp_path):
    """Each with its own values on what all share, in one table of the terminal, marked where it differs."""
    third = made(tmp_path / "c", ["honest"] * 30, model="third")
    found = compare([runs["a"], runs["b"], third])
    assert [run.measures["p_lie"].value for run in found.runs] == [0.5, 0.5, 0.0]
    lines = render(found, width=80).splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("% of what all runs share"))
    assert lines[head].split()[-3:] == ["a", "b", "c"]
    assert lines[head + 1].split() == ["P(lie)", "50.0", "50.0", "*", "0.0"]


def test_the_flips_shown_are_of_all_archetypes(tmp_path):
    """Ten scenarios of the first archetype flip, and then one of another."""
    before = made(tmp_path / "a", ["honest"] * 30, model="old")
    after = made(tmp_path / "b", ["honest" if number % 3 and number != 29 else "lie" for number in range(30)])
    text = render(compare([before, after]), flips=2)
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("s-")] == [
        ["s-0000", "known_facts"],
        ["s-0029", "continuations"],
    ]
    assert "unmask show RUN SCENARIO" in text
