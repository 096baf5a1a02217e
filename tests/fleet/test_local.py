"""The fleet of this machine: GPUs by index, loss and drop, and a whole run over two servers of which one is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.fleet.trees import alive, read_pids, vllm_like
from tests.patience import PATIENCE
from unmask.data.load import load
from unmask.engine.define import create_or_continue, define_run, judge_spec
from unmask.engine.session import Interruption, Limiters, open_workload, run_session
from unmask.engine.work import JUDGE, SUBJECT
from unmask.errors import UsageError
from unmask.fleet.base import NoRoom, Server, ServerFailed
from unmask.fleet.local import LocalFleet
from unmask.fleet.spread import SpreadModel
from unmask.fleet.vllm import make_vllm_spec
from unmask.models.keys import KEY_VARIABLE
from unmask.models.limiter import Limits
from unmask.models.providers import PROVIDERS
from unmask.models.scripted import Scripted, answer_as_judge
from unmask.runs.cost import Purse
from unmask.runs.folder import Folder
from unmask.runs.options import Options

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")


def test_gpus_are_handed_out_by_index_and_come_back(tmp_path):
    async def story() -> None:
        fleet = LocalFleet([2, 5, 7], tmp_path)
        pids = [tmp_path / "pids-a", tmp_path / "pids-b"]
        first = await fleet.place(vllm_like("a", "--workers", pids[0], gpus=2))
        second = await fleet.place(vllm_like("b", "--workers", pids[1], gpus=1))
        try:
            assert [visible_gpus(read_pids(file)[0]) for file in pids] == ["2,5", "7"]
            assert fleet.room() == {"gpus": 0.0}
            with pytest.raises(NoRoom, match="needs 1 GPUs, and 0 are free"):
                await fleet.place(vllm_like("c", gpus=1))
            with pytest.raises(UsageError, match="needs 4 GPUs, and this fleet has 3"):
                await fleet.place(vllm_like("c", gpus=4))
            await fleet.drop(first)
            await fleet.drop(first)
            assert not first.lost.is_set()
            assert fleet.room() == {"gpus": 2.0}
            assert alive(read_pids(pids[0])) == []
        finally:
            await fleet.close()
        assert fleet.room() == {"gpus": 3.0}
        assert alive(read_pids(pids[1])) == []
        assert first.key != second.key

    asyncio.run(story())


def test_a_server_does_not_report_its_use_to_the_makers_of_vllm(tmp_path, monkeypatch):
    """The README promises that nothing else is sent anywhere. Whoever sets the variable decides."""

    async def see_environment(name: str) -> str | None:
        fleet = LocalFleet([], tmp_path)
        server = await fleet.place(vllm_like(name, "--workers", tmp_path / name))
        try:
            return read_environment(read_pids(tmp_path / name)[0]).get("VLLM_NO_USAGE_STATS")
        finally:
            await fleet.drop(server)
            await fleet.close()

    monkeypatch.delenv("VLLM_NO_USAGE_STATS", raising=False)
    assert asyncio.run(see_environment("a")) == "1"
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    assert asyncio.run(see_environment("b")) == "0"


def test_a_server_inherits_no_key_of_a_provider(tmp_path, monkeypatch):
    """It has the token for weights, also that of `.env`, a key of its own, and what its row of the grid gives it."""
    keys = {*KEY_VARIABLE.values(), *(key for row in PROVIDERS.values() for key in row.keys), "COHERE_API_KEY"}
    for name in keys:
        monkeypatch.setenv(name, "sk-of-the-driver")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("HF_TOKEN=hf_of_dotenv\nOPENAI_API_KEY=sk-of-dotenv\n")

    async def see_environment() -> tuple[str, dict[str, str]]:
        fleet = LocalFleet([], tmp_path)
        spec = vllm_like("a", "--workers", tmp_path / "pids", environment={"GROQ_API_KEY": "of-the-grid"})
        server = await fleet.place(spec)
        try:
            return server.key, read_environment(read_pids(tmp_path / "pids")[0])
        finally:
            await fleet.drop(server)
            await fleet.close()

    own, seen = asyncio.run(see_environment())
    assert not [name for name, value in seen.items() if "sk-of" in value]
    assert (seen["VLLM_API_KEY"], seen["HF_TOKEN"], seen["GROQ_API_KEY"]) == (own, "hf_of_dotenv", "of-the-grid")


def visible_gpus(pid: int) -> str:
    return read_environment(pid)["CUDA_VISIBLE_DEVICES"]


def read_environment(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.partition("=")[::2] for entry in entries if entry)


def test_a_server_that_was_killed_is_lost_with_its_log_and_its_gpu_is_free(tmp_path):
    async def story() -> None:
        fleet = LocalFleet([0], tmp_path)
        pids = tmp_path / "pids"
        server = await fleet.place(vllm_like("a", "--workers", pids, gpus=1))
        os.kill(read_pids(pids)[0], signal.SIGKILL)
        await asyncio.wait_for(server.lost.wait(), PATIENCE)
        assert "server a: the server was ended by SIGKILL" in (server.reason or "")
        assert "listening soon" in (server.reason or "")
        await fleet.drop(server)
        await fleet.close()
        assert alive(read_pids(pids)) == []
        assert fleet.room() == {"gpus": 1.0}

    asyncio.run(story())


def test_a_server_that_fails_gives_its_gpu_back_at_once(tmp_path):
    async def story() -> None:
        fleet = LocalFleet([0], tmp_path)
        with pytest.raises(ServerFailed, match="out of memory"):
            await fleet.place(vllm_like("a", "--fault", "out-of-memory", gpus=1))
        assert fleet.room() == {"gpus": 1.0}

    asyncio.run(story())


def test_a_server_nobody_waits_for_any_more_is_ended(tmp_path):
    async def story() -> None:
        fleet = LocalFleet([0], tmp_path)
        pids = tmp_path / "pids"
        waiting = asyncio.create_task(fleet.place(vllm_like("a", "--fault", "never-ready", "--workers", pids, gpus=1)))
        while not pids.exists():  # noqa: ASYNC110  another process writes it
            await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await fleet.close()
        assert alive(read_pids(pids)) == []
        assert fleet.room() == {"gpus": 1.0}

    asyncio.run(story())


async def run_over(folder: Folder, model: SpreadModel) -> None:
    """A run of the spread model, read by a scripted judge."""
    dataset, options = load("tiny"), Options(takes=4)
    judge = Scripted(answer_as_judge, name="scripted/judge")
    definition = create_or_continue(
        folder, define_run(dataset, model, judge_spec(judge, options.judge), options), dataset
    )
    models = {SUBJECT: model, JUDGE: judge}
    limiters = Limiters(Limits())
    limiters.assign(model, model.endpoint, model.limits)
    try:
        with open_workload(folder, definition, options, judge_file="scripted_judge", models=models) as workload:
            await run_session(workload, limiters=limiters, purse=Purse(None), interruption=Interruption())
    finally:
        await limiters.close()


def test_a_run_over_two_servers_loses_nothing_when_both_are_killed_and_one_comes_back(tmp_path):
    async def story() -> None:
        fleet = LocalFleet([], tmp_path)
        model = SpreadModel("openai/tiny", expected=2, limits=Limits(max_connections=2))
        files = [tmp_path / "pids-1", tmp_path / "pids-2", tmp_path / "pids-3"]
        switch, journal = tmp_path / "switch", tmp_path / "run/replies.jsonl"
        specs = [vllm_like("tiny", "--workers", file, "--switch", switch, "--latency", 0.05) for file in files]
        servers: list[Server] = list(await asyncio.gather(*map(fleet.place, specs[:2])))
        for server in servers:
            model.add(server)
        working = asyncio.create_task(run_over(Folder(tmp_path / "run"), model))
        while not journal.exists() or journal.read_text().count("\n") < 5:  # noqa: ASYNC110  others write it
            await asyncio.sleep(0.01)
        switch.write_text("hang")  # whatever is under way when the servers die is not answered
        for number in (0, 1):
            os.kill(read_pids(files[number])[0], signal.SIGKILL)
            await asyncio.wait_for(servers[number].lost.wait(), PATIENCE)
        await asyncio.sleep(0.05)
        switch.unlink()
        assert model.awaits_server
        assert not working.done()
        model.give_up("one is not started again")
        model.add(await fleet.place(specs[2]))
        await asyncio.wait_for(working, PATIENCE)
        await model.close()
        await fleet.close()
        assert alive([pid for file in files for pid in read_pids(file)]) == []

    asyncio.run(story())
    disturbed = [json.loads(line) for line in (tmp_path / "run/replies.jsonl").read_text().splitlines()]
    assert disturbed
    assert not [line for line in disturbed if line.get("error")]
    keys = [json.dumps([line.get("scenario"), line.get("slot"), line.get("take")]) for line in disturbed]
    assert len(set(keys)) == len(keys)


def test_vllm_gets_its_address_its_name_and_its_adapters_and_no_key():
    spec = make_vllm_spec(
        "base", model="/models/base", tensor_parallel=2, args=["--max-model-len", "8192"], lora={"a": "/adapters/a"}
    )
    assert spec.gpus == 2
    assert spec.command == (
        *("vllm", "serve", "/models/base", "--host", "{host}", "--port", "{port}", "--served-model-name", "{name}"),
        *("--tensor-parallel-size", "2", "--distributed-executor-backend", "mp"),
        *("--enable-lora", "--lora-modules", "a=/adapters/a", "--max-model-len", "8192"),
    )
    module = make_vllm_spec("x", model="/m", program=("python", "-m", "vllm.entrypoints.openai.api_server"), gpus=0)
    assert module.command[:5] == ("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/m")
    assert module.gpus == 0


@pytest.mark.parametrize("argument", ["--api-key", "--port=80", "--lora-modules"])
def test_vllm_arguments_that_are_ours_are_refused(argument):
    with pytest.raises(UsageError, match=f"{argument.partition('=')[0]} cannot be an argument of server x"):
        make_vllm_spec("x", model="/m", args=[argument, "1"])
