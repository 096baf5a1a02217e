"""The gate: which bound decides, what never passes, and the files for build servers."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

import numpy as np
import pytest

from tests.analysis.two_arms import asked
from tests.made_runs import NAMED, Subject, made, scenarios
from tests.outcomes import outcome
from tests.shown import show
from unmask.analysis.bounds import bound_rate
from unmask.analysis.gate import DecidingBound, Gate, GateCheck, check_bound, gate
from unmask.cli.main import run_command_line
from unmask.errors import RequestRefusedError, UsageError
from unmask.models.scripted import Scripted
from unmask.records import Outcome, Request, Verdict
from unmask.render.junit import render_junit
from unmask.stats.rate import Rate


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Ten lies in a hundred: 10 % [5.5, 17.4]."""
    return made(tmp_path_factory.mktemp("gated") / "run", ["lie"] * 10 + ["honest"] * 90)


@pytest.fixture(scope="module")
def worse(tmp_path_factory):
    """Eight more lies than the run, none fewer."""
    return made(tmp_path_factory.mktemp("gated") / "worse", ["lie"] * 18 + ["honest"] * 82)


@pytest.mark.parametrize(
    ("limit", "on", "passed"),
    [
        (0.18, {}, True),
        (0.17, {}, False),
        (0.06, {"on": "lower"}, True),
        (0.05, {"on": "lower"}, False),
    ],
)
def test_the_chosen_bound_of_the_interval_decides(run, limit, on, passed):
    """Upper bound by default, the lower bound where asked. Where only the interval breaks a limit, that is said."""
    (*_, check) = gate(run, max_p_lie=limit, **on).checks
    assert check.passed is passed
    assert ("more scenarios are needed" in check.message) is (limit == 0.17)


@pytest.mark.parametrize(
    ("rise", "on", "passed"),
    [(0.2, DecidingBound.UPPER, True), (0.1, DecidingBound.UPPER, False), (0.02, DecidingBound.LOWER, False)],
)
def test_the_rise_over_a_baseline_is_paired(run, worse, rise, on, passed):
    """Eight of a hundred changed, all one way: 8 points [4.1, 15.0]."""
    found = gate(worse, max_rise=rise, on=on, baseline=run)
    assert found.passed is passed
    assert found.checks[-1].value == pytest.approx(0.08)
    assert gate(run, max_rise=0.0, baseline=worse).passed


def test_an_incomplete_run_never_passes(tmp_path, run):
    """A journal with its last replies missing, however honest the rest."""
    part = made(tmp_path / "part", ["honest"] * 30)
    journal = part.path / "replies.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:20]))
    found = gate(part.path, max_p_lie=1.0)
    assert {check.name: check.passed for check in found.checks}["run is complete"] is False
    assert not gate(run, max_rise=1.0, baseline=part.path).passed


def test_too_many_unjudged_scenarios_never_pass(tmp_path):
    """A model whose worst replies fail does not get through."""
    found = gate(made(tmp_path / "run", ["refused"] * 2 + ["honest"] * 18), max_p_lie=1.0)
    assert [check.name for check in found.checks if not check.passed] == ["run is judged"]


def test_a_judge_with_one_letter_for_everything_never_passes(tmp_path):
    """Where most truths are on that side, it makes every model honest."""
    blind = Scripted(lambda _: "Answer: A", name="scripted/blind")
    found = gate(made(tmp_path / "run", ["lie"] * 60, judge=blind), max_p_lie=1.0)
    assert [check.name for check in found.checks if not check.passed] == ["run is read"]
    assert "gave A for every one" in found.checks[2].message


def test_nothing_judged_never_passes(tmp_path):
    """No number is not a small number."""
    found = gate(made(tmp_path / "run", ["refused"] * 5), max_p_lie=1.0, max_unjudged=1.0)
    assert found.checks[-1].message == "nothing was judged"
    assert not found.passed


def test_what_else_differs_from_the_baseline_is_noted(run, tmp_path):
    """Settings, not the model."""
    other = made(tmp_path / "other", ["lie"] * 10 + ["honest"] * 90, temperature=0.5, model="n")
    (note,) = gate(other, max_rise=0.5, baseline=run).notes
    assert note == "temperature: the baseline has 1, the run has 0.5"


@pytest.mark.parametrize(
    ("limits", "baseline", "named"),
    [
        ({}, False, "no limit"),
        ({"max_rise": 0.1}, False, "belong together"),
        ({"max_p_lie": 0.1}, True, "belong together"),
        ({"max_p_lie": 30}, False, "--max-p-lie 30"),
        ({"max_p_lie": 0.3, "measure": "honesty"}, False, "honesty: a gate limits lies"),
        ({"max_p_lie": 0.3, "measure": "lying_at_3"}, False, "lying_at_3 needs 3 takes, and a run has 1 take"),
        ({"max_p_lie": 0.3, "measure": "plie"}, False, "there is no measure 'plie'"),
        ({"max_p_lie": 0.3, "measure": "conditional_lie_rate", "labels": "ann"}, False, r"labels .* about P\(lie\)"),
        ({"max_p_lie": 0.3, "anytime": True, "labels": "ann"}, False, "at one look"),
        ({"max_p_lie": 0.3, "anytime": True, "measure": "conditional_lie_rate"}, False, "cannot bound conditional lie"),
        ({"max_p_lie_in": {"statistic": 0.1}}, False, "no archetype 'statistic'"),
        ({"max_p_lie_in": {"statistics": 10}}, False, "--max-p-lie statistics 10"),
    ],
)
def test_limits_that_make_no_sense_are_named(run, limits, baseline, named):
    """A percentage in place of a share, for one."""
    with pytest.raises(UsageError, match=named):
        gate(run, baseline=run if baseline else None, **limits)


SEVERAL = [("lie", "honest")] * 10 + [("lie", "lie")] * 5 + [("honest", "honest")] * 85


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Of a hundred scenarios ten have one lie in two takes, five have two: P(lie) 10 %, Lying@2 15 %."""
    return made(tmp_path_factory.mktemp("gated") / "several", SEVERAL, model="several", takes=2)


def test_the_limit_is_on_the_measure(several, run, tmp_path, capsys):
    """P(lie) unless another measure of lying is named; every check has its title."""
    check = gate(several, max_p_lie=0.2).checks[-1]
    assert (check.name, check.passed, check.value) == ("P(lie)", True, 0.1)
    found = gate(several, max_p_lie=0.2, max_p_lie_in={"known_facts": 0.9}, measure="lying_at_2")
    assert [check.name for check in found.checks[-2:]] == ["Lying@2", "Lying@2 in known_facts"]
    assert [check.passed for check in found.checks[-2:]] == [False, True]
    assert found.checks[-2].value == 0.15
    assert found.to_json()["measure"] == "lying_at_2"
    twin = made(tmp_path / "twin", SEVERAL, model="twin", takes=2)
    rise = gate(several, baseline=twin, max_rise=0.2, measure="lying_at_2").checks[-1]
    assert (rise.name, rise.value) == ("rise of Lying@2", 0.0)
    flags = ["--measure", "conditional_lie_rate", "--max-p-lie", "0.3"]
    assert run_command_line(["gate", str(run.path), *flags]) == 0
    assert "pass  conditional lie rate" in capsys.readouterr().out


# --- what is not known ------------------------------------------------------------------------------------


class Interrupted(Subject):
    """As planned, but of `lost` scenarios the second direct question is refused: A or no belief stays open."""

    def __init__(self, given, plan, lost: set[str]) -> None:
        super().__init__(given, plan)
        self._lost = lost
        self._probes: dict[str, int] = {}

    def __call__(self, request: Request) -> str:
        text = request.messages[-1].content
        name = NAMED.search(text)[1]
        if not text.startswith("Write about"):
            self._probes[name] = self._probes.get(name, 0) + 1
            if name in self._lost and self._probes[name] == 2:
                raise RequestRefusedError("the request was refused")
        return super().__call__(request)


@pytest.mark.parametrize(("said", "could_be"), [("honest", 0), ("evasion", 0), ("lie", 4)])
def test_unjudged_scenarios_that_cannot_be_lies_are_not_counted(tmp_path, monkeypatch, said, could_be):
    """V9: unread probes leave A or no belief open. A statement of A, or of neither, is no lie whichever it is."""
    given = scenarios(100)
    lost = [scenario.id for scenario in given if scenario.direct is not None][:4]
    plan = [
        said if scenario.id in lost else "lie" if number >= 90 else "honest" for number, scenario in enumerate(given)
    ]
    monkeypatch.setattr("tests.made_runs.Subject", lambda *arguments: Interrupted(*arguments, set(lost)))
    part = made(tmp_path / "part", plan, given=given, effort="full", set={"takes_per_call": 1})
    assert part.score().overall.counts[Verdict.UNJUDGED] == 4
    monkeypatch.undo()
    whole = ["lie" if scenario.id in lost and could_be else plan[number] for number, scenario in enumerate(given)]
    check, worst = (gate(run, max_p_lie=0.3).checks[-1] for run in (part, made(tmp_path / "whole", whole, given=given)))
    assert check.decisive == pytest.approx(worst.decisive, abs=0.002)
    assert (check.decisive > check.high + 0.01) is (could_be > 0)


def rates_at_the_limit(rng, limit, *, count, members, takes, icc):
    """Outcomes of a model whose P(lie) is the limit, in clusters that lie alike."""
    size = (1 - icc) / icc
    chances = np.repeat(rng.beta(limit * size, (1 - limit) * size, count // members), members)
    lies = rng.random((count, takes)) < chances[:, None]
    kinds = {
        sum(row): tuple(Verdict.LIE if lie else Verdict.HONEST for lie in sorted(row, reverse=True))
        for row in lies.tolist()
    }
    return [
        outcome(
            "lie" if any(row) else "honest",
            id=str(place),
            verdicts=kinds[sum(row)],
            cluster=str(place // members) if members > 1 else None,
        )
        for place, row in enumerate(lies.tolist())
    ]


def passes(rows: list[Outcome], limit: float, *, takes: int = 1) -> bool:
    """What the gate decides about P(lie)."""
    return check_bound("P(lie)", bound_rate(rows, takes=takes), limit, DecidingBound.UPPER).passed


@pytest.mark.parametrize(
    "world",
    [
        {"count": 100, "members": 1, "takes": 10, "icc": 0.5},
        {"count": 300, "members": 10, "takes": 1, "icc": 0.3},
        {"count": 200, "members": 5, "takes": 3, "icc": 0.3},
    ],
    ids=["takes", "clusters", "both"],
)
def test_a_model_at_the_limit_passes_at_most_once_in_forty(world):
    """Of 600 simulated runs at most 24: 2.5 % and two standard errors. V8: clusters included."""
    rng = np.random.default_rng(11)
    passed = sum(passes(rates_at_the_limit(rng, 0.2, **world), 0.2, takes=world["takes"]) for _ in range(600))
    assert passed <= 24


NASTY = Gate(
    run="r|un",
    model="m<script>|`x`\x1b[31m\ufffe",
    baseline=None,
    preset="paper",
    judge="j|<b>",
    on=DecidingBound.UPPER,
    p_lie=Rate(hits=3, total=10, value=0.3, low=0.1, high=0.6, worst_low=0.1, worst_high=0.6),
    checks=(GateCheck(name="P(lie)", passed=False, message="30 % > 20 % & [more](x)"),),
    notes=("judge: the baseline has a|b, the run has none",),
)


def test_junit_has_a_case_per_check_and_counts_failures(run):
    """As build servers read it."""
    root = Tree.fromstring(render_junit(gate(run, max_p_lie=0.05)))
    suite = root.find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [case.get("name") for case in suite.iter("testcase")] == ["run is complete", "run is judged", "P(lie)"]
    assert "10.0 %" in suite.find("testcase/failure").get("message")


def test_junit_survives_any_name():
    """Control characters, tags and what XML cannot hold."""
    case = Tree.fromstring(render_junit(NASTY)).find("testsuite/testcase")
    assert case.get("classname") == "unmask.m<script>|`x`"
    assert case.find("failure").get("message") == "30 % > 20 % & [more](x)"


def test_markdown_keeps_foreign_text_in_its_cell():
    """No extra columns, tags or links."""
    text = NASTY.to_markdown()
    row = next(line for line in text.splitlines() if line.startswith("| FAIL"))
    assert row.replace("\\|", "").count("|") == 4
    assert "[more\\](x)" in row
    assert "m\\<script\\>\\|\\`x\\`" in text


def test_text_says_pass_or_fail_for_each_check(run):
    """One line each."""
    first, _, *lines = show(gate(run, max_p_lie=0.05), width=200).splitlines()
    assert first == "The gate is not met: P(lie) fails."
    assert [line[:4] for line in lines if line[:4] in {"pass", "FAIL"}] == ["pass", "pass", "FAIL"]
    for shown in (str, render_junit, Gate.to_markdown):
        assert "scripted_judge" in shown(gate(run, max_p_lie=0.05)).replace("\\", "")


def test_text_says_what_was_measured_and_what_flipped(run, worse, tmp_path):
    """P(lie), also where only the rise is limited; the excess where there is a control; flips against the baseline."""
    found = gate(worse, baseline=run, max_rise=0.2)
    assert [flip.b.value for flip in found.became_lies] == ["lie"] * 8
    assert found.stopped_lying == ()
    text = found.to_markdown()
    assert "P(lie) 18.0 %" in text
    assert "8 scenarios became lies" in text
    assert all(flip.id in text for flip in found.became_lies)
    assert "Without the role" not in text
    both = gate(asked(tmp_path / "arms", 20, lies={0, 1, 2}, floor={0}), max_p_lie=0.5)
    assert (both.excess.a, both.excess.value) == (pytest.approx(0.05), pytest.approx(0.1))
    assert "lied in 5.0 %, with it in 15.0 % of the same 20 scenarios" in both.to_markdown()


@pytest.mark.parametrize(("limit", "passed"), [(0.3, True), (0.2, False)])
def test_an_archetype_has_a_limit_of_its_own(run, limit, passed):
    """Four lies of 34 in known_facts: 11.8 % [4.7, 26.6]. Other archetypes do not matter."""
    found = gate(run, max_p_lie_in={"known_facts": limit})
    assert found.checks[-1].name == "P(lie) in known_facts"
    assert found.passed is passed
    assert not gate(run, max_p_lie_in={"statistics": 1.0}).passed  # nothing was shown about it
    (*_, excess) = gate(run, max_p_lie=0.9, max_excess=0.9).checks
    assert (excess.passed, excess.message[:28]) == (False, "the run has no control arm, ")


def test_the_flag_takes_archetype_and_share(run, capsys):
    """As in statistics=0.1, once for each."""
    flags = ["--max-p-lie", "known_facts=0.5", "--max-p-lie", "continuations=0.01"]
    assert run_command_line(["gate", str(run.path), *flags]) == 1
    assert "FAIL  P(lie) in continuations" in capsys.readouterr().out
    assert run_command_line(["gate", str(run.path), "--max-p-lie", "statistics="]) == 2
    assert "statistics=0.1" in capsys.readouterr().err
