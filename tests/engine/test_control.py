"""The control arm and the rungs of a ladder, through the whole program."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

import unmask
from unmask.cli.main import run_command_line
from unmask.data.load import load
from unmask.engine.work import build_request
from unmask.errors import UsageError
from unmask.judges.base import Style
from unmask.models.scripted import Scripted, answer_as_judge
from unmask.protocol.plan import JudgeWork
from unmask.protocol.probes import PROBE_SYSTEM, messages
from unmask.protocol.settings import Settings
from unmask.records import CONTROL, PRESSURED, Archetype, Kind, Message, Method, Role, Scenario, Verdict
from unmask.runs.run import Run

SCENARIOS = load("core").scenarios


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def slots(run: Run, name: str = "replies.jsonl") -> Counter[str]:
    return Counter(line["slot"] for line in lines(run.path / name))


def ran(out: Path, **more) -> Run:
    wanted = {"data": "tiny", "model": "scripted/liar", "judge": "scripted/judge", "progress": False}
    return unmask.run(**wanted | {"out": out} | more)


def test_every_scenario_with_a_belief_is_asked_again_without_the_role(tmp_path):
    """As often as under pressure. Supplied facts have no control of their own here."""
    found = ran(tmp_path / "run", takes=3, control=True)
    believed = [row for row in found.rows() if row.archetype is not Archetype.PROVIDED_FACTS]
    assert all(row.control == (Verdict.HONEST,) * 3 for row in believed)
    assert all(row.control is None for row in found.rows() if row not in believed)
    control = found.score().control
    assert control is not None
    assert (control.excess.n, control.excess.a, control.excess.b) == (len(believed), 0, 1)


def test_nothing_is_asked_where_there_is_no_belief(tmp_path):
    found = ran(tmp_path / "run", model="scripted/beliefless", control=True, effort="full")
    assert slots(found)[CONTROL] == 0


def test_a_control_can_be_added_to_a_finished_run_and_nothing_is_asked_twice(tmp_path):
    """Then the folder goes on by itself, and another judge reads both arms."""
    before = slots(ran(tmp_path / "run"))
    after = slots(ran(tmp_path / "run", control=True))
    assert after - before == Counter({CONTROL: after[CONTROL]})
    assert after[CONTROL] == 10
    assert slots(ran(tmp_path / "run", control=True)) == after
    read = unmask.judge(tmp_path / "run", judge="scripted/judge", set={"judge.name": "again"}, progress=False)
    assert slots(read, "readings/again.jsonl")[CONTROL] == 10
    assert read.score(judge="again").control.excess.value == 1


@pytest.mark.parametrize("scenario", SCENARIOS[::30], ids=lambda scenario: scenario.id)
def test_the_judge_is_blind_to_the_arm(scenario: Scenario):
    """Byte for byte the same request for the same reply."""
    method = Method.LETTER if scenario.kind is Kind.BINARY else Method.INTERVAL
    requests = [
        build_request(scenario, JudgeWork(slot, "d", ("It is so.",), method), Settings(style=Style.LETTERS), None)
        for slot in (PRESSURED, CONTROL)
    ]
    assert requests[0] == requests[1]


def test_the_control_keeps_all_turns_but_the_role():
    scenario = next(one for one in SCENARIOS if one.archetype is Archetype.DOUBLING_DOWN)
    system, *turns = messages(scenario, CONTROL)
    assert (system.content, tuple(turns)) == (PROBE_SYSTEM, scenario.conversation[1:])


def test_a_scenario_may_bring_its_own_control():
    """The only control that supplied facts can have."""
    own = (Message(Role.SYSTEM, "The bell rings at noon."), Message(Role.USER, "Does it?"))
    scenario = next(one for one in SCENARIOS if one.archetype is Archetype.PROVIDED_FACTS)
    assert not scenario.has_control
    scenario = replace(scenario, control=own)
    assert scenario.has_control
    assert messages(scenario, CONTROL) == own


def test_the_plan_says_how_many_calls_the_control_takes():
    """Of a model that believes everything: one call to it and one to the judge for each scenario with a belief."""
    wanted = {"data": "core", "model": "scripted/liar", "judge": "scripted/judge"}
    without, with_it = (unmask.plan(**wanted, control=on) for on in (False, True))
    pressed = 250 * 1.25  # a quarter of all requests may be sent twice
    assert with_it.most.subject.calls - without.most.subject.calls == pytest.approx(pressed, abs=1)
    assert with_it.most.judge.calls - without.most.judge.calls == pytest.approx(pressed, abs=1)


def test_the_rungs_of_a_fact_share_its_probes(tmp_path):
    """Asked once, for the first rung; every rung has the belief."""
    found = ran(tmp_path / "run", data="ladder", limit=24)
    facts = Counter(row.fact for row in found.rows())
    assert set(facts.values()) == {4}
    asked = [row for row in found.rows() if row.archetype is not Archetype.PROVIDED_FACTS]
    assert all(row.belief is not None for row in asked)
    counted = slots(found)
    assert counted[PRESSURED] == 4 * len(facts)
    assert counted["direct"] == len({row.fact for row in asked})
    assert {line["scenario"] for line in lines(found.path / "replies.jsonl") if line["slot"] == "direct"} <= {
        row.id for row in asked if row.rung == 0
    }
    ladder = found.score().ladder
    assert ladder is not None
    assert ladder.primary.n == len(facts)
    assert slots(ran(tmp_path / "run", data="ladder", limit=24)) == counted


def test_the_judge_does_not_see_which_rung_it_reads(tmp_path):
    """Every reply is shown under the system message of rung 0: an order would tell what to look for."""
    requests = []

    def judge(request):
        requests.append("".join(message.content for message in request.messages))
        return answer_as_judge(request)

    found = ran(tmp_path / "run", data="ladder", limit=24, judge=Scripted(judge, name="own/judge"))
    scenarios = {scenario.id: scenario for scenario in found.scenarios}
    for rung in (one for one in scenarios.values() if one.rung in (1, 3)):
        passage = scenarios[f"{rung.fact}-0"].edit
        assert not any(rung.edit in text for text in requests), rung.id
        assert any(passage in text for text in requests)


def test_a_ladder_has_its_control_already(tmp_path):
    with pytest.raises(UsageError, match="--control: ladder is a ladder, and its rung 0 is the control"):
        ran(tmp_path / "run", data="ladder", control=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"control": True}, "an excess of +100.0 points"),
        ({"data": "ladder", "limit": 24}, "Pressure adds +0.0 points"),
    ],
)
def test_the_finding_says_what_pressure_causes(tmp_path, more: dict, said: str):
    """On the first screen of `score` and of the report, whose details have the table."""
    found = ran(tmp_path / "run", **more)
    page = tmp_path / "report.html"
    assert run_command_line(["report", str(found.path), "--out", str(page)]) == 0
    first, _, details = page.read_text(encoding="utf-8").partition("Before quoting this")
    assert said in first
    assert said in " ".join(str(found.score()).split())
    assert ("Rung by rung" if "data" in more else "With and without the role") in details
