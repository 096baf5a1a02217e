"""Real vLLM on a CPU, with a tiny model of random weights as subject and judge. By hand: `make test-vllm`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.fleet.trees import alive, await_true
from unmask.data.load import load
from unmask.engine.define import create_or_continue, define_run, judge_spec
from unmask.engine.session import Interruption, Limiters, open_workload, run_session
from unmask.engine.work import JUDGE, SUBJECT
from unmask.errors import UnmaskError
from unmask.fleet.base import Server, ServerSpec
from unmask.fleet.descendants import read_parents
from unmask.fleet.local import LocalFleet
from unmask.fleet.spread import SpreadModel
from unmask.fleet.vllm import make_vllm_spec
from unmask.models.limiter import Limits
from unmask.records import Message, Request, Role, Sampling
from unmask.runs.cost import Purse
from unmask.runs.folder import Folder
from unmask.runs.options import options_from

pytestmark = pytest.mark.vllm


def make_tiny_model(folder: Path) -> None:
    """Two layers of random weights, and a tokenizer that knows every byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["1 2 3 4 yes no"], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
    fast.save_pretrained(folder)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(fast), max_position_embeddings=16384, bos_token_id=0, eos_token_id=1, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)


def tiny_spec(folder: Path) -> ServerSpec:
    """The CPU build has no working command `vllm`: it asks for the metadata of a distribution of that name."""
    return make_vllm_spec(
        "tiny",
        model=str(folder),
        program=(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        args=["--enforce-eager", "--max-model-len", "16384"],
        environment={"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
        gpus=0,
        choices=True,
        ready_within=900.0,
    )


def list_tree(root: int) -> list[int]:
    """The processes below this one."""
    parents = dict(read_parents())
    return [pid for pid in parents if root in list_ancestors(pid, parents)]


def list_ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    above = []
    while pid := parents.get(pid, 0):
        above.append(pid)
    return above


async def run_until_done(folder: Folder, model: SpreadModel) -> None:
    dataset, options = load("tiny"), options_from({"max_tokens": 8, "set": {"judge.max_tokens": 8}})
    definition = create_or_continue(
        folder, define_run(dataset, model, judge_spec(model, options.judge), options), dataset
    )
    models = {SUBJECT: model, JUDGE: model}
    limiters = Limiters(Limits())
    judge = definition.judge or ""
    with open_workload(folder, definition, options, judge_file=judge, models=models) as workload:
        await run_session(workload, limiters=limiters, purse=Purse(None), interruption=Interruption())


def test_real_vllm_is_killed_in_the_middle_comes_back_and_the_run_ends(tmp_path):
    make_tiny_model(tmp_path / "model")
    spec, folder = tiny_spec(tmp_path / "model"), Folder(tmp_path / "run")

    async def story() -> None:
        fleet = LocalFleet([], tmp_path / "logs")
        model = SpreadModel("vllm/tiny", limits=Limits(max_connections=4))
        server: Server = await fleet.place(spec)
        model.add(server)
        question = Request(
            (Message(Role.USER, "Which?"),), sampling=Sampling(temperature=0.0), options=("1", "2", "3", "4")
        )
        choice = (await model.send(model, question)).choices[0]
        assert choice.text in question.options
        assert choice.probabilities is not None
        assert sum(choice.probabilities.values()) == pytest.approx(1.0)
        assert min(choice.probabilities.values()) > 0
        working = asyncio.create_task(run_until_done(folder, model))
        replies = folder.path / "replies.jsonl"
        while not replies.exists() or replies.read_text().count("\n") < 3:  # noqa: ASYNC110  the run writes it
            await asyncio.sleep(0.01)
        ((process, _),) = fleet._running.values()
        tree = list_tree(process.pid)
        api = tree[1]  # below the guardian: the supervisor, then the server
        assert len(tree) >= 3
        os.kill(api, signal.SIGKILL)
        await asyncio.wait_for(server.lost.wait(), 5)
        assert await_true(lambda: not alive(tree)), alive(tree)
        print(f"{len(tree)} processes ended")
        assert model.awaits_server or working.done()
        model.add(await fleet.place(spec))
        try:
            await asyncio.wait_for(working, 600)
        except UnmaskError as error:  # random weights say nothing that can be read
            print(error)
        await model.close()
        await fleet.close()

    asyncio.run(story())
    lines = [json.loads(line) for line in (tmp_path / "run/replies.jsonl").read_text().splitlines()]
    assert lines
    assert not [line for line in lines if line.get("error")]
    assert list((tmp_path / "run/readings").glob("*.jsonl"))
