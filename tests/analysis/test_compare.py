"""Comparing runs: pairing, differences, flips, and what must not be compared silently."""

from __future__ import annotations

import pytest
from matplotlib.text import Text

from tests.made_runs import made, scenarios
from tests.shown import show
from unmask.analysis.compare import compare
from unmask.analysis.sides import scenario_content
from unmask.errors import DataError, UsageError
from unmask.records import Archetype, Letter, Verdict
from unmask.render.figures import FIGURES, FigureInputs
from unmask.render.html.report import report
from unmask.stats.estimate import tango_interval
from unmask.stats.family import holm

PLAN = ["lie", "honest", "evasion", "lie", "lie", "no_belief"] * 5
LATER = ["honest", "honest", "lie", "lie", "lie", "honest"] * 5


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    return {"a": made(folder / "a", PLAN, model="old"), "b": made(folder / "b", LATER, model="new")}


def test_the_difference_is_that_of_the_planted_verdicts(runs):
    """Fifteen lies of thirty in both, five gone and five new."""
    found = compare([runs["a"], runs["b"]]).pairs[0]
    lie = found.difference
    assert (found.shared, lie.n, lie.a, lie.b, lie.value, lie.p_value) == (30, 30, 0.5, 0.5, 0, 1)
    assert (lie.low, lie.high) == tango_interval(5, 5, n=30)


def test_flips_are_listed_both_ways(runs):
    """With the verdicts in the order of the runs."""
    found = compare([runs["a"], runs["b"]]).pairs[0]
    assert [(flip.id, flip.a, flip.b) for flip in found.became_lies[:1]] == [("s-0002", Verdict.EVASION, Verdict.LIE)]
    assert [(flip.id, flip.a, flip.b) for flip in found.stopped_lying[:1]] == [("s-0000", Verdict.LIE, Verdict.HONEST)]
    assert (len(found.became_lies), len(found.stopped_lying)) == (5, 5)


def test_other_measures_have_their_own_scenarios(runs):
    """Accuracy where belief was asked; lies where there is a belief, 15 of 25 and 15 of 30."""
    found = compare([runs["a"], runs["b"]]).pairs[0].measures
    assert (found["accuracy"].n, found["accuracy"].value) == (20, 0.25)
    normalised = found["normalised_p_lie"]
    assert (normalised.a, normalised.b, normalised.value) == pytest.approx((0.6, 0.5, -0.1))


def test_another_measure_is_compared_by_its_name(tmp_path):
    """Lying@2 of three takes is 2/3 with one lie and 1 with two; archetypes are of the same measure, P(lie) is next to
    it."""
    one = made(tmp_path / "a", [("lie", "honest", "honest")] * 30, takes=3)
    two = made(tmp_path / "b", [("lie", "lie", "honest")] * 30, takes=3)
    found = compare([one, two], measure="lying_at_2")
    pair = found.pairs[0]
    assert found.measure == "lying_at_2"
    assert (pair.difference.a, pair.difference.b) == pytest.approx((2 / 3, 1))
    assert pair.archetypes[Archetype.KNOWN_FACTS].value == pytest.approx(1 / 3)
    assert pair.measures["p_lie"].value == pytest.approx(1 / 3)
    assert "Lying@2 is 100.0 % for b and 66.7 % for a, over 30 scenarios" in show(found)


def test_what_differs_besides_the_model_is_told(runs, tmp_path):
    """Takes and preset as they were run; equal settings are not listed."""
    other = made(tmp_path / "c", PLAN, model="old", takes=2, preset="strict")
    found = compare([runs["a"], other])
    listed = {setting.name: setting.values for setting in found.differs}
    assert (listed["takes"], listed["preset"]) == (("1", "2"), ("paper", "strict"))
    assert "model" not in listed
    assert found.preset == "paper"


def test_more_scenarios_in_one_run_change_no_reading(runs, tmp_path):
    """A pilot against the whole: the hash of the data differs, but not how a shared reply becomes a verdict."""
    found = compare([made(tmp_path / "pilot", PLAN[:10]), runs["b"]])
    differing = {setting.name: setting.reading for setting in found.differs}
    assert (found.pairs[0].shared, differing["data hash"]) == (10, False)
    assert "how replies become verdicts" not in show(found)


def test_all_pairs_of_the_runs_are_one_family(runs, tmp_path):
    """Three tests of P(lie), three of every archetype, three of every other measure."""
    third = made(tmp_path / "c", ["lie"] * 30)
    pairs = compare([runs["a"], runs["b"], third]).pairs
    assert [(pair.a, pair.b) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for family in (
        [[pair.difference] for pair in pairs],
        [pair.archetypes.values() for pair in pairs],
        [pair.measures.values() for pair in pairs],
    ):
        parts = [part for own in family for part in own]
        assert [part.p_adjusted for part in parts] == holm([part.p_value for part in parts])


def test_unjudged_scenarios_leave_the_pair(runs, tmp_path):
    """Known in both, or not compared; what they could be is in the bounds."""
    other = made(tmp_path / "c", ["refused"] * 3 + PLAN[3:])
    found = compare([runs["a"], other])
    difference = found.pairs[0].difference
    assert (found.pairs[0].shared, difference.n, found.runs[1].unjudged) == (30, 27, 3)
    assert (difference.worst_low, difference.worst_high) == pytest.approx((-1 / 30, 2 / 30))


def test_what_the_unjudged_could_undo_depends_on_them(tmp_path):
    """V10: 12 lies against 1 of 92 are larger than chance where both are judged; 8 more of the second could be lies. It
    is said, with the range and without a colour."""
    a = made(tmp_path / "a", ["lie"] * 12 + ["honest"] * 88)
    b = made(tmp_path / "b", ["lie"] + ["honest"] * 91 + ["refused"] * 8)
    found = compare([a, b])
    difference = found.pairs[0].difference
    assert difference.p_value < 0.05 < difference.p_worst
    assert (difference.worst_low, difference.worst_high) == pytest.approx((-0.11, -0.03))
    text = show(found, width=400, color=True)
    assert "That depends on the unjudged: it is larger than chance (p = 0.001) only where both runs are judged." in text
    assert f"is from {100 * difference.worst_low:+.1f} to {100 * difference.worst_high:+.1f} points." in text
    assert not any("P(lie)" in line and "\x1b[3" in line for line in text.splitlines())
    assert "That depends on the unjudged" in report([a, b])
    drawn = FIGURES["forest"](FigureInputs((a, b))).findobj(Text)
    assert any("depends on the unjudged: −11.0 to −3.0" in found.get_text() for found in drawn)


def test_few_scenarios_that_differ_are_marked(runs, tmp_path):
    """Nine flips of 30; ten are not few."""
    nine, ten = (
        made(tmp_path / str(count), ["honest"] * count + ["lie"] * (30 - count), model="m") for count in (9, 10)
    )
    base = made(tmp_path / "base", ["lie"] * 30)
    few, enough = (compare([base, other]) for other in (nine, ten))
    assert (few.pairs[0].difference.few, enough.pairs[0].difference.few) == (True, False)
    assert "(few differ)" in show(few)
    assert "(few differ)" not in show(enough)


def test_different_takes_are_compared_by_the_share_of_lies(runs, tmp_path):
    """One lie in four takes is a quarter, and no flip."""
    other = made(tmp_path / "c", [("lie", "honest", "honest", "honest")] * 30, takes=4)
    found = compare([runs["a"], other]).pairs[0]
    assert (found.difference.a, found.difference.b, found.difference.method) == (0.5, 0.25, "t")
    assert found.became_lies == ()
    assert found.measures["p_honest"].b == 0.75


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
    with pytest.raises(UsageError, match="named twice, read by the same judge") as refused:
        compare([runs["a"], runs["a"].path])
    assert f"another judge of it: {runs['a'].path}@NAME" in refused.value.advice


def test_three_runs_stand_side_by_side(runs, tmp_path):
    """Each with its own values on what all share, marked where it differs from the first; then every pair. Tables and
    flips of the pairs are there when asked for."""
    third = made(tmp_path / "c", ["honest"] * 30, model="third")
    found = compare([runs["a"], runs["b"], third])
    assert [run.measures["p_lie"].value for run in found.runs] == [0.5, 0.5, 0.0]
    lines = show(found, width=80).splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("% of what all runs share"))
    assert lines[head].split()[-3:] == ["a", "b", "c"]
    assert lines[head + 1].split() == ["P(lie)", "50.0", "50.0", "*", "0.0"]
    pairs = next(number for number, line in enumerate(lines) if line.startswith("P(lie), points: row minus column"))
    assert lines[pairs + 2].split() == ["c", "*", "-50.0", "*", "-50.0"]
    text = " ".join(" ".join(lines).split())
    assert "Intervals are not corrected for the number of comparisons, p-values are." in text
    assert text.startswith("Against a: P(lie) is smaller for c; the difference could be chance for b.")
    assert ("for c and" in text, "stopped being lies" in text) == (False, False)
    details = show(found, details=True)
    assert ("for c and 50.0 % for b" in details, "stopped being lies" in details) == (True, True)


def test_the_flips_shown_are_of_all_archetypes(tmp_path):
    """Ten scenarios of the first archetype flip, and then one of another."""
    before = made(tmp_path / "a", ["honest"] * 30, model="old")
    after = made(tmp_path / "b", ["honest" if number % 3 and number != 29 else "lie" for number in range(30)])
    text = show(compare([before, after]), flips=2)
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("s-")] == [
        ["s-0000", "known"],
        ["s-0029", "continuations"],
    ]
    assert "unmask show " in text
