"""How fast `hf:` writes, next to what the machine's memory allows: a random Llama of a given shape, no files needed.

    python -m bench.hf --shape 8b --rows 64 --prompt 256 --tokens 256

Prints one JSON object, with an entry for each way a step can be done: transformers' pass kernel by kernel (`plain`),
and the same pass as a recorded graph (`recorded`, which `hf:` does on a GPU). `bound_ms` is the time a step would take
if reading weights, keys and values once were all there is to it, at the bandwidth that a plain copy reaches on the same
machine; `share` is that over the measured time.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

SHAPES: dict[str, dict[str, int]] = {
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 512,
    },
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    },
}


def random_llama(shape: str, device: str) -> Any:
    """Weights are drawn on the device itself: an 8B model made in main memory first would take minutes."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(0)
    config = LlamaConfig(**SHAPES[shape], max_position_embeddings=8192, tie_word_embeddings=False)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    with torch.device(device):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            return AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
        finally:
            torch.set_default_dtype(before)


def bandwidth(device: str) -> float:
    """Bytes per second that a copy reads and writes."""
    import torch

    source = torch.zeros(2**30 if device != "cpu" else 2**26, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(5):
        _wait(device)
        began = time.perf_counter()
        target.copy_(source)
        _wait(device)
        best = min(best, time.perf_counter() - began)
    return 2 * source.numel() / best


def written(model: Any, args: argparse.Namespace, *, way: str) -> dict[str, Any]:
    """Seconds for all rows from first to last token, prompts not counted."""
    import random

    from unmask.models.local.hf import _choose_room
    from unmask.whitebox.forward import CudaRecorder
    from unmask.whitebox.generate import AnswerRow, Manner, Writer

    rng = random.Random(1)
    size = model.config.vocab_size
    prompts = [[rng.randrange(size) for _ in range(args.prompt)] for _ in range(args.rows)]
    writer = Writer(model, stops=(), room=_choose_room(model), recorder=None if way == "plain" else CudaRecorder())
    found: dict[str, Any] = {"seconds": float("inf"), "reading_s": float("inf")}

    def begin() -> None:
        rows = [AnswerRow(prompt, Manner(args.tokens, temperature=args.temperature)) for prompt in prompts]
        writer.add(rows)
        began = time.perf_counter()
        writer.step()
        _wait(args.device)
        found["reading_s"] = min(found["reading_s"], time.perf_counter() - began)

    for _ in range(2):  # the first round makes the recordings
        begin()
        began = time.perf_counter()
        while writer.busy:
            writer.step()
        _wait(args.device)
        found["seconds"] = min(found["seconds"], time.perf_counter() - began)
    found |= {"recorded": writer.recording, "difference": writer._stepper.difference}
    found["refusal"] = writer._stepper.refusal
    writer.clear()
    return found


def _wait(device: str) -> None:
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def measured(args: argparse.Namespace) -> dict[str, Any]:
    import torch

    model = random_llama(args.shape, args.device)
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    embedding = model.get_input_embeddings().weight
    speed = bandwidth(args.device)
    token = 2 * model.config.num_hidden_layers * model.config.num_key_value_heads * model.config.head_dim
    kept = token * model.dtype.itemsize * args.rows * (args.prompt + args.tokens / 2)
    bound = (weights - embedding.numel() * embedding.element_size() + kept) / speed
    found: dict[str, Any] = {
        "shape": args.shape,
        "rows": args.rows,
        "weights_gb": weights / 1e9,
        "copy_gb_s": speed / 1e9,
    }
    found["bound_ms"] = 1e3 * bound
    for way in args.ways.split(",") if args.device != "cpu" else ("plain",):
        if args.device != "cpu":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        one = written(model, args, way=way)
        step = one["seconds"] / (args.tokens - 1)
        row = {"recorded": one["recorded"], "step_ms": 1e3 * step, "tokens_s": args.rows / step, "share": bound / step}
        row |= {key: one[key] for key in ("reading_s", "difference", "refusal") if key in one}
        if args.device != "cpu":
            row["peak_over_weights"] = torch.cuda.max_memory_allocated() / weights
            row["reserved_over_weights"] = torch.cuda.max_memory_reserved() / weights
        found[way] = row
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ways", default="plain,recorded")
    print(json.dumps(measured(parser.parse_args()), indent=2))


if __name__ == "__main__":
    main()
