"""The servers of a sweep on this machine: their GPUs by index, their environment, and that they are ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.sweep.trees import alive, read_pids, vllm_like
from unmask.errors import MissingError
from unmask.models.keys import KEY_VARIABLE
from unmask.models.providers import PROVIDERS
from unmask.sweep.servers.base import Machine, ServerSpec, fit
from unmask.sweep.servers.local import LocalPool
from unmask.sweep.servers.ray import RayPool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")


def in_room(pool: LocalPool, *specs: ServerSpec, look: Callable[[], Awaitable[None]] | None = None) -> None:
    """Start these servers together, look at them, and end them."""

    async def story() -> None:
        room = await pool.reserve(specs)
        try:
            addresses = [await room.start(number) for number in range(len(specs))]
            assert len({address.key for address in addresses}) == len(specs)
            if look is not None:
                await look()
        finally:
            await room.close()

    asyncio.run(story())


def read_environment(file: Path) -> dict[str, str]:
    """That of the server which has written its processes into this file."""
    entries = Path(f"/proc/{read_pids(file)[0]}/environ").read_bytes().decode().split("\0")
    return dict(entry.partition("=")[::2] for entry in entries if entry)


def see_environment(folder: Path, name: str = "pids", **settings: object) -> dict[str, str]:
    seen: dict[str, str] = {}

    async def look() -> None:
        seen.update(read_environment(folder / name))

    in_room(LocalPool([], folder), vllm_like("a", "--workers", folder / name, **settings), look=look)
    return seen


def test_gpus_are_handed_out_by_index_and_come_back_with_the_last_process(tmp_path):
    pool, pids = LocalPool([2, 5, 7], tmp_path), [tmp_path / "pids-a", tmp_path / "pids-b"]
    specs = [vllm_like(name, "--workers", file, gpus=gpus) for name, file, gpus in zip("ab", pids, (2, 1), strict=True)]

    async def look() -> None:
        assert [read_environment(file)["CUDA_VISIBLE_DEVICES"] for file in pids] == ["2,5", "7"]
        assert pool.free == []
        waiting = asyncio.ensure_future(pool.reserve([vllm_like("c", gpus=1)]))
        assert not (await asyncio.wait({waiting}, timeout=0.1))[0]
        waiting.cancel()

    in_room(pool, *specs, look=look)
    assert sorted(pool.free) == [2, 5, 7]
    assert alive(pid for file in pids for pid in read_pids(file)) == []


def test_a_server_does_not_report_its_use_to_the_makers_of_vllm(tmp_path, monkeypatch):
    """The README promises that nothing else is sent anywhere. Who sets the variable decides."""
    monkeypatch.delenv("VLLM_NO_USAGE_STATS", raising=False)
    assert see_environment(tmp_path, "a")["VLLM_NO_USAGE_STATS"] == "1"
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    assert see_environment(tmp_path, "b")["VLLM_NO_USAGE_STATS"] == "0"


def test_a_server_inherits_no_key_of_a_provider(tmp_path, monkeypatch):
    """It has the token for weights, also that of `.env`, a key of its own, and what its row of the grid gives it."""
    keys = {*KEY_VARIABLE.values(), *(key for row in PROVIDERS.values() for key in row.keys), "COHERE_API_KEY"}
    for name in keys:
        monkeypatch.setenv(name, "sk-of-the-driver")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("HF_TOKEN=hf_of_dotenv\nOPENAI_API_KEY=sk-of-dotenv\n")
    seen = see_environment(tmp_path, environment={"GROQ_API_KEY": "of-the-grid"})
    assert not [name for name, value in seen.items() if "sk-of" in value]
    assert (seen["HF_TOKEN"], seen["GROQ_API_KEY"]) == ("hf_of_dotenv", "of-the-grid")
    assert seen["VLLM_API_KEY"] == seen["UNMASK_SERVER_KEY"]


@pytest.mark.parametrize(
    ("needs", "machines", "fits"),
    [
        ([1], [0], False),
        ([2, 2], [4], True),
        ([2, 3], [4, 2], True),
        ([3, 3], [4, 2], False),  # six GPUs, and no machine for the second
        ([4, 2, 2], [4, 4], True),
        ([0, 0], [0], True),
    ],
)
def test_servers_fit_where_each_has_its_gpus_on_one_machine(needs, machines, fits):
    specs = [ServerSpec(name="s", command=(), gpus=gpus) for gpus in needs]
    assert fit(specs, [Machine(gpus) for gpus in machines]) is fits


@pytest.mark.parametrize(
    ("label", "gpus", "fits"),
    [("large", 1, True), ("large", 2, False), ("none", 1, False), ("in(large, small)", 8, True)],
)
def test_labels_choose_machines_and_only_ray_knows_what_its_operators_mean(label, gpus, fits):
    spec = ServerSpec(name="s", command=(), gpus=gpus, labels={"pool": label})
    assert fit([spec], [Machine(8, {"pool": "small"}), Machine(1, {"pool": "large"})]) is fits


@pytest.mark.parametrize(("version", "is_started"), [("2.9.3", False), ("2.51.2", False), ("2.52.0", True)])
def test_a_ray_that_cannot_ask_for_a_token_is_refused_before_it_is_started(monkeypatch, version, is_started):
    """It would run the code of everybody who reaches its ports. A stand-in says which version it is."""
    started: list[str] = []
    for name in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        monkeypatch.setenv(name, "kept")
    ray = SimpleNamespace(__version__=version, init=lambda *, address, **_: started.append(address))
    monkeypatch.setitem(sys.modules, "ray", ray)
    if is_started:
        RayPool()
    else:
        with pytest.raises(MissingError, match=r"needs Ray 2\.52 or later"):
            RayPool()
    assert started == ["local"] * is_started
