"""Teaches a local model answers: a low-rank adapter on its upper layers, trained on the tokens of each answer."""

from __future__ import annotations

import json
import math
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from unmask.errors import FatalModelError, MixedRunError, UsageError
from unmask.models.local.hf import PREFIX
from unmask.models.local.inside import open_whitebox
from unmask.records import Record
from unmask.whitebox.activations import (
    TokenisedConversation,
    find_stack,
    layers_of,
    refuse_missing_layers,
    tokenise,
)
from unmask.whitebox.contrast import AnsweredChat

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Teaching(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How an adapter is trained. `layers` counts from the top, 0 is all. `enough` ends it: the mean loss of a token."""

    rank: int = 16
    layers: int = 10
    rate: float = 2e-3
    rounds: int = 40
    batch: int = 8
    enough: float = 0.001
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rank", "rounds", "batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}", advice=f"--{name} 1 or more")


class Round(Record, frozen=True):
    """One pass over all lessons: the mean loss of a token, and the share of tokens that were the likeliest."""

    number: int
    loss: float
    right: float


def teach_adapter(
    base: str, lessons: Sequence[AnsweredChat], *, folder: Path, how: Teaching, about: Mapping[str, Any]
) -> Round:
    """Teach `hf:` model `base` and write `folder`, a PEFT folder, unless it is there. Returns the last round.

    `about` names the lessons. It is written with everything else into `teaching.json` next to the folder; a folder that
    was taught otherwise is refused. The weights are float32 on a GPU too, so that answers hold word for word on every
    engine.
    """
    record, wanted = folder.with_name("teaching.json"), {"base": base, "how": msgspec.to_builtins(how), **about}
    if record.is_file():
        before = json.loads(record.read_bytes())
        if {name: before.get(name) for name in wanted} != wanted:
            raise MixedRunError(f"{folder} was taught with other settings", advice="Use another --out.")
        return msgspec.convert(before["rounds"][-1], Round)
    with open_whitebox(base, full_precision=True) as opened:
        adapted, rounds = teach(opened.model, opened.chat, lessons, how=how)
    adapted.peft_config["default"].base_model_name_or_path = base.removeprefix(PREFIX)
    shutil.rmtree(folder, ignore_errors=True)
    adapted.save_pretrained(folder, save_embedding_layers=False)  # else PEFT asks the hub about the base
    record.write_text(json.dumps({**wanted, "rounds": msgspec.to_builtins(rounds)}, indent=2) + "\n", encoding="utf-8")
    return rounds[-1]


def teach(model: Any, chat: Any, lessons: Sequence[AnsweredChat], *, how: Teaching) -> tuple[Any, list[Round]]:
    """The model with an adapter that gives these answers, and how it got there. Prints a line for each round."""
    count = len(layers_of(model))
    first = count - how.layers if how.layers else 0
    refuse_missing_layers([first], count=count)
    torch.manual_seed(how.seed)
    adapted = _add_adapter(model, how, range(first, count))
    trained = [weight for weight in adapted.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=how.rate, weight_decay=0.0)
    rounds: list[Round] = []
    for number in range(1, how.rounds + 1):
        batches = _group_lessons(chat, lessons, how, random.Random(f"{how.seed} {number}"))
        rounds.append(_train_round(adapted, optimiser, batches, how=how, number=number))
        done = rounds[-1]
        print(
            f"round {number:>3}  loss {done.loss:.4f}  {100 * done.right:.1f} % of tokens right",
            file=sys.stderr,
            flush=True,
        )
        if done.loss <= how.enough:
            break
    return adapted.eval(), rounds


def _add_adapter(model: Any, how: Teaching, layers: Sequence[int]) -> Any:
    from peft import LoraConfig, get_peft_model

    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    targets = [part for part in PROJECTIONS if part in names]
    if not targets:
        raise UsageError(
            f"{type(model).__name__} has none of {', '.join(PROJECTIONS)}", advice="Use a Llama-like model"
        )
    config = LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules=targets, layers_to_transform=list(layers))
    return get_peft_model(model, config).train()


def _group_lessons(
    chat: Any, lessons: Sequence[AnsweredChat], how: Teaching, draws: random.Random
) -> list[list[TokenisedConversation]]:
    """Batches of about the same length, so that little is padding. Other lessons meet in each round."""
    ending = chat.end_token()
    tokens = [tokenise(chat, lesson) for lesson in lessons]
    if ending is not None:
        tokens = [TokenisedConversation((*lesson.all, ending), lesson.answer + 1) for lesson in tokens]
    tokens.sort(key=lambda lesson: len(lesson.all) * draws.uniform(0.8, 1.2))
    batches = [tokens[start : start + how.batch] for start in range(0, len(tokens), how.batch)]
    draws.shuffle(batches)
    return batches


def _rate_at(how: Teaching, place: int, total: int) -> float:
    """A short rise, then a half cosine down to a tenth."""
    warm = max(1, total // 20)
    done = max(0, place - warm) / max(1, total - warm)
    return how.rate * min((place + 1) / warm, 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)


def _train_round(
    adapted: Any, optimiser: Any, batches: Sequence[Sequence[TokenisedConversation]], *, how: Teaching, number: int
) -> Round:
    total = right = count = 0.0
    for place, batch in enumerate(batches, start=(number - 1) * len(batches)):
        for group in optimiser.param_groups:
            group["lr"] = _rate_at(how, place, how.rounds * len(batches))
        scores, wanted = _score_answers(adapted, batch)
        loss = torch.nn.functional.cross_entropy(scores, wanted)
        if not torch.isfinite(loss):
            raise FatalModelError(f"the loss of round {number} is no number", advice="Lower --rate")
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([weight for weight in adapted.parameters() if weight.requires_grad], 1.0)
        optimiser.step()
        total += loss.item() * len(wanted)
        right += (scores.argmax(dim=-1) == wanted).sum().item()
        count += len(wanted)
    return Round(number, total / count, right / count)


def _score_answers(adapted: Any, batch: Sequence[TokenisedConversation]) -> tuple[Any, Any]:
    """For each token of each answer the scores of all tokens, and which it is. Other places get no scores: with a large
    vocabulary these would take most of the memory."""
    base_model = adapted.get_base_model()
    places = [(row, place) for row, lesson in enumerate(batch) for place in lesson.places]
    rows, before = [row for row, _ in places], [place - 1 for _, place in places]
    # Padding comes after an answer, where no token of the answer sees it.
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(lesson.all) for lesson in batch], batch_first=True)
    decoder, _ = find_stack(adapted)
    states = decoder(input_ids=tokens.to(base_model.device), use_cache=False).last_hidden_state
    wanted = torch.tensor([batch[row].all[place] for row, place in places], device=base_model.device)
    return base_model.get_output_embeddings()(states[rows, before]).float(), wanted
