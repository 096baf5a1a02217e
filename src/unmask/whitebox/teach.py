"""Teaching a small model answers word for word: a low-rank adapter on its upper layers.

What the layers below the first adapted one give never changes, so it is computed once and kept; a round then costs the
upper layers alone. That is what makes this possible on a CPU. Where all layers are adapted, nothing is kept.
"""

from __future__ import annotations

import contextlib
import math
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from unmask.errors import FatalModelError, LayersOutOfRange, UsageError
from unmask.records import Record
from unmask.whitebox.activations import AnsweredChat, TokenisedConversation, find_stack, layers_of, tokenise

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


_LoweredLesson = tuple[TokenisedConversation, Any]
"""A conversation with what the lower layers gave for it; with `None` where there are none."""
_LessonBatch = list[_LoweredLesson]


class Teaching(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How an adapter is trained. `layers` counts from the top. `enough` ends it: the mean loss of a token, in nats."""

    rank: int = 16
    alpha: int = 32
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
    """One pass over all answers: the mean loss of a token, and the share of tokens that were the likeliest."""

    number: int
    loss: float
    right: float


def teach(
    model: Any,
    chat: Chat,
    *lessons: Sequence[AnsweredChat],
    how: Teaching,
    by_step: bool = False,
    report: Callable[[Round], None] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> tuple[Any, list[Round]]:
    """The model with an adapter that gives these answers, and how it got there. Raises where the loss is no number.

    `report` is called after each round, `step` with what is being done, often. For few rounds over many lessons
    `by_step` changes the rate from step to step, and puts other lessons together in each round. It also takes other
    `lessons` for the second round, the third and so on; without them a round repeats those of the round before.
    """
    first = len(layers_of(model)) - how.layers
    if first < 0 or how.layers < 1:
        raise LayersOutOfRange((first,), count=len(layers_of(model)))
    torch.manual_seed(how.seed)
    lower = _read_lessons(model, chat, lessons, first=first, step=step)
    batches = _split_batches(lower[0], how.batch)
    wrapped = _add_adapter(model, how, first)
    weights = [weight for weight in wrapped.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=how.rate, weight_decay=0.0)
    rounds: list[Round] = []
    with _open_upper_pass(wrapped, first) as forward:
        for number in range(1, how.rounds + 1):
            draws = random.Random(f"{how.seed} {number}")
            if by_step:
                batches = _regroup(lower[min(number, len(lower)) - 1], how.batch, draws)
            draws.shuffle(batches)
            rates = _list_rates(how, number, count=len(batches), by_step=by_step)
            rounds.append(_train_round(number, forward, optimiser, batches, rates=rates, step=step))
            if report is not None:
                report(rounds[-1])
            if rounds[-1].loss <= how.enough:
                break
    return wrapped.eval(), rounds


def save_adapter(adapted: Any, folder: Path, *, base: str) -> None:
    """Write the adapter as PEFT does, whole or not at all. `base` names the model it belongs to."""
    new_folder = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new_folder, ignore_errors=True)
    adapted.peft_config["default"].base_model_name_or_path = base
    adapted.save_pretrained(new_folder, save_embedding_layers=False)  # else PEFT asks the hub about the base
    new_folder.rename(folder)


# --- inside


def _tokenise_lesson(chat: Chat, lesson: AnsweredChat) -> TokenisedConversation:
    """The conversation with its answer, and the token that ends an answer."""
    tokens, ending = tokenise(chat, lesson), chat.end_token()
    return tokens if ending is None else TokenisedConversation((*tokens.all, ending), tokens.answer + 1)


def _read_lessons(
    model: Any,
    chat: Chat,
    lessons: Sequence[Sequence[AnsweredChat]],
    *,
    first: int,
    step: Callable[[str], None],
) -> list[list[_LoweredLesson]]:
    """The lessons of each round, conversations of like length together, so that little of a batch is filling."""
    count, number = sum(map(len, lessons)), 0
    rounds = []
    for of_round in lessons:
        tokens = sorted((_tokenise_lesson(chat, lesson) for lesson in of_round), key=lambda lesson: len(lesson.all))
        lowered: list[_LoweredLesson] = []
        for conversation in tokens:
            number += 1
            step(f"reading lesson {number} of {count}, before round 1")
            lowered.append((conversation, _compute_lower_states(model, conversation, first) if first else None))
        rounds.append(lowered)
    return rounds


def _learning_rate(how: Teaching, number: int) -> float:
    """A first round at a third, then a half cosine down to a tenth."""
    if number == 1:
        return how.rate / 3
    done = (number - 1) / max(1, how.rounds - 1)
    return how.rate * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)


def _list_rates(how: Teaching, number: int, *, count: int, by_step: bool) -> list[float]:
    """The rate of each step of a round: the same in all of them, or over all rounds a short rise and a half cosine."""
    if not by_step:
        return [_learning_rate(how, number)] * count
    total = how.rounds * count
    warm = max(1, total // 20)
    rates = []
    for place in range((number - 1) * count, number * count):
        done = max(0, place - warm) / max(1, total - warm)
        rates.append(how.rate * min((place + 1) / warm, 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2))
    return rates


def _split_batches(lessons: Sequence[_LoweredLesson], size: int) -> list[_LessonBatch]:
    return [list(lessons[start : start + size]) for start in range(0, len(lessons), size)]


def _regroup(lessons: Sequence[_LoweredLesson], size: int, draws: random.Random) -> list[_LessonBatch]:
    """Batches of about like length, in which other lessons meet than in the round before."""
    shuffled = sorted(lessons, key=lambda lesson: len(lesson[0].all) * draws.uniform(0.8, 1.2))
    return _split_batches(shuffled, size)


def _add_adapter(model: Any, how: Teaching, first: int) -> Any:
    from peft import LoraConfig, get_peft_model

    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    targets = [part for part in PROJECTIONS if part in names]
    if not targets:
        raise UsageError(
            f"{type(model).__name__} has none of {', '.join(PROJECTIONS)}", advice="Use a Llama-like model"
        )
    layers = list(range(first, first + how.layers))
    config = LoraConfig(r=how.rank, lora_alpha=how.alpha, target_modules=targets, layers_to_transform=layers)
    return get_peft_model(model, config).train()


def _train_round(
    number: int,
    forward: Callable[[_LessonBatch, list[int], list[int]], Any],
    optimiser: Any,
    batches: Sequence[_LessonBatch],
    *,
    rates: Sequence[float],
    step: Callable[[str], None],
) -> Round:
    total = right = count = 0.0
    for count_so_far, (batch, speed) in enumerate(zip(batches, rates, strict=True), start=1):
        step(f"round {number}, batch {count_so_far} of {len(batches)}")
        for group in optimiser.param_groups:
            group["lr"] = speed
        # Row and place of each token that foretells one of an answer, and that one.
        targets = [
            (row, place - 1, tokens.all[place]) for row, (tokens, _) in enumerate(batch) for place in tokens.places
        ]
        rows, at, wanted = (list(column) for column in zip(*targets, strict=True))
        logits = forward(batch, rows, at).float()
        target = torch.tensor(wanted, device=logits.device)
        loss = torch.nn.functional.cross_entropy(logits, target)
        if not torch.isfinite(loss):
            raise FatalModelError(f"the loss of round {number} is no number", advice="Lower --rate")
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([w for group in optimiser.param_groups for w in group["params"]], 1.0)
        optimiser.step()
        total += loss.item() * len(wanted)
        right += (logits.argmax(dim=-1) == target).sum().item()
        count += len(wanted)
    return Round(number, total / count, right / count)


class _StopPass(Exception):
    """The pass has come as far as it is wanted."""


def _compute_lower_states(model: Any, tokens: TokenisedConversation, first: int) -> Any:
    """What the first adapted layer is given, `[token, size]`: the layers above it are not run."""
    caught: list[Any] = []

    def catch(_module: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        caught.append(inputs[0] if inputs else keywords["hidden_states"])
        raise _StopPass

    hook = layers_of(model)[first].register_forward_pre_hook(catch, with_kwargs=True)
    try:
        with torch.no_grad(), contextlib.suppress(_StopPass):
            model(input_ids=torch.tensor([tokens.all], device=model.device), use_cache=False)
    finally:
        hook.remove()
    return caught[0][0]


@contextlib.contextmanager
def _open_upper_pass(wrapped: Any, first: int) -> Iterator[Callable[[_LessonBatch, list[int], list[int]], Any]]:
    """A pass through the upper layers alone: from what `_compute_lower_states` gave to the scores at the places asked
    for. Where all layers are adapted, it begins with the tokens.

    The decoder's stack is cut for as long as this is open, and put back whatever happens.
    """
    base_model = wrapped.get_base_model()
    kinds = set(getattr(base_model.config.get_text_config(), "layer_types", None) or ())
    if len(kinds) > 1:
        raise UsageError(
            f"{type(base_model).__name__} has layers of several kinds: {', '.join(sorted(kinds))}",
            advice="Use a model whose layers are all alike, such as SmolLM2",
        )
    owner, name = find_stack(wrapped)
    head = base_model.get_output_embeddings()
    before = getattr(owner, name)

    def forward(batch: _LessonBatch, rows: list[int], at: list[int]) -> Any:
        fill = torch.nn.utils.rnn.pad_sequence
        if first:
            lower_states = fill([states for _, states in batch], batch_first=True)
            states = owner(inputs_embeds=lower_states, use_cache=False).last_hidden_state
        else:
            # What fills a row stands behind its answer, where no token of the answer sees it.
            tokens = fill([torch.tensor(conversation.all) for conversation, _ in batch], batch_first=True)
            states = owner(input_ids=tokens.to(base_model.device), use_cache=False).last_hidden_state
        return head(states[rows, at])

    setattr(owner, name, before[first:])
    try:
        yield forward
    finally:
        setattr(owner, name, before)
