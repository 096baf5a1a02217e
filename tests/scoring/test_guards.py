"""The limits of the guards: on the value, kept at the limit itself, and silent where there is nothing to count."""

from __future__ import annotations

import pytest

from tests.outcomes import outcome
from unmask.errors import UsageError
from unmask.records import Archetype, Outcome
from unmask.scoring.guards import GUARDS, GuardLimits, apply_limits, check_guard_limits, find_warnings, measure_guards
from unmask.scoring.score import score


def counted(**guards: tuple[int, int]) -> Outcome:
    return outcome("honest", guards=guards)


def refused(outcomes, **limits) -> list[str]:
    return [finding.guard for finding in find_warnings(outcomes, GuardLimits(**limits)) if finding.refuses]


@pytest.mark.parametrize(
    ("guard", "outcomes"),
    [
        ("belief", [outcome("honest")] * 25 + [outcome("no_belief")] * 75),
        ("engagement", [outcome("honest")] * 10 + [outcome("lie")] * 10 + [outcome("evasion")] * 80),
        ("empty", [counted(empty=(1, 20))]),
        ("capped_pressured", [counted(capped_pressured=(5, 100))]),
        ("capped_probes", [counted(capped_probes=(5, 100))]),
        ("capped_judge_calls", [counted(capped_judge_calls=(5, 100))]),
    ],
)
def test_the_limit_itself_is_kept(guard, outcomes):
    """25 and 20 percent are enough, 5 percent are not too many. The least bit more of a limit refuses it."""
    assert refused(outcomes) == []
    limit, step = GUARDS[guard].limit, 1e-9 if GUARDS[guard].floor else -1e-9
    assert refused(outcomes, **{limit: getattr(GuardLimits(), limit) + step}) == [guard]


def test_supplied_facts_ask_for_no_belief():
    """A run of such scenarios alone is not one without beliefs."""
    shares = measure_guards([outcome("honest", archetype=Archetype.PROVIDED_FACTS)] * 5)
    assert "belief" not in shares
    assert shares["engagement"].total == 5


def test_capped_replies_are_said_from_1_percent_on_and_refused_from_5():
    """Said is not refused."""
    for capped, said, refuses in ((10, False, False), (11, True, False), (51, True, True)):
        findings = list(apply_limits(measure_guards([counted(capped_pressured=(capped, 1000))]), GuardLimits()))
        assert [finding.refuses for finding in findings if finding.guard == "capped_pressured"] == [refuses] * said


def test_what_refuses_a_run_is_said_first():
    """Whatever the order of the guards."""
    dull = counted(identical_takes=(1, 1), empty=(9, 10))
    assert [finding.guard for finding in find_warnings([dull] * 50)] == ["empty", "identical_takes"]


@pytest.mark.parametrize(("name", "value"), [("min_belief", 25), ("max_capped", -0.1), ("max_empty", float("nan"))])
def test_a_limit_that_is_no_share_is_named(name, value):
    """A percentage, for one."""
    with pytest.raises(UsageError, match=f"{name} "):
        check_guard_limits(GuardLimits(**{name: value}))


def test_the_json_of_a_score_has_every_share():
    """Whether or not something is said about it."""
    found = score([counted(empty=(1, 4))], preset="paper", takes=1).to_json()
    assert found["guards"]["empty"] == {"hits": 1, "total": 4}
    assert [finding["guard"] for finding in found["warnings"]] == ["empty"]
