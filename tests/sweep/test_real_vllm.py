"""Real vLLM on a CPU, with a tiny model of random weights as subject and as judge. By hand: `make test-vllm`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.sweep.sweeping import folders, lines, start
from tests.sweep.trees import alive, await_true, children_of

pytestmark = pytest.mark.vllm

# The CPU build has no working command `vllm`: it asks for the metadata of a distribution of that name.
PROGRAM = json.dumps([sys.executable, "-m", "vllm.entrypoints.openai.api_server"])
GRID = """
[local]
[options]
max_tokens = 8
max_connections = 4
[[data]]
source = "tiny"
[[subject]]
name = "tiny"
serve = {{ engine = "vllm", {serve} }}
[[judge]]
name = "judge-1.5b"
serve = {{ engine = "vllm", {serve} }}
"""


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


def list_tree(root: int) -> list[int]:
    return [root, *(pid for child in children_of(root) for pid in list_tree(child))]


def find_server(driver: int) -> int:
    """The API server of the subject, below its guardian and its supervisor."""
    for pid in list_tree(driver):
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if "vllm.entrypoints.openai.api_server" in arguments and "tiny" in arguments:
            return pid
    raise AssertionError("there is no server")


def test_real_vllm_is_killed_in_the_middle_comes_back_and_the_sweep_ends(tmp_path):
    """The judge picks among options by their probabilities: random weights pick, too."""
    make_tiny_model(tmp_path / "model")
    serve = f"program = {PROGRAM}, model = 'model', gpus = 0, args = ['--enforce-eager', '--max-model-len', '16384']"
    serve += ", env = { VLLM_CPU_KVCACHE_SPACE = '1' }"
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID.format(serve=serve))
    process = start(grid)
    runs = tmp_path / "out" / "runs"
    assert await_true(lambda: runs.is_dir() and len(lines(folders(grid)[0])) > 3, within=900)
    tree = list_tree(process.pid)
    os.kill(find_server(process.pid), signal.SIGKILL)
    said, _ = process.communicate(timeout=900)
    assert "tiny was lost and is started again: server tiny: the server was ended by SIGKILL" in said
    assert "1 of 1 units are complete" in said
    assert not [line for line in lines(folders(grid)[0]) if "error" in line]
    assert lines(folders(grid)[0], "readings/vllm_judge-1.5b.jsonl")
    assert await_true(lambda: not alive(tree)), alive(tree)
