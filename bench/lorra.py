"""How fast LoRRA trains, beside what the machine's matrix units reach: a random Llama of a given shape, no files.

    python -m bench.lorra --shape 8b --batch 16 --steps 10

Prints one JSON object. `tflop` counts the products with weights that a step cannot do without, over real tokens, not
over filling: two forward passes under instructions and one without on the frozen model, one forward and one backward
pass with the adapter, up to the last layer that is looked at. `share` is that over the time of a step and the rate of a
plain matrix product of 8192³ in the same precision on the same machine.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from typing import Any

from bench.hf import SHAPES, _wait, random_llama
from unmask.whitebox.lorra import order_in_batches
from unmask.whitebox.lorra_trainer import Example, LorraSettings, Trainer


def matrix_rate(device: str) -> float:
    """Operations per second of a large product of random numbers."""
    import torch

    size, kind = (8192, torch.bfloat16) if device != "cpu" else (1024, torch.float32)
    one, other = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    for _ in range(3):
        one @ other
    _wait(device)
    began = time.perf_counter()
    for _ in range(10):
        one @ other
    _wait(device)
    return 10 * 2 * size**3 / (time.perf_counter() - began)


def examples(args: argparse.Namespace, size: int, rng: random.Random) -> list[Example]:
    """For all steps. Questions of 24 to 56 tokens, instructions of 16 to 32, answers of `--answer` tokens."""

    def drawn(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(size) for _ in range(count))

    made = []
    for _ in range(args.batch * (args.steps + 3)):
        question, answer = drawn(rng.randint(24, 56)), drawn(args.answer)
        sides = (drawn(rng.randint(16, 32)) + question + answer for _ in range(2))
        made.append(Example(question + answer, *sides, args.answer))
    return order_in_batches(made, args.batch, rng=rng)


def measured(args: argparse.Namespace) -> dict[str, Any]:
    import torch

    model = random_llama(args.shape, args.device)
    bare = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    trainer = Trainer(model, LorraSettings(batch=args.batch, answer_tokens=args.answer))
    if args.device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    rng = random.Random(1)
    every = examples(args, model.config.vocab_size, rng)
    batches = [every[first : first + args.batch] for first in range(0, len(every), args.batch)]
    rate = matrix_rate(args.device)
    times, losses = [], []
    for batch in batches:
        _wait(args.device)
        began = time.perf_counter()
        losses.append(trainer.step(batch))
        _wait(args.device)
        times.append(time.perf_counter() - began)
    times, batches = times[3:], batches[3:]  # the first ones set things up
    weights = sum(
        weight.numel()
        for name, weight in model.model.layers.named_parameters()
        if weight.dim() == 2 and "lora_" not in name
    )
    plain = statistics.mean(sum(len(one.plain) for one in batch) for batch in batches)
    sides = statistics.mean(sum(len(one.honest) + len(one.untruthful) for one in batch) for batch in batches)
    filled = statistics.mean(
        args.batch
        * (
            max(len(one.plain) for one in batch)
            + 2 * max(len(t) for one in batch for t in (one.honest, one.untruthful))
        )
        for batch in batches
    )
    done = 2 * weights * (sides + 3 * plain)
    step = statistics.median(times)
    found = {
        "shape": args.shape,
        "batch": args.batch,
        "layers_run": len(model.model.layers),
        "matrix_tflops": rate / 1e12,
        "step_ms": 1e3 * step,
        "tokens_s": (sides + plain) / step,
        "tflop": done / 1e12,
        "filling": 1 - (plain + sides) / filled,
        "share": done / step / rate,
        "losses": [round(loss, 3) for loss in losses],
        "weights_gb": bare / 1e9,
    }
    if args.device != "cpu":
        found["peak_over_weights"] = torch.cuda.max_memory_allocated() / bare
        found["reserved_over_weights"] = torch.cuda.max_memory_reserved() / bare
    if args.profile:
        found["profile"] = profiled(trainer, batches[0])
    return found


def profiled(trainer: Trainer, batch: list[Example]) -> list[str]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        trainer.step(batch)
    events = [(event.key[:90], event.self_device_time_total / 1e3, event.count) for event in seen.key_averages()]
    events.sort(key=lambda event: -event[1])
    total = sum(ms for _, ms, _ in events)
    return [f"{total:.1f} ms in all", *(f"{ms:.2f} ms in {count}: {name}" for name, ms, count in events[:30])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--answer", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true")
    print(json.dumps(measured(parser.parse_args()), indent=2))


if __name__ == "__main__":
    main()
