"""Low-rank representation adaptation: an adapter that moves what the middle layers hold to where honesty would put it.

For a text, the activations under an instruction to be honest less those under one to be untruthful are the direction.
The adapter is trained so that, without any instruction, activations move along it. The model without the adapter is its
own reference. Nothing above the last layer that is looked at is ever computed.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.attention import sdpa_kernel

from unmask.errors import FatalModelError, LayersOutOfRange, UsageError
from unmask.records import Record
from unmask.whitebox.activations import layers_of, watched
from unmask.whitebox.frozen import Frozen, frozen, fuse_norms
from unmask.whitebox.read import QUICK

PARTS = (("q_proj", "v_proj"), ("qkv_proj",), ("c_attn",), ("query_key_value",))
"""What is adapted, as published: queries and values; or all of attention's input where it is one matrix."""


class Settings(Record, frozen=True, kw_only=True, omit_defaults=False):
    """As published for representation engineering. `layers` are those whose activations are moved, from 0; none given
    means the middle third. `strength` is how far, in lengths of the direction; `answer_tokens` cuts answers."""

    rank: int = 8
    lora_alpha: float = 16
    dropout: float = 0.05
    layers: tuple[int, ...] = ()
    strength: float = 5.0
    rate: float = 3e-4
    steps: int = 40
    batch: int = 16
    answer_tokens: int = 64
    seed: int = 0


class Example(Record, frozen=True):
    """One text three times, in tokens: without instruction, and with one of each kind. All end with the same answer of
    `answer` tokens."""

    plain: tuple[int, ...]
    honest: tuple[int, ...]
    untruthful: tuple[int, ...]
    answer: int


class Moved(Record, frozen=True):
    """Where texts went. `along` is in lengths of the direction, and `strength` of them were wanted; `before` and
    `after` are the mean distances to where they should go, without the adapter and with it."""

    along: float
    before: float
    after: float


def middle_third(count: int) -> tuple[int, ...]:
    """Layers 10 to 20 of 32, and the same part of another depth."""
    first = max(1, round(10 / 32 * count))
    return tuple(range(first, max(first, min(count - 1, round(20 / 32 * count))) + 1))


def grouped(examples: Sequence[Example], size: int, *, rng: random.Random) -> list[Example]:
    """The same examples in batches of `size` with little filling: sorted by length among eight batches at a time, the
    batches then in random order, after the longest."""
    order: list[Example] = []
    for start in range(0, len(examples), 8 * size):
        near = sorted(examples[start : start + 8 * size], key=lambda one: (len(one.honest), len(one.plain)))
        batches = [near[first : first + size] for first in range(0, len(near), size)]
        whole, rest = [one for one in batches if len(one) == size], [one for one in batches if len(one) < size]
        rng.shuffle(whole)
        order += [one for batch in (*whole, *rest) for one in batch]
    # The longest first: it shows at once whether there is memory enough, and all others fit into what it has taken.
    firsts = range(0, len(order) - size + 1, size)
    longest = max(firsts, key=lambda first: max(len(one.honest) for one in order[first : first + size]), default=0)
    return order[longest : longest + size] + order[:longest] + order[longest + size :]


def targets(settings: Settings, count: int) -> tuple[int, ...]:
    """The layers to look at, of so many. The first has none before it, so the last of them has to be another."""
    asked = tuple(sorted(set(settings.layers))) or middle_third(count)
    strange = tuple(layer for layer in asked if not 0 <= layer < count)
    if strange:
        raise LayersOutOfRange(strange, count=count)
    if asked[-1] == 0:
        raise UsageError("layer 0 has no earlier layer that could be adapted", advice="give a later one as well")
    return asked


class Trainer:
    """An adapter in training. The model is cut behind the last layer that is looked at and stays so.

    Weights are kept in float32 whatever the model computes in: steps of 3e-4 would be lost in bfloat16.
    """

    def __init__(self, model: Any, settings: Settings) -> None:
        from peft import LoraConfig, get_peft_model

        self.settings, self.layers = settings, targets(settings, len(layers_of(model)))
        _cut(model, self.layers[-1] + 1)
        earlier = list(range(self.layers[-1]))
        config = LoraConfig(
            r=settings.rank,
            lora_alpha=settings.lora_alpha,
            lora_dropout=settings.dropout,
            target_modules=_parts(model),
            layers_to_transform=earlier,
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
        self._frozen = frozen(self.adapted.get_base_model(), self.layers)
        self._checked = False
        if self._decoder.device.type == "cuda":
            fuse_norms(self._decoder)
        self._hooks = contextlib.ExitStack()
        self._held = self._hooks.enter_context(watched(self.adapted, self.layers))

    def step(self, examples: Sequence[Example]) -> float:
        """Train on a batch; returns its loss from before. Nothing is changed if that is no number."""
        with sdpa_kernel(QUICK):
            loss = self._loss(_Batch(examples, self._decoder.device))
            loss.backward()
        value = float(loss.item())  # only now: whoever asks for a number on a GPU waits for all that comes before it
        if not math.isfinite(value):
            raise FatalModelError(
                f"the loss is {value}, not a number to go on from",
                advice="lower --rate, or see whether weights overflow",
            )
        for kept, used in zip(self.weights, self._used, strict=True):
            kept.grad, used.grad = used.grad.float(), None
        self._optimiser.step()
        self._use()
        return value

    def _loss(self, batch: _Batch) -> Any:
        wanted, _ = self._wanted(batch)
        for drop in self._drops:
            drop.train()
        found = self._seen(*batch.plain)
        for drop in self._drops:
            drop.eval()
        # A length for each token and layer, as published, not its square: no token outweighs the others.
        lengths = [torch.linalg.vector_norm(found[layer].float() - wanted[layer], dim=-1) for layer in self.layers]
        return torch.stack(lengths).mean()

    def moved(self, examples: Sequence[Example]) -> Moved:
        """What the adapter does to texts, without dropout."""
        batch = _Batch(examples, self._decoder.device)
        with torch.no_grad(), sdpa_kernel(QUICK):
            wanted, frozen = self._wanted(batch)
            adapted = self._seen(*batch.plain)
        rows = []
        for layer in self.layers:
            gap, way = wanted[layer] - frozen[layer].float(), adapted[layer].float() - frozen[layer].float()
            along = self.settings.strength * (way * gap).sum() / gap.square().sum().clamp_min(1e-12)
            rows.append(torch.stack([along, gap.norm(dim=-1).mean(), (gap - way).norm(dim=-1).mean()]))
        return Moved(*torch.stack(rows).mean(dim=0).tolist())

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, but for the examples."""
        return {
            "weights": self.weights,
            "optimiser": self._optimiser.state_dict(),
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }

    def restore(self, state: dict[str, Any]) -> None:
        for kept, given in zip(self.weights, state["weights"], strict=True):
            kept.copy_(given)
        self._optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"].cpu())
        if state["random_gpu"]:
            torch.cuda.set_rng_state_all([one.cpu() for one in state["random_gpu"]])
        self._use()

    def finished(self) -> Any:
        """The adapted model, with the adapter in float32, to be saved. Training is over."""
        self._hooks.close()
        for kept, used in zip(self.weights, self._used, strict=True):
            used.data = kept
        return self.adapted

    # --- inside -----------------------------------------------------------------------------------------------

    def _use(self) -> None:
        with torch.no_grad():
            torch._foreach_copy_(self._used, self.weights)

    def _wanted(self, batch: _Batch) -> tuple[dict[int, Any], dict[int, Any]]:
        """Where the activations of each layer should go, and where they are without the adapter."""
        with torch.no_grad():
            pairs, plain = self._reference(*batch.pairs), self._reference(*batch.plain)
            wanted = {}
            for layer in self.layers:
                honest, untruthful = pairs[layer].float().chunk(2)
                wanted[layer] = plain[layer].float() + self.settings.strength * (honest - untruthful)
        return wanted, plain

    def _reference(self, ids: Any, at: Any) -> dict[int, Any]:
        """The same as `_seen`, without the adapter: directly where that was found right, else through transformers."""
        fast = self._frozen if self._frozen and ids.shape[1] <= (self._frozen.longest or ids.shape[1]) else None
        if fast and self._checked:
            return fast(ids, at)
        with self.adapted.disable_adapter():
            found = self._seen(ids, at)
        if fast:
            self._checked = True
            other = _alike(fast, ids, at, found)
            self._frozen, found = (None, found) if other is None else (self._frozen, other)
        return found

    def _seen(self, ids: Any, at: Any) -> dict[int, Any]:
        """What each layer holds at the tokens `at` of all texts in a row, `[token, size]`."""
        self._decoder(input_ids=ids, use_cache=False)
        found = {layer: held.flatten(0, 1).index_select(0, at) for layer, held in self._held.items()}
        self._held.clear()
        return found


class _Batch:
    """Texts as a GPU is given them, without waiting: their tokens, and where the answers' tokens are. Shorter texts are
    filled up on the right, where no token of theirs looks."""

    def __init__(self, examples: Sequence[Example], device: Any) -> None:
        answers = [one.answer for one in examples]
        self.plain = _filled([one.plain for one in examples], answers, device)
        sides = [one.honest for one in examples] + [one.untruthful for one in examples]
        self.pairs = _filled(sides, [*answers, *answers], device)


def _filled(texts: Sequence[tuple[int, ...]], answers: Sequence[int], device: Any) -> tuple[Any, Any]:
    longest, gpu = max(map(len, texts)), device.type == "cuda"
    ids = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts], pin_memory=gpu)
    places = [
        row * longest + place
        for row, (text, answer) in enumerate(zip(texts, answers, strict=True))
        for place in range(len(text) - answer, len(text))
    ]
    at = torch.tensor(places, pin_memory=gpu)
    return ids.to(device, non_blocking=gpu), at.to(device, non_blocking=gpu)


def _alike(fast: Frozen, ids: Any, at: Any, found: dict[int, Any]) -> dict[int, Any] | None:
    """What the direct pass gives, if that is the same but for rounding."""
    limit = 1e-3 if next(iter(found.values())).dtype == torch.float32 else 0.1
    try:
        other = fast(ids, at)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # compilers of kernels have exceptions of their own
        return None
    gaps = [(other[layer] - meant).float().norm() / meant.float().norm() for layer, meant in found.items()]
    return other if torch.stack(gaps).max() <= limit else None


def _cut(model: Any, depth: int) -> None:
    """Take out the layers from `depth` on: they are not run, and need no memory."""
    stack, config = layers_of(model), model.config.get_text_config()
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, torch.nn.ModuleList) and list(child) == stack:
                setattr(module, name, torch.nn.ModuleList(stack[:depth]))
                if getattr(config, "layer_types", None):
                    config.layer_types = list(config.layer_types)[:depth]
                config.num_hidden_layers = depth
                return


def _parts(model: Any) -> list[str]:
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    for parts in PARTS:
        if names.issuperset(parts):
            return list(parts)
    raise UsageError(
        f"{type(model).__name__} has no projection known here ({', '.join(sum(PARTS, ()))})",
        advice="use a decoder such as Llama, Mistral or Qwen",
    )
