"""Forward passes of transformers models over many sequences at a time: their key-value cache, prompts, and one step.

Every sequence has a row of the cache. Rows have lengths of their own: the next token goes to its own place in each row,
and a mask hides what lies beyond. So a row can come or go at any step, and no row is padded on the left.

On a GPU a step is a recorded CUDA graph of transformers' own pass: a small model spends most of a plain step on being
told what to do, kernel by kernel, and a recorded graph is told once. Hooks and adapters are recorded with the model.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import rms_norm, scaled_dot_product_attention
from transformers import AttentionInterface, Cache, DynamicCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

Tokens = tuple[int, ...]
LayerStates = list[tuple[Any, Any]]
"""Keys and values of each layer, with a row for each prompt."""
Recorder = Callable[[Callable[[], Any]], tuple[Callable[[], None], Any]]
"""Records what a function computes. Returns a function that computes it again, and the tensor that holds the result."""

ATTENTION = "unmask_grouped"
"""Name under which transformers knows `grouped_attention`."""
BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Numbers of rows that are recorded; a batch takes the next larger one, with idle rows."""
MAX_RECORDINGS = 48
SHORTEST_PREFIX = 96
"""Tokens. Reading a shorter prefix anew costs less than looking after it."""
MAX_PREFIXES = 4
MAX_REMEMBERED_PROMPTS = 32
ATTENTION_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Torch's own attention without cuDNN's: cuDNN makes a plan for every new length, which takes some 80 ms."""


# --- the key-value cache ------------------------------------------------------------------------------------


class RowCache(Cache):  # type: ignore[misc]
    """Keys and values of all rows, layer by layer. The model calls `update`; the writer calls everything else.

    `max_tokens` is how many tokens may be allocated over all rows, unless a caller needs more than that at once.
    """

    def __init__(self, *, max_tokens: int) -> None:
        super().__init__(layers=[])
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.max_tokens = max_tokens
        self._rows = 0
        self._width = 0
        self._row_numbers: Any = None
        self._positions: Any = None

    @property
    def room(self) -> tuple[int, int]:
        """Rows and tokens per row that are allocated."""
        return (self.keys[0].shape[0], self.keys[0].shape[2]) if self.keys else (0, 0)

    def reserve(self, rows: int, width: int, like: LayerStates) -> None:
        """Allocate at least this much and keep the content. `like` gives a key and a value of each layer."""
        if self.keys:
            self.grow(rows, width)
        else:
            self.keys = [key.new_zeros((rows, key.shape[1], width, key.shape[3])) for key, _ in like]
            self.values = [value.new_zeros((rows, value.shape[1], width, value.shape[3])) for _, value in like]

    def grow(self, rows: int, width: int) -> None:
        """Make an allocated cache at least this large."""
        have = self.room
        if have[0] >= rows and have[1] >= width:
            return
        wanted = max(rows, have[0]), max(width, have[1])
        if wanted[0] * wanted[1] > self.max_tokens:  # many short rows before, few long ones now
            wanted = rows, width
        for tensors in (self.keys, self.values):
            for layer in range(len(tensors)):  # one by one, so that only one exists twice
                tensors[layer] = _resize(tensors[layer], *wanted)
        if self.keys[0].is_cuda:
            torch.cuda.empty_cache()  # the old tensors are too small to be used again

    def put(self, row: int, layers: LayerStates, sources: Sequence[int]) -> None:
        """Copy prompts into rows from `row` on; their keys and values are in the rows `sources` of `layers`. What fills
        up a shorter prompt is copied too, and no token looks at it."""
        all_rows = list(sources) == list(range(layers[0][0].shape[0]))
        states = (*(key for key, _ in layers), *(value for _, value in layers))
        for tensor, state in zip((*self.keys, *self.values), states, strict=True):
            tensor[row : row + len(sources), :, : state.shape[2]] = state if all_rows else state[list(sources)]

    def move(self, source: int, target: int, length: int) -> None:
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :length] = tensor[source, :, :length]

    def set_positions(self, positions: Any, *, width: int) -> None:
        """The next `update` writes row r at `positions[r]`, and shows the first `width` places of each row."""
        self._rows, self._width = positions.shape[0], width
        self._positions = positions
        self._row_numbers = torch.arange(positions.shape[0], device=positions.device)

    def free(self) -> None:
        self.keys, self.values, self._positions, self._row_numbers = [], [], None, None

    def update(self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        keys, values = self.keys[layer_idx], self.values[layer_idx]
        keys[self._row_numbers, :, self._positions] = key_states[:, :, 0]
        values[self._row_numbers, :, self._positions] = value_states[:, :, 0]
        return keys[: self._rows, :, : self._width], values[: self._rows, :, : self._width]

    def get_seq_length(self, *args: Any, **kwargs: Any) -> int:
        return 0

    def get_mask_sizes(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        return self._width, 0


def _resize(tensor: Any, rows: int, width: int) -> Any:
    fresh = tensor.new_zeros((rows, tensor.shape[1], width, tensor.shape[3]))
    same_rows, same_width = min(rows, tensor.shape[0]), min(width, tensor.shape[2])
    fresh[:same_rows, :, :same_width] = tensor[:same_rows, :, :same_width]
    return fresh


def grouped_attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any
) -> tuple[Any, None]:
    """Attention for one new token per row. Heads that share keys become several queries of one head, so that keys and
    values are read once instead of being copied for each head. Everything else is left to transformers' own."""
    groups = query.shape[1] // key.shape[1]
    if query.shape[2] != 1 or groups == 1 or attention_mask is None or options.get("position_bias") is not None:
        result: tuple[Any, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return result
    rows, heads, _, size = query.shape
    queries = query.reshape(rows, heads // groups, groups, size)
    mask = attention_mask.expand(rows, heads // groups, groups, attention_mask.shape[-1])
    output = scaled_dot_product_attention(queries, key, value, attn_mask=mask, scale=options.get("scaling"))
    return output.reshape(rows, 1, heads, -1), None


def use_grouped_attention(model: Any) -> None:
    """Let a model that uses torch's attention use `grouped_attention`; others keep their own."""
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    AttentionInterface.register(ATTENTION, grouped_attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
    model.set_attn_implementation(ATTENTION)


def fuse_norms(model: Any) -> None:
    """On a GPU, let norms that compute what torch's own norm computes be torch's own: one launch instead of six. A step
    at an 8B shape with 64 rows takes 8.9 ms instead of 10.1, a LoRRA step 199 ms instead of 235 (H200)."""
    if model.device.type != "cuda":
        return
    for module in model.modules():
        eps = getattr(module, "variance_epsilon", None)
        if eps is None or not type(module).__name__.endswith("RMSNorm"):
            continue
        # Drawn on the CPU: while another thread records a step, a GPU's own source of random numbers is closed.
        sample = torch.randn(4, len(module.weight), generator=torch.Generator().manual_seed(0)).to(module.weight)
        expected = module(sample).float()

        def forward(x: Any, weight: Any = module.weight, eps: float = eps) -> Any:
            return rms_norm(x, weight.shape, weight, eps)

        if (forward(sample).float() - expected).abs().max() <= 0.01 * expected.abs().max():
            module.forward = forward


# --- prompts ------------------------------------------------------------------------------------------------


class PromptReader:
    """Turns prompts into keys and values, `budget` tokens in one pass.

    Most of a question to a judge is the same for all questions. The keys and values of such a prefix are computed once.
    """

    def __init__(self, model: Any, *, budget: int) -> None:
        self.model, self.budget = model, budget
        self._prefixes: OrderedDict[Tokens, LayerStates] = OrderedDict()
        self._recent: deque[Tokens] = deque(maxlen=MAX_REMEMBERED_PROMPTS)

    def read(self, prompts: Sequence[Tokens]) -> Iterator[tuple[list[Tokens], LayerStates]]:
        """Keys and values of different prompts, in groups. Row r of a group's states belongs to its prompt r."""
        groups: dict[Tokens, tuple[LayerStates, list[Tokens]]] = {}
        for prompt in prompts:
            prefix = self._find_prefix(prompt, prompts)
            groups.setdefault(prefix, (self._prefixes.get(prefix, []), []))[1].append(prompt)
        self._recent.extend(prompts)
        for prefix, (layers, group) in groups.items():
            for chunk in split_by_budget(sorted(group, key=len), self.budget, skip=len(prefix)):
                yield chunk, self._forward(chunk, layers, skip=len(prefix))

    def free(self) -> None:
        self._prefixes.clear()
        self._recent.clear()

    def _find_prefix(self, prompt: Tokens, others: Sequence[Tokens]) -> Tokens:
        """The stored prefix of a prompt. A prefix that the prompt shares with another prompt is stored from now on."""
        stored = [prefix for prefix in self._prefixes if prompt[: len(prefix)] == prefix and len(prefix) < len(prompt)]
        if not stored:
            shared = [
                _shared_length(prompt, candidate) for candidate in (*self._recent, *others) if candidate is not prompt
            ]
            # The shortest is the one that most prompts have; what only two prompts share is not worth its memory.
            length = min((length for length in shared if length >= SHORTEST_PREFIX), default=0)
            length = min(length, len(prompt) - 1)
            if length < SHORTEST_PREFIX:
                return ()
            stored = [prompt[:length]]
            self._prefixes[stored[0]] = self._forward(stored, [], skip=0)
            while len(self._prefixes) > MAX_PREFIXES:
                self._prefixes.popitem(last=False)
        longest = max(stored, key=len)
        self._prefixes.move_to_end(longest)
        return longest

    def _forward(self, prompts: Sequence[Tokens], prefix: LayerStates, *, skip: int) -> LayerStates:
        """Shorter prompts are filled up on the right, where no token of theirs looks. `prefix` holds the first `skip`
        tokens of all prompts."""
        longest = max(1, *(len(prompt) for prompt in prompts))
        filled = [[*prompt[skip:], *[0] * (longest - max(skip, len(prompt)))] for prompt in prompts]
        ids = torch.tensor(filled, device=self.model.device)
        cache = DynamicCache()
        for layer, (key, value) in enumerate(prefix):
            cache.update(key.expand(len(prompts), -1, -1, -1), value.expand(len(prompts), -1, -1, -1), layer)
        positions = torch.arange(skip, longest, device=ids.device).expand_as(ids)
        with sdpa_kernel(ATTENTION_BACKENDS):
            self.model(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return [(layer.keys, layer.values) for layer in cache.layers]


def split_by_budget(prompts: Sequence[Tokens], budget: int, *, skip: int = 0) -> Iterator[list[Tokens]]:
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


def _shared_length(first: Tokens, second: Tokens) -> int:
    """How many tokens two prompts share at their beginning; 0 for less than `SHORTEST_PREFIX`."""
    if first[:SHORTEST_PREFIX] != second[:SHORTEST_PREFIX]:
        return 0
    low, high = SHORTEST_PREFIX, min(len(first), len(second))
    while low < high:  # halving: slices are compared faster than tokens one by one
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low


# --- one step -----------------------------------------------------------------------------------------------


_RECORDING = threading.Lock()
"""Beginning to record waits for the whole device, which breaks a recording that another thread is making."""


class CudaRecorder:
    """Records CUDA graphs. They share their memory, as only one runs at a time. One thread records at a time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # whatever is set up on first use must not be part of a recording
                run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Another model of this process may load or write in a thread of its own meanwhile.
        with (
            _RECORDING,
            torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"),
        ):
            result = run()
        return graph.replay, result


class Stepper:
    """Scores of the next token of every row, plainly or from a recording for this number of rows and this width.

    The first recording is compared with the plain pass. If the two differ, or the model cannot be recorded, every step
    is plain from then on.
    """

    def __init__(self, model: Any, cache: RowCache, *, recorder: Recorder | None) -> None:
        self.model, self.cache = model, cache
        self.recorder = recorder
        """Taken away for good at the first sign that a recording cannot be trusted."""
        self.trusted = False
        """Whether a recording was compared with the plain pass."""
        self.difference: float | None = None
        """By how much the two differed, as a share of how much scores differ among themselves."""
        self.refusal: str | None = None
        """Why recording was given up."""
        self._windows = attention_windows(model.config)
        self._recordings: OrderedDict[tuple[int, int], tuple[Callable[[], None], Any]] = OrderedDict()
        self._room: tuple[int, int] = (0, 0)
        self._inputs: Any = None
        self._last: tuple[tuple[int, int], int] | None = None
        """The recording that the last step used, and the largest position it read."""

    def rows_for(self, rows: int) -> int:
        """How many rows of the cache a step over so many rows needs."""
        return next((size for size in BUCKETS if size >= rows), rows) if self.recorder else rows

    def logits(self, ids: list[int], positions: list[int], *, width: int) -> Any:
        """As float32, a line for each row: row r reads the token `ids[r]` at `positions[r]`."""
        if self.recorder and len(ids) <= BUCKETS[-1]:
            try:
                return self._replay(self.recorder, ids, positions, width)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:  # torch's own, and ours for a recording that differs
                self.refusal = (str(error).strip() or type(error).__name__)[:500]
                self.drop_recordings()
                self.recorder = None
        device = self.model.device
        return self._run_plain(torch.tensor(ids, device=device), torch.tensor(positions, device=device), width)

    def logits_ahead(self, tokens: Any) -> Any:
        """Scores of the token after those just chosen, which may still be on their way, or `None` if there is no
        recording for that. The rows, and their memory, must be those of the last step."""
        if self._last is None or self._room != self.cache.room:
            return None
        key, position = self._last
        if key not in self._recordings or position + 1 >= key[1]:  # a recording sees `width` tokens of a row
            return None
        self._inputs[0, : len(tokens)].copy_(tokens.clamp_min(0))  # -1 is no token; nobody will ask for what follows
        self._inputs[1, : len(tokens)].add_(1)
        replay, result = self._recordings[key]
        replay()
        self._last = key, position + 1
        return result[: len(tokens)]

    def drop_recordings(self) -> None:
        """Drop all recordings and their memory."""
        self._recordings.clear()
        self._inputs, self._room, self._last = None, (0, 0), None

    def _run_plain(self, ids: Any, positions: Any, width: int) -> Any:
        self.cache.set_positions(positions, width=width)
        output = self.model(
            input_ids=ids[:, None],
            position_ids=positions[:, None],
            attention_mask=self._attention_masks(positions, width),
            past_key_values=self.cache,
            use_cache=True,
        )
        return output.logits[:, -1].float()

    def _attention_masks(self, positions: Any, width: int) -> Any:
        """What each row's new token sees: its own row up to itself, or the last `window` places of that. One mask for
        all layers, or one for each kind of layer."""
        dtype, places = self.model.dtype, torch.arange(width, device=positions.device)
        masks = {}
        for kind, window in self._windows.items():
            visible = places <= positions[:, None]
            if window is not None:
                visible &= places > positions[:, None] - window
            mask = torch.zeros(visible.shape, dtype=dtype, device=positions.device)
            masks[kind] = mask.masked_fill_(~visible, torch.finfo(dtype).min)[:, None, None]
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _replay(self, recorder: Recorder, ids: list[int], positions: list[int], width: int) -> Any:
        if self._room != self.cache.room:  # a recording is bound to the memory it was made with
            self.drop_recordings()
            self._room = self.cache.room
        if self._inputs is None:  # every recording reads these
            self._inputs = torch.zeros((2, BUCKETS[-1]), dtype=torch.long, device=self.model.device)
        idle = [0] * (BUCKETS[-1] - len(ids))  # idle rows look at one token of their own
        self._inputs.copy_(torch.tensor([[*ids, *idle], [*positions, *idle]]))
        rows = self.rows_for(len(ids))
        read, places = self._inputs[0, :rows], self._inputs[1, :rows]
        key = (rows, width)
        if key not in self._recordings:
            self._recordings[key] = recorder(lambda: self._run_plain(read, places, width))
            if len(self._recordings) > MAX_RECORDINGS:
                self._recordings.popitem(last=False)
        self._recordings.move_to_end(key)
        replay, result = self._recordings[key]
        replay()
        self._last = key, max(positions)
        logits = result[: len(ids)]
        if not self.trusted:
            plain = self._run_plain(read, places, width)[: len(ids)]
            # Rounding may differ; a recording that went wrong differs by as much as the scores themselves.
            self.difference = float((logits - plain).norm() / (plain - plain.mean()).norm())
            self.trusted = self.difference <= (1e-3 if self.model.dtype == torch.float32 else 0.1)
            if not self.trusted:
                raise RuntimeError(f"a recorded pass differs from the plain one by {self.difference:.2g}")
        return logits


def attention_windows(config: Any) -> dict[str, int | None]:
    """Kinds of attention the model's layers have, with the window of each."""
    text = config.get_text_config()
    window = getattr(text, "sliding_window", None)
    kinds = dict.fromkeys(getattr(text, "layer_types", None) or ())
    if not kinds:
        return {"full_attention": window}
    return {kind: window if kind == "sliding_attention" else None for kind in kinds}
