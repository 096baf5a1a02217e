"""The gate: which bound decides, what never passes, and the files for build servers."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

import msgspec
import pytest

from tests.made_runs import made, scenarios
from unmask.analysis.gate import DecidingBound, Gate, GateCheck, GateLimits, gate
from unmask.cli.main import run_command_line
from unmask.errors import UsageError
from unmask.models.scripted import Scripted
from unmask.render.terminal.gate import render, render_junit, render_markdown


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
        (0.18, DecidingBound.UPPER, True),
        (0.17, DecidingBound.UPPER, False),
        (0.10, DecidingBound.VALUE, True),
        (0.09, DecidingBound.VALUE, False),
        (0.06, DecidingBound.LOWER, True),
        (0.05, DecidingBound.LOWER, False),
    ],
)
def test_the_chosen_part_of_the_interval_decides(run, limit, on, passed):
    """Upper bound by default, the value or the lower bound where asked."""
    assert gate(run, max_p_lie=limit, on=on).passed is passed


def test_the_upper_bound_is_the_default(run):
    """What is not shown does not pass."""
    assert GateLimits().on is DecidingBound.UPPER
    assert not gate(run, max_p_lie=0.12).passed


def test_a_failure_for_want_of_scenarios_says_so(run):
    """The value keeps the limit, the interval does not."""
    (check,) = (check for check in gate(run, max_p_lie=0.12).checks if not check.passed)
    assert "more scenarios are needed" in check.message
    (check,) = (check for check in gate(run, max_p_lie=0.05).checks if not check.passed)
    assert "more scenarios" not in check.message


@pytest.mark.parametrize(
    ("rise", "on", "passed"),
    [(0.2, DecidingBound.UPPER, True), (0.1, DecidingBound.UPPER, False), (0.02, DecidingBound.LOWER, False)],
)
def test_the_rise_over_a_baseline_is_paired(run, worse, rise, on, passed):
    """Eight of a hundred changed, all one way: 8 points [4.1, 15.0]."""
    found = gate(worse, max_rise=rise, on=on, baseline=run)
    assert found.passed is passed
    assert found.checks[-1].value == pytest.approx(0.08)


def test_a_fall_passes(run, worse):
    """Fewer lies than the baseline are never a rise."""
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


def test_a_baseline_on_other_scenarios_is_an_error(run, tmp_path):
    """Not a gate that is met."""
    other = made(tmp_path / "other", ["honest"] * 3, given=scenarios(3, first=500))
    with pytest.raises(UsageError, match="share no scenario"):
        gate(run, max_rise=0.1, baseline=other)


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
    ],
)
def test_limits_that_make_no_sense_are_named(run, limits, baseline, named):
    """A percentage in place of a share, for one."""
    with pytest.raises(UsageError, match=named):
        gate(run, baseline=run if baseline else None, **limits)


NASTY = Gate(
    run="r|un",
    model="m<script>|`x`\x1b[31m\ufffe",
    baseline=None,
    preset="paper",
    judge="j|<b>",
    on=DecidingBound.UPPER,
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
    text = render_markdown(NASTY)
    row = next(line for line in text.splitlines() if line.startswith("| P(lie)"))
    assert row.replace("\\|", "").count("|") == 4
    assert "[more\\](x)" in row
    assert "m\\<script\\>\\|\\`x\\`" in text


def test_text_says_pass_or_fail_for_each_check(run):
    """One line each."""
    lines = render(gate(run, max_p_lie=0.05)).splitlines()
    assert [line[:4] for line in lines] == ["pass", "pass", "FAIL", "note"]


@pytest.mark.parametrize("shown", [render, render_junit, render_markdown])
def test_every_form_names_the_judge(run, shown):
    assert "scripted_judge" in shown(gate(run, max_p_lie=0.05)).replace("\\", "")


def test_json_says_whether_it_passed(run):
    """First of all."""
    found = gate(run, max_p_lie=0.05).to_json()
    assert next(iter(found.items())) == ("passed", False)
    assert found["judge"] == "scripted_judge"
    assert msgspec.json.decode(msgspec.json.encode(found))["checks"][-1]["limit"] == 0.05


@pytest.mark.parametrize(("limit", "passed"), [(0.3, True), (0.2, False)])
def test_an_archetype_has_a_limit_of_its_own(run, limit, passed):
    """Four lies of 34 in known_facts: 11.8 % [4.7, 26.6]. Other archetypes do not matter."""
    found = gate(run, max_p_lie_in={"known_facts": limit})
    assert found.checks[-1].name == "P(lie) in known_facts"
    assert found.passed is passed


def test_every_limit_must_be_kept(run):
    """One archetype that breaks its own fails the gate, however good the whole is."""
    found = gate(run, max_p_lie=0.5, max_p_lie_in={"known_facts": 0.5, "continuations": 0.01})
    assert [check.name for check in found.checks if not check.passed] == ["P(lie) in continuations"]


def test_an_archetype_that_the_run_does_not_have_keeps_no_limit(run):
    """Nothing was shown about it."""
    assert not gate(run, max_p_lie_in={"statistics": 1.0}).passed


@pytest.mark.parametrize(
    ("limits", "named"),
    [({"statistic": 0.1}, "no archetype 'statistic'"), ({"statistics": 10}, "--max-p-lie-in statistics 10")],
)
def test_limits_of_archetypes_that_make_no_sense_are_named(run, limits, named):
    """A name that is none, and a percentage."""
    with pytest.raises(UsageError, match=named):
        gate(run, max_p_lie_in=limits)


def test_the_flag_takes_archetype_and_share(run, capsys):
    """As in statistics=0.1, once for each."""
    flags = ["--max-p-lie-in", "known_facts=0.5", "--max-p-lie-in", "continuations=0.01"]
    assert run_command_line(["gate", str(run.path), *flags]) == 1
    assert "FAIL  P(lie) in continuations" in capsys.readouterr().out
    assert run_command_line(["gate", str(run.path), "--max-p-lie-in", "statistics"]) == 2
    assert "statistics=0.1" in capsys.readouterr().err
