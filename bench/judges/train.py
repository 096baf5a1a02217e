"""Trains the adapter of the judge of `pick` on `training.jsonl` and the tuning half, and writes it for llama.cpp.

    python -m bench.judges.train MODEL.gguf --out DIR [--rank 4] [--rounds 2] [--rate 2.5e-4]

DIR then holds, for every round, the adapter as PEFT writes it and as `adapter.gguf`, which is what ships. A GPU is
needed for a model of a billion parameters: a round over all material takes two minutes there.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from bench.judges.adapter import write_gguf
from bench.judges.labelled import scenarios
from bench.judges.material import Lesson, Picked, apart, item_of, items, lessons
from bench.liar.teach import PROJECTIONS
from unmask.records import Letter, Record
from unmask.whitebox.activations import AnsweredChat, TokenisedConversation, tokenise
from unmask.whitebox.chat import Chat
from unmask.whitebox.load import check_model, load_base_model, parse_source

TOKENS = 16_000
"""Of one batch."""
LONGEST = 3_000
"""Tokens of a lesson; longer ones are left out."""


class How(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The settings, which stand beside the adapter afterwards."""

    rank: int = 4
    alpha: int = 8
    rounds: int = 2
    rate: float = 2.5e-4
    dropout: float = 0.1
    again: int = 2
    """How often a reply of a real model is gone through in a round."""
    smoothing: float = 0.05
    """Of the wanted answer; without it the probabilities of a small model are all near 0 or 1."""
    seed: int = 0


def wrapped(model: Any, how: How) -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=how.rank,
        lora_alpha=how.alpha,
        lora_dropout=how.dropout,
        target_modules=list(PROJECTIONS),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config).train()


def drawn(material: Sequence[Picked], how: How, dice: random.Random) -> list[Lesson]:
    """The lessons of one round: each reply in one of its orders, those of real models in both."""
    found: list[Lesson] = []
    for item in material:
        each = list(lessons(item))
        if item.by == "written":
            found.append(dice.choice(each))
        else:
            found += each[: how.again]
    return found


def batches(held: Sequence[TokenisedConversation], dice: random.Random) -> list[list[TokenisedConversation]]:
    """Lessons of like length together, the batches in any order."""
    order = sorted(held, key=lambda one: (len(one.all), dice.random()))
    found: list[list[TokenisedConversation]] = []
    for one in order:
        if not found or len(one.all) * (len(found[-1]) + 1) > TOKENS or len(found[-1]) >= 32:
            found.append([])
        found[-1].append(one)
    dice.shuffle(found)
    return found


def scored(model: Any, group: Sequence[TokenisedConversation]) -> tuple[Any, Any]:
    """The scores at every place that foretells a token of an answer, and that token."""
    core, head = model.get_base_model().model, model.get_base_model().lm_head
    # One more than a multiple of eight: at widths that are multiples of 64, attention's backward pass gave no numbers.
    width = -(-max(len(one.all) for one in group) // 8) * 8 + 1
    device = next(core.parameters()).device
    ids = torch.zeros(len(group), width, dtype=torch.long)
    mask = torch.zeros(len(group), width, dtype=torch.long)
    rows, at, wanted = [], [], []
    for row, one in enumerate(group):
        ids[row, : len(one.all)] = torch.tensor(one.all)
        mask[row, : len(one.all)] = 1
        for place in one.places:
            rows.append(row)
            at.append(place - 1)
            wanted.append(one.all[place])
    states = core(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False).last_hidden_state
    return head(states[rows, at]).float(), torch.tensor(wanted, device=device)


def held_back(item: Picked) -> bool:
    """Every tenth scenario is not trained on, to see when to stop."""
    return item.scenario is not None and item.scenario.endswith("9")


def train(model: Any, chat: Chat, material: Sequence[Picked], how: How) -> Iterator[tuple[int, float]]:
    """After every round its number and mean loss. The model is left as it is trained then."""
    dice = random.Random(how.seed)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=how.rate, weight_decay=0.01)
    whole = how.rounds * len(batches(held_of(chat, drawn(material, how, random.Random(0))), dice))
    step = 0
    for number in range(1, how.rounds + 1):
        losses: list[float] = []
        model.train()
        for group in batches(held_of(chat, drawn(material, how, dice)), dice):
            step += 1
            for params in optimiser.param_groups:
                params["lr"] = (
                    how.rate
                    * min(1.0, step / 20)
                    * (0.05 + 0.95 * (1 + math.cos(math.pi * min(1.0, step / whole))) / 2)
                )
            logits, target = scored(model, group)
            loss = torch.nn.functional.cross_entropy(logits, target, label_smoothing=how.smoothing)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            size = torch.nn.utils.clip_grad_norm_(weights, 1.0)
            if not (torch.isfinite(loss) and torch.isfinite(size)):
                print(f"step {step}: no number, passed over ({len(group)} of {max(len(one.all) for one in group)})")
                continue
            optimiser.step()
            losses.append(loss.item())
        model.eval()
        yield number, sum(losses) / len(losses)


def held_of(chat: Chat, given: Sequence[Lesson]) -> list[TokenisedConversation]:
    found = [tokenise(chat, AnsweredChat(lesson.messages, lesson.answer)) for lesson in given]
    return [one for one in found if len(one.all) <= LONGEST]


def right(model: Any, chat: Chat, material: Sequence[Picked]) -> dict[str, tuple[int, int]]:
    """How many letters are read as labelled, by who wrote the reply: both orders, logarithms added."""
    from unmask.judges.pick import OPTIONS, ORDERS

    first = [chat.encode(option)[0] for option in OPTIONS]
    total: list[dict[Letter, float]] = [dict.fromkeys(Letter, 0.0) for _ in material]
    held = [(number, order, one) for number, item in enumerate(material) for order, one in _both(chat, item, ORDERS)]
    held.sort(key=lambda one: len(one[2].all))
    with torch.inference_mode():
        for start in range(0, len(held), 16):
            group = held[start : start + 16]
            logits, _ = scored(model, [one for _, _, one in group])
            logs = torch.log_softmax(logits[:, first], dim=-1).tolist()
            for (number, order, _), row in zip(group, logs, strict=True):
                for line, value in zip(order, row, strict=True):
                    total[number][line] += value
    found: dict[str, tuple[int, int]] = {}
    for item, sums in zip(material, total, strict=True):
        good = max(sums, key=lambda line: sums[line]) is item.label
        for name in (item.by, f"label {item.label}", "all"):
            hits, count = found.get(name, (0, 0))
            found[name] = (hits + good, count + 1)
    return found


def _both(chat: Chat, item: Picked, orders: Any) -> Iterator[tuple[tuple[Letter, ...], TokenisedConversation]]:
    for order, lesson in zip(orders.values(), lessons(item), strict=True):
        yield order, tokenise(chat, AnsweredChat(lesson.messages, lesson.answer))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a GGUF file or a model folder")
    parser.add_argument("--out", type=Path, required=True)
    usual = How()  # what the adapter that ships was trained with
    settings = ("rank", "alpha", "rounds", "again", "seed", "rate", "dropout")
    for name in settings:
        parser.add_argument(f"--{name}", type=type(getattr(usual, name)), default=getattr(usual, name))
    parser.add_argument("--limit", type=int, help="train on so many replies only, to see that it works")
    given = parser.parse_args()
    how = How(**{name: getattr(given, name) for name in settings})
    torch.manual_seed(how.seed)
    torch.set_float32_matmul_precision("high")
    checked = check_model(parse_source(given.model))
    chat = Chat(checked.tokenizer, name=given.model)
    known = scenarios()
    _, between = apart()
    every = items()
    material = [item for item in every if not held_back(item)][: given.limit]
    looked_at = {
        "held back": [item for item in every if held_back(item)][: given.limit],
        "between": [found for one in between if (found := item_of(one, known[one.scenario])) is not None][
            : given.limit
        ],
    }
    model = wrapped(load_base_model(checked), how)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    model.peft_config["default"].base_model_name_or_path = Path(given.model).name
    print(f"{len(material)} replies", flush=True)
    begun = time.monotonic()
    for number, loss in train(model, chat, material, how):
        print(f"round {number}: loss {loss:.4f}, {time.monotonic() - begun:.0f} s", flush=True)
        for name, part in looked_at.items():
            print(f"  {name}: {_shown(right(model, chat, part))}", flush=True)
        keep(model, how, given.out / f"round-{number}")


def _shown(found: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {hits}/{count}" for name, (hits, count) in sorted(found.items()))


def keep(model: Any, how: How, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "how.json").write_bytes(msgspec.json.encode(how))
    write_gguf(folder, folder / "adapter.gguf")


if __name__ == "__main__":
    main()
