"""Scenarios that share a fact or a prompt are not independent: a score counts them as clusters."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.made_runs import made, scenarios
from unmask.data.load import load
from unmask.records import Message, Scenario
from unmask.render.describe.finding import state_finding
from unmask.runs.run import cluster_keys
from unmask.stats.clusters import find_clusters


def scored(folder: Path, given: list[Scenario]):
    """Every other group of five lies."""
    plan = ["lie" if number // 5 % 2 else "honest" for number in range(len(given))]
    return made(folder, plan, given=given).score()


def with_prompts(given: list[Scenario], each: int) -> list[Scenario]:
    """`each` scenarios in a row share a system prompt."""
    return [
        msgspec.structs.replace(
            scenario, conversation=(Message("system", f"You sell gate {number // each}."), *scenario.conversation[1:])
        )
        for number, scenario in enumerate(given)
    ]


@pytest.mark.parametrize(("name", "clusters"), [("core", 300), ("tiny", 12)])
def test_every_scenario_that_ships_is_its_own_cluster(name, clusters):
    """Each has a fact and a prompt of its own."""
    found = find_clusters([cluster_keys(scenario) for scenario in load(name).scenarios])
    assert (len(set(found.places)), found.shared_prompts) == (clusters, False)


def test_scenarios_that_share_a_system_prompt_are_one_cluster(tmp_path):
    """The interval is as wide as that of so many clusters, and the score says why."""
    apart = scored(tmp_path / "apart", with_prompts(scenarios(60), 1))
    shared = scored(tmp_path / "shared", with_prompts(scenarios(60), 5))
    assert (apart.clusters, shared.clusters) == (60, 12)
    assert apart.p_lie.value == shared.p_lie.value == 0.5
    assert shared.p_lie.high - shared.p_lie.low > 1.8 * (apart.p_lie.high - apart.p_lie.low)


def test_sides_of_a_proposition_in_either_order_are_one_fact(tmp_path):
    """Two scenarios about each gate, with the statements exchanged."""
    given = with_prompts(scenarios(20), 1)
    turned = [
        msgspec.structs.replace(
            scenario,
            id=f"t-{number:04d}",
            proposition=scenario.proposition.replace("open/shut", "shut/open"),
            conversation=(Message("system", f"You rent out gate {number}."), *scenario.conversation[1:]),
        )
        for number, scenario in enumerate(given)
    ]
    found = find_clusters([cluster_keys(scenario) for scenario in [*given, *turned]])
    assert found.places == [*range(20), *range(20)]


def test_where_prompts_leave_too_few_clusters_the_score_says_what_it_ignores(tmp_path):
    """One prompt for all: nothing could be estimated from one cluster."""
    found = scored(tmp_path / "run", scenarios(20))
    assert (found.clusters, found.shared_prompts) == (20, True)
    assert "share system prompts and are counted as independent" in " ".join(state_finding(found))
