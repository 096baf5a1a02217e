"""Working through prompts: several at a time, and what they have in common at their beginning only once.

The examples in front of every question to a judge are most of its prompt. Their keys and values are kept, so that
reading a prompt costs what is new in it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import DynamicCache

Tokens = tuple[int, ...]
Layers = list[tuple[Any, Any]]
"""Keys and values of each layer, with a row for each prompt."""

COMMON = 96
"""The shortest beginning worth keeping: below it, reading it anew costs less than looking after it."""
KEPT = 4
QUICK = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Attention as torch has it, but for cuDNN's: that makes a plan for every new length, which takes some 80 ms."""
REMEMBERED = 32


class Reader:
    """Turns prompts into keys and values. `budget` is how many tokens are worked through in one go."""

    def __init__(self, model: Any, *, budget: int) -> None:
        self.model, self.budget = model, budget
        self._beginnings: OrderedDict[Tokens, Layers] = OrderedDict()
        self._seen: deque[Tokens] = deque(maxlen=REMEMBERED)

    def read(self, prompts: Sequence[Tokens]) -> Iterator[tuple[list[Tokens], Layers]]:
        """Keys and values of different prompts, in groups. In each group a prompt's are in the row of its place."""
        groups: dict[Tokens, tuple[Layers, list[Tokens]]] = {}
        for prompt in prompts:
            beginning = self._beginning(prompt, prompts)
            groups.setdefault(beginning, (self._beginnings.get(beginning, []), []))[1].append(prompt)
        self._seen.extend(prompts)
        for beginning, (layers, group) in groups.items():
            for chunk in chunks(sorted(group, key=len), self.budget, skip=len(beginning)):
                yield chunk, self._forward(chunk, layers, skip=len(beginning))

    def free(self) -> None:
        self._beginnings.clear()
        self._seen.clear()

    def _beginning(self, prompt: Tokens, others: Sequence[Tokens]) -> Tokens:
        """The kept beginning of a prompt; one is kept from now on if the prompt has it in common with another."""
        known = [kept for kept in self._beginnings if prompt[: len(kept)] == kept and len(kept) < len(prompt)]
        if not known:
            shared = [_common(prompt, other) for other in (*self._seen, *others) if other is not prompt]
            # The shortest is the one that most prompts have; what only two share is not worth keeping.
            length = min((length for length in shared if length >= COMMON), default=0)
            length = min(length, len(prompt) - 1)
            if length < COMMON:
                return ()
            self._keep(prompt[:length])
            known = [prompt[:length]]
        best = max(known, key=len)
        self._beginnings.move_to_end(best)
        return best

    def _keep(self, beginning: Tokens) -> None:
        self._beginnings[beginning] = self._forward([beginning], [], skip=0)
        while len(self._beginnings) > KEPT:
            self._beginnings.popitem(last=False)

    def _forward(self, prompts: Sequence[Tokens], beginning: Layers, *, skip: int) -> Layers:
        """Shorter prompts are filled up on the right, where no token of theirs looks. The first `skip` tokens are known
        from `beginning`."""
        longest = max(1, *(len(prompt) for prompt in prompts))
        filled = [[*prompt[skip:], *[0] * (longest - max(skip, len(prompt)))] for prompt in prompts]
        ids = torch.tensor(filled, device=self.model.device)
        cache = DynamicCache()
        for layer, (key, value) in enumerate(beginning):
            cache.update(key.expand(len(prompts), -1, -1, -1), value.expand(len(prompts), -1, -1, -1), layer)
        places = torch.arange(skip, longest, device=ids.device).expand_as(ids)
        with sdpa_kernel(QUICK):
            self.model(input_ids=ids, position_ids=places, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return [(layer.keys, layer.values) for layer in cache.layers]


def chunks(prompts: Sequence[Tokens], budget: int, *, skip: int = 0) -> Iterator[list[Tokens]]:
    """Prompts, sorted by length, in groups that are read together; little of a group is filling."""
    group: list[Tokens] = []
    real = 0
    for prompt in prompts:
        size = len(prompt) - skip
        padded = (len(group) + 1) * size
        if group and (padded > budget or padded > 1.25 * (real + size) + 256):
            yield group
            group, real = [], 0
        group.append(prompt)
        real += size
    if group:
        yield group


def _common(one: Tokens, other: Tokens) -> int:
    """How many tokens two prompts have in common at their beginning."""
    if one[:COMMON] != other[:COMMON]:
        return 0
    low, high = COMMON, min(len(one), len(other))
    while low < high:  # halving: slices are compared faster than tokens one by one
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
