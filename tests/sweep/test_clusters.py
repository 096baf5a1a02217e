"""`unmask sweep` over a Ray cluster of two nodes, both on this machine. `make test-fleet` runs it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.process import Served, serving
from tests.sweep.sweeping import SCENARIOS, folders, lines, row, start, sweep, write_grid
from tests.sweep.test_driver import PLANTED, verdicts
from tests.sweep.test_faults import IN_FLIGHT, assert_nothing_is_left, count_excess, disturb, lives, relayed
from tests.sweep.trees import await_true

pytestmark = pytest.mark.fleet


@pytest.fixture
def slow_endpoint() -> Iterator[Served]:
    """Slower still: a Ray node takes its time to be gone."""
    with serving(scenarios=SCENARIOS, latency=0.3, profile="steady") as served:
        yield served


@pytest.fixture
def slowest() -> Iterator[Served]:
    """So slow that three servers are up before the first unit ends."""
    with serving(scenarios=SCENARIOS, latency=1.0, profile="steady") as served:
        yield served


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Any]:
    """A head with one GPU that is only a number, and tokens on."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # Ray reads it when it is imported
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "240")  # a busy machine takes more than Ray's 30
    ray = pytest.importorskip("ray", reason="needs the extra ray: make test-fleet")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "num_gpus": 1, "labels": {"pool": "head"}, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def over_ray(cluster: Any) -> str:
    return f'[ray]\naddress = "{cluster.address}"'


def list_ancestors(pid: int) -> list[int]:
    above = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        above.append(pid)
    return above


def is_apart(spans: list[tuple[float, float]]) -> bool:
    """Whether none of these began before another had ended."""
    return all(later > ended for (_, ended), (later, _) in zip(sorted(spans), sorted(spans)[1:], strict=False))


def times(folder: Path) -> tuple[float, float]:
    at = [line["at"] for line in lines(folder)]
    return min(at), max(at)


def test_a_node_that_is_removed_in_the_middle_of_a_sweep_costs_no_verdict(tmp_path, slow_endpoint, cluster):
    """Both subjects have a node. One is removed; its subject waits for the other's GPU, and both are complete."""
    node = cluster.add_node(num_cpus=1, num_gpus=1)
    rows = [relayed("subject", name, slow_endpoint, tmp_path) for name in "ab"]
    grid = write_grid(tmp_path, *rows, row("judge", "judge", slow_endpoint), sweep=over_ray(cluster))

    def remove() -> None:
        assert await_true(lambda: all(lives(tmp_path, name) for name in "ab"), within=30)
        cluster.remove_node(node, allow_graceful=False)

    said = disturb(grid, slow_endpoint, remove, after=30)
    assert "2 of 2 units are complete" in said, said
    assert "its machine or its Ray worker is gone" in said
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED, PLANTED]
    assert count_excess(grid, slow_endpoint) <= IN_FLIGHT


def test_a_judge_that_loses_its_node_comes_before_the_subjects_that_wait_for_it(tmp_path, slowest, cluster):
    """Three servers on three nodes with one GPU each, `a` on the head; the judge's node is removed."""
    nodes = [cluster.add_node(num_cpus=1, num_gpus=1) for _ in range(2)]
    rows = [relayed("subject", "a", slowest, tmp_path, more='gpus = 1, labels = { pool = "head" }')]
    rows += [relayed("subject", "b", slowest, tmp_path)]
    judge = relayed("judge", "judge", slowest, tmp_path, more='gpus = 1, labels = { pool = "!head" }')
    grid = write_grid(tmp_path, *rows, judge, sweep=over_ray(cluster), matrix="seed = [1, 2]")

    def remove() -> None:
        assert await_true(lambda: all(lives(tmp_path, name) for name in ("a", "b", "judge")), within=60)
        above = list_ancestors(lives(tmp_path, "judge")[0])
        (node,) = (node for node in nodes if node.all_processes["raylet"][0].process.pid in above)
        cluster.remove_node(node, allow_graceful=False)

    said = disturb(grid, slowest, remove, after=20)
    assert "4 of 4 units are complete" in said, said
    assert "judge was lost and is started again where there is room" in said, said
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED] * 4
    assert count_excess(grid, slowest, "openai_judge") <= 3 * IN_FLIGHT


@pytest.mark.parametrize("keeps", [True, False])
def test_a_judge_and_subjects_that_exceed_the_gpus_take_turns(tmp_path, endpoint, cluster, keeps):
    """Two GPUs for a judge and three subjects. Kept, the judge is started once; else it comes and goes with each."""
    cluster.add_node(num_cpus=1, num_gpus=1)
    rows = [relayed("subject", name, endpoint, tmp_path) for name in "abc"]
    judge = relayed("judge", "judge", endpoint, tmp_path, more=f"gpus = 1, keep = {str(keeps).lower()}")
    grid = write_grid(tmp_path, *rows, judge, sweep=over_ray(cluster), matrix="seed = [1, 2]")
    done = sweep(grid)
    assert "6 of 6 units are complete" in done.stdout, done.stdout + done.stderr
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED] * 6
    assert len(lives(tmp_path, "judge")) == (1 if keeps else 3)
    both = [[times(folder) for folder in folders(grid) if folder.name.startswith(f"{name}-")] for name in "abc"]
    assert is_apart([(min(begun for begun, _ in spans), max(ended for _, ended in spans)) for spans in both])
    assert_nothing_is_left(tmp_path)


def test_a_server_that_is_killed_is_started_again_on_its_node(tmp_path, slow_endpoint, cluster):
    rows = relayed("subject", "a", slow_endpoint, tmp_path), row("judge", "judge", slow_endpoint)
    grid = write_grid(tmp_path, *rows, sweep=over_ray(cluster))
    said = disturb(grid, slow_endpoint, lambda: os.kill(lives(tmp_path, "a")[0], signal.SIGKILL), after=20)
    assert "1 of 1 units are complete" in said, said
    assert "a was lost and is started again: server a: the server was ended by SIGKILL" in said
    assert "the end of its log: relaying" in said
    assert verdicts(folders(grid)[0]) == PLANTED
    assert count_excess(grid, slow_endpoint) <= IN_FLIGHT


def test_a_driver_that_is_killed_leaves_no_server_and_buys_nothing_twice(tmp_path, slow_endpoint, cluster):
    """Actors and placement groups end with it: the next driver finds the GPUs free."""
    cluster.add_node(num_cpus=1, num_gpus=1)
    rows = (relayed(kind, name, slow_endpoint, tmp_path) for kind, name in (("subject", "a"), ("judge", "judge")))
    grid = write_grid(tmp_path, *rows, sweep=over_ray(cluster))
    process = start(grid)
    try:
        assert await_true(lambda: sum(slow_endpoint.stats()["answered"].values()) >= 30)
    finally:
        process.kill()
        process.communicate()
    assert_nothing_is_left(tmp_path)
    done = sweep(grid)
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(folders(grid)[0]) == PLANTED
    assert 0 <= count_excess(grid, slow_endpoint) <= 2 * IN_FLIGHT
    assert_nothing_is_left(tmp_path)


def test_what_no_node_could_hold_is_refused_before_anything_starts(tmp_path, endpoint, cluster):
    """A node with two GPUs, and one with a label: none has both."""
    cluster.add_node(num_cpus=1, num_gpus=2)
    rows = relayed("subject", "wide", endpoint, tmp_path, more='gpus = 2, labels = { pool = "head" }')
    grid = write_grid(tmp_path, rows, row("judge", "judge", endpoint), sweep=over_ray(cluster))
    done = sweep(grid)
    assert done.returncode == 2
    assert "needed at the same time: wide (2 GPUs with pool=head)" in done.stderr
    assert endpoint.stats()["calls"] == {"subject": 0, "judge": 0}


def test_an_address_without_ray_is_refused(tmp_path, endpoint, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    rows = relayed("subject", "a", endpoint, tmp_path), row("judge", "judge", endpoint)
    done = sweep(write_grid(tmp_path, *rows, sweep='[ray]\naddress = "127.0.0.1:9"'))
    assert done.returncode == 2
    assert "no Ray at 127.0.0.1:9" in done.stderr
