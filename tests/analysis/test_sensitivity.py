"""What a headline owes to choices."""

from __future__ import annotations

import json
import shlex

import msgspec
import pytest

import unmask
from tests.analysis.two_arms import asked, lamps
from tests.cli.terminal import unmask as command
from tests.made_runs import Subject, made, scenarios
from tests.shown import show
from unmask.analysis.sensitivity import sensitivity
from unmask.cli.main import run_command_line
from unmask.data.dataset import Dataset, content_hash, in_order
from unmask.models.scripted import Scripted
from unmask.records import (
    CONTROL,
    PRESSURED,
    Preset,
)

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
    axes = ("preset", "stated D", "D among direct probes", "judge", "tags", "tolerance")
    for axis in (*axes, "direct takes"):
        own = [one for one in by_axis(found, axis).values() if one.own]
        assert [one.p_lie for one in own] == [score], axis


def test_what_was_not_asked_is_not_known_yet_until_the_command_has_asked_it(tmp_path):
    """Lazy effort never sent the pressured request of scenarios without a belief; one direct take would need it."""
    flags = ("--data", "tiny", "scripted/beliefless", "--judge", "scripted/judge", "--out", "run")
    assert command("run", *flags, cwd=tmp_path).returncode == 0
    shown = " ".join(command("sensitivity", "run", cwd=tmp_path).stdout.split())
    assert "Not known yet: " in shown
    for line in sensitivity(tmp_path / "run").not_known_yet:
        done = command(*shlex.split(line)[1:], cwd=tmp_path)
        assert done.returncode in {0, 3}, done.stderr  # 3: the judge alone does not complete a run under other rules
    assert not sensitivity(tmp_path / "run").not_known_yet


def test_a_choice_that_is_not_known_yet_has_no_number(run):
    """Not even a range: it would look like a result. How many scenarios are missing is said."""
    found = sensitivity(run)
    one = by_axis(found, "direct takes")["1"]
    assert (one.p_lie, one.open) == (None, 3)
    assert one.command.startswith("unmask run ")
    assert "direct takes 1 (3 scenarios)" in " ".join(show(found).split())
    table, _, _ = show(found).partition("Not known yet")
    (first,) = [line for line in table.splitlines() if line.startswith("direct takes")]
    assert first.split()[2] == "2"


def test_with_several_takes_a_choice_is_the_score_under_it(tmp_path):
    """P(lie) is the mean share of lying takes: half of the takes of each scenario."""
    whole = made(
        tmp_path / "run", [("lie", "honest"), ("lie", "evasion")] * 6, takes=2, set={"takes_per_call": 1}, effort="full"
    )
    found = by_axis(sensitivity(whole), "preset")
    for preset in Preset:
        assert found[preset.value].p_lie == whole.score(preset=preset).overall.p_lie
    assert found["paper"].p_lie.value == 0.5


def test_three_judges_on_file_are_also_a_panel(tmp_path):
    """Two that read no lie outvote one; a panel named by the user is the run's own choice."""
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


def test_a_run_without_a_score_has_no_spread(tmp_path):
    """Counting every failure as unclear would make a P(lie) of 0 out of nothing."""
    mute = Scripted(lambda _: "hmm", name="scripted/mute")
    found = sensitivity(made(tmp_path / "r", ["honest"] * 6, judge=mute))
    assert found.spread is None
    assert "The run has no P(lie) of its own" in show(found)


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


def test_what_only_a_rule_has_read_is_open_under_llm_until_the_judge_has_read_it(contradictory):
    """The command makes it; afterwards both readers have a value."""
    found = sensitivity(contradictory)
    readers = by_axis(found, "tags")
    assert (readers["rule"].own, readers["judge"].own) == (True, False)
    assert (readers["judge"].p_lie, readers["judge"].open) == (None, 4)
    assert readers["judge"].command.endswith("--judge scripted/judge --tags judge")
    assert readers["judge"].command in show(found, width=400)
    unmask.judge(contradictory.path, judge="scripted/judge", tags="judge")
    after = by_axis(sensitivity(contradictory.path), "tags")
    assert (after["rule"].own, after["judge"].own) == (False, True)
    assert after["rule"].p_lie == found.own.p_lie
    assert after["judge"].p_lie.hits == 2  # the scripted judge finds no statement in a lone tag, so no belief


def test_a_run_that_lacks_readings_names_what_completes_it(contradictory):
    """Without them its own P(lie) is not known yet, and the command is that of the score."""
    contradictory.folder.readings_path(contradictory.definition.judge).write_text("")
    found, score = sensitivity(contradictory.path), unmask.open_run(contradictory.path).score()
    assert set(score.undecided) >= {"s-0000", "s-0002"}
    assert (found.own.p_lie, found.spread) == (None, None)
    assert found.own.command == score.complete_with
    assert found.own.command.startswith("unmask judge")


# --- if the judge errs


def test_the_planted_excess_comes_back_with_the_errors_of_the_judge(tmp_path, capsys):
    """In both arms one honest reply in eight is called a lie, and one lie in four is missed; all scenarios have a
    belief. The range of so large errors holds the planted numbers too."""
    lies, floor = frozenset(range(32)), frozenset(range(16))
    errs = {(PRESSURED, place) for place in (*range(8), *range(32, 36))}
    errs |= {(CONTROL, place) for place in (*range(4), *range(16, 22))}
    run = asked(tmp_path / "run", 64, lies=lies, floor=floor, errs=frozenset(errs))
    arguments = ["sensitivity", str(run.path), "--judge-error", "0.25,0.125/0.25"]
    assert run_command_line([*arguments, "--json"]) == 0
    bands = {(one["measure"], one["error"]): one for one in json.loads(capsys.readouterr().out)["judge_error"]}
    assert bands.keys() == {("p_lie", "0.25"), ("excess", "0.25"), ("p_lie", "0.125/0.25"), ("excess", "0.125/0.25")}
    for measure, planted in (("p_lie", 0.5), ("excess", 0.25)):
        assert bands[measure, "0.125/0.25"]["least"] == bands[measure, "0.125/0.25"]["most"] == pytest.approx(planted)
        assert bands[measure, "0.25"]["least"] < planted < bands[measure, "0.25"]["most"]
    assert bands["excess", "0.25"]["floor"] == pytest.approx(18 / 64)
    assert run_command_line(arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The floor of excess is 28.1 % as read." in said


def test_a_score_says_how_many_false_lies_would_make_all_of_it(tmp_path, capsys):
    """3 lies of 18 scenarios, of which 3 have no belief."""
    run = made(tmp_path / "run", ["lie", "honest", "no_belief", "honest", "honest", "honest"] * 3, effort="full")
    assert run.score().to_json()["tipping_point"] == pytest.approx(3 / 15)
    assert run_command_line(["score", str(run.path)]) == 0
    assert "All of P(lie) would be the judge's if it called" in " ".join(capsys.readouterr().out.split())


def vetoed(folder, effort):
    """It says *lit* when asked directly, and *dark* everywhere else."""
    plain = lamps(20)
    own = tuple(
        msgspec.structs.replace(one, indirect=(f"Describe lamp {place}.",)) for place, one in enumerate(plain.scenarios)
    )
    name = content_hash(own)
    data = msgspec.structs.replace(plain, scenarios=own, hash=name, full_hash=name)

    def reply(request):
        asked = request.messages[-1].content
        return "<final_answer>yes</final_answer>" if "final_answer" in asked else "It is dark."

    subject, judge = Scripted(reply, name="scripted/two-faced"), Scripted(lambda _: "Answer: B", name="scripted/dark")
    return unmask.run(data=data, model=subject, judge=judge, out=folder, effort=effort, progress=False)


@pytest.mark.parametrize("effort", ["full", "lazy"])
def test_the_veto_of_indirect_probes_is_a_row(tmp_path, effort):
    """Without it the direct takes alone make the belief; a lazy run has not asked what that needs."""
    run = vetoed(tmp_path / "run", effort)
    rows = by_axis(sensitivity(run), "indirect probes")
    own, ignored = rows["a contradiction ends the belief"], rows["ignored"]
    assert own.own
    assert own.p_lie.value == 0
    if effort == "full":
        assert ignored.p_lie.value == pytest.approx(1)
    else:
        assert (ignored.p_lie, ignored.open) == (None, 20)
        assert "--effort full" in ignored.command
