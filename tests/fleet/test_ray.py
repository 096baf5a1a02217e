"""Servers on a Ray cluster of two nodes, both on this machine. `make test-fleet` runs it: it needs the extra ray."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.trees import alive, await_true, read_pids, vllm_like
from unmask.errors import UsageError
from unmask.fleet.base import NoRoom, ServerFailed
from unmask.fleet.ray import RayFleet
from unmask.fleet.spread import SpreadModel
from unmask.records import Message, Request, Role

pytestmark = pytest.mark.fleet

ASK = Request((Message(Role.USER, "hello"),))


@pytest.fixture
def cluster(monkeypatch) -> Iterator[object]:
    """A head with one GPU that is only a number, and tokens on."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # Ray reads it when it is imported
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "240")  # a busy machine takes more than Ray's 30
    ray = pytest.importorskip("ray", reason="needs the extra ray: make test-fleet")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "num_gpus": 1, "labels": {"pool": "small"}, "include_dashboard": False},
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_servers_have_a_node_each_and_a_lost_node_is_a_lost_server(cluster, tmp_path):
    async def story() -> None:
        node = cluster.add_node(num_cpus=1, num_gpus=2, labels={"pool": "large"})
        fleet = RayFleet(cluster.address, folder=tmp_path / "logs")
        assert fleet.room() == {"gpus": 3.0}
        pids = [tmp_path / "pids-a", tmp_path / "pids-b"]
        stays = await fleet.place(vllm_like("a", "--workers", pids[0], gpus=1, labels={"pool": "small"}))
        goes = await fleet.place(vllm_like("a", "--workers", pids[1], gpus=2, labels={"pool": "large"}))
        assert stays.key != goes.key
        with pytest.raises(UsageError, match="needs 3 GPUs on one machine, and the largest has 2"):
            await fleet.place(vllm_like("c", gpus=3))
        with pytest.raises(NoRoom, match="needs 1 GPUs, and 0 are free"):
            await fleet.place(vllm_like("c", gpus=1))
        model = SpreadModel("vllm/a", expected=2)
        model.add(stays)
        model.add(goes)
        answers = [asyncio.create_task(model.send(model, ASK)) for _ in range(20)]
        cluster.remove_node(node, allow_graceful=False)
        await asyncio.wait_for(goes.lost.wait(), 30)
        assert "its machine or its Ray worker is gone" in (goes.reason or "")
        assert await_true(lambda: not alive(read_pids(pids[1]))), alive(read_pids(pids[1]))
        assert len(await asyncio.gather(*answers)) == 20
        assert (await model.send(model, ASK)).choices
        assert not stays.lost.is_set()
        await model.close()
        await fleet.close()
        assert await_true(lambda: not alive(read_pids(pids[0])))

    asyncio.run(story())


def test_a_server_or_a_worker_that_is_killed_is_lost_and_leaves_nothing(cluster, tmp_path):
    async def story() -> None:
        fleet = RayFleet(cluster.address, folder=tmp_path / "logs")
        with pytest.raises(ServerFailed, match="CUDA out of memory"):
            await fleet.place(vllm_like("a", "--fault", "out-of-memory", gpus=1))
        pids = tmp_path / "pids"
        server = await fleet.place(vllm_like("a", "--workers", pids))
        os.kill(read_pids(pids)[0], signal.SIGKILL)
        await asyncio.wait_for(server.lost.wait(), 10)
        assert "ended by SIGKILL" in (server.reason or "")
        assert await_true(lambda: not alive(read_pids(pids)))
        pids = tmp_path / "pids-2"
        server = await fleet.place(vllm_like("a", "--workers", pids))
        os.kill(find_worker(read_pids(pids)[0]), signal.SIGKILL)
        assert await_true(lambda: not alive(read_pids(pids))), alive(read_pids(pids))
        await asyncio.wait_for(server.lost.wait(), 10)
        await fleet.close()

    asyncio.run(story())


def test_room_counts_what_is_being_placed_and_what_was_dropped_at_once(cluster, tmp_path):
    """Ray itself says both a little later, and a sweep would place too much or find no room for what is left."""

    async def story() -> None:
        fleet = RayFleet(cluster.address, folder=tmp_path / "logs")
        first = asyncio.create_task(fleet.place(vllm_like("a", gpus=1)))
        await asyncio.sleep(0)
        with pytest.raises(NoRoom, match="needs 1 GPUs, and 0 are free"):
            await asyncio.wait_for(fleet.place(vllm_like("b", gpus=1)), 30)
        await fleet.drop(await first)
        assert fleet.room() == {"gpus": 1.0}
        await fleet.close()

    asyncio.run(story())


def find_worker(pid: int) -> int:
    """The Ray worker above a server: server, supervisor, guardian, worker."""
    for _ in range(3):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def test_nothing_is_left_when_the_driver_is_killed(cluster, tmp_path):
    pids = tmp_path / "pids"
    spec = vllm_like("a", "--workers", pids)
    program = f"""
        import asyncio
        from unmask.fleet.base import ServerSpec
        from unmask.fleet.ray import RayFleet

        async def main():
            fleet = RayFleet({cluster.address!r})
            await fleet.place(ServerSpec(name="a", command={spec.command!r}))
            print("placed", flush=True)
            await asyncio.sleep(600)

        asyncio.run(main())
    """
    driver = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "placed\n"
    assert alive(read_pids(pids)) == read_pids(pids)
    driver.kill()
    driver.wait()
    driver.stdout.close()
    assert await_true(lambda: not alive(read_pids(pids))), alive(read_pids(pids))


def test_without_an_address_a_local_ray_with_a_token_is_started(tmp_path):
    """In a process of its own: Ray reads its variables once, when it is imported."""
    pids = tmp_path / "pids"
    spec = vllm_like("a", "--workers", pids)
    program = f"""
        import asyncio, os
        from unmask.fleet.base import ServerSpec
        from unmask.fleet.ray import RayFleet

        async def main():
            fleet = RayFleet(None, gpus=2)
            server = await fleet.place(ServerSpec(name="a", command={spec.command!r}, gpus=2))
            print(os.environ["RAY_AUTH_MODE"], fleet.room()["gpus"], server.base_url[:7])
            await fleet.close()

        asyncio.run(main())
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**environment, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "token 0.0 http://"
    assert await_true(lambda: not alive(read_pids(pids)))
    assert (tmp_path / ".ray/auth_token").exists()


def test_an_address_without_ray_is_refused(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    pytest.importorskip("ray", reason="needs the extra ray: make test-fleet")
    with pytest.raises(UsageError, match=r"no Ray at 127.0.0.1:9"):
        RayFleet("127.0.0.1:9")
