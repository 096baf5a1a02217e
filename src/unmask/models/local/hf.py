"""`hf:PATH`: a transformers chat model in this process, behind the same protocol as every other model.

One thread owns the model. Requests that arrive while it writes join the running batch when there is room. A subject and
a judge of the same path share one model. docs/mitigations.md says what it is good for.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import random
import secrets
import threading
import time
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError, UsageError
from unmask.models.base import Capabilities, Treatment
from unmask.models.local.catalogue import ENTRIES, adapter_of, require_pulled
from unmask.models.local.gguf import read_header
from unmask.records import Choice, Completion, Request, Stop, Usage
from unmask.whitebox.adapter import find_adapter, switch_adapter
from unmask.whitebox.load import (
    CheckedModel,
    ModelSource,
    check_model,
    free_memory,
    load_model,
    parse_source,
    require_extra,
)

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat
    from unmask.whitebox.generate import AnswerRow, Room, Writer

MAX_N = 64
PREFIX = "hf:"
TEMPLATE_SETTINGS = "chat_template_kwargs"
"""The one parameter of the user that is taken: variables of the chat template."""


def open_hf(name: str) -> HF:
    """The model called `hf:PATH` (a folder, a hub name or a GGUF file) or `hf:NAME` (of the catalogue), also with
    `+adapter=DIR` or `+steer=FILE@COEFFICIENT` after it.

    Configuration, tokenizer, chat template and memory are checked here; the weights are loaded by the first request.
    """
    return HF(name, _open_engine(find_source(name)))


def find_source(name: str) -> ModelSource:
    """Where the model `hf:PATH` or `hf:NAME` comes from."""
    require_extra()
    path = name.removeprefix(PREFIX)
    base, plus, treated = path.partition("+")
    entry = next((entry for entry in ENTRIES if entry.name == base), None)
    if entry is None or Path(base).exists():
        return parse_source(path)
    source, shipped = parse_source(f"{require_pulled(entry)}{plus}{treated}"), adapter_of(entry)
    if shipped is None:
        return source
    if plus:
        raise UsageError(f"{base} has an adapter of its own, so it takes no other", advice=f"{PREFIX}{base}")
    return msgspec.structs.replace(
        source, adapter=find_adapter(str(shipped)), shipped=True, trained_to_read=entry.trained_to_read
    )


def check_source(source: ModelSource) -> CheckedModel:
    """What can be known of a model, and refused, before its weights are read."""
    return check_model(source, template=read_header(Path(source.shown)).chat_template if source.file else None)


def treatments_of(source: ModelSource) -> tuple[Treatment, ...]:
    """What is applied to the weights, by the hash it had when the model was looked for."""
    changes = []
    if source.adapter is not None:  # a shipped adapter lies elsewhere on every machine
        path = Path(source.adapter.path)
        changes.append(Treatment("adapter", path.name if source.shipped else str(path), source.adapter.hash))
    if source.steer is not None:
        changes.append(Treatment("steer", source.steer.file, source.steer.hash))
    return tuple(changes)


class _Job:
    """One request on its way through the engine's thread. Its future is cancelled when nobody waits any more."""

    def __init__(self, request: Request) -> None:
        self.request, self.future = request, Future[Completion]()
        self.began = time.monotonic()
        self.prompt = ""
        self.rows: list[AnswerRow] = []

    def finish(self, answer: Completion | ModelError) -> None:
        with contextlib.suppress(InvalidStateError):  # cancelled, or finished before an error
            if isinstance(answer, Completion):
                self.future.set_result(answer)
            else:
                self.future.set_exception(answer)


class _Engine:
    """A model and the thread it works in. `users` counts the open models; the last one to close frees the memory."""

    def __init__(self, checked: CheckedModel) -> None:
        self.checked = checked
        self.name = checked.source.shown
        self.users = 0
        self._jobs: list[_Job] = []
        self._wake = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def submit(self, job: _Job) -> None:
        with self._wake:
            if self._stopped:
                raise FatalModelError(f"{self.name} was closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="unmask-hf", daemon=True)
                self._thread.start()
            self._jobs.append(job)
            self._wake.notify()

    def stop(self) -> None:
        """Ends the thread and frees the memory; what is being written is given up."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    # --- in the thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        active: list[_Job] = []
        loaded: _LoadedModel | None = None
        failure: ModelError | None = None
        try:
            loaded = _LoadedModel(self.checked)
        except Exception as error:  # a thread that dies would leave everybody waiting
            failure = (
                error if isinstance(error, ModelError) else FatalModelError(f"{self.name} cannot be loaded: {error}")
            )
        while (new := self._wait_for_jobs(idle=not active)) is not None:
            for job in new:
                try:
                    if loaded is None:
                        raise failure or FatalModelError(f"{self.name} was closed")
                    job.rows = self._build_rows(job, loaded.chat)
                    loaded.writer_for(job.request).add(job.rows)
                    active.append(job)
                except Exception as error:  # as above
                    job.finish(_as_model_error(error, self.name))
            if loaded is not None and active:
                active = self._advance(loaded, active)
        for job in active:
            job.finish(FatalModelError(f"{self.name} was closed"))
        active.clear()
        if loaded is not None:
            loaded.free()
        del loaded
        gc.collect()
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _wait_for_jobs(self, *, idle: bool) -> list[_Job] | None:
        """New requests, waited for where there is nothing else to do; `None` when it is time to stop."""
        with self._wake:
            while idle and not self._stopped and not self._jobs:
                self._wake.wait()
            new, self._jobs = self._jobs, []
            if not self._stopped:
                return new
        for job in new:
            job.finish(FatalModelError(f"{self.name} was closed"))
        return None

    def _advance(self, loaded: _LoadedModel, active: list[_Job]) -> list[_Job]:
        """Write one token of every row. Returns the requests that are still on their way."""
        left = []
        try:
            loaded.step()
            for job in active:
                if job.future.cancelled():
                    for row in job.rows:
                        row.dropped = True
                elif all(row.end is not None for row in job.rows):
                    job.finish(_build_completion(job, loaded.chat, model=self.checked.source.recorded))
                else:
                    left.append(job)
        except Exception as error:  # whatever torch raises, every request on its way has to hear of it
            failure = _as_model_error(error, self.name)
            for job in active:
                job.finish(failure)
            loaded.clear()
            return []
        return left

    def _build_rows(self, job: _Job, chat: Chat) -> list[AnswerRow]:
        from unmask.whitebox.generate import AnswerRow, Manner

        request, context = job.request, chat.context
        sampling = request.sampling
        template_settings = sampling.params.get(TEMPLATE_SETTINGS)
        job.prompt = chat.render_prompt(request.messages, thinks=not request.options, settings=template_settings)
        tokens = chat.encode(job.prompt)
        if not 0 < len(tokens) < context:
            raise RequestRefusedError(f"{self.name}: the request has {len(tokens)} tokens, the context holds {context}")
        seed = secrets.token_hex(8) if sampling.seed is None else str(sampling.seed)
        limit = min(sampling.max_tokens or context, context - len(tokens))
        temperature = 1.0 if sampling.temperature is None else sampling.temperature
        choices = chat.option_tokens(request.options) if request.options else None
        top_p = 1.0 if sampling.top_p is None else sampling.top_p
        return [
            AnswerRow(tokens, Manner(limit, temperature, top_p, f"{seed}/{take}"), choices=choices)
            for take in range(1 if request.options else request.n)
        ]


class _LoadedModel:
    """The weights, and what writes with them. A judge that was trained to read has two writers, as its adapter answers
    some requests and not others; every other model has one."""

    def __init__(self, checked: CheckedModel) -> None:
        self.chat = checked.chat
        self._model = load_model(checked)
        self._trained_to_read = checked.source.trained_to_read
        self._adapter_active = True
        self._writers: dict[bool, Writer] = {}

    def writer_for(self, request: Request) -> Writer:
        """The trained adapter picks lines; all other answers are the model's own."""
        adapted = not self._trained_to_read or bool(request.options)
        if adapted not in self._writers:
            from unmask.whitebox.forward import CudaRecorder
            from unmask.whitebox.generate import Writer

            model, chat = self._model, self.chat
            stops = chat.stop_tokens(model.config.get_text_config())
            stops |= chat.stop_tokens(getattr(model, "generation_config", None))
            recorder = CudaRecorder() if model.device.type == "cuda" else None
            self._writers[adapted] = Writer(model, stops=stops, room=_choose_room(model), recorder=recorder)
        return self._writers[adapted]

    def step(self) -> None:
        """Write one token of every row."""
        for adapted, writer in self._writers.items():
            if writer.busy:
                if adapted != self._adapter_active:
                    switch_adapter(self._model, active=adapted)
                    self._adapter_active = adapted
                writer.step()

    def clear(self) -> None:
        """Give up every row; the weights stay."""
        for writer in self._writers.values():
            writer.clear()

    def free(self) -> None:
        for writer in self._writers.values():
            writer.free()
        self._model = None


class HF:
    """A transformers model in this process. Meets the Model protocol. `Request.schema` is not enforced."""

    def __init__(self, name: str, engine: _Engine) -> None:
        self.name = self.endpoint = name
        self._engine = engine
        self._closed = False

    @property
    def treatments(self) -> tuple[Treatment, ...]:
        return treatments_of(self._engine.checked.source)

    @property
    def capabilities(self) -> Capabilities:
        trained_to_read = self._engine.checked.source.trained_to_read
        return Capabilities(
            max_n=MAX_N, supports_options=True, trained_to_read=trained_to_read, params=(TEMPLATE_SETTINGS,)
        )

    async def complete(self, request: Request) -> Completion:
        if self._closed:
            raise FatalModelError(f"{self.name} was closed")
        job = _Job(request)
        self._engine.submit(job)
        return await asyncio.wrap_future(job.future)

    async def close(self) -> None:
        """Gives up what is being written; the last model of an engine frees the weights."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(_release_engine, self._engine)


# --- one engine for every open model of a path -------------------------------------------------------------

_LOCK = threading.Lock()
_ENGINES: dict[ModelSource, _Engine] = {}


def _open_engine(source: ModelSource) -> _Engine:
    with _LOCK:
        if source not in _ENGINES:
            _ENGINES[source] = _Engine(check_source(source))
        engine = _ENGINES[source]
        engine.users += 1
        return engine


def _release_engine(engine: _Engine) -> None:
    with _LOCK:
        engine.users -= 1
        if engine.users:
            return
        _ENGINES.pop(engine.checked.source, None)
    engine.stop()


def _choose_room(model: Any) -> Room:
    """How much to do at once. On a GPU, keys and values may take 4 GiB, or 40 % of what the weights take if that is
    more, and never more than 80 % of what is free."""
    import torch

    from unmask.whitebox.generate import Room

    text = model.config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head_size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    bytes_per_token = 2 * text.num_hidden_layers * heads * head_size * model.dtype.itemsize
    if model.device.type != "cuda":
        tokens = int(min(2**31, (free_memory() or 2**31) / 4) / bytes_per_token)
        return Room(rows=16, tokens=max(4096, tokens), reading=2048)
    weight_bytes = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    free = torch.cuda.mem_get_info(model.device)[0]
    return Room(
        rows=256, tokens=max(4096, int(min(max(2**32, 0.4 * weight_bytes), 0.8 * free) / bytes_per_token)), reading=4096
    )


def _build_completion(job: _Job, chat: Chat, *, model: str) -> Completion:
    from unmask.whitebox.generate import End

    if job.request.options:
        choices = _draw_options(job)
        written = len(choices)
    else:
        choices = tuple(
            Choice(
                text=chat.decode(row.written, prompt=job.prompt),
                stop=Stop.LENGTH if row.end is End.LIMIT else Stop.END,
            )
            for row in job.rows
        )
        written = sum(len(row.written) for row in job.rows)
    usage = Usage(input=len(job.rows[0].prompt), output=written)
    return Completion(choices=choices, usage=usage, latency=time.monotonic() - job.began, model=model)


def _draw_options(job: _Job) -> tuple[Choice, ...]:
    """One option for each of the `n` choices: the likeliest at temperature 0, otherwise drawn by its probability."""
    row, options = job.rows[0], job.request.options
    if row.probabilities is None:
        return (Choice(text="", stop=Stop.OTHER),) * job.request.n
    probabilities = dict(zip(options, row.probabilities, strict=True))
    temperature = row.manner.temperature
    if temperature <= 0:
        likeliest = max(probabilities, key=probabilities.__getitem__)
        return (Choice(text=likeliest, probabilities=probabilities),) * job.request.n
    top = max(probabilities.values())
    weights = [math.exp(math.log(share / top) / temperature) if share > 0 else 0.0 for share in probabilities.values()]
    draws = random.Random(row.manner.seed)
    return tuple(
        Choice(text=draws.choices(options, weights)[0], probabilities=probabilities) for _ in range(job.request.n)
    )


def _as_model_error(error: Exception, name: str) -> ModelError:
    import torch

    if isinstance(error, ModelError):
        return error
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return FatalModelError(
            f"{name} ran out of memory: {reason}", advice="Lower --max-tokens, or use a smaller model"
        )
    return TransientModelError(f"{name} failed: {reason}")
