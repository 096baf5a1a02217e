"""Models that run in this process: `embedded/NAME` from the catalogue, `gguf:PATH` for any other GGUF file.

llama.cpp's server engine does the work (through xllamacpp): it answers several requests at a time by continuous
batching. `Setup` says what its defaults were measured by.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import os
import signal
import sys
import threading
import time
import weakref
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from unmask.errors import FatalModelError, MissingError, RequestRefusedError, TransientModelError, UsageError
from unmask.models.base import Capabilities, Treatment
from unmask.models.daemon import DaemonPool, run_in_daemon
from unmask.models.failures import ProviderProblem
from unmask.models.local.catalogue import adapter_of, find_entry, require_pulled
from unmask.models.local.gguf import Header, read_header
from unmask.models.local.lanes import Lanes
from unmask.models.local.llamacpp import (
    PARAMS,
    Setup,
    StreamedAnswer,
    as_model_error,
    body_of,
    engine,
    engine_parameters,
    without_adapter,
)
from unmask.models.parameters import refused_addition
from unmask.models.user_params import refusal_of
from unmask.records import Completion, Request

MAX_THREADS = 8
PATIENCE = 20.0
"""Seconds that closing a model waits for an engine to hear that it should stop: it does after a batch."""
LITTLE_PATIENCE = 4.0
"""The same where answers were given up: somebody has pressed Ctrl-C and waits."""


def count_cores() -> int:
    """The processors this process may use: its affinity, and less where the container has a smaller share."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        allowed = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, min(allowed, int(quota) // int(period)))
    except (OSError, ValueError):
        return allowed


def default_setup() -> Setup:
    """From UNMASK_EMBEDDED_THREADS, _SLOTS and _CONTEXT, where set, otherwise as measured."""
    return Setup(
        threads=_read_variable("THREADS") or min(count_cores(), MAX_THREADS),
        slots=_read_variable("SLOTS") or 4,
        context=_read_variable("CONTEXT") or 4096,
    )


def _read_variable(word: str) -> int | None:
    variable = f"UNMASK_EMBEDDED_{word}"
    value = os.environ.get(variable, "").strip()
    if not value:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(f"{variable} must be a whole number of at least 1, not {value!r}")
    return int(value)


def open_embedded(name: str, *, setup: Setup | None = None) -> Embedded:
    """The model called `embedded/NAME` (or just `NAME`) or `gguf:PATH`.

    Everything cheap is checked here (file, format, chat template, extra); the weights are loaded by the first request.
    """
    adapter, trained_to_read = None, False
    if name.startswith("gguf:"):
        engine()
        shown, path = name, Path(name.removeprefix("gguf:")).expanduser()
    else:
        entry = find_entry(name)
        engine()
        shown, path = f"embedded/{name.removeprefix('embedded/')}", require_pulled(entry)
        adapter, trained_to_read = adapter_of(entry), entry.trained_to_read
    header = read_header(path)
    if not header.chat_template:
        raise MissingError(
            f"{path} has no chat template, so it cannot be sent a conversation",
            advice="Use an instruction-tuned model; its GGUF file holds tokenizer.chat_template",
        )
    return Embedded(
        path,
        name=shown,
        header=header,
        setup=setup or default_setup(),
        adapter=adapter,
        trained_to_read=trained_to_read,
    )


class _RunningEngine:
    """A started engine. It stops, and its memory is freed, when nobody holds it any more."""

    def __init__(self, server: Any) -> None:
        self.server = server


_STARTING = threading.Lock()
_RUNNING: weakref.WeakValueDictionary[tuple[Path, Setup, Path | None], _RunningEngine] = weakref.WeakValueDictionary()
"""Engines in use, so that a subject and a judge of the same file share its weights."""


def _end_by_signal() -> None:
    """End this process as an interrupted one ends. An engine that still works would crash while Python takes itself
    apart, and all that was answered is on disk by now."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


class Embedded:
    """A GGUF model in this process. Meets the Model protocol; at most `setup.slots` answers are written at a time."""

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        header: Header,
        setup: Setup,
        adapter: Path | None = None,
        trained_to_read: bool = False,
    ) -> None:
        context = min(setup.context, header.context_length or setup.context)
        self.name = self.endpoint = name
        self.setup = Setup(threads=setup.threads, slots=setup.slots, context=context)
        """The setup in force, with `context` cut to what the model was trained for."""
        self._path, self._adapter, self._trained_to_read = path, adapter, trained_to_read
        self._running: _RunningEngine | None = None
        self._closed = threading.Event()
        self._given_up = False
        # No more than the engine has slots: a request in its own queue could not be told that nobody waits for it.
        self._pool = DaemonPool(setup.slots, name="embedded")
        self._lanes = Lanes(setup.slots)

    @cached_property
    def capabilities(self) -> Capabilities:
        """The engine refuses more choices than it has slots."""
        return Capabilities(
            max_n=self.setup.slots, supports_options=True, trained_to_read=self._trained_to_read, params=PARAMS
        )

    @cached_property
    def treatments(self) -> tuple[Treatment, ...]:
        if self._adapter is None:
            return ()
        content = hashlib.blake2b(self._adapter.read_bytes(), digest_size=8).hexdigest()
        return (Treatment("adapter", self._adapter.name, content),)

    async def complete(self, request: Request) -> Completion:
        if self._closed.is_set():
            raise FatalModelError(f"{self.name} was closed")
        body = body_of(request)
        if self._trained_to_read and not request.options:
            body = without_adapter(body)  # the adapter picks lines, and nothing else
        if not request.options or request.n > 1:
            return await self._answer_in_thread(self._pool, request, body)
        # One word is the answer and the prompt all the work: two orders of one question share most of it.
        with self._lanes.take_lane(request.messages[-1].content) as lane:
            return await self._answer_in_thread(lane.thread, request, {**body, "id_slot": lane.slot})

    async def _answer_in_thread(self, executor: DaemonPool, request: Request, body: dict[str, Any]) -> Completion:
        stopped = threading.Event()
        try:
            return await executor.run(partial(self._answer, request, body, stopped))
        except asyncio.CancelledError:
            stopped.set()  # the engine is told at its next token; otherwise it would write to the end for nobody
            self._given_up = True
            raise

    async def close(self) -> None:
        """Stops what is being written, then frees the weights. An engine that does not hear of it is left to itself
        after `PATIENCE` seconds, or when nobody waits for this any more."""
        self._closed.set()
        patience = min(PATIENCE, LITTLE_PATIENCE) if self._given_up else PATIENCE
        try:
            await asyncio.wait_for(run_in_daemon(self._free), patience)
        except TimeoutError:
            atexit.register(_end_by_signal)
        except asyncio.CancelledError:
            atexit.register(_end_by_signal)
            raise

    def _free(self) -> None:
        self._pool.drop()
        self._pool.join()
        self._lanes.close()
        self._running = None

    def _load(self) -> Any:
        key = (self._path.resolve(), self.setup, self._adapter)
        with _STARTING:
            if self._running is None:
                self._running = _RUNNING.get(key) or self._start_engine()
                _RUNNING[key] = self._running
            return self._running.server

    def _start_engine(self) -> _RunningEngine:
        try:
            server = engine().Server(engine_parameters(self._path, self.setup, adapter=self._adapter))
        except (RuntimeError, ValueError, MemoryError) as error:
            raise FatalModelError(
                f"llama.cpp cannot load {self._path}: {error}",
                advice="The file may be damaged, or its architecture newer than the installed xllamacpp",
            ) from None
        return _RunningEngine(server)

    def _answer(self, request: Request, body: dict[str, Any], stopped: threading.Event) -> Completion:
        server = self._load()
        answer = StreamedAnswer(request, ended=lambda: stopped.is_set() or self._closed.is_set())
        began = time.monotonic()
        try:
            if not answer.ended():
                server.handle_chat_completions(body, answer.take)
        except ValueError as error:
            raise RequestRefusedError(f"{self.name} cannot answer this request: {error}") from None
        except RuntimeError as error:
            raise TransientModelError(f"{self.name} failed: {error}") from None
        if answer.error is not None:
            failure = as_model_error(answer.error, name=self.name)
            refused = refused_addition(ProviderProblem(400, str(failure)), request.sampling, answered=False)
            raise failure if refused is None else refusal_of(refused, request.sampling, str(failure))
        return answer.build_completion(model=self._path.name, latency=time.monotonic() - began)
