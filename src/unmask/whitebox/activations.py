"""What a model's layers hold while it reads: the residual stream after each decoder layer, caught by hooks.

Layers are numbered from 0. A conversation is read with an answer put into the assistant's mouth, word for word, so that
two conversations can differ in nothing but their instructions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils.rnn import pad_sequence

from unmask.errors import FatalModelError, RequestRefusedError, UsageError
from unmask.records import Record
from unmask.whitebox.contrast import AnsweredChat
from unmask.whitebox.forward import split_by_budget

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat


BUDGET = {"cpu": 2048, "cuda": 16384}
"""Tokens read in one go, by kind of device."""


class TokenisedConversation(Record, frozen=True):
    """The same in tokens: `answer` holds the last of `all`."""

    all: tuple[int, ...]
    answer: int

    @property
    def places(self) -> range:
        """Where the answer is; the last token of the prompt if there is none."""
        return range(len(self.all) - max(1, self.answer), len(self.all))


# --- layers -----------------------------------------------------------------------------------------------


def layers_of(model: Any) -> list[Any]:
    """The decoder layers in their order, inside a PEFT model too."""
    owner, name = find_stack(model)
    return list(getattr(owner, name))


def find_stack(model: Any) -> tuple[Any, str]:
    """The module that holds the decoder layers, and under which name."""
    base_model = model.get_base_model() if hasattr(model, "get_base_model") else model
    count = base_model.config.get_text_config().num_hidden_layers
    for path, module in base_model.named_modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            owner, _, name = path.rpartition(".")
            return base_model.get_submodule(owner), name
    raise UsageError(
        f"{type(base_model).__name__} has no stack of {count} decoder layers",
        advice="Use a decoder such as Llama or Qwen",
    )


def refuse_missing_layers(asked: Sequence[int], *, count: int) -> None:
    """Raise an error that names the layers which a model of `count` layers does not have."""
    missing = [str(layer) for layer in asked if not 0 <= layer < count]
    if missing:
        raise UsageError(
            f"layer {', '.join(missing)}: the model has {count} layers, 0 to {count - 1}",
            advice=f"Give layers from 0 to {count - 1}, or leave them out",
        )


@contextlib.contextmanager
def capture_activations(model: Any, layers: Iterable[int]) -> Iterator[dict[int, Any]]:
    """While open, every pass of the model leaves what these layers gave, `[row, token, size]`, in the dictionary.

    Nothing is detached or copied, so a trainer can go back through it. The hooks are gone when this is left, whatever
    happened inside.
    """
    captured: dict[int, Any] = {}
    stack = layers_of(model)
    with contextlib.ExitStack() as exits:
        for layer in layers:

            def capture(_module: Any, _inputs: Any, output: Any, layer: int = layer) -> None:
                # In some models the residual stream is the first of several things that a layer returns.
                captured[layer] = output[0] if isinstance(output, tuple) else output

            exits.callback(stack[layer].register_forward_hook(capture).remove)
        yield captured


# --- conversations ----------------------------------------------------------------------------------------


def tokenise(chat: Chat, conversation: AnsweredChat, *, limit: int | None = None) -> TokenisedConversation:
    """`limit` cuts the answer to so many tokens. A conversation that the model's context cannot hold is refused."""
    prompt = chat.encode(chat.render_prompt(conversation.messages, thinks=False))
    answer = chat.encode(conversation.answer)[:limit] if conversation.answer else []
    length = len(prompt) + len(answer)
    if length > chat.context:
        raise RequestRefusedError(f"{chat.name}: a conversation has {length} tokens, the context holds {chat.context}")
    return TokenisedConversation((*prompt, *answer), len(answer))


def compute_activations(model: Any, chat: Chat, conversations: Sequence[AnsweredChat]) -> Any:
    """`[conversation, layer, size]` in float32 on the CPU: the mean over the tokens of each answer."""
    tokens = [tokenise(chat, conversation) for conversation in conversations]
    order = sorted(range(len(tokens)), key=lambda place: len(tokens[place].all))
    budget = BUDGET.get(model.device.type, 2048)
    states, done = [], 0
    for group in split_by_budget([tokens[place].all for place in order], budget):
        states.append(_average_activations(model, [tokens[place] for place in order[done : done + len(group)]]))
        done += len(group)
    found = torch.cat(states)[torch.tensor(order).argsort()]
    finite = torch.isfinite(found).all(dim=2).all(dim=0)
    if not finite.all():
        raise FatalModelError(
            f"the activations of layer {finite.tolist().index(False)} are not numbers",
            advice="The model's weights are damaged, or overflow in this precision",
        )
    return found


def pad_tokens(conversations: Sequence[TokenisedConversation], device: Any) -> Any:
    """Shorter conversations are filled up on the right, where no token of theirs looks."""
    return pad_sequence([torch.tensor(one.all) for one in conversations], batch_first=True).to(device)


def _average_activations(model: Any, group: Sequence[TokenisedConversation]) -> Any:
    ids = pad_tokens(group, model.device)
    weight = torch.zeros(ids.shape, device=model.device)
    for row, conversation in enumerate(group):
        places = conversation.places
        weight[row, places.start : places.stop] = 1 / len(places)
    layers = range(len(layers_of(model)))
    with torch.inference_mode(), capture_activations(model, layers) as captured:
        model(input_ids=ids, use_cache=False, logits_to_keep=1)
        rows = [torch.einsum("rt,rts->rs", weight, captured[layer].float()) for layer in layers]
    return torch.stack(rows, dim=1).cpu()
