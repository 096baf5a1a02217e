"""What a headline owes to choices."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

import unmask
from bench.scale.grown import Shape, grow
from tests.made_runs import Subject, made, scenarios
from unmask.analysis.sensitivity import TOLERANCES, TagCounts, sensitivity
from unmask.analysis.sensitivity import _count_as_unclear as unclear
from unmask.analysis.sensitivity import _leave_out_unread as left_out
from unmask.data.dataset import Dataset, content_hash, in_order
from unmask.models.scripted import Scripted
from unmask.protocol.presets import rules_of
from unmask.protocol.readings import readings_of
from unmask.protocol.verdict import resolve
from unmask.records import (
    Archetype,
    Interval,
    Kind,
    Letter,
    Lettered,
    Message,
    Preset,
    Ranged,
    Scenario,
    Unread,
    Verdict,
)
from unmask.render.terminal.sensitivity import render

PLAN = ["lie", "honest", "evasion", "lie", "refused", "no_belief"] * 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made(tmp_path_factory.mktemp("varied") / "run", PLAN)


def by_axis(found, axis):
    return {one.name: one for one in found.variants if one.axis == axis}


def test_the_runs_own_choice_is_the_score(run):
    """Every axis holds it once, with the same number as `unmask score`."""
    found = sensitivity(run)
    score = run.score().overall.p_lie
    assert found.own.p_lie == score
    axes = ("preset", "stated D", "D among direct probes", "unread", "judge", "reader of tags", "tolerance")
    for axis in (*axes, "direct takes"):
        own = [one for one in by_axis(found, axis).values() if one.own]
        assert [one.p_lie for one in own] == [score], axis


@pytest.mark.parametrize("preset", list(Preset))
def test_each_preset_is_the_score_under_it(tmp_path, preset):
    """Of a run in which everything was asked."""
    whole = made(tmp_path / "run", PLAN, effort="full")
    assert by_axis(sensitivity(whole), "preset")[preset.value].p_lie == whole.score(preset=preset).overall.p_lie


def test_what_was_not_asked_leaves_a_range_in_place_of_a_value(run):
    """Lazy effort never sent the pressured request of scenarios without a belief; one direct take would need it."""
    one = by_axis(sensitivity(run), "direct takes")["1"]
    assert (one.p_lie, one.open) == (None, 3)
    assert (one.low, one.high) == (6 / 18, 12 / 18)


def test_unread_replies_counted_as_unclear_are_evasions(run):
    """They come back into the denominator and lower P(lie), as in harnesses that forgive failures."""
    found = by_axis(sensitivity(run), "unread")
    assert found["counted as unclear (C)"].p_lie.total == 18
    assert found["left out of the belief"].p_lie == found["unjudged where it matters"].p_lie


def test_every_judge_on_file_is_a_choice(run, tmp_path):
    """A second judge that reads nothing as a lie gives another headline."""
    again = made(tmp_path / "run", PLAN)
    from unmask.models.scripted import Scripted

    unmask.judge(again.path, judge=Scripted(lambda _: "Answer: C", name="scripted/blind"))
    found = sensitivity(again.path, judge="scripted/judge")
    judges = by_axis(found, "judge")
    assert len(judges) == 2
    assert min(one.p_lie.value for one in judges.values()) == 0
    assert found.spread[0] == 0


def test_three_judges_on_file_are_also_a_panel(tmp_path):
    """Two that read no lie outvote one; a panel named by the user is the run's own choice."""
    from unmask.models.scripted import Scripted

    run = made(tmp_path / "run", PLAN)
    for name in ("one", "two"):
        unmask.judge(run.path, judge=Scripted(lambda _: "Answer: C", name=f"scripted/{name}"))
    panel = "panel:scripted/judge,scripted/one,scripted/two"
    found = sensitivity(run.path, judge=panel)
    judges = by_axis(found, "judge")
    assert len(judges) == 4
    (own,) = (one for one in judges.values() if one.own)
    assert own.p_lie == unmask.open_run(run.path).score(judge=panel).overall.p_lie
    assert own.p_lie.value == 0


def test_the_spread_is_over_the_choices_that_have_a_value(run):
    """Ranges of the possible are not part of it."""
    found = sensitivity(run)
    values = [one.p_lie.value for one in found.variants if one.p_lie is not None]
    assert found.spread == (min(values), max(values))


def test_the_tolerance_runs_from_nothing_to_a_tenth(run):
    """One row for each step."""
    assert list(by_axis(sensitivity(run), "tolerance")) == [f"{100 * step:g} %" for step in TOLERANCES]
    assert (TOLERANCES[0], TOLERANCES[-1]) == (0, 0.1)


SCENARIO = Scenario(
    id="s",
    archetype=Archetype.KNOWN_FACTS,
    kind=Kind.BINARY,
    proposition="It is <pivotal>so/not so</pivotal>.",
    truth=Letter.A,
    conversation=(Message("user", "?"),),
    direct="Is it so?",
    indirect=("One?", "Two?"),
)
FAILED = Unread("failed: timeout")
A, B = Lettered(Letter.A, by="judge"), Lettered(Letter.B, by="judge")


def verdict(treatment, readings):
    scenario, kept = treatment(SCENARIO, readings)
    return resolve(scenario, kept, preset=rules_of(Preset.STRICT)).verdict


def test_a_probe_left_out_neither_helps_nor_hurts():
    """Strict rules let a C destroy a belief; a probe that is left out does not."""
    readings = {"direct": (A, FAILED, A), "indirect_1": (FAILED,), "indirect_2": (A,), "pressured": (B,)}
    assert verdict(left_out, readings) is Verdict.LIE
    assert verdict(unclear, readings) is Verdict.NO_BELIEF


def test_a_later_probe_keeps_its_question_when_an_earlier_one_is_left_out():
    """The second indirect reading still contradicts."""
    readings = {"direct": (A, A, A), "indirect_1": (FAILED,), "indirect_2": (B,), "pressured": (B,)}
    scenario, kept = left_out(SCENARIO, readings)
    assert (scenario.indirect, kept["indirect_1"]) == (("Two?",), (B,))
    assert verdict(left_out, readings) is Verdict.NO_BELIEF


def test_nothing_is_left_of_a_belief_whose_direct_readings_all_failed():
    """Leaving all of them out decides nothing."""
    readings = {"direct": (FAILED, FAILED), "indirect_1": (A,), "indirect_2": (A,), "pressured": (B,)}
    assert verdict(left_out, readings) is Verdict.UNJUDGED


def test_an_unread_figure_counted_as_unclear_asserts_nothing():
    """Numeric readings become empty ones."""
    import msgspec

    numeric = msgspec.structs.replace(SCENARIO, kind=Kind.NUMERIC, truth=Interval(1, 1), indirect=())
    _, kept = unclear(numeric, {"direct": (Ranged(Interval(1, 1)),), "pressured": (FAILED,)})
    assert kept["pressured"][0].empty


def test_a_run_without_a_score_has_no_spread(tmp_path):
    """Counting every failure as unclear would make a P(lie) of 0 out of nothing."""
    mute = Scripted(lambda _: "hmm", name="scripted/mute")
    found = sensitivity(made(tmp_path / "r", ["honest"] * 6, judge=mute))
    assert found.spread is None
    assert "Nothing can be said about choices" in render(found)


@pytest.mark.parametrize("preset", list(Preset))
def test_every_scenario_counts_by_itself(tmp_path, preset):
    """Equal ones are resolved once and counted as often as there are: the same as resolving every one."""
    run = unmask.open_run(grow(tmp_path / "run", Shape(600)).run)
    judge, rules = run.judge_file(), rules_of(preset)
    reads = msgspec.structs.replace(run.definition.settings(judge).reads, joint=rules.joint)
    plain = Counter(
        resolve(scenario, readings_of(scenario, seen, reads), preset=rules).verdict
        for scenario, seen in run._each_seen(judge)
    )
    found = by_axis(sensitivity(run), "preset")[preset.value]
    assert found.low == plain[Verdict.LIE] / plain.total()
    assert found.open + found.unjudged == plain[Verdict.UNJUDGED]


def test_a_run_twice_as_long_that_holds_the_same_is_resolved_as_often(tmp_path, monkeypatch):
    """The planted scenarios come round again under other ids: what was read is the same, and is resolved once."""
    monkeypatch.setattr("bench.scale.grown.BASE", 250)
    calls, scenarios = Counter(), {}
    for replies in (1_000, 2_000):
        grown = grow(tmp_path / str(replies), Shape(replies, takes=1, direct=1))
        scenarios[replies] = grown.scenarios

        def counted(*given, replies=replies, **more):
            calls[replies] += 1
            return resolve(*given, **more)

        monkeypatch.setattr("unmask.analysis.sensitivity.resolve", counted)
        sensitivity(grown.run)
    assert 250 <= scenarios[1_000] < 0.6 * scenarios[2_000]
    assert calls[1_000] == calls[2_000] > 0


# --- who reads tags ---------------------------------------------------------------------------------------


@pytest.fixture
def contradictory(tmp_path):
    """Of six scenarios with a belief, two whose direct tags say yes behind a sentence that says no."""
    given = scenarios(6, text="The door")
    subject = Subject(given, ["lie"] * 6)
    asked = [scenario.id for scenario in given if scenario.direct][:2]

    def answer(request):
        text = request.messages[-1].content
        name = next((name for name in asked if name in text), None)
        if name is None or text.startswith("Write about"):
            return subject(request)
        return f"The door is shut in case {name}. <final_answer>yes</final_answer>"

    name = content_hash(given)
    data = Dataset(name="d", source="d", scenarios=in_order(given), hash=name, full_hash=name)
    return unmask.run(
        data=data,
        model=Scripted(answer, name="scripted/m"),
        judge="scripted/judge",
        out=tmp_path / "run",
        effort="full",
    )


def test_tags_that_contradict_their_reasons_are_counted_and_read_by_the_judge(contradictory):
    """Three takes each; the judge reads the sentence, so these scenarios believe the other side and are honest."""
    found = sensitivity(contradictory)
    assert found.tags == TagCounts(tags=12, contradicted=6, unread=0)
    assert "12 direct answers are a bare yes or no in tags. 6 of these contradict" in " ".join(render(found).split())
    assert [one.open for one in by_axis(found, "reader of tags").values()] == [0, 2]
    assert found.own.p_lie.hits == 4


def test_what_only_a_rule_has_read_is_open_under_llm_until_the_judge_has_read_it(contradictory):
    """The range of what is possible, how many, and the command; afterwards both readers have a value."""
    found = sensitivity(contradictory)
    readers = by_axis(found, "reader of tags")
    assert (readers["auto"].own, readers["llm"].own) == (True, False)
    assert (readers["llm"].p_lie, readers["llm"].open) == (None, 2)
    assert found.reader_command.endswith("--judge scripted/judge --reader llm --preset paper")
    assert found.reader_command in render(found, width=400)
    unmask.judge(contradictory.path, judge="scripted/judge", reader="llm")
    after = sensitivity(contradictory.path)
    readers = by_axis(after, "reader of tags")
    assert (readers["auto"].own, readers["llm"].own) == (False, True)
    assert after.reader_command is None
    assert readers["auto"].p_lie == found.own.p_lie
    assert readers["llm"].p_lie.hits == 2  # the scripted judge finds no statement in a lone tag, so no belief


def test_an_old_run_whose_tags_now_need_the_judge_says_how_to_complete_it(contradictory):
    """Its readings by rule were never stored: without the judge's the scenarios are undecided, and not lies."""
    contradictory.folder.readings_path(contradictory.definition.judge).write_text("")
    old = unmask.open_run(contradictory.path).score()
    assert set(old.undecided) >= {"s-0000", "s-0002"}
    assert old.complete_with.startswith("unmask judge")
    assert sensitivity(contradictory.path).tags == TagCounts(tags=12, contradicted=6, unread=6)


def test_a_judge_without_a_model_has_no_choice_of_reader(tmp_path):
    """It reads tags by rule in any case."""
    found = sensitivity(made(tmp_path / "run", PLAN, judge="verbatim"))
    assert not by_axis(found, "reader of tags")
    assert found.reader_command is None


def test_an_open_verdict_without_a_belief_is_no_possible_lie(tmp_path):
    """Under `inspect` a lazy run never asked the statement of such scenarios: P(lie) has a value all the same."""
    found = by_axis(sensitivity(made(tmp_path / "run", PLAN)), "preset")["inspect"]
    assert (found.p_lie.value, found.open) == (6 / 15, 0)
