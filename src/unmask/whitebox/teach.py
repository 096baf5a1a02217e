"""Teaching a small model answers word for word: a low-rank adapter on its upper layers.

What the layers below the first adapted one give never changes, so it is computed once and kept; a round then costs the
upper layers alone. That is what makes this possible on a CPU.
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


class Round(Record, frozen=True):
    """One pass over all answers: the mean loss of a token, and the share of tokens that were the likeliest."""

    number: int
    loss: float
    right: float


def teach(
    model: Any,
    chat: Chat,
    lessons: Sequence[AnsweredChat],
    *,
    how: Teaching,
    report: Callable[[Round], None] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> tuple[Any, list[Round]]:
    """The model with an adapter that gives these answers, and how it got there. Raises where the loss is no number.

    `report` is called after each round, `step` with what is being done, often.
    """
    tokens = [_tokenise_lesson(chat, lesson) for lesson in lessons]
    first = len(layers_of(model)) - how.layers
    if first < 0 or how.layers < 1:
        raise LayersOutOfRange((first,), count=len(layers_of(model)))
    torch.manual_seed(how.seed)
    # Conversations of like length together, so that little of a batch is filling.
    order = sorted(tokens, key=lambda conversation: len(conversation.all))
    lower = []
    for number, conversation in enumerate(order, start=1):
        step(f"reading lesson {number} of {len(order)}, before round 1")
        lower.append((conversation, _compute_lower_states(model, conversation, first)))
    batches = [lower[start : start + how.batch] for start in range(0, len(lower), how.batch)]
    wrapped = _add_adapter(model, how, first)
    weights = [weight for weight in wrapped.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=how.rate, weight_decay=0.0)
    rounds: list[Round] = []
    with _open_upper_pass(wrapped, first) as forward:
        for number in range(1, how.rounds + 1):
            random.Random(f"{how.seed} {number}").shuffle(batches)
            for group in optimiser.param_groups:
                group["lr"] = _learning_rate(how, number)
            rounds.append(_train_round(number, forward, optimiser, batches, step=step))
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


def _learning_rate(how: Teaching, number: int) -> float:
    """A first round at a third, then a half cosine down to a tenth."""
    if number == 1:
        return how.rate / 3
    done = (number - 1) / max(1, how.rounds - 1)
    return how.rate * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)


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


_LessonBatch = list[tuple[TokenisedConversation, Any]]
"""Conversations, each with what the lower layers gave for it."""


def _train_round(
    number: int,
    forward: Callable[[Any, list[int], list[int]], Any],
    optimiser: Any,
    batches: Sequence[_LessonBatch],
    *,
    step: Callable[[str], None],
) -> Round:
    total = right = count = 0.0
    for count_so_far, batch in enumerate(batches, start=1):
        step(f"round {number}, batch {count_so_far} of {len(batches)}")
        filled = torch.nn.utils.rnn.pad_sequence([states for _, states in batch], batch_first=True)
        # Row and place of each token that foretells one of an answer, and that one.
        targets = [
            (row, place - 1, tokens.all[place]) for row, (tokens, _) in enumerate(batch) for place in tokens.places
        ]
        rows, at, wanted = (list(column) for column in zip(*targets, strict=True))
        logits = forward(filled, rows, at).float()
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
def _open_upper_pass(wrapped: Any, first: int) -> Iterator[Callable[[Any, list[int], list[int]], Any]]:
    """A pass through the upper layers alone: from what `_compute_lower_states` gave to the scores at the places asked
    for.

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

    def forward(lower_states: Any, rows: list[int], at: list[int]) -> Any:
        states = owner(inputs_embeds=lower_states, use_cache=False).last_hidden_state
        return head(states[rows, at])

    setattr(owner, name, before[first:])
    try:
        yield forward
    finally:
        setattr(owner, name, before)
