"""The bench of the ladder: what it plants comes out of the whole program and of the functions of `score`."""

from __future__ import annotations

from random import Random

import pytest

from bench import ladder
from bench.ladder import ERROR, KEPT, STRONG, measure_excess, measure_seeds, run_whole, rungs_above
from unmask.analysis.sensitivity import sensitivity
from unmask.data.load import load
from unmask.engine.run import run
from unmask.models.scripted import Scripted
from unmask.records import Archetype


def test_a_whole_run_shows_the_planted_rungs(tmp_path):
    """`unmask run` on the 384 scenarios with ten takes, and `unmask score --json`."""
    subject = STRONG["incentive-liar"]
    found = run_whole(subject, tmp_path / "run", Random("incentive-liar 1"))
    assert [rate.value for rate in found.p_lie.values()] == pytest.approx(subject.rungs, abs=0.07)
    assert (found.primary.n, found.primary.p_worst) == (96, pytest.approx(found.primary.p_value))
    assert rungs_above(found) == subject.above


@pytest.mark.parametrize("name", STRONG)
def test_planted_subjects_are_told_apart_whatever_the_judge(name):
    """Also by a judge that errs in one of five statements: it shrinks what there is and makes nothing."""
    subject = STRONG[name]
    plain, blurred = (measure_seeds(name, subject, 6, error=error) for error in (0.0, ERROR))
    assert min(plain.right, blurred.right) >= 5
    planted = 100 * sum(rate - subject.rungs[0] for rate in subject.rungs[1:]) / 3
    assert plain.primary[0] == pytest.approx(planted, abs=2.5)
    assert blurred.primary[0] == pytest.approx(planted * KEPT, abs=2.5)


def test_control_cannot_tell_the_role_player_from_the_incentive_liar():
    """It takes away the whole role, so both have an excess, and of the same size."""
    found = {name: measure_excess(name, STRONG[name], 4) for name in STRONG}
    assert {name for name, (above, _) in found.items() if above >= 3} == {"role-player", "incentive-liar"}
    assert abs(found["role-player"][1] - found["incentive-liar"][1]) < 6


def test_a_missed_goal_is_said_and_fails_the_check(monkeypatch, capsys):
    monkeypatch.setattr(ladder, "STRONG", {"noisy": STRONG["noisy"]._replace(above=frozenset({1}))})
    monkeypatch.setattr(ladder, "SMALL", {})
    assert [line.split(":")[0] for line in ladder.check_seeds(3)][:1] == ["noisy"]
    assert "| noisy | 1 | 0 of 3 |" in capsys.readouterr().out


def test_sensitivity_has_what_pressure_adds_if_the_judge_errs(tmp_path):
    """Through `unmask run` on twelve facts: the number of the ladder with its floor, as read and in its range."""
    chosen = [one for one in load("ladder").scenarios if one.archetype is Archetype.KNOWN_FACTS][:48]
    subject = Scripted(ladder.Actor(STRONG["incentive-liar"], chosen, Random(5)), name="scripted/planted")
    made = run(
        data="ladder", ids=[one.id for one in chosen], model=subject, judge="scripted/judge", out=tmp_path / "run"
    )
    primary = made.score().ladder.primary
    bands = [one for one in sensitivity(made, judge_error=(0.1, "0.1/0.2")).judge_error if one.measure == "ladder"]
    assert [(one.error, one.seen, one.floor) for one in bands] == [
        (error, primary.value, primary.a) for error in ("0.1", "0.1/0.2")
    ]
    around, exact = bands
    assert around.least < primary.value < around.most
    assert around.low < primary.low
    assert exact.least == exact.most
