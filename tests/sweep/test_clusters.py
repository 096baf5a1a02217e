"""`unmask sweep` over a Ray cluster of two nodes. `make test-fleet` runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.process import Served, serving
from tests.fleet.trees import await_true
from tests.sweep.sweeping import SCENARIOS, folders, lines, row, sweep, write_grid
from tests.sweep.test_driver import PLANTED, verdicts
from tests.sweep.test_faults import IN_FLIGHT, count_excess, disturb, lives, relayed

pytestmark = pytest.mark.fleet


@pytest.fixture
def slow_endpoint() -> Iterator[Served]:
    """Slower still: a Ray node takes its time to be gone."""
    with serving(scenarios=SCENARIOS, latency=0.3, profile="steady") as served:
        yield served


@pytest.fixture
def cluster(monkeypatch) -> Iterator[object]:
    """A head with one GPU that is only a number, and tokens on."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # Ray reads it when it is imported
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "240")  # a busy machine takes more than Ray's 30
    ray = pytest.importorskip("ray", reason="needs the extra ray: make test-fleet")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "num_gpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def over_ray(cluster) -> str:
    return f'fleet = "ray"\n[fleet]\naddress = "{cluster.address}"'


def test_a_sweep_over_two_ray_nodes_survives_the_removal_of_one(tmp_path, slow_endpoint, cluster):
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


def test_servers_take_turns_on_the_only_gpu_of_a_ray_cluster(tmp_path, endpoint, cluster):
    """Ray notices late that an actor has taken a GPU, or given it back."""
    rows = [relayed("subject", name, endpoint, tmp_path) for name in "abc"]
    grid = write_grid(tmp_path, *rows, row("judge", "judge", endpoint), sweep=over_ray(cluster))
    done = sweep(grid)
    assert "3 of 3 units are complete" in done.stdout, done.stdout + done.stderr
    asked = [[line["at"] for line in lines(folder)] for folder in folders(grid)]
    begun, ended = [min(at) for at in asked], [max(at) for at in asked]
    assert sorted(begun)[1] > sorted(ended)[0]
    assert sorted(begun)[2] > sorted(ended)[1]
