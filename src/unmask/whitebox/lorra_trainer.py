"""An adapter of LoRRA in training: its settings and its steps. What it is trained on and written to is in `lorra`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import torch
from torch.nn.attention import sdpa_kernel
from torch.nn.utils.rnn import pad_sequence

from unmask.errors import UsageError
from unmask.records import Record
from unmask.whitebox.activations import capture_activations, find_stack, refuse_missing_layers
from unmask.whitebox.forward import ATTENTION_BACKENDS, fuse_norms

PROJECTIONS = (("q_proj", "v_proj"), ("qkv_proj",), ("c_attn",), ("query_key_value",))
"""What is adapted, as published: queries and values; or all of attention's input where it is one matrix."""


Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class LorraSettings(Record, frozen=True, kw_only=True, omit_defaults=False):
    """As published for representation engineering. `layers` are those whose activations are moved, from 0; none given
    means the middle third. `strength` is how far, in lengths of the direction; `answer_tokens` cuts answers."""

    rank: Count = 8
    lora_alpha: Positive = 16
    dropout: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.05
    layers: tuple[int, ...] = ()
    strength: float = 5.0
    rate: Positive = 3e-4
    steps: Count = 40
    batch: Count = 16
    answer_tokens: Count = 64
    seed: int = 0
    shuffled: int | msgspec.UnsetType = msgspec.UNSET
    """A control: the two instructions are exchanged for half of the training facts, by lot from this seed."""


class Example(Record, frozen=True):
    """One text three times, in tokens: without instruction, and with one of each kind. All end with the same answer of
    `answer` tokens."""

    plain: tuple[int, ...]
    honest: tuple[int, ...]
    untruthful: tuple[int, ...]
    answer: int


class Movement(Record, frozen=True):
    """Where texts went. `along` is in lengths of the direction, and `strength` of them were wanted; `before` and
    `after` are the mean distances to where they should go, without the adapter and with it."""

    along: float
    before: float
    after: float


def middle_third(count: int) -> tuple[int, ...]:
    """Layers 10 to 20 of 32, and the same part of another depth."""
    first = max(1, round(10 / 32 * count))
    return tuple(range(first, max(first, min(count - 1, round(20 / 32 * count))) + 1))


def target_layers(settings: LorraSettings, count: int) -> tuple[int, ...]:
    """The layers to look at, of so many. The first has none before it, so the last of them has to be another."""
    asked = tuple(sorted(set(settings.layers))) or middle_third(count)
    refuse_missing_layers(asked, count=count)
    if asked[-1] == 0:
        raise UsageError("layer 0 has no earlier layer that could be adapted", advice="Give a later one as well")
    return asked


class Trainer:
    """An adapter in training. The model is cut behind the last layer that is looked at and stays so: later layers are
    not run, and need no memory.

    Weights are kept in float32 whatever the model computes in: steps of 3e-4 would be lost in bfloat16.
    """

    def __init__(self, model: Any, settings: LorraSettings) -> None:
        from peft import LoraConfig, get_peft_model

        owner, stack_name = find_stack(model)
        stack, text = getattr(owner, stack_name), model.config.get_text_config()
        self.settings, self.layers = settings, target_layers(settings, len(stack))
        depth = self.layers[-1] + 1
        setattr(owner, stack_name, stack[:depth])
        if getattr(text, "layer_types", None):
            text.layer_types = list(text.layer_types)[:depth]
        text.num_hidden_layers = depth
        config = LoraConfig(
            r=settings.rank,
            lora_alpha=settings.lora_alpha,
            lora_dropout=settings.dropout,
            target_modules=_find_projections(model),
            layers_to_transform=list(range(self.layers[-1])),
        )
        torch.manual_seed(settings.seed)
        self.adapted = get_peft_model(model, config, autocast_adapter_dtype=False).eval()
        self._decoder = self.adapted.get_base_model().get_decoder()
        named = [(name, weight) for name, weight in self.adapted.named_parameters() if weight.requires_grad]
        self.names, self._used = [name for name, _ in named], [weight for _, weight in named]
        self.weights = [weight.detach().float().clone() for weight in self._used]
        self._optimiser = torch.optim.AdamW(self.weights, lr=settings.rate, weight_decay=0.0)
        # Dropout is at work in the adapter, and nowhere else.
        modules = self.adapted.named_modules()
        self._drops = [module for name, module in modules if name.endswith(".lora_dropout.default")]
        fuse_norms(self._decoder)
        self._hooks = contextlib.ExitStack()
        self._held = self._hooks.enter_context(capture_activations(self.adapted, self.layers))

    def step(self, examples: Sequence[Example]) -> float:
        """Train on a batch; returns its loss from before. Nothing is changed if that is no number."""
        with sdpa_kernel(ATTENTION_BACKENDS):
            loss = self._loss(examples)
            loss.backward()
        value = float(loss.item())  # only now: asking a GPU for a number waits for all that comes before it
        if not math.isfinite(value):
            return value
        for master, used in zip(self.weights, self._used, strict=True):
            master.grad, used.grad = used.grad.float(), None
        self._optimiser.step()
        with torch.no_grad():
            torch._foreach_copy_(self._used, self.weights)
        return value

    def _loss(self, examples: Sequence[Example]) -> Any:
        wanted, _ = self._target_activations(examples)
        for drop in self._drops:
            drop.train()
        activations = self._plain_activations(examples)
        for drop in self._drops:
            drop.eval()
        # A length for each token and layer, as published, not its square: no token outweighs the others.
        lengths = [
            torch.linalg.vector_norm(activations[layer].float() - wanted[layer], dim=-1) for layer in self.layers
        ]
        return torch.stack(lengths).mean()

    def measure_movement(self, examples: Sequence[Example]) -> Movement:
        """What the adapter does to texts, without dropout."""
        total, size = torch.zeros(3), self.settings.batch
        for group in (examples[start : start + size] for start in range(0, len(examples), size)):
            with torch.no_grad(), sdpa_kernel(ATTENTION_BACKENDS):
                wanted, frozen = self._target_activations(group)
                adapted = self._plain_activations(group)
            rows = []
            for layer in self.layers:
                gap, way = wanted[layer] - frozen[layer].float(), adapted[layer].float() - frozen[layer].float()
                along = self.settings.strength * (way * gap).sum() / gap.square().sum().clamp_min(1e-12)
                rows.append(torch.stack([along, gap.norm(dim=-1).mean(), (gap - way).norm(dim=-1).mean()]))
            total += torch.stack(rows).mean(dim=0).cpu() * (len(group) / len(examples))
        return Movement(*total.tolist())

    def finish(self) -> Any:
        """The adapted model, with the adapter in float32, to be saved. Training is over."""
        self._hooks.close()
        for master, used in zip(self.weights, self._used, strict=True):
            used.data = master
        return self.adapted

    # --- inside -----------------------------------------------------------------------------------------------

    def _target_activations(self, examples: Sequence[Example]) -> tuple[dict[int, Any], dict[int, Any]]:
        """Where the activations of each layer should go, and where they are without the adapter."""
        sides = [one.honest for one in examples] + [one.untruthful for one in examples]
        with torch.no_grad(), self.adapted.disable_adapter():
            pairs = self._activations(sides, 2 * [one.answer for one in examples])
            plain, wanted = self._plain_activations(examples), {}
            for layer in self.layers:
                honest, untruthful = pairs[layer].float().chunk(2)
                wanted[layer] = plain[layer].float() + self.settings.strength * (honest - untruthful)
        return wanted, plain

    def _plain_activations(self, examples: Sequence[Example]) -> dict[int, Any]:
        return self._activations([one.plain for one in examples], [one.answer for one in examples])

    def _activations(self, texts: Sequence[tuple[int, ...]], answers: Sequence[int]) -> dict[int, Any]:
        """What each layer holds at the tokens of all answers in a row, `[token, size]`."""
        ids, places = _pad_texts(texts, answers, self._decoder.device)
        self._decoder(input_ids=ids, use_cache=False)
        activations = {layer: states.flatten(0, 1).index_select(0, places) for layer, states in self._held.items()}
        self._held.clear()
        return activations


def _pad_texts(texts: Sequence[tuple[int, ...]], answers: Sequence[int], device: Any) -> tuple[Any, Any]:
    """Their tokens, and where the answers' tokens are. Shorter texts are filled up on the right, where no token of
    theirs looks."""
    ids = pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
    places = [
        row * ids.shape[1] + place
        for row, (text, answer) in enumerate(zip(texts, answers, strict=True))
        for place in range(len(text) - answer, len(text))
    ]
    return ids.to(device), torch.tensor(places, device=device)


def _find_projections(model: Any) -> list[str]:
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    for parts in PROJECTIONS:
        if names.issuperset(parts):
            return list(parts)
    raise UsageError(
        f"{type(model).__name__} has no projection known here ({', '.join(sum(PROJECTIONS, ()))})",
        advice="Use a decoder such as Llama, Mistral or Qwen",
    )
