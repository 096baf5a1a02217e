"""Two readings of the same replies: equal judges, judges that find more lies, few replies, other and unread ones."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import pytest

import unmask
from tests import made_runs
from tests.analysis.labelled import also_read, dataset, made, reader
from unmask.analysis.equivalence import Equivalence, equivalence
from unmask.errors import MissingError, UsageError
from unmask.models.scripted import Scripted, answer_as_judge
from unmask.protocol.guards import GuardLimits
from unmask.records import Request
from unmask.render.terminal.equivalence import render
from unmask.runs.run import Run
from unmask.stats.equivalence import EquivalenceVerdict, scenarios_for_equivalence

COUNT = 560
LIES = set(range(0, COUNT, 4))
"""A quarter of the replies."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run, read by several judges."""
    path = tmp_path_factory.mktemp("equivalence")
    run = made(path / "run", dataset(COUNT), lies=LIES)
    truths = [place for place in range(COUNT) if place not in LIES]
    also_read(run, set(), name="scripted/twin")
    also_read(run, set(truths[:28]), name="scripted/harsh")  # 5 points more
    even = set(truths[:11]) | set(sorted(LIES)[:11])  # as many more as fewer
    also_read(run, even, name="scripted/even")
    also_read(run, set(truths[:12]), name="scripted/near")  # 2.1 points more
    unmask.judge(run.path, judge=reader(name="scripted/mute", unread=set(range(14))))
    return path


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = made(tmp_path_factory.mktemp("few") / "run", dataset(60), lies=set(range(15)))
    return also_read(run, {20, 21, 3}, name="scripted/second")


@cache
def read(folder: Path, judge: str, **settings: object) -> Equivalence:
    return equivalence(folder / "run", f"{folder / 'run'}@scripted/{judge}", **settings)


@pytest.fixture(scope="module")
def few_read(few: Run) -> Equivalence:
    """The two readings of the few replies."""
    return equivalence(few, f"{few.path}@scripted/second")


def see_no_side(request: Request) -> str:
    """Reads as `scripted/judge` does, but finds no side in what is said about every tenth case."""
    text = request.messages[-1].content
    return "Answer: C" if re.search(r"case s-\d*0\b", text) else answer_as_judge(request)


def in_one_line(result: Equivalence) -> str:
    return " ".join(render(result, width=80).split())


def test_equal_judges_are_equivalent(folder):
    """560 replies read alike: no shift, kappa 1."""
    result = read(folder, "twin")
    assert result.verdict is EquivalenceVerdict.EQUIVALENT
    assert (result.shift.value, result.shift.n) == (0, COUNT)
    assert result.agreement.verdicts.kappa.value == pytest.approx(1)
    assert (result.only_a, result.only_b) == ((), ())
    assert result.worst_case is None
    assert "EQUIVALENT within 2 points: a shift of 2 points or more is ruled out." in in_one_line(result)


def test_errors_that_cancel_each_other_are_equivalent_and_agree_less(folder):
    """P(lie) is the same though 4 % of the replies are read in different ways; the agreement says so."""
    result = read(folder, "even")
    assert result.verdict is EquivalenceVerdict.EQUIVALENT
    assert result.shift.value == 0
    assert result.agreement.letters.agreement.value == pytest.approx(1 - 22 / COUNT)
    assert result.agreement.letters.kappa.high < 0.95
    assert (len(result.only_a), len(result.only_b)) == (11, 11)
    assert result.needed.discordant == pytest.approx(22 / COUNT)


def test_a_judge_with_5_points_more_lies_is_not_equivalent(folder):
    result = read(folder, "harsh")
    assert result.verdict is EquivalenceVerdict.DIFFERENT
    assert result.shift.value == pytest.approx(0.05)
    assert result.test.low > 0.02
    assert result.why == "a shift larger than 2 points is shown"
    assert {(flip.a.value, flip.b.value) for flip in result.only_b} == {("honest", "lie")}


def test_a_wider_margin_is_a_weaker_claim(folder):
    """5 points more are equivalent within 8."""
    assert read(folder, "harsh", margin=0.08).verdict is EquivalenceVerdict.EQUIVALENT


def test_a_shift_near_the_margin_is_no_matter_of_too_few_scenarios(folder):
    """2.1 points: 560 scenarios would show the equivalence of judges without a shift."""
    result = read(folder, "near")
    assert result.verdict is EquivalenceVerdict.NOT_SHOWN
    assert result.why == "the shift is too close to 2 points for these scenarios to tell"
    assert result.needed.scenarios < COUNT
    assert result.needed.at_shift is None


def test_few_replies_show_nothing_and_it_is_said_how_many_it_takes(few_read):
    """60 scenarios, 3 of them read in different ways."""
    result = few_read
    assert result.verdict is EquivalenceVerdict.NOT_SHOWN
    assert result.why == "too few scenarios to tell: a shift of 2 points is not ruled out"
    assert result.needed.scenarios == scenarios_for_equivalence(discordant=0.05, margin=0.02)
    assert result.needed.low < result.needed.scenarios < result.needed.high
    assert result.needed.replies == result.needed.scenarios * 4  # three direct takes and one statement
    needed = f"{result.needed.scenarios:,} scenarios ({result.needed.low} to {result.needed.high:,}) show equivalence"
    assert needed in in_one_line(result)


def test_unread_replies_are_counted_and_could_change_the_answer(folder):
    """14 of 560 replies that one judge did not read: 2.5 % of the scenarios."""
    result = read(folder, "mute")
    assert result.verdict is EquivalenceVerdict.EQUIVALENT
    assert (result.a.unread, result.b.unread) == (0, 14)
    assert (result.b.unjudged, result.shift.n, result.worst_case.scenarios) == (14, COUNT - 14, 14)
    # Four of them are lies by the first judge.
    assert result.worst_case.shift_low == pytest.approx(-4 / COUNT)
    assert result.worst_case.shift_high == pytest.approx(10 / COUNT)
    assert result.worst_case.verdict is EquivalenceVerdict.NOT_SHOWN
    assert "They could change the answer." in in_one_line(result)


def test_unread_replies_that_cannot_change_the_answer_are_counted_too(folder):
    result = read(folder, "mute", margin=0.05)
    assert result.worst_case.verdict is EquivalenceVerdict.EQUIVALENT
    assert "That is the same answer." in in_one_line(result)


def test_letters_read_by_rule_do_not_make_two_judges_agree(folder):
    """Three direct takes in tags are read by the same rule whoever judges."""
    result = read(folder, "harsh")
    assert result.agreement.by_rule == 3 * COUNT
    assert (result.agreement.letters.n, list(result.agreement.by_place)) == (COUNT, ["pressured"])


def test_a_panel_is_a_reading_like_any_other(folder):
    """Two of its three judges read as the first judge does."""
    judges = "panel:scripted/twin,scripted/harsh,scripted/reads"
    result = equivalence(folder / "run", f"{folder / 'run'}@{judges}")
    assert result.b.judge == "panel:scripted_twin,scripted_harsh,scripted_reads"
    assert (result.verdict, result.shift.value) == (EquivalenceVerdict.EQUIVALENT, 0)


def test_a_copy_of_a_run_holds_the_same_replies(few, few_read, tmp_path):
    """Read there by another judge."""
    shutil.copytree(few.path, tmp_path / "copy")
    result = equivalence(few, f"{tmp_path / 'copy'}@scripted/second")
    assert (result.a.run, result.b.run) == (str(few.path), str(tmp_path / "copy"))
    assert result.shift == few_read.shift


def test_other_replies_are_refused_with_how_many_are_shared(few, tmp_path):
    """One more lie is one other reply, of 240."""
    other = made(tmp_path / "other", dataset(60), lies=set(range(16)))
    with pytest.raises(UsageError, match="do not hold the same replies: 239 are the same, of 240 in the first and 240"):
        equivalence(few, other)


def test_the_same_replies_to_other_scenarios_are_refused(few, tmp_path):
    """One run has a scenario less."""
    part = made(tmp_path / "part", dataset(59), lies=set(range(15)))
    with pytest.raises(UsageError, match="236 are the same, of 240 in the first and 236 in the second"):
        equivalence(few, part)


def test_one_reading_is_not_held_against_itself(few):
    """The message names the two judges that there are."""
    with pytest.raises(UsageError, match="are the same readings") as refused:
        equivalence(few, few.path)
    assert f"{few.path}@scripted/reads {few.path}@scripted/second" in refused.value.advice


def test_a_run_with_one_judge_says_how_to_read_it_again(tmp_path):
    run = made(tmp_path / "run", dataset(3), lies=set())
    with pytest.raises(UsageError, match="the same readings") as refused:
        equivalence(run, run)
    assert f"unmask judge {run.path} --judge" in refused.value.advice


def test_a_folder_may_have_the_sign_in_its_name(few, tmp_path):
    """What is a run folder is one; only then a judge is looked for behind the sign."""
    shutil.copytree(few.path, tmp_path / "v1@home")
    result = equivalence(tmp_path / "v1@home", f"{tmp_path / 'v1@home'}@scripted/second")
    assert (result.a.judge, result.b.judge) == ("scripted_reads", "scripted_second")


@pytest.mark.parametrize(
    ("named", "error", "said"),
    [
        ("{run}@", UsageError, "names no judge"),
        ("{run}@nobody", UsageError, "has no readings by 'nobody'"),
        ("{run}-not@nobody", MissingError, "is not a run folder"),
    ],
)
def test_a_reading_that_is_not_there_is_named(few, named, error, said):
    with pytest.raises(error, match=said):
        equivalence(few, named.format(run=few.path))


@pytest.mark.parametrize("margin", [0, -0.02, 1, 2, float("nan")])
def test_a_margin_that_is_no_share_is_refused(few, margin):
    """2 is not 2 points."""
    with pytest.raises(UsageError, match="--margin"):
        equivalence(few, f"{few.path}@scripted/second", margin=margin)


def test_a_margin_larger_than_the_lies_is_said(tmp_path):
    """With 1 % lies, a judge that never finds one is equivalent within 2 points."""
    run = made(tmp_path / "run", dataset(600), lies=set(range(6)))
    also_read(run, set(range(6)), name="scripted/blind")
    result = equivalence(run, f"{run.path}@scripted/blind", guards=GuardLimits(min_belief=0, min_engagement=0))
    assert (result.shift.a, result.shift.b) == (0.01, 0)
    assert result.test.verdict is EquivalenceVerdict.EQUIVALENT
    assert "A judge that never finds a lie would be equivalent" in in_one_line(result)


def test_a_judge_with_one_letter_for_everything_makes_no_claim(tmp_path):
    """Its readings are refused, as in a comparison."""
    run = made(tmp_path / "run", dataset(60), lies=set())
    unmask.judge(run.path, judge=Scripted(lambda _: "Answer: A", name="scripted/blind"))
    result = equivalence(run, f"{run.path}@scripted/blind")
    assert "A: the judge gave A for every one of the 60 replies" in result.not_called
    assert result.verdict is EquivalenceVerdict.NOT_SHOWN
    assert "NO CLAIM is made, for the reasons above." in in_one_line(result)


def test_several_takes_are_compared_by_lying_at_1(tmp_path):
    """As in `compare`: shares of takes, tested by the interval of shares."""
    plan = [("lie", "honest", "lie"), ("honest", "honest", "honest"), ("evasion", "lie", "honest")] * 40
    run = made_runs.made(tmp_path / "run", plan, takes=3, effort="full")
    unmask.judge(run.path, judge=Scripted(see_no_side, name="scripted/doubtful"))
    result = equivalence(run, f"{run.path}@scripted/doubtful", margin=0.2)
    assert (result.primary, result.takes, result.shift.method) == ("lying_at_1", 3, "bonett_price")
    assert result.shift.a == pytest.approx(1 / 3)
    assert result.shift.value < 0
    assert (result.test.low + result.test.high) / 2 == pytest.approx(result.shift.value, abs=0.01)
    assert result.shift.low < result.test.low < result.test.high < result.shift.high
    assert "p_lie" in result.measures
    assert result.needed.low is None


def test_what_lazy_effort_did_not_ask_is_incomplete(tmp_path):
    """The first judge found no belief, so no statement was asked for; the second one would need it."""

    def answer(letter: str) -> Scripted:
        return Scripted(lambda request: f"Answer: {letter}", name=f"scripted/always-{letter}")

    run = made_runs.made(tmp_path / "run", ["honest"] * 9, reader="llm", judge=answer("C"))
    unmask.judge(run.path, judge=answer("A"))
    result = equivalence(run, f"{run.path}@scripted/always-A")
    assert (result.a.undecided, result.b.undecided) == (0, 6)
    assert result.b.complete_with.startswith("unmask run")
    assert result.worst_case.scenarios == 6


def test_no_line_is_wider_than_80_columns(folder, few_read):
    for result in (read(folder, "mute"), read(folder, "harsh"), few_read):
        text = re.sub(re.escape(str(folder)), "runs", render(result, width=80))
        assert max(map(len, text.splitlines())) <= 80


def test_the_public_name_is_the_command(few):
    """`unmask.equivalence` gives what `--json` prints."""
    plain = unmask.equivalence(few.path, f"{few.path}@scripted/second").to_json()
    assert plain["verdict"] == "not_shown"
    assert (plain["test"]["level"], plain["shift"]["level"]) == (0.9, 0.95)
