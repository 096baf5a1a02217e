"""One forward pass over all rows: plainly, or on a GPU as a recorded graph.

A small model spends most of a step on being told what to do, kernel by kernel. A recorded graph is told once. What is
recorded is the direct pass where the model has one (`unmask.whitebox.direct`), otherwise transformers' own, for each
number of rows and each width. The first recording is compared with the plain pass. If they differ, or a model cannot be
recorded, the next simpler way is taken, and at last everything is done plainly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

from unmask.whitebox.direct import Direct, direct
from unmask.whitebox.slots import Slots

BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Numbers of rows that are recorded; a batch takes the next larger one, with idle rows."""
RECORDED = 48
"""Recordings that are kept."""

Recorder = Callable[[Callable[[], Any]], tuple[Callable[[], None], Any]]
"""Records what a function computes: gives a function that does it again, and where its result then stands."""


class CudaRecorder:
    """Records CUDA graphs that share their memory, as only one runs at a time."""

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
        with torch.cuda.graph(graph, pool=self._pool, stream=stream):
            result = run()
        return graph.replay, result


class Stepper:
    """Scores of the next token of every row. `slots` is aimed and filled along the way."""

    def __init__(self, model: Any, slots: Slots, *, recorder: Recorder | None) -> None:
        self.model, self.slots = model, slots
        self.recorder = recorder
        """Taken away for good at the first sign that a recording cannot be trusted."""
        self.trusted = False
        """Whether a recording was compared with the plain pass."""
        self.difference: float | None = None
        """By how much they differed, as a share of how much scores differ among themselves."""
        self.refused: list[str] = []
        """Why a faster way was given up."""
        self._windows = layer_windows(model.config)
        self._direct: Direct | None = direct(model, slots, windows=self._windows) if recorder else None
        self._recordings: OrderedDict[tuple[int, int], tuple[Callable[[], None], Any]] = OrderedDict()
        self._room: tuple[int, int] = (0, 0)
        self._inputs: Any = None
        self._last: tuple[int, int] | None = None

    @property
    def way(self) -> str:
        """How steps are done: `direct` or `recorded`, both recorded, or `plain`."""
        return ("direct" if self._direct else "recorded") if self.recorder else "plain"

    def rows_for(self, rows: int) -> int:
        """How many rows of the cache a step over so many rows needs."""
        return next((size for size in BUCKETS if size >= rows), rows) if self.recorder else rows

    def logits(self, ids: list[int], at: list[int], *, width: int) -> Any:
        """As float32, a line for each row: row r reads the token `ids[r]` at its place `at[r]`."""
        while self.recorder and len(ids) <= BUCKETS[-1]:
            try:
                return self._recorded(self.recorder, ids, at, width)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # compilers of kernels have exceptions of their own
                self.refused.append(f"{self.way}: {str(error).strip() or type(error).__name__}"[:500])
                self._fall_back()
        device = self.model.device
        return self._plain(torch.tensor(ids, device=device), torch.tensor(at, device=device), width)

    def ahead(self, tokens: Any) -> Any:
        """Scores of the token after those just chosen, which may still be on their way, or `None` if only a recording
        that is there already could do that. Rows, and the memory they are in, have to be those of the last step."""
        recording = self._recordings.get(self._last) if self.recorder and self._last else None
        if recording is None or self._room != self.slots.room:
            return None
        self._inputs[0, : len(tokens)].copy_(tokens.clamp_min(0))  # -1 is no token; nobody will ask for what follows
        self._inputs[1, : len(tokens)].add_(1)
        recording[0]()
        return recording[1][: len(tokens)]

    def forget(self) -> None:
        """Drop all recordings and their memory."""
        self._recordings.clear()
        self._inputs, self._room, self._last = None, (0, 0), None

    def _fall_back(self) -> None:
        """From the direct pass to transformers' own, from that to none that is recorded."""
        self.forget()
        self.recorder = self.recorder if self._direct else None
        self._direct = None

    def _plain(self, ids: Any, at: Any, width: int) -> Any:
        self.slots.aim(at, width=width)
        found = self.model(
            input_ids=ids[:, None],
            position_ids=at[:, None],
            attention_mask=self._masks(at, width),
            past_key_values=self.slots,
            use_cache=True,
        )
        return found.logits[:, -1].float()

    def _masks(self, at: Any, width: int) -> Any:
        dtype = self.model.dtype
        kinds = {kind: _mask(at, width, window=window, dtype=dtype) for kind, window in self._windows.items()}
        return kinds if len(kinds) > 1 else next(iter(kinds.values()))

    # --- recordings -----------------------------------------------------------------------------------------

    def _recorded(self, recorder: Recorder, ids: list[int], at: list[int], width: int) -> Any:
        if self._room != self.slots.room:  # a recording is bound to the memory it was made with
            self.forget()
            self._room = self.slots.room
        rows = self.rows_for(len(ids))
        read, places = self._filled(ids, at, rows)
        fast = self._direct
        key = (rows, 0 if fast else width)  # the direct pass looks at what is there, whatever the width
        if key not in self._recordings:
            run = (lambda: fast(read, places)) if fast else (lambda: self._plain(read, places, width))
            self._recordings[key] = recorder(run)
            if len(self._recordings) > RECORDED:
                self._recordings.popitem(last=False)
        self._recordings.move_to_end(key)
        replay, result = self._recordings[key]
        replay()
        self._last = key if fast else None  # a plain recording holds for one width only
        found = result[: len(ids)]
        if not self.trusted:
            plain = self._plain(read, places, width)[: len(ids)]
            # Rounding may differ; a recording that went wrong differs by as much as the scores themselves.
            self.difference = float((found - plain).norm() / (plain - plain.mean()).norm())
            self.trusted = self.difference <= (1e-3 if self.model.dtype == torch.float32 else 0.1)
            if not self.trusted:
                raise RuntimeError(f"a recorded pass differs from the plain one by {self.difference:.2g}")
        return found

    def _filled(self, ids: list[int], at: list[int], rows: int) -> tuple[Any, Any]:
        """The inputs every recording reads, filled for `rows` rows; idle ones look at one token of their own."""
        if self._inputs is None:
            self._inputs = torch.zeros((2, BUCKETS[-1]), dtype=torch.long, device=self.model.device)
        idle = [0] * (BUCKETS[-1] - len(ids))
        self._inputs.copy_(torch.tensor([[*ids, *idle], [*at, *idle]]))
        return self._inputs[0, :rows], self._inputs[1, :rows]


def layer_windows(config: Any) -> dict[str, int | None]:
    """Kinds of attention the model's layers have, with the window of each."""
    text = config.get_text_config()
    window = getattr(text, "sliding_window", None)
    kinds = dict.fromkeys(getattr(text, "layer_types", None) or ())
    if not kinds:
        return {"full_attention": window}
    return {kind: window if kind == "sliding_attention" else None for kind in kinds}


def _mask(at: Any, width: int, *, window: int | None, dtype: Any) -> Any:
    """What each row's new token sees: its own row up to itself, or the last `window` places of that."""
    places = torch.arange(width, device=at.device)
    seen = places <= at[:, None]
    if window is not None:
        seen &= places > at[:, None] - window
    hidden = torch.zeros(seen.shape, dtype=dtype, device=at.device).masked_fill_(~seen, torch.finfo(dtype).min)
    return hidden[:, None, None]
